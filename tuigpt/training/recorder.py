"""From a trainer's events to its run folder."""

from __future__ import annotations

import errno
import math
import os
import socket
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from tuigpt.files import UnreadableFile
from tuigpt.loss import per_character
from tuigpt.model.checkpoint import save_checkpoint
from tuigpt.runs.folder import RESUME_FILE, checkpoint_path
from tuigpt.runs.header import CheckpointFacts, read_header
from tuigpt.runs.marks import read_marks
from tuigpt.runs.metrics import (
    AnyLine,
    CheckpointLine,
    EvalLine,
    EventLine,
    MetricsLog,
    SampleLine,
    StepLine,
)
from tuigpt.runs.record import RUN_FILE, CorpusFacts
from tuigpt.runs.status import RunStatus, utc_now, write_status
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.events import (
    CheckpointDue,
    Evaluated,
    Event,
    PartDone,
    Sampled,
    Skipped,
    StateDue,
    Stepped,
)
from tuigpt.training.reserve import SMALL_FILES, Reserve, save_bytes
from tuigpt.training.state import TrainingFacts, TrainingState, write_state
from tuigpt.training.thinning import superfluous
from tuigpt.training.trainer import Trainer
from tuigpt.wording import duration, file_size

STATUS_EVERY = 0.5
"""Least seconds between two writes of an unchanged state."""

HEARTBEAT_EVERY = 5.0
"""Seconds after which the status is written again though nothing happened."""

_WORKING_STATE = {"evaluation": "evaluating", "sample": "sampling"}

_FULL = (errno.ENOSPC, errno.EDQUOT)


class FolderGone(Exception):
    """The run folder was deleted."""


