"""What each command's command line has in common: spelling, refusals, help."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from tuigpt.cli import BAD_INPUT
from tuigpt.wording import one_line

_DASHES = "\0--"
"""Stands for a value that is `--`, which argparse drops; no argument of a process holds a NUL."""


class Command(NamedTuple):
    """One command of `tuigpt`, as its module declares it.

    Attributes:
        usage: its arguments in short, such as "CHECKPOINT [--prompt TEXT] [flags]".
        add_flags: declares its arguments.
        run: carries it out and gives its exit status; it imports what is heavy.
        examples: command lines for its help, each with a few words behind `#` if need be.
    """

    usage: str
    add_flags: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]
    examples: Sequence[str] = ()


class Group(Protocol):
    """Flags that stand together in the help, or exclude each other."""

    def add_argument(self, *names: str, **details: Any) -> argparse.Action: ...


class Parser(argparse.ArgumentParser):
    """Reads one command's arguments as GNU programs do; what is wrong is told in one line.

    A flag that takes a value takes the next argument, whatever that begins with. Underscores in
    the name of a flag stand for hyphens, as the workshop spells them; nothing else is touched.

    Attributes:
        flags: each flag by each of its names.
    """

    def __init__(self, command: str, usage: str, about: str, examples: Sequence[str] = ()) -> None:
        """
        Args:
            command: its name, "" for tuigpt itself.
        """
        prog = f"tuigpt {command}".rstrip()
        super().__init__(
            prog=prog,
            usage=f"{prog} {usage}".rstrip(),
            description=about,
            epilog="\n  ".join(["examples:", *examples]) if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title, self._optionals.title = "arguments", "flags"
        self.flags: dict[str, argparse.Action] = {}
        self.flag("-h", "--help", action="help", help="show this help and leave")

    def flag(self, *names: str, group: Group | None = None, **details: Any) -> None:
        """Declare a flag; `details` are those of `add_argument`."""
        container: Group = self if group is None else group
        action = container.add_argument(*names, **details)
        self.flags |= dict.fromkeys(names, action)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read all arguments. What cannot be understood ends the program."""
        flags, others = self._read(arguments, stop_at_first=False)
        return self._parsed([*flags, *others])

    def parse_before_command(
        self, arguments: Sequence[str]
    ) -> tuple[argparse.Namespace, Sequence[str]]:
        """Read the flags in front of the first argument that is none; that and all others stay."""
        flags, others = self._read(arguments, stop_at_first=True)
        return self._parsed(flags), others

    def error(self, message: str) -> NoReturn:
        print(f"tuigpt: {one_line(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)

    def unknown(self, what: str, typed: str, known: Iterable[str]) -> NoReturn:
        """Refuse a name that is not known, and suggest the one that was meant."""
        near = difflib.get_close_matches(typed, known, n=1, cutoff=0.6)
        self.error(f"there is no {what} {typed!r}" + (f"; did you mean {near[0]}?" if near else ""))

    def _parsed(self, arguments: Sequence[str]) -> argparse.Namespace:
        options = self.parse_args(arguments)
        for name, value in vars(options).items():
            if value == _DASHES:
                setattr(options, name, "--")
        return options

    def _read(
        self, arguments: Sequence[str], *, stop_at_first: bool
    ) -> tuple[list[str], Sequence[str]]:
        """The flags, each in one argument with its value, and the arguments that are none."""
        flags: list[str] = []
        others: list[str] = []
        left = list(arguments)
        while left:
            argument = left.pop(0)
            if argument == "--":
                return flags, [*([] if stop_at_first else others), "--", *left]
            if not re.match(r"-[^\d.]", argument):  # neither a path, nor - nor a negative number
                if stop_at_first:
                    return flags, [argument, *left]
                others.append(argument)
                continue
            typed, equals, value = argument.partition("=")
            name = typed if typed in self.flags else typed.replace("_", "-")
            if name not in self.flags:
                self.unknown("flag", typed, self.flags)
            if self.flags[name].nargs is None:
                if not equals and not left:
                    self.error(f"{name} needs a value")
                value = value if equals else left.pop(0)
                flags.append(f"{name}={_DASHES if value == '--' else value}")
            else:
                flags.append(name + equals + value)
        return flags, others


def filled(text: str) -> str:
    """The type of an argument that cannot be empty, such as a path."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; is a variable of the shell not set?")
    return text
