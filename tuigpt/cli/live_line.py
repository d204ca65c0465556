"""A line that tells how far something is: it lives on a terminal, and comes anew elsewhere."""

from __future__ import annotations

import errno
import os
import shutil
import time
from typing import TextIO

LIVE_EVERY = 0.1
"""Least seconds between two drawings on a terminal."""


class LiveLine:
    """Draws one line over and over on a terminal; in a pipe or log it prints a line now and then.

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
        self.live = stream.isatty()
        self.unread = False
        self._stream = stream
        self._every = LIVE_EVERY if self.live else plain_every
        self._due = time.monotonic() + quiet_for
        self._drawn = False

    def show(self, line: str) -> None:
        """How far it is now; shown if that has not been done only just now."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every
        if self.live:
            self._write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            self._drawn = True
        else:
            self._write(f"{line}\n")

    def print(self, line: str) -> None:
        """A line that stays; what follows is drawn below it."""
        self.wipe()
        self._write(f"{line}\n")

    def wipe(self) -> None:
        """Take what is drawn off the terminal."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self.unread = error.errno == errno.EPIPE
            # What is still in the stream's buffer must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
