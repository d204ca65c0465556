"""The app in a real terminal, whatever is sent to it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from system.terminal import Terminal

EVENTS = Path(__file__).resolve().parents[2] / "benchmarks" / "events.py"

OpenTerminal = Callable[..., Terminal]

READY = "f1 help"


def test_random_events(pytestconfig: pytest.Config) -> None:
    """`benchmarks/events.py` sends more of them, and replays a seed."""
    count = pytestconfig.getoption("--events")
    result = subprocess.run(
        [sys.executable, str(EVENTS), f"--events={count}", "--segment=1000"],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 + count / 10,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_suspended_and_brought_back(open_terminal: OpenTerminal) -> None:
    """ctrl+z gives the terminal to the shell, and what `fg` does draws the app again."""
    terminal = open_terminal()
    terminal.until(READY)
    for key in ("ctrl+z", ""):
        if key:
            terminal.press(key)
        else:
            terminal.process.send_signal(signal.SIGTSTP)
        wait_until_stopped(terminal)
        shown = len(terminal.output)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until(partial(drawn_since, terminal, shown))
    terminal.press("ctrl+g", "To be")
    terminal.until("│ To be +│")
    terminal.press("ctrl+q")
    assert terminal.until_ended() == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_stopped_while_it_is_being_stopped_or_brought_back(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.until(READY)
    for _ in range(5):
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.until_still(0.002)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until_still(0.002)
    terminal.until_still()
    while is_stopped(terminal):  # by the last of them
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until_still()
    terminal.press("ctrl+g", "To be")
    terminal.until("│ To be +│")
    terminal.press("ctrl+q")
    assert terminal.until_ended() == 0


def drawn_since(terminal: Terminal, before: int, _: str) -> bool:
    return b"help" in terminal.output[before:]


def wait_until_stopped(terminal: Terminal) -> None:
    """Wait for the process to be stopped, which first writes what the terminal has to read."""
    deadline = time.monotonic() + 20
    while not is_stopped(terminal):
        assert time.monotonic() < deadline, "it does not stop"
        with suppress(AssertionError):
            terminal.until(lambda _: is_stopped(terminal), patience=0.1)


def is_stopped(terminal: Terminal) -> bool:
    stat = Path(f"/proc/{terminal.process.pid}/stat").read_bytes()
    return stat.rpartition(b")")[2].split()[0] == b"T"


@pytest.mark.parametrize(
    "data",
    [
        b"\xfc",
        b"\xff\xfe\x80",
        b"\x1b[M" + bytes([32, 200, 34]) + b"\x1b[M" + bytes([35, 200, 34]),
        b"\x10\x1b[B\r\r",
        b"\x1bOP" * 20,
    ],
)
def test_bytes_of_every_kind(open_terminal: OpenTerminal, data: bytes) -> None:
    terminal = open_terminal(columns=160, rows=45)
    terminal.until(READY)
    terminal.send(data)
    for _ in range(3):
        terminal.press("escape")
        terminal.until(READY)
    terminal.press("ctrl+g", "To be")
    terminal.until("To be +│")
    terminal.press("ctrl+q")
    assert terminal.until_ended() == 0
    assert b"Traceback" not in terminal.output
