"""Following the runs of a home as they change, at the cost of what changed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.runs.folder import (
    CHECKPOINTS,
    POET,
    CheckpointList,
    Run,
    read_run,
    run_folders,
    with_status,
)
from tuigpt.runs.history import History
from tuigpt.runs.marks import MARKS_FILE, read_marks
from tuigpt.runs.metrics import MetricsTail
from tuigpt.runs.poet import listed_poet, poet_files
from tuigpt.runs.record import RUN_FILE
from tuigpt.runs.status import STATUS_FILE
from tuigpt.settings import settings_files

LONGEST_READ = 0.25
"""Seconds that one look spends on a log; of a long one the rest comes with the next looks."""

Mark = tuple[int, ...]
"""What tells whether a file is the same as before, and unchanged."""


@dataclass(frozen=True)
class Snapshot:
    """What one look at the home showed.

    Attributes:
        runs: all runs, newest first; a damaged one has a `problem`.
        poet: the built-in model, where it is to be shown.
        watched: the run being watched, which may be the poet, or None.
        history: of the watched run. It is the follower's own and grows with the next look.
        grown: whether the history changed since the last look.
        reading: whether there is more of a long log, to be had by looking again at once.
        news: what was told in words since the last look, unless another run is watched now.
        problem: why the home cannot be read, in one line, or "".
    """

    runs: tuple[Run, ...]
    poet: Run | None
    watched: Run | None
    history: History
    grown: bool
    reading: bool = False
    news: tuple[str, ...] = ()
    problem: str = ""


class _FollowedRun:
    """One run folder, of which only what changed is read."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            UserError: it is no run folder.
        """
        self._folder = folder
        self._checkpoints = CheckpointList(folder)
        self._marks = self._look_for_changes()
        self.run = read_run(folder, self._checkpoints.look())

    @property
    def identity(self) -> Mark:
        """Of the folder itself, which keeps it when it is renamed."""
        return self._marks[0]

    def is_another(self) -> bool:
        """Whether another folder has taken this one's name."""
        return _identity(self._folder) != self.identity

    def refresh(self) -> None:
        """Read what changed.

        Raises:
            UserError: it is no run folder any more.
        """
        before, self._marks = self._marks, self._look_for_changes()
        _, record, checkpoints, marks, status = (
            a != b for a, b in zip(before, self._marks, strict=True)
        )
        if checkpoints:
            self.run = replace(self.run, checkpoints=self._checkpoints.look())
        if marks:
            self.run = replace(self.run, marks=read_marks(self._folder))
        if record:
            self.run = read_run(self._folder, self.run.checkpoints)
        elif status or self.run.status.alive:  # a trainer may die without a word
            self.run = with_status(self.run)

    def _look_for_changes(self) -> tuple[Mark, Mark, Mark, Mark, Mark]:
        folder = self._folder
        return (
            _identity(folder),
            _mark(folder / RUN_FILE),
            _mark(folder / CHECKPOINTS),
            _mark(folder / MARKS_FILE),
            _mark(folder / STATUS_FILE),
        )


class Follower:
    """Looks at run folders again and again, and reads only what is new.

    It is meant for one caller at a time, who uses a snapshot before asking for the next.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._runs: dict[Path, _FollowedRun] = {}
        self._poet: Run | None = None
        self._poet_marks: tuple[object, ...] = ()
        self._watched: tuple[Path | None, Mark] = (None, ())
        self._found: str | None = None
        self._tail: MetricsTail | None = None
        self._history = History()

    def look(self, watch: str | None) -> Snapshot:
        """Read what changed.

        Args:
            watch: name of the run to watch, which is found again when its folder was renamed; None
                takes the newest that is being trained, or the newest.
        """
        problem = ""
        try:
            folders = list(run_folders(self._home))
        except UserError as error:
            folders, problem = [], str(error)
        self._runs = {folder: run for folder in folders if (run := self._follow(folder))}
        runs = tuple(followed.run for followed in self._runs.values())
        poet = self._look_at_poet()
        watched = self._choose(watch, runs, poet)
        n_events = self._history.n_events
        switched, grown = self._read_history(watched)
        new = 0 if switched else self._history.n_events - n_events
        return Snapshot(
            runs, poet, watched, self._history, switched or grown,
            reading=bool(self._tail and self._tail.more),
            news=tuple(self._history.events[-new:]) if new > 0 else (),
            problem=problem,
        )  # fmt: skip

    def _follow(self, folder: Path) -> _FollowedRun | None:
        followed = self._runs.get(folder)
        try:
            if followed is None or followed.is_another():
                return _FollowedRun(folder)
            followed.refresh()
            return followed
        except UserError:  # deleted meanwhile
            return None

    def _look_at_poet(self) -> Run | None:
        marks = (
            *map(_mark, (*poet_files(), *settings_files(self._home))),
            any(folder.name == POET for folder in self._runs),
        )
        if marks != self._poet_marks:
            self._poet_marks, self._poet = marks, listed_poet(self._home)
        return self._poet

    def _choose(self, watch: str | None, runs: tuple[Run, ...], poet: Run | None) -> Run | None:
        named = [run for run in (*runs, poet) if run is not None and run.name == watch]
        if named:
            self._found = watch
        elif watch is not None and watch == self._found:  # renamed
            identity = self._watched[1]
            named = [f.run for f in self._runs.values() if f.identity == identity]
        running = [run for run in runs if run.status.alive]
        return next(iter([*named, *running, *runs]), None)

    def _read_history(self, watched: Run | None) -> tuple[bool, bool]:
        """Read on in the log; whether it is another run's than before, and whether it grew."""
        followed = self._runs.get(watched.folder) if watched else None
        now = (watched.folder if watched else None, followed.identity if followed else ())
        switched = now != self._watched
        if switched:
            self._watched = now
            self._tail = MetricsTail(watched.metrics) if watched else None
            self._restart(watched)
        if watched is None or self._tail is None:
            return switched, False
        grown = False
        until = time.monotonic() + LONGEST_READ
        while True:
            lines, restarted = self._tail.read_new()
            if restarted:
                self._restart(watched)
            self._history.add(lines)
            grown |= restarted or bool(lines)
            switched |= restarted
            if not self._tail.more or time.monotonic() >= until:
                return switched, grown

    def _restart(self, watched: Run | None) -> None:
        factor = watched.train_characters_per_token if watched else None
        self._history = History(train_characters_per_token=factor)


def _identity(path: Path) -> Mark:
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return (stat.st_dev, stat.st_ino)


def _mark(path: Path) -> Mark:
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
