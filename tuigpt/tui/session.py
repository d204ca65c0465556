"""What the app shows and why: the watched run, the open checkpoint, and what is offered instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuigpt.settings import Settings

if TYPE_CHECKING:  # what is only passed on: the first frame does not wait for it
    from tuigpt.runs.folder import Checkpoint, Run
    from tuigpt.runs.follow import Snapshot
    from tuigpt.runs.history import History


@dataclass
class Session:
    """The app's state. Panes read it; only the app changes it, when it looks and when it is told.

    Attributes:
        home: whose runs are shown.
        watch: name of the run that the user chose to watch; None for the newest.
        starting: name of a run whose trainer is being started, or "".
        snapshot: what the last look at the run folders showed; None before the first.
        checkpoint: the open one, which writes; None before there is any.
        following: name of the run whose newest checkpoint is always the open one, or "".
        settings: what the user has chosen for good, as it was when the app began.
        writing: whether a text is being written, as the generate pane says.
    """

    home: Path
    watch: str | None = None
    starting: str = ""
    snapshot: Snapshot | None = None
    checkpoint: Checkpoint | None = None
    following: str = ""
    settings: Settings = field(default_factory=Settings)
    writing: bool = False
    _known: frozenset[Path] = field(default=frozenset(), repr=False)

    # --- what is there ---

    @property
    def runs(self) -> tuple[Run, ...]:
        """The user's runs, newest first."""
        return self.snapshot.runs if self.snapshot else ()

    @property
    def poet(self) -> Run | None:
        """The built-in model, where lists show it."""
        return self.snapshot.poet if self.snapshot else None

    @property
    def watched(self) -> Run | None:
        return self.snapshot.watched if self.snapshot else None

    @property
    def history(self) -> History:
        """Of the watched run."""
        from tuigpt.runs.history import History

        return self.snapshot.history if self.snapshot else History()

    @property
    def grown(self) -> bool:
        """Whether the history has changed with the last look."""
        return self.snapshot is not None and self.snapshot.grown

    @property
    def reading(self) -> bool:
        """Whether the next look at once would show more of a long log."""
        return self.snapshot is not None and self.snapshot.reading

    @property
    def news(self) -> tuple[str, ...]:
        """What the watched run's trainer has told since the last look."""
        return self.snapshot.news if self.snapshot else ()

    @property
    def running(self) -> list[Run]:
        """Runs that train now, or whose trainer is being started."""
        return [run for run in self.runs if run.status.alive or run.name == self.starting]

    @property
    def trains_here(self) -> bool:
        """Whether a run keeps this machine's processor busy."""
        return any(run.status.computes_here for run in self.runs)

    # --- what becomes of it ---

    def look(self, snapshot: Snapshot) -> None:
        """Take in what a look showed, and have a checkpoint open whenever there is one.

        What is open stays open for as long as its file is there. When it is gone (a run keeps the
        best so far only until a better one), the best of its run takes its place.
        """
        self.snapshot = snapshot
        run = self._run(self.following)
        if run is not None and run.last is not None:
            if run.last.path != (self.checkpoint and self.checkpoint.path):
                self._write_with(run.last)
            return
        if self.checkpoint is None:
            self._write_with(self._first_choice())
            return
        path, name = self.checkpoint.path, self.checkpoint.run
        same_run = next((run for run in self._known_runs() if run.name == name), None)
        if same_run is None or all(path != c.path for c in same_run.checkpoints):
            self._write_with((same_run and _to_write_with(same_run)) or self._first_choice())

    def open(self, checkpoint: Checkpoint | None) -> None:
        """Write with this checkpoint from now on, and follow no run."""
        self.following = ""
        self._write_with(checkpoint)

    @property
    def to_follow(self) -> Run | None:
        """The run that can be followed: the watched one while it trains, else the open
        checkpoint's own, else the watched one after all."""
        own = self._run(self.checkpoint.run) if self.checkpoint else None
        running = self.watched if self.watched in self.running else None
        runs = (running, own, self.watched)
        return next((run for run in runs if run and not run.built_in), None)

    def follow(self, run: Run | None) -> None:
        """Always write with the newest checkpoint of this run; None stays with the open one."""
        self.following = run.name if run else ""
        if run is not None and run.last is not None:
            self._write_with(run.last)

    def _write_with(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        self._known = self._paths()

    @property
    def offer(self) -> Checkpoint | None:
        """A checkpoint that came after the open one was opened, and is worth opening.

        It is of the run that is watched, or of the run that the open one belongs to: the newest,
        unless that is known to be worse than the best.
        """
        if self.checkpoint is None or self.following:
            return None
        own = self._run(self.checkpoint.run)
        for run in (self.watched, own):
            if run is None or run.built_in or run.last is None:
                continue
            # One that was measured and is worse than the best is not worth opening.
            offer = run.last if run.last.val_loss is None else _to_write_with(run)
            if offer is not None and offer.path not in self._known:
                return offer
        return None

    def _first_choice(self) -> Checkpoint | None:
        """The watched run's best, else that of the newest run, else the poet."""
        own = (run for run in (self.watched, *self.runs) if run and not run.built_in)
        candidates = map(_to_write_with, (*own, *filter(None, [self.poet])))
        return next(filter(None, candidates), None)

    def _run(self, name: str) -> Run | None:
        return next((run for run in self.runs if run.name == name), None)

    def _known_runs(self) -> tuple[Run, ...]:
        return (*self.runs, self.poet) if self.poet else self.runs

    def _paths(self) -> frozenset[Path]:
        return frozenset(c.path for run in self._known_runs() for c in run.checkpoints)


def _to_write_with(run: Run) -> Checkpoint | None:
    return run.best or run.last
