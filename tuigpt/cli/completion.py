"""`tuigpt completion`: a script that lets a shell complete commands, flags and names of runs."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuigpt.cli.main import COMMANDS as ALL
from tuigpt.cli.main import parser_of
from tuigpt.cli.parser import Command, Parser
from tuigpt.paths import home_dir
from tuigpt.runs.control import ACTIONS

RUNS, FILES, NOTHING = "runs", "files", ""
"""Kinds of values besides fixed words, which are a tuple."""

Values = str | tuple[str, ...]


@dataclass(frozen=True)
class Flag:
    """One flag of a command.

    Attributes:
        name: with its two hyphens.
        values: what its value can be, or None where it takes none.
        help: what it does, in one line.
    """

    name: str
    values: Values | None
    help: str


@dataclass(frozen=True)
class Entry:
    """What can be completed behind one command.

    Attributes:
        arguments: what each argument that is no flag can be; the last one holds for all others.
    """

    name: str
    help: str
    arguments: tuple[Values, ...]
    flags: tuple[Flag, ...]


def entries() -> list[Entry]:
    """All commands, as their parsers declare them."""
    found = []
    for name, (_, about) in ALL.items():
        command, parser = parser_of(name)
        words = [word for word in command.usage.split() if word != "…" and "flags" not in word]
        arguments = tuple(_values(word.strip("[]…")) for word in words) or (NOTHING,)
        flags = [
            Flag(flag, _flag_values(action), " ".join((action.help or "").split()))
            for flag, action in parser.flags.items()
            if flag.startswith("--") and action.help != argparse.SUPPRESS
        ]
        found.append(Entry(name, about, arguments, tuple(flags)))
    return found


def _flag_values(action: argparse.Action) -> Values | None:
    if action.nargs is not None:
        return None
    if action.choices is not None:
        return tuple(map(str, action.choices))
    return _values(str(action.metavar or ""))


def _values(metavar: str) -> Values:
    """What a value of this name in the help can be."""
    if "|" in metavar:
        return tuple(metavar.split("|"))
    if metavar == "ACTION":
        return tuple(sorted(name.replace("_", "-") for name in ACTIONS))
    if "RUN" in metavar or "CHECKPOINT" in metavar:
        return RUNS
    return FILES if metavar in ("TEXT", "FILE", "FOLDER", "PATH", "META") else NOTHING


def bash(home: Path) -> str:
    """For bash 3.2 and newer; readline falls back to file names where nothing fits."""
    cases = []
    for entry in entries():
        values = "".join(
            f"        {flag.name}) {_bash_values(flag.values)}; return ;;\n"
            for flag in entry.flags
            if flag.values
        )
        places = "".join(
            f"        {place if place < len(entry.arguments) - 1 else '*'})"
            f" {_bash_values(values)} ;;\n"
            for place, values in enumerate(entry.arguments)
        )
        flags = " ".join(flag.name for flag in entry.flags)
        cases.append(
            f"    {entry.name})\n"
            f'      case "$flag" in\n{values}      esac\n'
            f"      case \"$cur\" in -*) _tuigpt_words '{flags}'; return ;; esac\n"
            f'      case "$place" in\n{places}      esac ;;\n'
        )
    return f"""\
# tuigpt completion for bash: eval "$(tuigpt completion bash)"
_tuigpt_words() {{ COMPREPLY=($(compgen -W "$1" -- "$cur")); }}
_tuigpt_runs() {{
  local folder name home="$TUIGPT_HOME"
  [ -n "$home" ] || home={shlex.quote(str(home))}
  for folder in "$home"/runs/*/; do
    name="${{folder%/}}"; name="${{name##*/}}"
    [ -d "$folder" ] && [[ "$name" == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")
  done
  [[ poet == "$cur"* ]] && COMPREPLY+=(poet)
}}
_tuigpt() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" flag="${{COMP_WORDS[COMP_CWORD-1]}}" command="" place=0 n
  COMPREPLY=()
  [ "$cur" = "=" ] && cur=""
  [ "$flag" = "=" ] && flag="${{COMP_WORDS[COMP_CWORD-2]}}"
  for ((n = 1; n < COMP_CWORD; n++)); do
    case "${{COMP_WORDS[n]}}" in
      -*|=) ;;
      *) if [ -z "$command" ]; then command="${{COMP_WORDS[n]}}"; else place=$((place + 1)); fi ;;
    esac
  done
  case "$command" in
    "") _tuigpt_words '{" ".join(ALL)} --help --version --home' ;;
{"".join(cases)}  esac
}}
complete -o default -F _tuigpt tuigpt
"""


def _bash_values(values: Values | None) -> str:
    if values == RUNS:
        return "_tuigpt_runs"
    return f"_tuigpt_words {shlex.quote(' '.join(values))}" if isinstance(values, tuple) else ":"


def zsh(home: Path) -> str:
    """For zsh: to eval, or as a file `_tuigpt` on its fpath."""
    commands = "\n".join(f"    {_zsh(f'{entry.name}:{entry.help}')}" for entry in entries())
    cases = []
    for entry in entries():
        specs = []
        for flag in entry.flags:
            head = f"{flag.name}{'' if flag.values is None else '='}[{_plain(flag.help)}]"
            tail = "" if flag.values is None else f":value:{_zsh_values(flag.values)}"
            specs.append(_zsh(head + tail))
        for place, values in enumerate(entry.arguments, 1):
            last = place == len(entry.arguments)
            specs.append(_zsh(f"{'*' if last else place}:argument:{_zsh_values(values)}"))
        body = " \\\n        ".join(specs)
        cases.append(f"    {entry.name}) _arguments \\\n        {body} ;;\n")
    return f"""\
