"""The signals by which a process is asked to end: one list, for all who handle them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""ctrl+c, `kill`, and the end of the terminal."""


def on_ending(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Have this called, or done, when the process is asked to end."""
    for number in ENDING:
        signal.signal(number, handler)


def end_cleanly_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process as ctrl+c does: nothing half-made is left behind."""
    for number in ENDING:
        if number != signal.SIGINT:
            signal.signal(number, _exit)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
