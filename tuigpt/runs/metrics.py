"""`metrics.jsonl`: one JSON object a line, appended by the trainer, followed by readers."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuigpt.files import from_json, to_json

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """The trainer's end: appends whole lines."""

    def __init__(self, folder: Path) -> None:
        """Open the log; a line torn by a kill is cut off, so that the next one starts fresh."""
        self._stream = open(folder / METRICS_FILE, "ab+", buffering=0)
        size = self._stream.tell()
        if size:
            self._stream.seek(0)
            self._stream.truncate(self._stream.read().rfind(b"\n") + 1)

    def append(self, kind: str, step: int, **values: Any) -> None:
        """Write one line: `kind` is step, eval, sample, checkpoint or event.

        Raises:
            OSError: it could not be written, such as on a full disk; the log is as it was.
        """
        line = (to_json({"kind": kind, "step": step} | values) + "\n").encode()
        size = os.fstat(self._stream.fileno()).st_size
        try:
            if self._stream.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._stream.fileno(), size)
            raise

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self.sync()
        self._stream.close()


class MetricsTail:
    """A reader's end: each call gives the lines that came since the last one."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: the log, which need not be there yet.
        """
        self._path = path
        self._offset = 0

    def read_new(self) -> list[dict[str, Any]]:
        """Whole new lines as records; a line that is no JSON object is passed over."""
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                chunk = stream.read()
        except OSError:
            return []
        chunk = chunk[: chunk.rfind(b"\n") + 1]
        self._offset += len(chunk)
        records = []
        for line in chunk.splitlines():
            try:
                records.append(from_json(line))
            except ValueError:
                continue
        return records


@dataclass
class History:
    """The series of a run, built from its log's records in order.

    Attributes:
        train: (step, loss) for each update.
        val: (step, val_loss) for each evenly spread evaluation.
        samples: newest text for each step that was sampled.
        events: what was told in words, in order, such as that a setting was changed.
        learning_rate: of the newest update.
        characters_per_token: of the newest evaluation; losses are in nats per token, and divided
            by this in nats per character.
    """

    train: list[tuple[int, float]] = field(default_factory=list)
    val: list[tuple[int, float]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    learning_rate: float | None = None
    characters_per_token: float = 1.0

    def add(self, record: dict[str, Any]) -> None:
        """Take in one record. One at an earlier step makes what was ahead of it forgotten: the run
        was resumed from there, and does those steps again."""
        step = record.get("step")
        if not isinstance(step, int):
            return
        for series in (self.train, self.val):
            while series and series[-1][0] > step:
                series.pop()
        while self.samples and self.samples[-1]["step"] > step:
            self.samples.pop()
        match record.get("kind"):
            case "step":
                _put(self.train, step, record.get("loss"))
                self.learning_rate = record.get("learning_rate")
            case "eval" if not record.get("whole"):
                val_loss, per_character = (
                    record.get("val_loss"),
                    record.get("val_loss_per_character"),
                )
                _put(self.val, step, val_loss)
                if val_loss and per_character:
                    self.characters_per_token = val_loss / per_character
            case "event" if record.get("message"):
                self.events.append(str(record["message"]))
            case "sample":
                if self.samples and self.samples[-1]["step"] == step:
                    self.samples.pop()
                self.samples.append(record)


def _put(series: list[tuple[int, float]], step: int, value: Any) -> None:
    if series and series[-1][0] == step:
        series.pop()
    if isinstance(value, int | float):
        series.append((step, float(value)))
