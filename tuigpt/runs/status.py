"""`status.json`: what a trainer is doing now, as its run folder tells."""

from __future__ import annotations

import math
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tuigpt.files import Count, UnreadableFile, Word, read_record, write_json
from tuigpt.loss import per_character, per_token
from tuigpt.runs.lock import is_locked
from tuigpt.wording import one_line

STATUS_FILE = "status.json"

ALIVE = frozenset({"preparing", "training", "evaluating", "sampling", "paused"})
"""States in which a trainer process is running."""

LOST_AFTER = 60.0
"""Seconds without a heartbeat after which a trainer whose lock tells nothing counts as lost."""

SILENT_AFTER = 15.0
"""Seconds without a heartbeat after which a trainer that lives will not soon do what it is asked:
it is suspended, or the machine is out of memory."""

_Amount = Annotated[float, Meta(ge=0, le=1e15)]


def utc_now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class RunStatus:
    """One reading of `status.json`.

    Losses are in nats per character here; the file has them in nats per token.

    Attributes:
        state: preparing, training, evaluating, sampling, paused, finished, stopped, failed; or
            lost, which is what a reader concludes when the trainer died without a word.
        message: one line for people, such as why the run failed.
        answered: number of the newest request in `control.json` that was carried out.
        answer: what came of that request.
        progress: share done of the evaluation or sample under way, from 0 to 1.
        learning_rate: the highest of the schedule.
        patience: evaluations in a row without a better val loss that end the run; 0 is any number.
        characters_per_token: of the newest evaluation; 1 where tokens are characters.
        train_characters_per_token: of the training part, or None where the file does not tell.
        step_seconds: recent mean time of an update, without evaluations.
        seconds_left: until `max_steps`, evaluations included.
    """

    state: Word = "preparing"
    step: Count = 0
    max_steps: Count = 0
    pid: Count = 0
    host: Word = ""
    device: Word = ""
    start: Word = ""
    heartbeat: Word = ""
    message: Annotated[str, Meta(max_length=100_000)] = ""
    answered: Count = 0
    answer: Annotated[str, Meta(max_length=100_000)] = ""
    progress: Annotated[float, Meta(ge=0, le=1)] = 0.0
    learning_rate: _Amount = 0.0
    dropout: Annotated[float, Meta(ge=0, le=1)] = 0.0
    patience: Count = 0
    train_loss: float | None = None
    val_loss: float | None = None
    best_val_loss: float | None = None
    best_step: Count | None = None
    characters_per_token: Annotated[float, Meta(gt=0, le=1e6)] = 1.0
    train_characters_per_token: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    step_seconds: _Amount | None = None
    tokens_per_second: _Amount | None = None
    seconds_left: _Amount | None = None

    @property
    def alive(self) -> bool:
        return self.state in ALIVE

    @property
    def computes_here(self) -> bool:
        """Whether its trainer keeps the processor of this machine busy."""
        busy = self.alive and self.state != "paused" and self.host == socket.gethostname()
        return busy and re.search(r"\bcpu\b", self.device) is not None

    @property
    def news(self) -> str:
        """`message`, or "" where it only repeats state and step."""
        return "" if self.message == f"{self.state} at step {self.step:,}" else self.message

    @property
    def seconds_silent(self) -> float:
        """Seconds since the last heartbeat."""
        try:
            age = datetime.now(UTC) - datetime.fromisoformat(self.heartbeat)
        except (ValueError, TypeError):
            return math.inf
        return age.total_seconds()


def status_of_this_process(**facts: Any) -> RunStatus:
    """The first status of a run whose trainer is this process."""
    now = utc_now()
    return RunStatus(pid=os.getpid(), host=socket.gethostname(), start=now, heartbeat=now, **facts)


def write_status(folder: Path, status: RunStatus) -> None:
    """Replace a run's status all at once.

    Raises:
        OSError: it could not be written; the old one is untouched.
    """
    write_json(folder / STATUS_FILE, _in_unit(per_token, status))


def read_status(folder: Path, train_characters_per_token: float | None = None) -> RunStatus:
    """Read a run's status; a trainer that died without saying so is `lost`.

    A damaged or missing status is `lost` too: the trainer writes one before anything else. Texts in
    it are safe to show.

    Args:
        train_characters_per_token: of the training part, for files that do not tell.
    """
    return status_and_problem(folder, train_characters_per_token)[0]


def status_and_problem(
    folder: Path, train_characters_per_token: float | None = None
) -> tuple[RunStatus, str]:
    """As `read_status`, with what is damaged about the file, or ""."""
    try:
        status = read_record(folder / STATUS_FILE, RunStatus)
    except UnreadableFile as error:
        problem = f"{STATUS_FILE}: {'it is missing' if error.missing else error.reason}"
        return RunStatus(state="lost", message="its status cannot be read"), problem
    if status.train_characters_per_token is None:
        status = replace(status, train_characters_per_token=train_characters_per_token)
    status = _in_unit(per_character, status)
    status = replace(
        status,
        state=one_line(status.state),
        host=one_line(status.host),
        device=one_line(status.device),
        message=one_line(status.message),
        answer=one_line(status.answer),
    )
    if status.alive and not _is_alive(folder, status):
        gone = f"its trainer (process {status.pid} on {status.host}) is gone"
        status = replace(status, state="lost", message=gone)
    return status, ""


def _in_unit(
    convert: Callable[[float | None, float | None], float | None], status: RunStatus
) -> RunStatus:
    val = status.characters_per_token
    return replace(
        status,
        train_loss=convert(status.train_loss, status.train_characters_per_token or val),
        val_loss=convert(status.val_loss, val),
        best_val_loss=convert(status.best_val_loss, val),
    )


def _is_alive(folder: Path, status: RunStatus) -> bool:
    """Whether a trainer holds the run's lock; where locks tell nothing, by its heartbeat."""
    locked = is_locked(folder)
    if locked or (locked is False and status.host == socket.gethostname()):
        return locked
    return status.seconds_silent < LOST_AFTER
