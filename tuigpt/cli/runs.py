"""`tuigpt list`, `tuigpt ask` and `tuigpt stop`: the runs, and what is asked of their trainers."""

import math
import textwrap
import time
from contextlib import suppress
from pathlib import Path

from tuigpt.cli.flags import add_json
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.errors import UserError
from tuigpt.files import to_json
from tuigpt.paths import home_dir
from tuigpt.runs.browse import SORTS, gap, kept_as, sort_checkpoints, sort_runs
from tuigpt.runs.control import ACTIONS, Action, request
from tuigpt.runs.folder import POET, Run, is_run, open_run, run_folders
from tuigpt.runs.names import find_model, find_run
from tuigpt.runs.poet import hide_poet, listed_poet, poet_is_hidden
from tuigpt.runs.status import SILENT_AFTER, RunStatus, read_status
from tuigpt.wording import age, file_size, loss_text, one_line, val_text

POLL = 0.1
"""Seconds between two looks at the run's status."""


def list_runs(
    home: Path,
    name: str | None,
    hide: bool | None = None,
    by: str = "step",
    backwards: bool = False,
    as_json: bool = False,
) -> int:
    """Print each run with its state, and each checkpoint with step, losses and size.

    Args:
        hide: leave the built-in model out from now on, or show it again; None leaves it as it is.
        by: column to sort by, as the app does; of `SORTS`.

    Raises:
        UserError: there is no run of that name, or the settings cannot be written.
    """
    if hide is not None:
        hide_poet(hide)
    runs = [find_model(name, home)] if name is not None else []
    if name is None:
        for folder in run_folders(home):
            with suppress(UserError):  # deleted meanwhile
                runs.append(open_run(folder))
    poet = listed_poet(home) if name is None else None
    shown = [*sort_runs(runs, by, backwards), *filter(None, [poet])]
    if as_json:
        print(to_json({"runs": [_facts(run, by, backwards) for run in shown]}))
        return 0
    if not runs:
        print("No runs yet: `tuigpt train` starts one.")
    first = next((run for run in shown if run.checkpoints), None)
    for run in shown:
        _print(run, by, backwards, HEADINGS if run is first else "")
    if name is None and poet is None and is_run(POET, home) and not poet_is_hidden(home):
        print(f"Your run {POET} has the built-in model's name; rename its folder to have both.")
    return 0


HEADINGS = f"{'step':>10}  {'val':>5}   {'train':>5}  {'gap':>5}  {'size':>7}  {'age':>7}  kept"


def _print(run: Run, by: str, backwards: bool, headings: str) -> None:
    status = run.status
    message = f"  {status.news}" if status.news else ""
    state = f"{status.state}  step {status.step:,}/{status.max_steps:,}{message}"
    if run.problem:
        state = f"damaged: {run.problem}"
    note = f"  “{one_line(run.marks.note)}”" if run.marks.note else ""
    print(f"{run.name}  {'built in' if run.built_in else state}{note}")
    if headings:
        print(headings)
    best = run.best
    for checkpoint in sort_checkpoints(run, run.checkpoints, by, backwards):
        if checkpoint.problem:
            print(f"{checkpoint.step:>10,}  cannot be opened: {one_line(checkpoint.problem)}")
            continue
        words = run.marks.notes.get(checkpoint.step, "")
        # The age of a file that was installed tells nothing.
        since = "" if checkpoint.built_in else age(time.time() - checkpoint.modified)
        line = (
            f"{checkpoint.step:>10,}  {val_text(checkpoint.val_loss, checkpoint.early_val_loss):>5}"
            f" {'★' if checkpoint is best else ' '} {loss_text(checkpoint.train_loss):>5}"
            f"  {loss_text(gap(checkpoint)):>5}  {file_size(checkpoint.size):>7}  {since:>7}"
            f"  {kept_as(run, checkpoint)}{f'  “{one_line(words)}”' if words else ''}"
        )
        print(line.rstrip())


def _facts(run: Run, by: str, backwards: bool) -> dict[str, object]:
    """A run for a program: losses in nats per character, sizes in bytes, times in seconds."""
    return {
        "name": run.name,
        "folder": None if run.built_in else str(run.folder),
        "state": run.status.state,
        "step": run.status.step,
        "max_steps": run.status.max_steps,
        "problem": run.problem,
        "note": run.marks.note,
        "checkpoints": [
            {
                "step": c.step,
                "val_loss": _number(c.val_loss),
                "early_val_loss": _number(c.early_val_loss),
                "train_loss": _number(c.train_loss),
                "parameters": c.n_params,
                "text": c.corpus,
                "size": c.size,
                "modified": c.modified,
                "kept": kept_as(run, c),
                "note": run.marks.notes.get(c.step, ""),
                "problem": c.problem,
                "path": str(c.path),
            }
            for c in sort_checkpoints(run, run.checkpoints, by, backwards)
        ],
    }


