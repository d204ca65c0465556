"""The app over a slow line: how soon a letter is echoed, and how many bytes a text costs.

    python benchmarks/round_trip.py [--delay 0.2] [--size 80x24] [--seconds 10]

The app runs in a pseudo-terminal whose bytes are held back in both directions, half the delay
each, as over ssh to the other side of the world. Letters are typed into the prompt before and
while the poet writes; what is told is how long each took to stand on the screen, and how much of
that is not the line's. POSIX only; needs pyte.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections import deque

import pyte

WORDS = "zqxjkvzxqkjvqz", "vkzjqxvzkqxjzv"
"""Two words that the poet never writes, so that they stand only where they are typed."""

PATIENCE = 60.0


class SlowLine:
    """A terminal at the far end of a line.

    Attributes:
        arrived: bytes that came from the app.
    """

    def __init__(self, columns: int, rows: int, delay: float, home: str) -> None:
        self.arrived = 0
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._half = delay / 2
        self._there: deque[tuple[float, bytes]] = deque()
        self._back: deque[tuple[float, bytes]] = deque()
        self.pid, self._pty = pty.fork()
        if not self.pid:
            kind = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
            os.environ.update(kind, TUIGPT_HOME=home, TUIGPT_CONFIG=f"{home}/settings.toml")
            os.execvp(sys.executable, [sys.executable, "-m", "tuigpt"])
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._pty, termios.TIOCSWINSZ, size)

    def type(self, keys: str) -> None:
        """Press keys; they arrive half a round trip later."""
        self._there.append((time.monotonic() + self._half, keys.encode()))

    def wait(self, words: str, patience: float = PATIENCE) -> float:
        """Seconds until words stand on the screen."""
        began = time.monotonic()
        while words not in "\n".join(self.screen.display):
            if time.monotonic() - began > patience:
                shown = "\n".join(self.screen.display)
                raise SystemExit(f"{words!r} never came; the screen was:\n{shown}")
            self._carry()
        return time.monotonic() - began

    def idle(self, seconds: float) -> None:
        """Only watch for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._carry()

    def _carry(self) -> None:
        if select.select([self._pty], [], [], 0.002)[0]:
            came = os.read(self._pty, 65536)
            self.arrived += len(came)
            self._back.append((time.monotonic() + self._half, came))
        now = time.monotonic()
        while self._there and self._there[0][0] <= now:
            os.write(self._pty, self._there.popleft()[1])
        while self._back and self._back[0][0] <= now:
            self._stream.feed(self._back.popleft()[1])

    def close(self) -> None:
        os.close(self._pty)  # the app is hung up on
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)


def echoes(line: SlowLine, word: str, delay: float) -> list[float]:
    """Seconds that each letter took beyond the line's own, typed one after the other's echo."""
    found, typed = [], ""
    for letter in word:
        typed += letter
        line.type(letter)
        found.append(line.wait(f"│ {typed}") - delay)
    return found[1:]  # a single letter may stand there already


def measure(columns: int, rows: int, delay: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as home:
        line = SlowLine(columns, rows, delay, home)
        try:
            line.wait("next  ")
            idle = echoes(line, WORDS[0], delay)
            line.type("\t\t\t\x7f\x7f\x7f\x07")  # no length: it writes until it is stopped
            line.wait("endless")
            line.type("\r")
            line.wait("── 1 · poet")
            line.idle(3)  # the model is read, and the screen fills
            before = line.arrived
            line.idle(seconds)
            bytes_each = (line.arrived - before) / seconds
            line.type("x")  # what was sent is selected: typing begins anew
            line.wait("│ x ")
            line.type("\x7f")
            line.wait("type a beginning")
            busy = echoes(line, WORDS[1], delay)
        finally:
            line.close()
    print(
        f"{columns}x{rows}: echo {1000 * statistics.median(idle):.0f} ms"
        f" (at most {1000 * max(idle):.0f}), while a text streams"
        f" {1000 * statistics.median(busy):.0f} ms (at most {1000 * max(busy):.0f}),"
        f" beyond the line's {1000 * delay:.0f} ms; {bytes_each / 1000:.1f} kB/s of text"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--delay", type=float, default=0.2, help="of a round trip, in seconds")
    parser.add_argument("--size", action="append", help="such as 80x24; may be given again")
    parser.add_argument("--seconds", type=float, default=10.0, help="of text that is counted")
    options = parser.parse_args()
    for size in options.size or ["80x24", "160x45"]:
        columns, rows = map(int, size.split("x"))
        measure(columns, rows, options.delay, options.seconds)


if __name__ == "__main__":
    main()
