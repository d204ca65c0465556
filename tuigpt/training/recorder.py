"""From a trainer's events to its run folder."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save

from tuigpt.files import write_atomic
from tuigpt.loss import per_character
from tuigpt.model.checkpoint import save_checkpoint
from tuigpt.runs.folder import RESUME_FILE, checkpoint_path
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.metrics import (
    CheckpointLine,
    EvalLine,
    EventLine,
    MetricsLog,
    SampleLine,
    StepLine,
)
from tuigpt.runs.record import CorpusFacts
from tuigpt.runs.status import RunStatus, utc_now, write_status
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.trainer import (
    CheckpointDue,
    Evaluated,
    Event,
    Progress,
    Sampled,
    Stepped,
    Trainer,
)

STATUS_EVERY = 0.5
"""Least seconds between two writes of an unchanged state."""

HEARTBEAT_EVERY = 10.0
"""Seconds after which the status is written again though nothing happened."""

RETRY_SAVE_AFTER = 30.0
"""Seconds until a checkpoint that could not be written is tried again."""

_WORKING_STATE = {"evaluation": "evaluating", "sample": "sampling"}


class Recorder:
    """Keeps one run folder up to date with its trainer.

    Attributes:
        saved_step: step of the newest checkpoint on disk, or -1.
        status: as last told; `write_status` follows it at most every half second.
    """

    def __init__(
        self,
        folder: Path,
        trainer: Trainer,
        tokenizer: Tokenizer,
        corpus: CorpusFacts,
        status: RunStatus,
        tokens_per_step: int,
    ) -> None:
        """Begin recording.

        Args:
            corpus: what each checkpoint's header tells of the text.
            status: the first status, of which pid, host and times are filled in here.
        """
        self.folder = folder
        self.status = replace(
            status,
            pid=os.getpid(),
            host=socket.gethostname(),
            start=utc_now(),
            step=trainer.step,
            train_characters_per_token=corpus.characters_per_token,
        )
        self._trainer = trainer
        self._take_settings()
        self._tokenizer = tokenizer
        self._corpus = corpus.without_paths()
        self._tokens_per_step = tokens_per_step
        self._log = MetricsLog(folder)
        self._recent: deque[tuple[float, int, float]] = deque(maxlen=200)
        self._provisional: Path | None = None
        self.saved_step = -1
        self._retry_at: float | None = None
        self._written = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        # Held open, so that its number is not given to another folder while we compare by it.
        self._folder_held = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
        self._folder_id = folder.stat().st_ino
        self._write()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heart.start()

    def record(self, event: Event) -> None:
        """Write down one event; a checkpoint that is due is saved here."""
        match event:
            case Stepped():
                self._log.append(
                    StepLine(
                        step=event.step,
                        loss=event.loss,
                        learning_rate=event.learning_rate,
                        grad_norm=event.grad_norm,
                        seconds=round(event.seconds, 6),
                    )
                )
                self._recent.append((time.monotonic(), event.step, event.seconds))
                factor = self.status.train_characters_per_token or self.status.characters_per_token
                loss = per_character(event.loss, factor)
                self._tell("training", step=event.step, train_loss=loss, **self._speed())
                if self._retry_at is not None and time.monotonic() >= self._retry_at:
                    self.save(keep=True)
            case Progress():
                self._tell(_WORKING_STATE[event.what], progress=event.done / event.total)
            case Evaluated():
                self._log.append(
                    EvalLine(
                        step=event.step,
                        val_loss=event.val_loss,
                        val_loss_per_character=event.val_loss_per_character,
                        tokens=event.tokens,
                        whole=event.whole,
                    )
                )
                if not event.whole:
                    changes = {"val_loss": event.val_loss_per_character}
                    if 0 < event.val_loss_per_character < math.inf:
                        changes["characters_per_token"] = (
                            event.val_loss / event.val_loss_per_character
                        )
                    self._tell("evaluating", **changes)
            case Sampled():
                self._log.append(SampleLine(step=event.step, prompt=event.prompt, text=event.text))
            case CheckpointDue():
                self.save(event.keep)

    def save(self, keep: bool) -> Path | None:
        """Save a checkpoint of the trainer as it is, and what resuming from it needs.

        A full disk does not end the training: the older files stay, the status says so, and it
        is tried again.

        Args:
            keep: False for one that the next better checkpoint may replace.

        Returns:
            the checkpoint's path, or None when it could not be written.
        """
        trainer = self._trainer
        path = checkpoint_path(self.folder, trainer.step)
        facts = CheckpointFacts(
            run=self.folder.name,
            step=trainer.step,
            train_loss=trainer.train_loss,
            val_loss=trainer.val_loss,
            val_loss_per_character=trainer.val_loss_per_character,
            whole_val_loss=trainer.whole_val_loss,
            whole_val_loss_per_character=trainer.whole_val_loss_per_character,
            corpus=self._corpus,
            train=asdict(trainer.config),
            created=utc_now(),
        )
        try:
            save_checkpoint(path, trainer.model, self._tokenizer, facts)
            write_atomic(self.folder / RESUME_FILE, save(trainer.state()))
        except OSError as error:
            self._retry_at = time.monotonic() + RETRY_SAVE_AFTER
            message = f"cannot save step {trainer.step}: {error.strerror or error}"
            self.note(f"{message}; the older checkpoints are whole, and it will be tried again")
            return None
        if self._retry_at is not None:
            self._retry_at = None
            self.note("")
        if trainer.step != self.saved_step:
            self._log.append(CheckpointLine(step=trainer.step, file=path.name, keep=keep))
        self._log.sync()
        self.saved_step = trainer.step
        self._replace_provisional(path, keep)
        return path

    def folder_is_gone(self) -> bool:
        """Whether the run folder was deleted, or another run has taken its place."""
        try:
            return self.folder.stat().st_ino != self._folder_id
        except OSError:
            return True

    def _take_settings(self) -> None:
        config = self._trainer.config
        self.status = replace(
            self.status, max_steps=config.max_steps, learning_rate=config.learning_rate,
            dropout=self._trainer.model.config.dropout,
        )  # fmt: skip

    def changed(self, message: str) -> None:
        """Log that settings of the trainer were changed, and tell what they are now."""
        self._take_settings()
        self.note(message)

    def note(self, message: str) -> None:
        """Log an event in words and show it in the status."""
        if message:
            self._log.append(EventLine(step=self._trainer.step, message=message))
        self.status = replace(self.status, message=message)
        self._write()

    def answered(self, number: int) -> None:
        """Tell that requests up to this number are carried out."""
        self.status = replace(self.status, answered=number)
        self._write()

    def pause(self) -> None:
        """Tell that the trainer waits; the waiting does not count in the speed."""
        self._recent.clear()
        self._tell("paused")

    def abandon(self) -> None:
        """Let go of the run folder without another word."""
        self._closed.set()
        # A thread that is still there when Python ends can bring the process down with SIGABRT.
        self._heart.join()
        if self._folder_held is not None:
            os.close(self._folder_held)
            self._folder_held = None

    def close(self, state: str, message: str) -> None:
        """Write the run's end: finished, stopped or failed, and why."""
        self.abandon()
        self._log.append(EventLine(step=self._trainer.step, message=message, state=state))
        self._log.close()
        self.status = replace(
            self.status, state=state, message=message, progress=0.0, seconds_left=None
        )
        self._write()

    def _replace_provisional(self, path: Path, keep: bool) -> None:
        if keep:
            if self._provisional == path:
                self._provisional = None
            return
        if self._provisional not in (None, path):
            with suppress(OSError):
                self._provisional.unlink()
        self._provisional = path

    def _speed(self) -> dict[str, float | None]:
        if len(self._recent) < 5:
            return {}
        (began, first, _), (now, last, _) = self._recent[0], self._recent[-1]
        step_seconds = sum(seconds for *_, seconds in self._recent) / len(self._recent)
        remaining = self.status.max_steps - last
        return {
            "step_seconds": step_seconds,
            "tokens_per_second": self._tokens_per_step / step_seconds,
            "seconds_left": remaining * (now - began) / (last - first),
        }

    def _tell(self, state: str, **changes: Any) -> None:
        changed = state != self.status.state
        if state != "evaluating" and state != "sampling":
            changes["progress"] = 0.0
        best_step = self._trainer.best_step
        self.status = replace(self.status, state=state, best_step=best_step, **changes)
        if best_step is not None:
            best = per_character(self._trainer.best_val_loss, self.status.characters_per_token)
            self.status = replace(self.status, best_val_loss=best)
        if self.status.step >= self.status.max_steps:
            self.status = replace(self.status, seconds_left=None)
        if changed or time.monotonic() - self._written >= STATUS_EVERY:
            self._write()

    def _write(self) -> None:
        with self._lock:
            self._written = time.monotonic()
            # Only read here: the heartbeat's thread must not undo what was told meanwhile.
            status = replace(self.status, heartbeat=utc_now())
            if self.folder_is_gone():
                return
            # A status that cannot be written (a full disk) must not end the training.
            with suppress(OSError):
                write_status(self.folder, status)

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT_EVERY):
            if time.monotonic() - self._written >= HEARTBEAT_EVERY:
                self._write()
