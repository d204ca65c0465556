"""What tells how far something is: it lives on a terminal, and comes anew elsewhere."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

LIVE_EVERY = 0.1
"""Least seconds between two drawings on a terminal."""


def is_live(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be drawn over."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """How wide a line may be without touching the terminal's last column, where it might wrap."""
    return max(1, shutil.get_terminal_size().columns - 1)


def fitted(line: str, width: int) -> str:
    """A line of at most so many columns; what is cut ends in an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


class LiveLine:
    """Draws a line or two over and over on a terminal; elsewhere it prints a line now and then.

    A stream that fails, such as a pipe without a reader or a file on a full disk, is written to no
    more; it never ends what is told of.

    Attributes:
        live: whether the stream is a terminal.
        unread: whether the stream was a pipe whose reader has gone.
    """

    def __init__(self, stream: TextIO, *, plain_every: float, quiet_for: float = 0.0) -> None:
        """
        Args:
            plain_every: least seconds between two lines where the stream is no terminal.
            quiet_for: seconds at the beginning in which nothing is shown.
        """
        self.live = is_live(stream)
        self.unread = False
        self._stream = stream
        self._every = LIVE_EVERY if self.live else plain_every
        self._due = time.monotonic() + quiet_for
        self._rows = 0

    def show(self, line: str, block: Callable[[int], Sequence[str]] | None = None) -> None:
        """How far it is now; shown if that has not been done only just now.

        Args:
            block: what a terminal shows instead: rows, none wider than the given columns.
        """
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every
        if not self.live:
            self._write(f"{line}\n")
            return
        rows = block(columns()) if block else [fitted(line, columns())]
        self._write(self._back() + "\x1b[K\n".join(rows) + "\x1b[J")
        self._rows = len(rows)

    def print(self, line: str) -> None:
        """A line that stays; what follows is drawn below it."""
        self.wipe()
        self._write(f"{line}\n")

    def wipe(self) -> None:
        """Take what is drawn off the terminal."""
        if self._rows:
            self._write(f"{self._back()}\x1b[J")
        self._rows = 0

    def _back(self) -> str:
        """Moves to the beginning of what is drawn."""
        return "\r" + (f"\x1b[{self._rows - 1}A" if self._rows > 1 else "")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self.unread = error.errno == errno.EPIPE
            # What is still in the stream's buffer must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say on a terminal what is being waited for: importing PyTorch alone takes seconds."""
    shown = is_live(sys.stderr)
    if shown:
        print(f"{words} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
