"""Random keys, clicks, pastes, sizes and stray bytes for the app, in a terminal of its own.

    python benchmarks/events.py [--events 20000] [--seed 1] [--state writing]

States: before there is a run, while a text is written, and beside a trainer that runs. The same
seed sends the same bytes in the same pieces. No event may end the app: where it ends by itself,
but for a quit that the events asked for, the script says after which event, and its exit status
is 1. It is 1 as well if the app does not answer: if it has worked for thirty seconds of processor
time on what it was sent, or has done nothing for as long. What the app survived is counted from its
log. Linux only.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TUIGPT = [sys.executable, "-m", "tuigpt"]

STATES = ("before", "writing", "training")

PATIENCE = 30.0
"""Seconds of processor time, or seconds without using any, within which the app must answer."""

SIZES = [(80, 24), (160, 45), (60, 16), (59, 15), (100, 30), (1, 1), (0, 0), (300, 2), (80, 1)]

LIKELY = [
    b"\x10", b"\x0e", b"\x1bOP", b"\x1b", b"\r", b"\t", b"\x1b[Z", b"\x07", b"\x14", b"\x0f",
    b"\x1b[A", b"\x1b[B", b"\x1b[5~", b"\x1b[6~",
]  # fmt: skip
"""Keys that open, close and move: palette, form, help, escape, enter, tab, panes, lists."""

RARE = [
    b"\x1b[C", b"\x1b[D", b"\x1b[H", b"\x1b[F", b"\x1b[2~", b"\x1b[3~", b"\x7f", b"\x1b[1;2D",
    b"\x1b[1;5C", b"\x1b\r", b"\x1b[17~", b"\x1b[18~", b"\x1b[15~", b"\x1b[24~", b"\x1b[I",
    b"\x1b[O", b"\x1b[13;2u", b"\x1b[99999~", b"\x1b[", b"\x1b]0;title\x07", b"\x1bP", b"\x00",
    b"\xff", b"\xfc", b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\x9b5n", b"\x1b[200~", b"\x1b[201~",
    b"\x1b[?2026;2$y", b"\x1b[?2048;1$y", b"\x1b[48;0;0;0;0t", b"\x1b[M\xff\xff\xff",
]  # fmt: skip
"""Other keys, answers that no terminal gives, pieces of sequences, and bytes that are no UTF-8."""

VERSE = "It is the east, and Juliet is the sun.\nArise, fair sun, and kill the moon.\n" * 40

TINY = [
    "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4",
    "--eval-tokens=64", "--sample-tokens=8", "--device=cpu", "--checkpoint-interval=5000",
]  # fmt: skip

Event = bytes | tuple[int, int] | signal.Signals
"""What is written, a new size, or a signal."""


def events(rng: random.Random, columns: int, rows: int) -> Iterator[list[Event]]:
    """Pieces of up to thirty events that come at once."""
    while True:
        yield [_event(rng, columns, rows) for _ in range(rng.choice((1, 1, 2, 5, 30)))]


def _event(rng: random.Random, columns: int, rows: int) -> Event:
    kind = rng.random()
    if kind < 0.40:
        return rng.choice(LIKELY)
    if kind < 0.60:
        return rng.choice("abcdefghijklmnopqrstuvwxyz?/:1234567890 HG").encode()
    if kind < 0.72:
        return rng.choice(RARE)
    if kind < 0.76:
        return bytes([rng.choice([c for c in range(1, 27) if c not in (17, 26)])])
    if kind < 0.92:
        x, y = rng.randrange(1, columns + 3), rng.randrange(1, rows + 3)
        if rng.random() < 0.2:
            return b"\x1b[M" + bytes([32 + rng.randrange(4), min(255, 32 + x), min(255, 32 + y)])
        button, end = rng.choice(
            [("0", "M"), ("0", "m"), ("0", "m"), ("35", "M"), ("32", "M"), ("64", "M"), ("65", "M")]
        )
        return f"\x1b[<{button};{x};{y}{end}".encode()
    if kind < 0.95:
        letters = [10, 13, 27, 65, 91, 0x301, 0x65E5, 0x1F642]
        text = "".join(chr(rng.choice(letters)) for _ in range(rng.randrange(200)))
        return b"\x1b[200~" + text.encode() + b"\x1b[201~"
    if kind < 0.995:
        return rng.choice(SIZES)
    return rng.choice([signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH])


class App:
    """The app in a pseudo-terminal whose output is read and thrown away.

    Attributes:
        output: its last bytes.
    """

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.resize(80, 24)
        self.output = b""
        self.process = subprocess.Popen(
            TUIGPT, env=env, cwd=folder, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self._master, False)

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def send(self, event: Event) -> None:
        if isinstance(event, tuple):
            self.resize(*event)
            return
        if isinstance(event, signal.Signals):
            self.process.send_signal(event)
            return
        patient = Patience(self.process.pid)
        while event and patient and self.process.poll() is None:
            try:
                event = event[os.write(self._master, event) :]
            except BlockingIOError:
                self.read(0.01)

    def bring_to_front(self) -> None:
        """What `fg` does, should the app have been suspended."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_bytes()
        except OSError:  # it has just ended
            return
        if stat.rpartition(b")")[2].split()[0] == b"T":
            self.process.send_signal(signal.SIGCONT)

    def read(self, seconds: float) -> None:
        """Read for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                break
            try:
                self.output = (self.output + os.read(self._master, 1 << 16))[-200_000:]
            except OSError:
                break

    def said(self) -> str:
        """The end of its output, without the sequences that move and colour."""
        words = re.sub(rb"\x1b\[[^a-zA-Z]*[a-zA-Z]", b"", self.output)
        return words.decode("utf-8", "replace")[-3000:]

    def answers(self) -> float | None:
        """Seconds until the palette comes at its key, with all before it closed; None if never."""
        began, patient = time.monotonic(), Patience(self.process.pid)
        self.resize(80, 24)
        self.read(0.1)
        self.output = b""
        while patient and self.process.poll() is None:
            for event in (b"\x1b[201~", b"\x1b", b"\x1b", b"\x1b", b"\x10"):
                self.bring_to_front()
                self.send(event)
                self.read(0.3)
            if b"everything" in self.output:
                return time.monotonic() - began
        return None

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


class Patience:
    """True until a process has worked for `PATIENCE` seconds, or rested for as long."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = self._worked = self._seconds()
        self._worked_at = time.monotonic()

    def __bool__(self) -> bool:
        now, worked = time.monotonic(), self._seconds()
        if worked - self._worked >= 1.0:  # blinking and following alone are no work
            self._worked, self._worked_at = worked, now
        return worked - self._began < PATIENCE and now - self._worked_at < PATIENCE

    def _seconds(self) -> float:
        try:
            stat = Path(f"/proc/{self._pid}/stat").read_bytes()
        except OSError:  # it has just ended
            return 0.0
        user, system = stat.rpartition(b")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def end_trainers(home: Path) -> None:
    """End every process that works in this home: what the events started."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(home) in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            continue


class Bench:
    """A home, and what is counted."""

    def __init__(self, folder: Path, state: str) -> None:
        self.folder, self.state = folder, state
        self.home = folder / "home"
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TUIGPT_HOME": str(self.home),
            "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor",
            "OMP_NUM_THREADS": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip
        self.starts = self.quits = 0
        self.slowest = 0.0

    def start(self) -> App:
        self.starts += 1
        if self.state == "training":
            text = self.folder / "verse.txt"
            text.write_text(VERSE, "utf-8")
            name = f"--name=run-{self.starts}"
            subprocess.Popen(
                [*TUIGPT, "train", str(text), name, "--max-steps=10000000", "--patience=0", *TINY,
                 f"--home={self.home}"],
                env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        app = App(self.folder, self.env)
        while b"help" not in app.output and app.process.poll() is None:
            app.read(0.1)
        if self.state == "writing":
            app.send(b"\t\t\t9999\x07ROMEO:\r")
        return app

    def run(self, seed: int, count: int, segment: int) -> str:
        """Send that many events; gives what went wrong, or ""."""
        rng = random.Random(f"{seed} {self.state}")
        sent = 0
        while sent < count:
            app, here = self.start(), 0
            try:
                for piece in events(rng, 160, 45):
                    for event in piece:
                        app.send(event)
                    sent, here = sent + len(piece), here + len(piece)
                    app.read(rng.choice((0.0, 0.05, 0.2, 0.5)))
                    if app.process.poll() is not None:
                        break
                    app.bring_to_front()
                    if here >= segment or sent >= count:
                        seconds = app.answers()
                        if seconds is None and app.process.poll() is None:
                            return f"no answer after event {sent}:\n{app.said()}"
                        self.slowest = max(self.slowest, seconds or 0.0)
                        break
                if app.process.poll() is not None:
                    app.read(0.5)
                    if app.process.returncode or b"Traceback" in app.output:
                        return f"ended ({app.process.returncode}) after event {sent}:\n{app.said()}"
                    self.quits += 1
            finally:
                app.close()
                end_trainers(self.home)
        return ""

    def survived(self) -> Counter[str]:
        """The last line of each exception in the log."""
        log = self.home / "app.log"
        lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
        return Counter(
            line for line, after in zip(lines, [*lines[1:], "2"], strict=False)
            if not line.startswith((" ", "20")) and re.match(r"20\d\d-|2$", after)
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=20_000, help="in all states together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--segment", type=int, default=1000, help="events until a new app")
    parser.add_argument("--state", choices=STATES, action="append")
    options = parser.parse_args()
    states = options.state or STATES
    failed = False
    for state in states:
        with tempfile.TemporaryDirectory() as name:
            bench = Bench(Path(name), state)
            count = options.events // len(states)
            began = time.monotonic()
            problem = bench.run(options.seed, count, options.segment)
            failed = failed or bool(problem)
            print(
                f"{state}: {problem or f'{count:,} events'}, {bench.starts} starts,"
                f" {bench.quits} quits, slowest answer {bench.slowest:.1f} s,"
                f" {time.monotonic() - began:.0f} s",
                flush=True,
            )
            for line, times in bench.survived().most_common():
                print(f"  survived {times} ×  {line[:150]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
