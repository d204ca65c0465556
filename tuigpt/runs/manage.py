"""Deleting, thinning out and renaming, with a trash from which each of them can be undone.

The trash is a folder among the runs, so that what goes there only changes its name. Each thing done
is an entry of its own, with a record of what belongs where; the newest is undone first. An entry
ends after a week, or when the trash is emptied.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tuigpt.errors import UserError
from tuigpt.files import (
    TEMPORARY_PREFIX,
    Count,
    UnreadableFile,
    Word,
    folder_in_the_making,
    read_record,
    write_json,
)
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import CHECKPOINTS, Checkpoint, Run
from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.names import new_run_folder
from tuigpt.wording import file_size

TRASH = ".trash"

KEPT_FOR = 7 * 86_400.0
"""Seconds after which what was deleted is gone for good."""

_ENTRY, _RUN = "entry.json", "run"


class _Entry(msgspec.Struct, frozen=True):
    """One thing that was done.

    Attributes:
        run: the run's name, before it was renamed.
        files: names of its checkpoints, where those were deleted.
        size: of all that is in the trash, in bytes.
        now: what the run was renamed to.
    """

    did: Literal["delete run", "delete checkpoints", "rename"]
    run: Word
    files: list[Word] = []
    size: Count = 0
    now: Word = ""


@dataclass(frozen=True)
class Done:
    """What was done, for whoever is to be told.

    Attributes:
        words: one line.
        size: bytes that are in the trash for it, or came back out of it.
    """

    words: str
    size: int = 0


def thinnable(run: Run, every: int | None) -> tuple[Checkpoint, ...]:
    """The checkpoints that thinning a run out would delete.

    The best, the last and the starred ones stay, and those that cannot be read: nobody knows what
    they are.

    Args:
        every: one whose step is a multiple of this stays as well; None keeps no others.
    """
    stay = {c.path for c in (run.best, run.last) if c}
    return tuple(
        c
        for c in run.checkpoints
        if not c.problem
        and c.path not in stay
        and c.step not in run.marks.stars
        and not (every and c.step % every == 0)
    )


def delete_checkpoints(home: Path, run: Run, checkpoints: Sequence[Checkpoint]) -> Done:
    """Put checkpoints of one run into the trash.

    Raises:
        UserError: a running trainer needs one of them, it is the built-in model's, or the files
            cannot be moved.
    """
    _refuse_built_in(run)
    if run.status.alive:
        for needed, why in ((run.last, "newest"), (run.best, "best")):
            if needed is not None and needed in checkpoints:
                raise UserError(
                    f"{needed.label} stays: {run.name} is being trained, and it is its {why}"
                )
    names = [c.path.name for c in checkpoints]
    size = sum(c.size for c in checkpoints)
    with _moving():
        entry = _new_entry(home, _Entry("delete checkpoints", run.folder.name, names, size))
        moved = 0
        for name in names:
            with suppress(FileNotFoundError):  # a better one has just replaced it
                os.rename(run.folder / CHECKPOINTS / name, entry / name)
                moved += 1
    what = checkpoints[0].label if moved == 1 else f"{moved:,} checkpoints of {run.name}"
    return Done(f"deleted {what}, {file_size(size)}", size)


def delete_run(home: Path, run: Run) -> Done:
    """Put a whole run into the trash.

    Raises:
        UserError: it is being trained, is the built-in model, or cannot be moved.
    """
    _refuse_built_in(run)
    size = folder_size(run.folder)
    with trainer_lock(run.folder), _moving():
        entry = _new_entry(home, _Entry("delete run", run.folder.name, size=size))
        try:
            os.rename(run.folder, entry / _RUN)
        except OSError:
            shutil.rmtree(entry, ignore_errors=True)
            raise
    return Done(f"deleted {run.name}, {file_size(size)}", size)


def rename_run(home: Path, run: Run, name: str) -> Done:
    """Give a run another name. A running trainer follows its folder.

    Raises:
        UserError: the name cannot be a run's or is taken, or the folder cannot be renamed.
    """
    _refuse_built_in(run)
    target = new_run_folder(home, name)
    with _moving():
        os.rename(run.folder, target)
        _new_entry(home, _Entry("rename", run.folder.name, now=name))
    return Done(f"{run.name} is now {name}")


def undo(home: Path) -> Done:
    """Take the newest thing back that was done.

    Raises:
        UserError: there is none, or something is in its place now; the trash is as it was.
    """
    entries = list(_entries(home))
    if not entries:
        raise UserError("there is nothing to undo: the trash is empty")
    folder, entry = entries[-1]
    with _moving():
        match entry.did:
            case "rename":
                _move_back(runs_dir(home) / entry.now, runs_dir(home) / entry.run)
                done = Done(f"{entry.now} is {entry.run} again")
            case "delete run":
                _move_back(folder / _RUN, runs_dir(home) / entry.run)
                done = Done(f"{entry.run} is back, {file_size(entry.size)}", entry.size)
            case _:
                done = _bring_back(home, folder, entry)
        shutil.rmtree(folder, ignore_errors=True)
    return done


def _bring_back(home: Path, folder: Path, entry: _Entry) -> Done:
    place = runs_dir(home) / entry.run / CHECKPOINTS
    if not place.is_dir():
        raise UserError(f"the run {entry.run!r}, to which they belong, is not there")
    for name in entry.files:
        if os.path.basename(name) == name and os.path.lexists(folder / name):
            _move_back(folder / name, place / name)
    count = len(entry.files)
    what = "a checkpoint" if count == 1 else f"{count:,} checkpoints"
    are = "is" if count == 1 else "are"
    return Done(f"{what} of {entry.run} {are} back, {file_size(entry.size)}", entry.size)


def _move_back(now: Path, before: Path) -> None:
    if os.path.lexists(before):
        raise UserError(f"{str(before)!r} is there again: rename it first")
    os.rename(now, before)


@dataclass(frozen=True)
class TrashFacts:
    """What lies in the trash: how many things can be undone, and the bytes that they take."""

    entries: int = 0
    size: int = 0


def look_into_trash(home: Path) -> TrashFacts:
    """What could be undone, or freed for good."""
    sizes = [entry.size for _, entry in _entries(home)]
    return TrashFacts(len(sizes), sum(sizes))


def trash_mark(home: Path) -> int:
    """Changes whenever something comes into the trash or leaves it."""
    try:
        return os.stat(runs_dir(home) / TRASH).st_mtime_ns
    except OSError:
        return 0


def empty_trash(home: Path, older_than: float = 0.0) -> Done:
    """Delete for good what is in the trash.

    Args:
        older_than: seconds that it must have been there.
    """
    before = time.time_ns() - int(older_than * 1e9)
    freed = 0
    for folder, entry in list(_entries(home)):
        if _time_of(folder) <= before:
            run = folder / _RUN
            with suppress(OSError):
                if run.is_symlink():  # a run that lies elsewhere: its name is what was deleted
                    run.unlink()
            shutil.rmtree(folder, ignore_errors=True)
            freed += entry.size
    return Done(f"freed {file_size(freed)}", freed)


def folder_size(folder: Path) -> int:
    """Bytes of all regular files in a folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total


def _refuse_built_in(run: Run) -> None:
    if run.built_in:
        raise UserError(f"{run.name} is built in: it can only be hidden")


def _new_entry(home: Path, entry: _Entry) -> Path:
    """A folder of its own in the trash; what has been there for too long goes."""
    empty_trash(home, KEPT_FOR)
    folder = runs_dir(home) / TRASH / f"{time.time_ns():020}"
    with folder_in_the_making(folder) as draft:
        write_json(draft / _ENTRY, entry)
    return folder


def _entries(home: Path) -> Iterator[tuple[Path, _Entry]]:
    """All entries that can be read, the oldest first."""
    trash = runs_dir(home) / TRASH
    try:
        names: Iterable[str] = sorted(os.listdir(trash))
    except OSError:
        return
    for name in names:
        if name.isdecimal() and not name.startswith(TEMPORARY_PREFIX):
            with suppress(UnreadableFile):
                yield trash / name, read_record(trash / name / _ENTRY, _Entry)


def _time_of(entry: Path) -> int:
    return int(entry.name)


class _moving:
    """A failure to move something in the words of a user's error."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise UserError(f"cannot move it: {error.strerror or error}") from None
