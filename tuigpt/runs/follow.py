"""Following the runs of a home as they change, at the cost of what changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.runs.folder import CHECKPOINTS, RUN_FILE, Run, list_checkpoints, open_run, run_folders
from tuigpt.runs.metrics import History, MetricsTail
from tuigpt.runs.poet import listed_poet
from tuigpt.runs.status import STATUS_FILE


@dataclass(frozen=True)
class Snapshot:
    """What one look at the home showed.

    Attributes:
        runs: all readable runs, newest first.
        poet: the built-in model, where it is to be shown.
        watched: the run being watched, which may be the poet, or None.
        history: of the watched run. It is the follower's own and grows with the next look.
        grown: whether the history changed since the last look.
    """

    runs: tuple[Run, ...]
    poet: Run | None
    watched: Run | None
    history: History
    grown: bool


class Follower:
    """Looks at run folders again and again, and reads only what is new.

    It is meant for one caller at a time, who uses a snapshot before asking for the next.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._runs: dict[Path, tuple[tuple[int, ...], Run]] = {}
        self._watched: Path | None = None
        self._tail: MetricsTail | None = None
        self._history = History()

    def look(self, watch: str | None) -> Snapshot:
        """Read what changed.

        Args:
            watch: name of the run to watch; None takes the newest that is at work, or the newest.
        """
        runs = tuple(self._open(run_folders(self._home)))
        poet = listed_poet(self._home)
        named = [run for run in (*runs, poet) if run is not None and run.name == watch]
        at_work = [run for run in runs if run.status.alive]
        watched = next(iter([*named, *at_work, *runs]), None)
        grown = self._read_history(watched)
        return Snapshot(runs, poet, watched, self._history, grown)

    def _open(self, folders: Iterable[Path]) -> Iterable[Run]:
        opened = {}
        for folder in folders:
            mark = _mark(folder)
            known = self._runs.get(folder)
            try:
                if known is None:
                    run = open_run(folder)
                elif known[0] == mark and not known[1].status.alive:
                    run = known[1]
                else:
                    run = known[1].refreshed(
                        known[1].checkpoints
                        if known[0][1:] == mark[1:]
                        else list_checkpoints(folder)
                    )
            except UserError:
                continue
            opened[folder] = (mark, run)
            yield run
        self._runs = opened

    def _read_history(self, watched: Run | None) -> bool:
        folder = watched.folder if watched else None
        switched = folder != self._watched
        if switched:
            self._watched, self._history = folder, History()
            self._tail = MetricsTail(watched.metrics) if watched else None
        records = self._tail.read_new() if self._tail else []
        for record in records:
            self._history.add(record)
        return switched or bool(records)


def _mark(folder: Path) -> tuple[int, ...]:
    """Changes when the status does (first), or when a checkpoint comes, goes or is replaced."""
    marks = []
    for path in (folder / STATUS_FILE, folder / CHECKPOINTS, folder / RUN_FILE):
        try:
            marks.append(path.stat().st_mtime_ns)
        except OSError:
            marks.append(0)
    return tuple(marks)
