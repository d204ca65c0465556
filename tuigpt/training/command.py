"""What a user asks of `tuigpt train`, in one value, and whom the trainer reports to."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tuigpt.errors import UserError
from tuigpt.plan.choose import Asked
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.text.read import ProgressCallback, silent
from tuigpt.training.events import Event


@dataclass(frozen=True)
class TrainCommand:
    """A training to begin or to resume.

    Attributes:
        home: where runs are kept.
        sources: the text: paths and names, joined in this order; none is the origin's, the built-in
            one, or that of the resumed run.
        name: of the new run; None makes one from text and preset.
        resume: name of the run to resume, instead of a new one.
        origin: checkpoint whose weights the new run begins with.
        preset: size of the new model; None is a plan's choice, or the default.
        model_fields: fields of GPTConfig that override the preset's.
        train_fields: fields of TrainConfig that override the defaults.
        log_file: where the process's output goes already; it moves into the run folder.
    """

    home: Path
    sources: list[str] = field(default_factory=list)
    name: str | None = None
    resume: str | None = None
    origin: str | None = None
    preset: str | None = None
    model_fields: dict[str, Any] = field(default_factory=dict)
    train_fields: dict[str, Any] = field(default_factory=dict)
    log_file: str | None = None

    @property
    def asked(self) -> Asked:
        """What it says of the model and the training."""
        return Asked(
            self.preset, self.model_fields, self.train_fields, has_weights=self.origin is not None
        )


@dataclass(frozen=True)
class Ended:
    """How a trainer's process ended.

    Attributes:
        how: finished, stopped, failed, discarded, or gone (its run folder was deleted).
        folder: the run's.
        step: number of updates done.
        message: why, where that is not plain.
        checkpoint: where the newest weights are, if they were saved.
    """

    how: str
    folder: Path
    step: int
    message: str | UserError = ""
    checkpoint: Path | None = None


class Reporter(Protocol):
    """Shows a person what a trainer does. None of these raises, whatever becomes of its stream."""

    @property
    def unread(self) -> bool:
        """Whether nobody can read it any more: a pipe whose reader has gone."""

    def preparing(self) -> AbstractContextManager[ProgressCallback]:
        """Show how far the reading and timing is within this block."""

    def begin(self, run_name: str, record: RunRecord, status: RunStatus) -> None:
        """Say what is being trained."""

    def show(self, event: Event, status: RunStatus) -> None:
        """Show an event of the training."""

    def note(self, message: str) -> None:
        """Show something worth knowing, besides the training's own events."""

    def end(self, ended: Ended) -> None:
        """Say how it ended, and what can be done next."""


class Silent:
    """A reporter that shows nothing, for the processes whose rank is not 0."""

    @property
    def unread(self) -> bool:
        return False

    def preparing(self) -> AbstractContextManager[ProgressCallback]:
        return nullcontext(silent)

    def begin(self, run_name: str, record: RunRecord, status: RunStatus) -> None:
        pass

    def show(self, event: Event, status: RunStatus) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def end(self, ended: Ended) -> None:
        pass
