"""Ends the app in every state and in every way, and looks at what is left.

    python benchmarks/endings.py [--state training] [--ending TERM]

States: idle, a text being written, the form, the help or the palette open, a trainer running that
the app started. Endings: the signals KILL, TERM, HUP, INT and QUIT, and a terminal that closes.
Within five seconds of each the app and its generator are gone, the trainer trains on, and the
terminal has its old settings and modes back, unless the app was killed or the terminal is gone.
A table is printed; the exit status is 1 if something else happened. POSIX only; finding what is
left needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from system.terminal import Terminal  # type: ignore[import-not-found, unused-ignore]

TUIGPT = [sys.executable, "-m", "tuigpt"]

STATES = ("idle", "writing", "form", "help", "palette", "training")

SIGNALS = ("KILL", "TERM", "HUP", "INT", "QUIT")
ENDINGS = (*SIGNALS, "closed")

SECONDS = 5.0
"""What everything has to be gone after."""

TINY = [
    "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4",
    "--eval-tokens=64", "--sample-tokens=8", "--device=cpu",
]  # fmt: skip

VERSE = "It is the east, and Juliet is the sun.\nArise, fair sun, and kill the moon.\n" * 40

_MODES = re.compile(rb"\x1b\[\?(\d+(?:;\d+)*)([hl])")
_WANTED_OFF = {9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2048}
_CURSOR = 25


class Bench:
    """A home with a run that was stopped, and what is done with it.

    Attributes:
        run: folder of that run.
    """

    def __init__(self, folder: Path, flags: Sequence[str] = TINY) -> None:
        """
        Args:
            flags: of the run.
        """
        self.folder = folder
        self.home = folder / "home"
        self.run = self.home / "runs" / "victim"
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TUIGPT_HOME": str(self.home),
            "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor",
            "OMP_NUM_THREADS": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip
        text = folder / "verse.txt"
        text.write_text(VERSE, "utf-8")
        arguments = [
            "train",
            str(text),
            "--name=victim",
            "--max-steps=10000000",
            "--patience=0",
            *flags,
        ]
        trainer = subprocess.Popen(
            [*TUIGPT, *arguments], env=self.env, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: self.status().get("state") == "training")
        self.tuigpt("stop", "victim")
        trainer.wait()

    def tuigpt(self, *arguments: str) -> str:
        """What a command prints.

        Raises:
            CalledProcessError: it fails.
        """
        return subprocess.run(
            [*TUIGPT, *arguments], env=self.env, cwd=self.folder, check=True,
            stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60,
        ).stdout  # fmt: skip

    def status(self) -> dict[str, object]:
        """What the run's trainer last told; nothing before it is there."""
        try:
            found: dict[str, object] = json.loads((self.run / "status.json").read_text())
        except OSError:
            return {}
        return found

    def processes(self) -> dict[int, str]:
        """The processes that have this home in their environment, with their commands."""
        mark = f"TUIGPT_HOME={self.home}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if command:  # else it only waits to be buried
                        found[int(folder.name)] = command
            except OSError:
                continue
        return found

    def try_one(self, state: str, ending: str) -> list[str]:
        """End the app once; gives what is wrong then."""
        problems = []
        with Terminal(TUIGPT, self.env, columns=120, rows=40, cwd=self.folder) as terminal:
            before = terminal.settings
            self._reach(terminal, state)
            kept = self.trainer() if state == "training" else None
            if ending == "closed":
                terminal.hang_up()
            else:
                terminal.process.send_signal(getattr(signal, f"SIG{ending}"))
            ended = time.monotonic()
            try:
                if ending == "closed":
                    terminal.process.wait(SECONDS)
                else:
                    terminal.until_ended(patience=SECONDS)
            except (subprocess.TimeoutExpired, AssertionError):
                problems.append("the app does not end")
            while self._strangers(kept) and time.monotonic() < ended + SECONDS:
                time.sleep(0.05)
            problems += [f"left: {command[:60]}" for command in self._strangers(kept)]
            if ending not in ("KILL", "closed"):
                terminal.until_still(0.1)
                if terminal.settings != before:
                    problems.append("the terminal's settings are not restored")
                problems += modes_left(terminal.output)
            if b"Traceback (most recent call last)" in terminal.output:
                problems.append("traceback")
        if kept is not None:
            problems += self._trains_on(kept)
        return problems

    def trainer(self) -> int:
        return int(str(self.status()["pid"]))

    def _reach(self, terminal: Terminal, state: str) -> None:
        terminal.until(r"new run")
        terminal.until_still()
        match state:
            case "writing":
                terminal.press("ctrl+g", "tab", "tab", "tab", "9999", "ctrl+g", "ROMEO:", "enter")
                terminal.until(r"\d of 9,999")
            case "form":
                terminal.press("ctrl+n")
                terminal.until_still()
            case "help":
                terminal.press("f1")
                terminal.until_still()
            case "palette":
                terminal.press("ctrl+p")
                terminal.until_still()
            case "training":
                terminal.press("ctrl+t", "r")
                terminal.until(lambda _: self.status()["state"] == "training")

    def _strangers(self, kept: int | None) -> list[str]:
        """What runs besides the trainer."""
        return [command for pid, command in self.processes().items() if pid != kept]

    def _trains_on(self, pid: int) -> list[str]:
        """Whether a trainer goes on; it is stopped then."""
        step = self.step()
        try:
            until(lambda: self.step() > step, SECONDS)
        except TimeoutError:
            return [f"the trainer does not train on: {self.status()}"]
        self.tuigpt("stop", "victim")
        return [] if self.status()["state"] == "stopped" else ["the trainer does not stop"]

    def step(self) -> int:
        return int(str(self.status()["step"]))


def until(reached: Callable[[], bool], patience: float = 60.0) -> None:
    """Wait for something.

    Raises:
        TimeoutError: it does not come.
    """
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


def modes_left(output: bytes) -> list[str]:
    """Modes of the terminal that were set and not reset."""
    modes: dict[int, bool] = {}
    for numbers, how in _MODES.findall(output):
        for number in numbers.split(b";"):
            modes[int(number)] = how == b"h"
    left = [f"mode {mode} is left on" for mode in sorted(_WANTED_OFF) if modes.get(mode)]
    if modes.get(_CURSOR) is False:
        left.append("the cursor is left hidden")
    if output.count(b"\x1b[>1u") > output.count(b"\x1b[<u"):
        left.append("the keyboard's mode is left on")
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--state", choices=STATES, action="append")
    parser.add_argument("--ending", choices=ENDINGS, action="append")
    options = parser.parse_args()
    endings = options.ending or ENDINGS
    print(f"{'':<10}" + "".join(f"{ending:<8}" for ending in endings))
    wrong = []
    with tempfile.TemporaryDirectory(prefix="endings-") as folder:
        bench = Bench(Path(folder))
        for state in options.state or STATES:
            print(f"{state:<10}", end="", flush=True)
            for ending in endings:
                problems = bench.try_one(state, ending)
                wrong += [f"{state}, {ending}: {problem}" for problem in problems]
                print(f"{'WRONG' if problems else 'ok':<8}", end="", flush=True)
            print()
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
