"""`control.json`: what a trainer is asked to do.

Requests are numbered. A trainer carries out, in order, those above the number that it last wrote
into its status as `answered`; so none is lost when two come within one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuigpt.files import read_json, write_json
from tuigpt.runs.status import read_status

CONTROL_FILE = "control.json"

ACTIONS = frozenset({"stop", "pause", "resume", "checkpoint", "sample"})


def request(folder: Path, action: str) -> int:
    """Ask the trainer of a run for something.

    Args:
        action: stop (and save), pause, resume, checkpoint or sample.

    Returns:
        the request's number, which the trainer answers with.

    Raises:
        OSError: the request could not be written.
    """
    if action not in ACTIONS:
        raise ValueError(f"unknown action {action!r}")
    answered = read_status(folder).answered
    pending = _read(folder)
    number: int = max([answered, *(r["number"] for r in pending)]) + 1
    pending = [r for r in pending if r["number"] > answered]
    write_json(
        folder / CONTROL_FILE, {"requests": [*pending, {"number": number, "action": action}]}
    )
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

    def new(self) -> Iterator[str]:
        """Actions asked for since the last call."""
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
                yield entry["action"]


def _read(folder: Path) -> list[dict[str, Any]]:
    try:
        entries = read_json(folder / CONTROL_FILE)["requests"]
        return [e for e in entries if isinstance(e["number"], int) and e["action"] in ACTIONS]
    except (OSError, ValueError, KeyError, TypeError):
        return []
