"""Telling how far a long reading is, and ending it cleanly when asked to."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from types import FrameType
from typing import NoReturn, TextIO

from tuigpt.wording import file_size

LIVE_EVERY, PLAIN_EVERY = 0.1, 2.0
"""Least seconds between two tellings, on a terminal and in a pipe or log."""

QUIET_FOR = 0.5
"""Seconds that nothing is told: what is done by then needs no progress."""


class ProgressLine:
    """A `ProgressCallback` on a text stream: one live line on a terminal, plain lines elsewhere.

    Use it as a context manager, so that a live line is wiped away at the end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._due = time.monotonic() + QUIET_FOR
        self._drawn = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn and self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (LIVE_EVERY if self._live else PLAIN_EVERY)
        line = progress_text(what, done, total)
        if self._live:
            line = line[: shutil.get_terminal_size().columns - 1]
        self._stream.write(f"\r{line}\x1b[K" if self._live else f"{line}\n")
        self._stream.flush()
        self._drawn = True


def progress_text(what: str, done: int, total: int) -> str:
    """How far something is; a total of 1 has no parts worth telling."""
    if total <= 1:
        return f"{what} …"
    return f"{what}: {100 * done // total} % of {file_size(total)}"


def end_cleanly_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process as ctrl+c does: nothing half-made is left behind."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
