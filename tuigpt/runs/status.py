"""`status.json`: what a trainer is doing now, as its run folder tells."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tuigpt.files import read_json, write_json

STATUS_FILE = "status.json"

ALIVE = frozenset({"preparing", "training", "evaluating", "sampling", "paused"})
"""States in which a trainer process is at work."""

LOST_AFTER = 60.0
"""Seconds without a heartbeat after which a trainer on another machine counts as lost."""


def utc_now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class RunStatus:
    """One reading of `status.json`.

    Attributes:
        state: preparing, training, evaluating, sampling, paused, finished, stopped, failed; or
            lost, which is what a reader concludes when the trainer died without a word.
        message: one line for people, such as why the run failed.
        answered: number of the newest request in `control.json` that was carried out.
        progress: share done of the evaluation or sample under way, from 0 to 1.
        learning_rate: the highest of the schedule.
        train_loss, val_loss, best_val_loss: in nats per token.
        characters_per_token: of the newest evaluation; 1 where tokens are characters.
        step_seconds: recent mean time of an update, without evaluations.
        seconds_left: until `max_steps`, evaluations included.
    """

    state: str = "preparing"
    step: int = 0
    max_steps: int = 0
    pid: int = 0
    host: str = ""
    device: str = ""
    start: str = ""
    heartbeat: str = ""
    message: str = ""
    answered: int = 0
    progress: float = 0.0
    learning_rate: float = 0.0
    dropout: float = 0.0
    train_loss: float | None = None
    val_loss: float | None = None
    best_val_loss: float | None = None
    best_step: int | None = None
    characters_per_token: float = 1.0
    step_seconds: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None

    @property
    def alive(self) -> bool:
        return self.state in ALIVE

    def per_character(self, loss: float | None) -> float | None:
        """One of the losses in nats per character, which compares with every other run's."""
        return None if loss is None else loss / self.characters_per_token


def status_of_this_process(**facts: Any) -> RunStatus:
    """The first status of a run whose trainer is this process."""
    now = utc_now()
    return RunStatus(pid=os.getpid(), host=socket.gethostname(), start=now, heartbeat=now, **facts)


def write_status(folder: Path, status: RunStatus) -> None:
    """Replace a run's status all at once."""
    write_json(folder / STATUS_FILE, asdict(status))


def read_status(folder: Path, process_alive: Callable[[int], bool] | None = None) -> RunStatus:
    """Read a run's status; a trainer that died without saying so is `lost`.

    An unreadable or missing status is `lost` too: the trainer writes one before anything else.
    """
    try:
        record = read_json(folder / STATUS_FILE)
    except (OSError, ValueError):
        return RunStatus(state="lost", message="its status cannot be read")
    known = {f.name for f in fields(RunStatus)}
    status = RunStatus(**{k: v for k, v in record.items() if k in known})
    if status.alive and not _is_alive(status, process_alive or is_process_alive):
        record = asdict(status) | {
            "state": "lost",
            "message": f"its trainer (process {status.pid} on {status.host}) is gone",
        }
        return RunStatus(**record)
    return status


def is_process_alive(pid: int) -> bool:
    """Whether a process of this machine is there and not merely waiting to be buried."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[:1] != [b"Z"]
    except OSError:
        return True


def _is_alive(status: RunStatus, process_alive: Callable[[int], bool]) -> bool:
    if os.name == "posix" and status.host == socket.gethostname():
        return process_alive(status.pid)
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(status.heartbeat)
    except (ValueError, TypeError):
        return False
    return age.total_seconds() < LOST_AFTER
