"""Telling how far a long reading is."""

from __future__ import annotations

from typing import TextIO

from tuigpt.cli.live_line import LiveLine
from tuigpt.wording import file_size

PLAIN_EVERY = 2.0
"""Least seconds between two lines in a pipe or log."""

QUIET_FOR = 0.5
"""Seconds that nothing is told: what is done by then needs no progress."""


class ProgressLine:
    """A `ProgressCallback` on a text stream.

    Use it as a context manager, so that a live line is wiped away at the end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._line = LiveLine(stream, plain_every=PLAIN_EVERY, quiet_for=QUIET_FOR)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        self._line.wipe()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._line.show(progress_text(what, done, total))


def progress_text(what: str, done: int, total: int) -> str:
    """How far something is; a total of 1 has no parts worth telling."""
    if total <= 1:
        return f"{what} …"
    return f"{what}: {100 * done // total} % of {file_size(total)}"