#compdef tuigpt
# tuigpt completion for zsh: eval "$(tuigpt completion zsh)"
_tuigpt_runs() {{
  local home=$TUIGPT_HOME
  local -a runs
  [[ -n $home ]] || home={shlex.quote(str(home))}
  runs=($home/runs/*(N/:t) poet)
  compadd -a runs
  _files
}}
_tuigpt() {{
  local -a commands
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{"".join(cases)}  esac
}}
if [[ "$funcstack[1]" = _tuigpt ]]; then _tuigpt "$@"; else compdef _tuigpt tuigpt; fi
"""


def _plain(words: str) -> str:
    """Help without what `_arguments` would read as syntax."""
    return words.replace("%%", "%").translate(str.maketrans("[]:\\", "();/"))


def _zsh(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _zsh_values(values: Values) -> str:
    if isinstance(values, tuple):
        return f"({' '.join(values)})"
    return {RUNS: "_tuigpt_runs", FILES: "_files"}.get(values, " ")


def fish(home: Path) -> str:
    """For fish: to source, or as a file in its completions."""
    lines = [
        "# tuigpt completion for fish: tuigpt completion fish | source",
        "function __tuigpt_runs",
        "    set -l home $TUIGPT_HOME",
        f'    test -n "$home"; or set home {_fish(str(home))}',
        "    for folder in $home/runs/*/",
        "        path basename $folder",
        "    end",
        "    echo poet",
        "end",
    ]
    for entry in entries():
        lines.append(
            f"complete -c tuigpt -n __fish_use_subcommand -f -a {entry.name} -d {_fish(entry.help)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {entry.name}'"
        lines += [f"complete -c tuigpt {seen} {part}" for part in _fish_parts(entry)]
    return "\n".join(lines) + "\n"


def _fish_parts(entry: Entry) -> Iterator[str]:
    if RUNS in entry.arguments:
        yield "-a '(__tuigpt_runs)'"
    for values in entry.arguments:
        if isinstance(values, tuple):
            yield f"-f -a {_fish(' '.join(values))}"
    for flag in entry.flags:
        told = f"-l {flag.name[2:]} -d {_fish(flag.help.replace('%%', '%'))}"
        if flag.values is None:
            yield told
        elif flag.values == RUNS:
            yield f"{told} -x -a '(__tuigpt_runs)'"
        elif isinstance(flag.values, tuple):
            yield f"{told} -x -a {_fish(' '.join(flag.values))}"
        else:
            yield f"{told} {'-r' if flag.values == FILES else '-x'}"


def _fish(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def _add_flags(parser: Parser) -> None:
    parser.add_argument("shell", choices=list(SHELLS), metavar="SHELL", help="bash, zsh or fish")


def _run(options: Namespace) -> int:
    print(SHELLS[options.shell](home_dir(options.home)), end="")
    return 0


EXAMPLES: Sequence[str] = (
    "tuigpt completion fish | source            # in ~/.config/fish/config.fish",
    'eval "$(tuigpt completion bash)"           # in ~/.bashrc',
    'eval "$(tuigpt completion zsh)"            # in ~/.zshrc, behind compinit',
)

COMMANDS = {
    "completion": Command(usage="bash|zsh|fish", add_flags=_add_flags, run=_run, examples=EXAMPLES)
}