def _number(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None


def ask(home: Path, name: str, action: str, value: str | None = None) -> int:
    """Ask, and wait until the trainer has done it (Ctrl-C stops only the waiting).

    Args:
        action: of `ACTIONS`; hyphens stand for underscores.

    Raises:
        UserError: there is no such run, it is not running, or this cannot be asked for.
    """
    wanted = ACTIONS.get(action.replace("-", "_"))
    if wanted is None:
        known = ", ".join(sorted(map(_as_typed, ACTIONS)))
        raise UserError(f"cannot ask a trainer to {action!r}: it knows {known}")
    number = _value(wanted, value)
    found = find_run(name, home)
    if not found.status.alive:
        raise UserError(f"run {name!r} is not running: it is {found.status.state}")
    try:
        asked = request(found.folder, wanted.name, number)
    except OSError as error:
        raise UserError(f"cannot ask the trainer of {name!r}: {error.strerror}") from None
    if wanted.ends:
        print(f"{name}: {wanted.at_once} …", flush=True)
        status = _wait(found.folder)
    else:
        status = _wait(found.folder, asked)
    if status.alive and (wanted.ends or status.answered < asked):
        print(
            f"{name}: nobody answers: its trainer (process {status.pid}) has given no sign of life"
            f" for {status.seconds_silent:.0f} s; it will do this when it runs again"
        )
        return 1
    if wanted.name == "discard":
        gone = not found.folder.exists()
        print(f"{name}: {'deleted' if gone else status.state}")
        return 0 if gone else 1
    if wanted.ends:
        print(f"{name}: {status.state} at step {status.step:,}")
        return 0 if status.state in ("stopped", "finished") else 1
    if status.answered < asked:
        print(f"{name}: nobody answers: it is {status.state}, at step {status.step:,}")
        return 1
    words = status.answer or status.message or status.state
    print(f"{name}: {words} at step {status.step:,}")
    return 0


def _wait(folder: Path, asked: int | None = None) -> RunStatus:
    """Wait until a request is answered (None: until the run ends), or no answer can be expected."""
    while True:
        status = read_status(folder)
        if not status.alive or (asked is not None and status.answered >= asked):
            return status
        if status.seconds_silent > SILENT_AFTER:
            return status
        time.sleep(POLL)


def _value(action: Action, value: str | None) -> float | None:
    if action.setting is None:
        if value is not None:
            raise UserError(f"{action.name} takes no value")
        return None
    if value is None:
        raise UserError(f"{_as_typed(action.name)} needs a value, such as 0.01")
    return action.setting.parse(value)


def _as_typed(name: str) -> str:
    return name.replace("_", "-")


def _add_list_flags(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", type=filled, metavar="RUN", help="only this run")
    poet = parser.add_mutually_exclusive_group()
    parser.flag(
        "--hide-poet", group=poet, dest="hide_poet", action="store_true", default=None,
        help="leave the built-in model out of this list and the app's, from now on",
    )  # fmt: skip
    parser.flag(
        "--show-poet", group=poet, dest="hide_poet", action="store_false", default=None,
        help="have it in the lists again",
    )  # fmt: skip
    parser.flag("--sort", choices=SORTS, default="step", help="column to sort by (default step)")
    parser.flag("--reverse", action="store_true", help="the other way round")
    add_json(parser)


def _add_run(parser: Parser) -> None:
    parser.add_argument("name", type=filled, metavar="RUN", help="a run that is training")


_ACTION_WIDTH = 21
"""Columns for an action and its value in the help."""


def _add_ask_flags(parser: Parser) -> None:
    _add_run(parser)
    parser.add_argument("action", metavar="ACTION", help="what it shall do, as below")
    parser.add_argument(
        "value", nargs="?", metavar="VALUE", help="for an action that sets something"
    )
    lines = []
    for action in ACTIONS.values():
        typed = _as_typed(action.name) + (" VALUE" if action.setting else "")
        lines += textwrap.wrap(
            f"{typed:<{_ACTION_WIDTH}}{action.help}", 76,
            subsequent_indent=" " * _ACTION_WIDTH, break_on_hyphens=False,
        )  # fmt: skip
    parser.add_argument_group("actions", "\n".join(lines))


COMMANDS = {
    "list": Command(
        usage="[RUN] [flags]",
        add_flags=_add_list_flags,
        run=lambda options: list_runs(
            home_dir(options.home),
            options.name,
            options.hide_poet,
            options.sort,
            options.reverse,
            options.json,
        ),  # fmt: skip
        examples=("tuigpt list", "tuigpt list poems --sort val"),
    ),
    "ask": Command(
        usage="RUN ACTION [VALUE]",
        add_flags=_add_ask_flags,
        run=lambda options: ask(
            home_dir(options.home), options.name, options.action, options.value
        ),
        examples=("tuigpt ask poems pause", "tuigpt ask poems learning-rate 0.001"),
    ),
    "stop": Command(
        usage="RUN",
        add_flags=_add_run,
        run=lambda options: ask(home_dir(options.home), options.name, "stop"),
        examples=("tuigpt stop poems",),
    ),
}
