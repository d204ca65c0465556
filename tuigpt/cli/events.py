"""What `tuigpt train --json` prints for programs: one JSON object a line (docs/formats.md)."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

from tuigpt.cli.flags import as_flag
from tuigpt.cli.live_line import LiveLine
from tuigpt.errors import UserError
from tuigpt.files import to_json
from tuigpt.loss import bits
from tuigpt.runs.folder import open_run
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.text.read import ProgressCallback, silent
from tuigpt.training.command import Ended
from tuigpt.training.events import Evaluated, Event, Sampled, Skipped, Stepped

STEP_EVERY = 1.0
"""Least seconds between two lines of kind `step`; the run's log has every step."""


class Events:
    """Follows one training on a text stream, for programs. Losses are in nats per character.

    A stream that fails never ends the training.
    """

    def __init__(self, stream: TextIO) -> None:
        self._line = LiveLine(stream, plain_every=0.0)
        self._step_due = 0.0

    @property
    def unread(self) -> bool:
        """Whether the stream was a pipe whose reader has gone."""
        return self._line.unread

    def preparing(self) -> AbstractContextManager[ProgressCallback]:
        """Programs need not know how far the reading is."""
        return nullcontext(silent)

    def begin(self, run_name: str, record: RunRecord, status: RunStatus) -> None:
        """Say what is being trained."""
        self._put(
            "begin",
            run=run_name,
            parameters=record.model.n_params,
            device=status.device,
            step=status.step,
            max_steps=status.max_steps,
        )

    def show(self, event: Event, status: RunStatus) -> None:
        """Tell an event of the training."""
        match event:
            case Evaluated():
                loss = event.val_loss_per_character
                self._put(
                    "eval",
                    step=event.step,
                    val_loss=loss,
                    bits=bits(loss),
                    tokens=event.tokens,
                    whole=event.whole,
                    early=event.early,
                )
            case Sampled():
                self._put("sample", step=event.step, prompt=event.prompt, text=event.text)
            case Skipped():
                self._put("skipped", step=event.step, what=event.what, reason=event.reason)
            case Stepped() if time.monotonic() >= self._step_due:
                self._step_due = time.monotonic() + STEP_EVERY
                self._put(
                    "step",
                    step=status.step,
                    train_loss=status.train_loss,
                    tokens_per_second=status.tokens_per_second,
                    seconds_left=status.seconds_left,
                )

    def note(self, message: str) -> None:
        """Something worth knowing, besides the training's own events."""
        self._put("note", message=message)

    def end(self, ended: Ended) -> None:
        """Say how it ended."""
        message = ended.message
        if isinstance(message, UserError):
            message = message.spelled(as_flag)
        best = open_run(ended.folder).best if ended.checkpoint is not None else None
        self._put(
            "end",
            how=ended.how,
            step=ended.step,
            message=message,
            checkpoint=None if ended.checkpoint is None else str(ended.checkpoint),
            best_step=None if best is None else best.step,
            best_val_loss=None if best is None else best.val_loss,
        )

    def _put(self, kind: str, **facts: Any) -> None:
        self._line.print(to_json({"kind": kind, **facts}))
