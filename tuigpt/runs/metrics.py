"""`metrics.jsonl`: one JSON object a line, appended by the trainer, followed by readers."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.files import Count, Word, decode, open_regular, open_to_append, to_json

METRICS_FILE = "metrics.jsonl"

PIECE = 1 << 20
"""Bytes that are read at a time, and so the most that a line may have."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    """What every line has."""

    step: Count


class StepLine(Line, frozen=True, tag="step", gc=False):
    """One update.

    Attributes:
        loss: of the batch, in nats per token.
        grad_norm: before clipping.
        seconds: that the update took.
        gpu_memory: most bytes in use on the GPU so far.
    """

    loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    seconds: float | None = None
    gpu_memory: Count | None = None
    nonfinite: tuple[str, ...] = ()


class EvalLine(Line, frozen=True, tag="eval"):
    """One evaluation.

    Attributes:
        val_loss: in nats per token.
        val_loss_per_character: the same in nats per character.
        tokens: how many were predicted.
        whole: whether they are the whole validation part.
        early: whether they are few, before the regular evaluations begin.
    """

    val_loss: float | None = None
    val_loss_per_character: float | None = None
    tokens: Count = 0
    whole: bool = False
    early: bool = False
    nonfinite: tuple[str, ...] = ()


class SampleLine(Line, frozen=True, tag="sample"):
    """What the model wrote after a prompt.

    Attributes:
        real_words: share of its words that are words of the text it learns from.
    """

    prompt: str = ""
    text: str = ""
    real_words: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


class CheckpointLine(Line, frozen=True, tag="checkpoint"):
    """A checkpoint was saved.

    Attributes:
        keep: False for one that the next better one replaces.
    """

    file: Word = ""
    keep: bool = True


class EventLine(Line, frozen=True, tag="event"):
    """Something to tell in words.

    Attributes:
        state: that the run ended in, or "".
        setting: that was changed, or "".
    """

    message: str = ""
    state: Word = ""
    setting: Word = ""


AnyLine = StepLine | EvalLine | SampleLine | CheckpointLine | EventLine

_decoder = msgspec.json.Decoder(AnyLine)


class MetricsLog:
    """The trainer's end: appends whole lines to a regular file of the run, never through a link."""

    def __init__(self, folder: Path) -> None:
        """Open the log; a line torn by a kill is cut off, so that the next one starts fresh.

        Raises:
            OSError: it cannot be opened, or is a symbolic link or no regular file.
        """
        self._stream = os.fdopen(open_to_append(folder / METRICS_FILE), "ab+", buffering=0)
        end = self._stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - PIECE)
            self._stream.seek(start)
            end = start + self._stream.read(end - start).rfind(b"\n") + 1
            if end > start or not start:
                break
        self._stream.truncate(end)

    def append(self, line: AnyLine) -> None:
        """Write one line.

        Raises:
            OSError: it could not be written, such as on a full disk; the log is as it was.
        """
        content = (to_json(line) + "\n").encode()
        size = os.fstat(self._stream.fileno()).st_size
        try:
            if self._stream.write(content) < len(content):
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
    """A reader's end: each call gives lines that came since the last one.

    Attributes:
        more: whether there are more lines to read at once.
    """

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: the log, which need not be there yet.
        """
        self._path = path
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._skipping = False
        self.more = False

    def read_new(self) -> tuple[list[AnyLine], bool]:
        """Read whole new lines, at most `PIECE` bytes of them.

        Lines that are none, or of a kind that this tuigpt does not know, are skipped.

        Returns:
            the lines, and whether they are the first of a log that was replaced or cut short: what
            was read before holds no more.
        """
        self.more = False
        try:
            with open_regular(self._path) as stream:
                stat = os.fstat(stream.fileno())
                file, restarted = (stat.st_dev, stat.st_ino), False
                if self._file != file or stat.st_size < self._offset:
                    restarted = self._restart(file)
                stream.seek(self._offset)
                piece = stream.read(PIECE)
        except (OSError, ValueError):
            return [], self._restart(None)
        end = piece.rfind(b"\n") + 1
        if not end and len(piece) == PIECE:  # a line that is too long
            self._skipping, end, piece = True, len(piece), b""
        elif self._skipping and end:
            self._skipping, piece = False, piece[piece.find(b"\n") + 1 : end]
        else:
            piece = piece[:end]
        self._offset += end
        self.more = bool(end) and self._offset < stat.st_size
        return _lines(piece), restarted

    def _restart(self, file: tuple[int, int] | None) -> bool:
        """Begin at the front of a file; whether one was read before."""
        before = self._file is not None and self._offset > 0
        self._file, self._offset, self._skipping = file, 0, False
        return before


def _lines(piece: bytes) -> list[AnyLine]:
    try:
        lines: list[AnyLine] = _decoder.decode_lines(piece)
        return lines
    except (ValueError, RecursionError):  # at least one is none: find out which
        found: list[AnyLine] = []
        for line in piece.splitlines():
            with suppress(ValueError):
                found.append(decode(line, AnyLine))
        return found
