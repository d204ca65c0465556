"""`control.json`: what a trainer is asked to do.

Requests are numbered. A trainer carries out, in order, those above the number that it last wrote
into its status as `answered`; so none is lost when two come within one step.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import lock_descriptor

from tuigpt.files import read_json, write_json
from tuigpt.runs.status import read_status

CONTROL_FILE = "control.json"

LOCK_FILE = "control.lock"
"""Held while a request is added."""

_PATIENCE, _POLL = 1.0, 0.002
"""Seconds that one who asks waits for the others, and between two looks."""

ACTIONS = frozenset({"stop", "pause", "resume", "checkpoint", "sample", "discard"})
"""What can be asked for without a value."""

CHANGES = frozenset({"learning_rate", "dropout"})
"""The settings that can be changed while a training runs."""


@dataclass(frozen=True)
class Request:
    """One thing asked of a trainer: an action, or a new `value` for the setting it names."""

    action: str
    value: float | None = None


def request(folder: Path, action: str, value: float | None = None) -> int:
    """Ask the trainer of a run for something.

    Args:
        action: stop (and save), pause, resume, checkpoint, sample, discard (stop, and delete the
            run), or with a value learning_rate or dropout.

    Returns:
        the request's number, which the trainer answers with.

    Raises:
        OSError: the request could not be written.
    """
    if action not in (ACTIONS if value is None else CHANGES):
        raise ValueError(f"unknown action {action!r}")
    with _one_at_a_time(folder):
        answered = read_status(folder).answered
        pending = _read(folder)
        number: int = max([answered, *(r["number"] for r in pending)]) + 1
        pending = [r for r in pending if r["number"] > answered]
        wanted = {"number": number, "action": action} | ({} if value is None else {"value": value})
        write_json(folder / CONTROL_FILE, {"requests": [*pending, wanted]})
    return number


def last_request(folder: Path) -> int:
    """Number of the newest request made of a run, or 0."""
    newest: int = max([0, *(r["number"] for r in _read(folder))])
    return newest


class Requests:
    """The trainer's end: hands out each request once, and looks at the file only when it changed.

    Attributes:
        answered: number of the newest request handed out.
    """

    def __init__(self, folder: Path, answered: int) -> None:
        """
        Args:
            answered: requests up to this number are not for this trainer; it is the `last_request`
                from before the run's status said that there is one.
        """
        self._folder = folder
        self._seen: tuple[int, int] | None = None
        self.answered = answered

    def new(self) -> Iterator[Request]:
        """What was asked for since the last call."""
        try:
            stat = (self._folder / CONTROL_FILE).stat()
        except OSError:
            return
        mark = (stat.st_mtime_ns, stat.st_ino)
        if mark == self._seen:
            return
        self._seen = mark
        for entry in _read(self._folder):
            if entry["number"] > self.answered:
                self.answered = entry["number"]
                yield Request(entry["action"], entry.get("value"))


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let others who ask wait; without locks, or behind one who hangs, it goes on all the same."""
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        patient_until = time.monotonic() + _PATIENCE
        with suppress(OSError):  # a file system that has no locks
            while not lock_descriptor(descriptor, blocking=False):
                if time.monotonic() >= patient_until:
                    break
                time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _read(folder: Path) -> list[dict[str, Any]]:
    try:
        entries = read_json(folder / CONTROL_FILE)["requests"]
        return [e for e in entries if isinstance(e["number"], int) and _is_sound(e)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _is_sound(entry: dict[str, Any]) -> bool:
    value = entry.get("value")
    if value is None:
        return entry["action"] in ACTIONS
    return entry["action"] in CHANGES and isinstance(value, int | float) and math.isfinite(value)
