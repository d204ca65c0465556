"""A terminal, emulated: a user in front of it presses keys and waits for what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

PATIENCE = 60.0
"""Seconds after which something that has not come counts as never coming."""

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}

# What pyte would print as text: a "pop the keyboard mode" that it does not know.
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[<\d*u|\x1b\[\?[\d;]*\$p|\x1b\[>[\d;]*[a-zA-Z]")


class Terminal:
    """Runs a program in a pseudo-terminal of its own.

    Use it as a context manager: at the end whatever still runs in it is hung up on, then killed.

    Attributes:
        process: the program.
        output: all bytes that it wrote.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 40,
        cwd: Path | None = None,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.output = b""
        self._master, slave = pty.openpty()
        self._set_size(columns, rows)
        self.process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.hang_up()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # --- what a user sees ---

    @property
    def text(self) -> str:
        """The screen, its rows without trailing spaces."""
        return "\n".join(row.rstrip() for row in self._screen.display)

    def until(
        self, wanted: str | Callable[[str], object], *, patience: float = PATIENCE
    ) -> re.Match[str] | None:
        """Wait until the screen matches a pattern, or a function of its text says yes.

        Raises:
            AssertionError: it does not come; the message shows the screen.
        """
        deadline = time.monotonic() + patience
        while True:
            match = re.search(wanted, self.text) if isinstance(wanted, str) else None
            if match or (callable(wanted) and wanted(self.text)):
                return match
            if not self._read(deadline):
                raise AssertionError(f"{wanted!r} never came; the screen was:\n{self.text}")

    def until_still(self, seconds: float = 0.5, *, patience: float = PATIENCE) -> None:
        """Take in what the program writes, until it has written nothing for so long."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and self._read(time.monotonic() + seconds):
            pass

    @property
    def settings(self) -> list[object]:
        """How the terminal treats what is typed, as `stty` tells it."""
        return list(termios.tcgetattr(self._master))

    def until_ended(self, *, patience: float = PATIENCE) -> int:
        """Wait for the program's end and give its exit status."""
        deadline = time.monotonic() + patience
        while self._read(deadline):
            pass
        try:
            return self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end; the screen was:\n{self.text}") from None

    # --- what a user does ---

    def press(self, *keys: str) -> None:
        """Press keys by name (`ctrl+n`, `enter`); what is no name is typed as it is."""
        for key in keys:
            self._write(KEYS.get(key, key))

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """Close the terminal, as when a window is closed or a connection drops."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    # --- the pseudo-terminal ---

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _write(self, text: str) -> None:
        self.send(text.encode())

    def send(self, data: bytes) -> None:
        """Send bytes as they are, in one write where that is possible."""
        while data:
            data = data[os.write(self._master, data) :]

    def _read(self, deadline: float) -> bool:
        """Take in what the program wrote next; False at its end and at the deadline."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the program and all its children have closed the terminal
            return False
        self.output += data
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))
        return bool(data)
