"""Changing the settings of a text while it is written, by lines on standard input."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from tuigpt.config import SampleConfig, parse_field
from tuigpt.errors import UserError
from tuigpt.generation.decode import Writer
from tuigpt.wording import one_line

STEERABLE = ("temperature", "top_k", "top_p", "min_p")

_WAITING_LINES = 100
"""Lines that may wait for the next token; then whoever writes them waits."""


class Steering:
    """Takes in lines such as `temperature 0.3` in the background, and applies them when asked."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Args: lines: they may take for ever to come, and may end."""
        self._lines: queue.Queue[bytes] = queue.Queue(_WAITING_LINES)
        threading.Thread(target=self._listen, args=(lines,), daemon=True).start()

    def apply(self, writer: Writer) -> list[str]:
        """Let the lines that have come act on the next token; what is wrong with the others."""
        complaints = []
        for _ in range(self._lines.qsize()):
            try:
                writer.config = steered(writer.config, self._lines.get().decode(errors="replace"))
            except UserError as error:
                complaints.append(f"{one_line(str(error))}; nothing is changed")
        return complaints

    def _listen(self, lines: Iterable[bytes]) -> None:
        with suppress(OSError):  # a terminal that is gone says no more, like one that is closed
            for line in lines:
                if line.strip():
                    self._lines.put(line)


def steered(config: SampleConfig, line: str) -> SampleConfig:
    """The settings after a line such as `top_k 5`; the spelling of the flag does as well.

    Args:
        line: not blank.

    Raises:
        UserError: the line is no setting that can be changed, or its value cannot work.
    """
    name, *value = line.split(maxsplit=1)
    field = name.lstrip("-").replace("-", "_")
    if field not in STEERABLE:
        raise UserError(f"{name!r} cannot be steered, only {', '.join(STEERABLE)}")
    return replace(config, **{field: parse_field(SampleConfig, field, " ".join(value).strip())})


def standard_input() -> Iterable[bytes]:
    """The lines of standard input; none if it was closed."""
    if sys.stdin is None:
        return ()
    # Not the buffered stream: Python would wait for its lock at exit, while a read holds it.
    return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)


def report(changes: list[tuple[int, SampleConfig]]) -> list[str]:
    """Which settings hold from which token on, counted from 1; nothing if none was changed."""
    if not changes:
        return []
    lines = []
    for written, config in dict(changes).items():  # of several before one token the last holds
        settings = ", ".join(f"{name} {getattr(config, name)}" for name in STEERABLE)
        lines.append(f"steered from token {written + 1:,} on: {settings}")
    return [*lines, "no single command writes this text again"]
