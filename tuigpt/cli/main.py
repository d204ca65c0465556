"""The command line: one command, `tuigpt`, with sub-commands.

A sub-command's module is imported only when it is called, so that `tuigpt --help` and the app's
first frame wait for neither torch nor numpy; without arguments, nor for what reads them.
"""

from __future__ import annotations

import codecs
import errno
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tuigpt.child import SPIN_BRIEFLY
from tuigpt.cli import BAD_INPUT
from tuigpt.cli.streams import InputError, OutputError, give_up_output, open_standard_streams
from tuigpt.errors import UserError, in_words
from tuigpt.settings import chosen_home
from tuigpt.version import __version__
from tuigpt.wording import one_line

if TYPE_CHECKING:
    from tuigpt.cli.parser import Command, Parser

UNWRITTEN = 1
"""Exit status when standard output could not be written."""

COMMANDS = {
    "train": ("train", "train a model on a text"),
    "inspect": ("inspect", "tell what a text holds, as train would read it"),
    "estimate": ("estimate", "tell what a training would cost, before it starts"),
    "generate": ("generate", "write text from a checkpoint"),
    "next": ("judge", "show what could come next, as learned and as drawn"),
    "score": ("judge", "tell how surprising a text is to a model"),
    "recite": ("judge", "find what a text copies from a model's training text"),
    "eval": ("eval", "compare how well checkpoints predict a text"),
    "import": ("import_", "take in models of the workshop, nanoGPT or Hugging Face"),
    "export": ("export", "write a checkpoint for one of those programs"),
    "list": ("runs", "list runs and their checkpoints"),
    "evolve": ("evolve", "let every kept step of a run continue the same prompt"),
    "show": ("manage", "tell all that is known of a checkpoint"),
    "rename": ("manage", "give a run another name"),
    "delete": ("manage", "put runs or checkpoints into the trash"),
    "thin": ("manage", "delete all checkpoints of a run but those worth keeping"),
    "undo": ("manage", "take back what was deleted, thinned out or renamed last"),
    "star": ("manage", "star checkpoints, so that thinning spares them"),
    "note": ("manage", "note something on a run or a checkpoint"),
    "ask": ("runs", "pause, resume, stop or change a running training"),
    "stop": ("runs", "have a running training save and stop"),
    "cache": ("cache", "show what is kept to save time, or clear it"),
    "keys": ("keys", "list what can be done in the app, with its keys and ids"),
    "completion": ("completion", "print a script that completes all this in your shell"),
}
"""Each command: the module of this package that has it in its `COMMANDS`, and what it does."""

_SECTIONS = {
    "train": "train a model",
    "generate": "write with it, and judge what is written",
    "import": "exchange models with other programs",
    "list": "keep runs and checkpoints",
    "ask": "reach a running training",
    "cache": "this machine",
}
"""Titles in the help, by the first command below each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; a `UserError` becomes one line on stderr.

    Args:
        arguments: None takes those of this process, whose streams it then puts in order as well.
    """
    if arguments is None:
        _read_arguments_as_utf8()
        open_standard_streams()
        arguments = sys.argv[1:]
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, where a reader that has gone is no error
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except InputError as error:
        print(f"tuigpt: cannot read standard input: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    except OutputError as error:
        give_up_output()
        if error.errno == errno.EPIPE:  # `| head` has seen enough
            return 0
        print(f"tuigpt: cannot write to standard output: {error.strerror}", file=sys.stderr)
        return UNWRITTEN


def _read_arguments_as_utf8() -> None:
    """Start anew in Python's UTF-8 mode where the locale would have us read only ASCII.

    Then arguments, file names and texts are what was typed, for all commands and their children.
    """
    if sys.getfilesystemencoding() != "utf-8" and _knows_only_ascii():
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _knows_only_ascii() -> bool:
    return codecs.lookup(sys.getfilesystemencoding()).name == "ascii"


def _run(arguments: Sequence[str]) -> int:
    for name, value in SPIN_BRIEFLY.items():
        os.environ.setdefault(name, value)
    options, run = _read(arguments) if arguments else (SimpleNamespace(home=None), _run_app)
    if not (options.home or os.environ.get("TUIGPT_HOME")):
        options.home = chosen_home()
    try:
        return run(options)
    except UserError as error:
        from tuigpt.cli.flags import as_flag

        from_app = getattr(options, "log_file", None)  # which shows the last line of that file
        words = error.spelled(in_words if from_app else as_flag)
        print(f"tuigpt: {one_line(words)}", file=sys.stderr)
        return BAD_INPUT


def _read(arguments: Sequence[str]) -> tuple[Any, Callable[[Any], int]]:
    """What is asked for, and what carries it out."""
    program = _program()
    options, rest = program.parse_before_command(arguments)
    run: Callable[[Any], int] = _run_app
    if rest:
        name, *own = rest
        if name not in COMMANDS:
            program.unknown("command", name, COMMANDS)
        command, parser = parser_of(name)
        home = options.home
        options = parser.parse(own)
        options.home = options.home or home
        run = command.run
    options.arguments = list(arguments)
    return options, run


def parser_of(name: str) -> tuple[Command, Parser]:
    """One of `COMMANDS`, and what reads its arguments."""
    from tuigpt.cli.flags import add_home
    from tuigpt.cli.parser import Parser

    module, about = COMMANDS[name]
    command: Command = importlib.import_module(f"tuigpt.cli.{module}").COMMANDS[name]
    description = f"{about[0].upper()}{about[1:]}."
    parser = Parser(name, command.usage, description, command.examples)
    command.add_flags(parser)
    add_home(parser)
    return command, parser


def _run_app(options: Any) -> int:
    from tuigpt.cli.app import run

    return run(options.home)


def _program() -> Parser:
    from tuigpt.cli.flags import add_home
    from tuigpt.cli.parser import Parser

    width = max(map(len, COMMANDS))
    commands = []
    for name, (_, about) in COMMANDS.items():
        if name in _SECTIONS:
            commands.append(f"\n{_SECTIONS[name]}:")
        commands.append(f"  {name:{width}}  {about}")
    parser = Parser(
        "",
        "[COMMAND] [flags]",
        "\n".join(
            [
                "Train a small GPT in the terminal, watch it learn, prompt it.",
                "Without a command, tuigpt opens the app.",
                *commands,
            ]
        ),
        [
            "tuigpt",
            "tuigpt train poems.txt --preset small",
            'tuigpt generate poet --prompt "To be"',
            "tuigpt train --help",
        ],
    )
    parser.flag(
        "--version", action="version", version=f"tuigpt {__version__}",
        help="tell the version and leave",
    )  # fmt: skip
    add_home(parser)
    return parser