class Recorder:
    """Keeps one run folder up to date with its trainer.

    What cannot be written is waited for: the training pauses, says why, and goes on when the disk
    has room again. A folder that is renamed is followed.

    Attributes:
        folder: where the run folder is now.
        status: as last said; `status.json` follows it at most every half second.
    """

    def __init__(
        self,
        folder: Path,
        trainer: Trainer,
        tokenizer: Tokenizer,
        corpus: CorpusFacts,
        status: RunStatus,
        tokens_per_step: int,
        wait: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin recording.

        Args:
            corpus: what each checkpoint's header says of the text.
            status: the first status, of which pid, host and times are filled in here.
            wait: called while something cannot be written. It takes about a second, and says
                whether the training is to stop, for which the reserved room is then used.
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
        self._wait = wait
        self._log = MetricsLog(folder)
        self._reserve = Reserve(folder, save_bytes(trainer.model.config, trainer.config))
        self._recent: deque[tuple[float, int, float]] = deque(maxlen=200)
        self._provisional: set[int] = set()
        self._most_telling = (
            trainer.config.evolution_mb * 10**6 // (4 * trainer.model.config.n_params)
        )
        self._state_on_disk: TrainingFacts | None = None
        self._checkpoint_on_disk = -1
        self._status_lost = False
        self._written = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        # Held open, so that its number is not given to another folder while we compare by it, and
        # so that the folder is found again under another name.
        self._folder_held = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
        self._folder_id = folder.stat().st_ino
        self._write()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heart.start()

    def resumed(self, facts: TrainingFacts) -> None:
        """Take up what the resume file says of checkpoints."""
        self._provisional = set(facts.provisional)

    def record(self, event: Event) -> None:
        """Write down one event; what is due to be saved is saved here.

        Raises:
            FolderGone: the run folder was deleted.
        """
        self.follow_folder()
        if self._status_lost:
            self._persist(self._write_status)
        match event:
            case Stepped():
                self._append(
                    StepLine(
                        step=event.step,
                        loss=event.loss,
                        learning_rate=event.learning_rate,
                        grad_norm=event.grad_norm,
                        seconds=round(event.seconds, 6),
                        gpu_memory=event.gpu_memory,
                    )
                )
                self._recent.append((time.monotonic(), event.step, event.seconds))
                factor = self.status.train_characters_per_token or self.status.characters_per_token
                loss = per_character(event.loss, factor)
                self._say("training", step=event.step, train_loss=loss, **self._speed())
            case PartDone():
                self._say(_WORKING_STATE[event.what], progress=event.done / event.total)
            case Evaluated():
                self._append(
                    EvalLine(
                        step=event.step,
                        val_loss=event.val_loss,
                        val_loss_per_character=event.val_loss_per_character,
                        tokens=event.tokens,
                        whole=event.whole,
                        early=event.early,
                    )
                )
                if not event.whole:
                    changes = {"val_loss": event.val_loss_per_character}
                    if 0 < event.val_loss_per_character < math.inf:
                        factor = event.val_loss / event.val_loss_per_character
                        changes["characters_per_token"] = factor
                    # An early one is over before anybody could see that it was under way.
                    self._say("training" if event.early else "evaluating", **changes)
            case Sampled():
                self._append(
                    SampleLine(
                        step=event.step,
                        prompt=event.prompt,
                        text=event.text,
                        real_words=event.real_words,
                    )
                )
            case Skipped():
                self.note(f"the {event.what} at step {event.step:,} failed: {event.reason}")
            case StateDue():
                self._save_state()
            case CheckpointDue():
                if event.keep or self._trainer.best_step == event.step or self._most_telling:
                    self.save(event.keep)

    def save(self, keep: bool) -> Path:
        """Have a checkpoint of the trainer as it is on disk, and what resuming from it needs.

        First comes the state, so that no checkpoint is ahead of what can be resumed. A checkpoint
        that is there already is not written again.

        Args:
            keep: False for one that may be thinned out.

        Returns:
            the checkpoint's path.

        Raises:
            FolderGone: the run folder was deleted.
        """
        step = self._trainer.step
        path = checkpoint_path(self.folder, step)
        if keep:
            self._provisional.discard(step)
        elif not path.exists():  # else it is kept already, or known to be provisional
            self._provisional.add(step)
        self._save_state()
        self._save_checkpoint()
        self._thin_out()
        return checkpoint_path(self.folder, step)

    def _thin_out(self) -> None:
        """Delete provisional checkpoints of which there are too many; never the best so far, nor
        one that the user has marked."""
        marks = read_marks(self.folder)
        spared = {self._trainer.best_step, *marks.stars, *marks.notes}
        there = [
            step
            for step in sorted(self._provisional - spared)
            if os.path.lexists(checkpoint_path(self.folder, step))
        ]
        for step in superfluous(there, self._most_telling):
            with suppress(OSError):
                checkpoint_path(self.folder, step).unlink()
        self._provisional &= {*there, *spared}

    def _save_state(self) -> None:
        trainer = self._trainer
        facts = msgspec.structs.replace(
            trainer.facts(),
            provisional=tuple(sorted(self._provisional)),
            tokenizer=self._tokenizer.to_dict(),
        )
        if facts == self._state_on_disk:
            return
        state = TrainingState(facts, trainer.tensors())
        size = sum(tensor.nbytes for tensor in state.tensors.values())
        self._persist(lambda: write_state(self.folder / RESUME_FILE, state), size)
        self._persist(self._log.sync)
        self._state_on_disk = facts

    def _save_checkpoint(self) -> None:
        trainer = self._trainer
        if trainer.step == self._checkpoint_on_disk:
            return
        facts = CheckpointFacts(
            step=trainer.step,
            corpus=self._corpus,
            train=asdict(trainer.config),
            created=utc_now(),
            **msgspec.structs.asdict(trainer.losses),
        )

        def write() -> None:
            path = checkpoint_path(self.folder, trainer.step)
            if not _is_checkpoint(path, trainer.step):
                named = msgspec.structs.replace(facts, run=self.folder.name)
                save_checkpoint(path, trainer.model, self._tokenizer, named)
                self._log.append(CheckpointLine(step=trainer.step, file=path.name))

        self._persist(write, 4 * trainer.model.config.n_params)
        self._checkpoint_on_disk = trainer.step

    def _append(self, line: AnyLine) -> None:
        self._persist(lambda: self._log.append(line))

    def _persist(self, write: Callable[[], None], size: int = 0) -> None:
        """Write something that must not be missing: what hinders it is waited for.

        Args:
            size: of what is written, in bytes, where that is much.

        Raises:
            FolderGone: the run folder was deleted.
            OSError: the training is to stop, and what hinders it is not a full disk.
        """
        began = time.monotonic()
        hindered = stopping = False
        while True:
            try:
                write()
                break
            except OSError as error:
                if not self.follow_folder():
                    if stopping and error.errno not in _FULL:
                        raise
                    hindered = True
                    stopping = self._wait_until_possible(error, size)
        if hindered:
            self.status = replace(self.status, message="")
            self.note(f"written after {duration(time.monotonic() - began)}: nothing is missing")

    def _wait_until_possible(self, error: OSError, size: int) -> bool:
        """Pause until there is room for what failed, or it is worth trying again.

        Returns:
            whether the training is to stop.
        """
        self._recent.clear()
        full = error.errno in _FULL
        reason = f"cannot write to {str(self.folder)!r}: {error.strerror or error}"
        if full:
            self._reserve.yield_small()
            room = file_size(size + SMALL_FILES)
            reason = f"the disk is full: the training waits until {room} are free"
        while True:
            self.status = replace(self.status, state="paused", message=reason)
            self._write()
            if self._wait():
                self._reserve.release()
                return True
            self.follow_folder()
            if not full or (self._reserve.holds() and self._reserve.free() >= size):
                return False

    def follow_folder(self) -> bool:
        """Find out whether the run folder has moved, and follow it there.

        Returns:
            whether it has.

        Raises:
            FolderGone: it was deleted.
        """
        if self._is_here(self.folder):
            return False
        moved = None if self._folder_held is None else _path_of(self._folder_held)
        if moved is None or not self._is_here(moved):
            raise FolderGone(self.folder)
        self.folder = self._reserve.folder = moved
        self.note(f"the run folder is now {str(moved)!r}")
        return True

    def _is_here(self, folder: Path) -> bool:
        """Whether this is the run folder, and nobody is about to delete it."""
        try:
            return folder.stat().st_ino == self._folder_id and (folder / RUN_FILE).exists()
        except OSError:
            return False

    def _held(self) -> Path:
        """The run folder whatever is renamed in this moment, on systems that can tell."""
        held = Path(f"/proc/self/fd/{self._folder_held}")
        return held if held.is_dir() else self.folder

    def _take_settings(self) -> None:
        config = self._trainer.config
        self.status = replace(
            self.status, max_steps=config.max_steps, learning_rate=config.learning_rate,
            dropout=self._trainer.model.config.dropout, patience=config.patience,
        )  # fmt: skip

    def changed(self, setting: str, message: str) -> None:
        """Log that a setting of the trainer was changed, and say what it is now."""
        self._take_settings()
        self.note(message, setting)

    def note(self, message: str, setting: str = "") -> None:
        """Log an event in words and show it in the status."""
        self.status = replace(self.status, message=message)
        self._append(EventLine(step=self._trainer.step, message=message, setting=setting))
        self._write()

    def answered(self, number: int, answer: str = "") -> None:
        """Say that requests up to this number are carried out.

        Args:
            answer: what came of it, where that is no event of its own.
        """
        if answer:
            self.status = replace(self.status, message=answer)
        self.status = replace(self.status, answered=number, answer=answer)
        self._write()

    def pause(self) -> None:
        """Say that the trainer waits; the waiting does not count in the speed."""
        self._recent.clear()
        self._say("paused")

    def abandon(self) -> None:
        """Let go of the run folder without another word."""
        self._closed.set()
        # A thread that is still there when Python ends can bring the process down with SIGABRT.
        self._heart.join()
        if self._folder_held is not None:
            os.close(self._folder_held)
            self._folder_held = None

    def close(self, state: str, message: str) -> None:
        """Write the run's end: finished, stopped or failed, and why.

        Raises:
            FolderGone: the run folder was deleted.
        """
        self._reserve.release()
        self._append(EventLine(step=self._trainer.step, message=message, state=state))
        self._persist(self._log.close)
        self._closed.set()
        self._heart.join()
        self.status = replace(
            self.status, state=state, message=message, progress=0.0, seconds_left=None
        )
        self._persist(self._write_status)
        self.abandon()

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

    def _say(self, state: str, **changes: Any) -> None:
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
        """Write the status, or note that it is still to be written."""
        try:
            self._write_status()
        except OSError:
            self._status_lost = True

    def _write_status(self) -> None:
        with self._lock:
            self._written = time.monotonic()
            # Only read here: the heartbeat's thread must not undo what was said meanwhile.
            status = replace(self.status, heartbeat=utc_now())
            if self._is_here(self.folder):  # else another run may have its name
                write_status(self._held(), status)
            self._status_lost = False

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT_EVERY):
            if time.monotonic() - self._written >= HEARTBEAT_EVERY:
                self._write()


def _path_of(descriptor: int) -> Path | None:
    """Where an open folder is now, on systems that can tell."""
    try:
        if sys.platform == "darwin":
            import fcntl

            found = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
            return Path(os.fsdecode(found.rstrip(b"\0")))
        return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        return None


def _is_checkpoint(path: Path, step: int) -> bool:
    """Whether a file is a checkpoint of this step, and all there."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode) and read_header(path).step == step
    except (OSError, UnreadableFile):
        return False
