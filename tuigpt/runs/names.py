"""From what a user calls a run or a checkpoint to its folder or file, and names for new runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tuigpt.errors import Setting, UserError
from tuigpt.paths import runs_dir, user_path
from tuigpt.runs.folder import (
    CHECKPOINTS,
    POET,
    Checkpoint,
    Run,
    is_run,
    is_run_name,
    open_run,
    read_checkpoint,
    run_folders,
)
from tuigpt.runs.poet import open_poet


def find_run(name: str, home: Path) -> Run:
    """Open a run by its name.

    Raises:
        UserError: there is none; the text names those there are.
    """
    if not is_run(name, home):
        if name == POET:
            raise UserError(
                f"{POET!r} is the built-in model, not a run: it writes, but it cannot be stopped or"
                " trained on"
            )
        raise _no_run(name, home)
    return open_run(runs_dir(home) / name)


def _no_run(name: str, home: Path, others: str = "") -> UserError:
    known = [f.name for f in run_folders(home)]
    there = f"there are {', '.join(known[:8])}" if known else "there are no runs yet"
    return UserError(f"no run {name!r} in {str(runs_dir(home))!r}: {there}{others}")


def find_model(name: str, home: Path) -> Run:
    """Open a run by its name, or the built-in model, unless a run is called so.

    Raises:
        UserError: there is none.
    """
    if is_run(name, home):
        return find_run(name, home)
    if name == POET:
        return open_poet()
    raise _no_run(name, home, f"; {POET} is the built-in model")


def find_checkpoint(spec: str, home: Path) -> Checkpoint:
    """Find a checkpoint by what a user calls it.

    Args:
        spec: a path, `RUN` or `RUN@last` (the newest), `RUN@best` (lowest val_loss), `RUN@STEP`;
            `poet` in place of `RUN` is the built-in model. A run goes before a file of its name in
            the current folder (see `passed_over`).

    Raises:
        UserError: nothing goes by that name; the text says what there is.
    """
    name, _, which = spec.partition("@")
    if not _names_a_run(spec, home):
        path = user_path(spec)
        if os.path.isfile(path):
            inside_run = path.parent.name == CHECKPOINTS
            return read_checkpoint(path, run=path.parent.parent.name if inside_run else "")
        if path.suffix or "/" in spec or os.sep in spec:
            raise UserError(f"no checkpoint at {spec!r}")
    run = find_model(name, home)
    steps = ", ".join(str(c.step) for c in run.checkpoints[-8:]) or "none yet"
    match which:
        case "" | "last":
            chosen = run.last
        case "best":
            chosen = run.best
        case _:
            chosen = next((c for c in run.checkpoints if str(c.step) == which), None)
    if chosen is None:
        raise UserError(f"run {name!r} has no checkpoint {which or 'last'!r}; its steps: {steps}")
    return chosen


def passed_over(spec: str, home: Path) -> Path | None:
    """The file that `find_checkpoint` does not open, because a run or the poet has its name."""
    path = user_path(spec)
    return path if _names_a_run(spec, home) and os.path.isfile(path) else None


def _names_a_run(spec: str, home: Path) -> bool:
    name = spec.partition("@")[0]
    return is_run(name, home) or name == POET


def new_run_folder(home: Path, name: str) -> Path:
    """The folder for a new run of that name.

    Raises:
        UserError: the name cannot be a run's, or is taken.
    """
    asked = Setting("name", repr(name))
    if not is_run_name(name):
        raise UserError(
            asked, " cannot be a run's name: use letters, digits, space and . - + _,"
            " at most 64 (or 255 bytes), starting with a letter or digit",
        )  # fmt: skip
    folder = runs_dir(home) / name
    if name.casefold() != POET and not folder.exists():
        return folder
    free = Setting("name", repr(free_name(home, name)))
    if name.casefold() == POET:
        raise UserError(asked, " is taken by the built-in model; try ", free)
    raise UserError(f"there is a run {name!r} already; try ", free)


def default_name(home: Path, sources: Sequence[str], size: str) -> str:
    """What a new run is called where nobody says.

    Args:
        sources: the text, as a user calls it.
        size: the preset.
    """
    return free_name(home, f"{text_name(sources)}-{size}")


def text_name(sources: Sequence[str]) -> str:
    """What a text is called: its name or that of its first file, and how many more there are."""
    more = f"+{len(sources) - 1}" if len(sources) > 1 else ""
    return (user_path(sources[0]).stem + more) or "text"


def free_name(home: Path, base: str) -> str:
    """A run name like `base` that is not taken: base-1, base-2, …"""
    base = re.sub(r"[^\w.+-]+", "-", base).strip("-._ ")[:56] or "run"
    numbered = (f"{base}-{n}" for n in range(1, 1_000_000))
    return next(name for name in numbered if not (runs_dir(home) / name).exists())
