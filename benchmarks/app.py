"""What the app costs beside a training, how soon it answers, and a log of a million steps.

    python benchmarks/app.py [--seconds 20] [--rounds 3] [--keys 200] [--steps 1000000]

All in one run, with the app in a pseudo-terminal that draws at once (mode 2026), 140 × 40: a small
model trains for as long as it takes, in turns without the app and with it watching. Then letters
are typed into the prompt while it trains, and then a run of a million steps appears, which the app
opens by itself. Needs Linux (`/proc`) and pyte.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import pty
import random
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

from tuigpt.charts.plot import View, draw
from tuigpt.runs.folder import read_run
from tuigpt.runs.history import History
from tuigpt.runs.metrics import MetricsTail
from tuigpt.tui.panes.training.curves import Curves

TUIGPT = [sys.executable, "-m", "tuigpt"]

SMALL = [
    "--n-layer=1", "--n-head=2", "--n-embd=64", "--block-size=64", "--batch-size=96",
    "--max-steps=10000000", "--patience=0", "--checkpoint-interval=100000", "--eval-tokens=4096",
    "--eval-interval=500", "--device=cpu", "--name=running",
]  # fmt: skip
"""About 30 steps a second here, and with them an evaluation every 17 seconds: a run that is planned
for five minutes has 16 of them."""

COLUMNS, ROWS = 140, 40
PATIENCE = 90.0
SETTLES = 12.0
"""Seconds after the start of the app until its generator has read the poet."""

RARE = "QZXJKV"
"""Letters that hardly ever come with anything else on the screen."""


class Watched:
    """The app in a terminal, of which all bytes are read as they come."""

    def __init__(self, env: dict[str, str]) -> None:
        self.came = b""
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self.pid, self._pty = pty.fork()
        if not self.pid:
            os.execvpe(TUIGPT[0], TUIGPT, env)
        fcntl.ioctl(self._pty, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._pty, keys.encode())

    def read(self, patience: float) -> None:
        """Take in what comes within some seconds, or at once what is there."""
        if select.select([self._pty], [], [], patience)[0]:
            new = os.read(self._pty, 1 << 16)
            if b"\x1b[?2026$p" in new:
                self.type("\x1b[?2026;2$y")
            self.came += new

    def idle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def until(self, arrived: Callable[[], bool]) -> float:
        """Seconds until something is so; the screen is only emulated for who asks for words."""
        began = time.monotonic()
        while not arrived():
            if time.monotonic() - began > PATIENCE:
                raise SystemExit("it never came; the screen was:\n" + "\n".join(self.words()))
            self.read(0.002)
        return time.monotonic() - began

    def words(self) -> list[str]:
        """The screen's rows."""
        self._stream.feed(re.sub(rb"\x1b\[[<>?=][\d;]*[a-zA-Z$]*", b"", self.came[self._fed :]))
        self._fed = len(self.came)
        return list(self._screen.display)

    def until_words(self, words: str) -> float:
        return self.until(lambda: any(words in row for row in self.words()))

    def cpu(self) -> float:
        """Seconds of the processor that the app itself has used, its generator not counted."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        os.close(self._pty)
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)


def last_step(log: Path) -> int:
    """The newest step in a log."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        found = re.findall(rb'"step": ?(\d+)', stream.read())
    return int(found[-1]) if found else 0


def long_run(like: Path, folder: Path, steps: int) -> None:
    """Write a finished run of very many steps, with the record of another."""
    folder.mkdir()
    (folder / "run.json").write_bytes((like / "run.json").read_bytes())
    status = {"state": "finished", "step": steps, "max_steps": steps}
    (folder / "status.json").write_text(json.dumps(status))
    chance = random.Random(1)
    with (folder / "metrics.jsonl").open("w") as log:
        for step in range(1, steps + 1):
            loss = 1.5 + 2.5 * math.exp(-8 * step / steps) + chance.gauss(0, 0.05)
            log.write(
                f'{{"kind": "step", "step": {step}, "loss": {loss}, "learning_rate": 0.001,'
                f' "grad_norm": {chance.random()}, "seconds": 0.04}}\n'
            )
            if step % 100 == 0:
                log.write(f'{{"kind": "eval", "step": {step}, "val_loss": {loss + 0.1}}}\n')


def beside(app: Watched | None, log: Path, seconds: float) -> tuple[float, float, float, float]:
    """Steps a second, the app's share of a core, its redraws and bytes a second."""
    began, first = time.monotonic(), last_step(log)
    if app is None:
        time.sleep(seconds)
        return (last_step(log) - first) / (time.monotonic() - began), 0.0, 0.0, 0.0
    cpu, known = app.cpu(), len(app.came)
    app.idle(seconds)
    took, new = time.monotonic() - began, app.came[known:]
    frames = new.count(b"\x1b[?2026h")
    steps = (last_step(log) - first) / took
    return steps, (app.cpu() - cpu) / took, frames / took, len(new) / took


def echoes(app: Watched, count: int) -> list[float]:
    """Seconds from a key to its letter on the screen, while the model trains."""
    app.type("\x07")
    app.idle(1.0)
    found, chance = [], random.Random(1)
    for n in range(count):
        app.idle(0.1 + 0.3 * chance.random())
        letter, known = RARE[n % len(RARE)], len(app.came)
        app.type(letter)
        found.append(app.until(lambda: has(app.came[known:], letter)))  # noqa: B023
        app.type("\x7f")
    return sorted(found)


def answers(app: Watched, count: int) -> list[float]:
    """Seconds from enter to the first letter that the poet adds, while nothing trains."""
    app.type("\x07")
    app.idle(1.0)
    found = []
    for n in range(count):
        prompt = RARE + RARE[n % len(RARE)]
        app.type(prompt)
        app.until_words(prompt)
        app.idle(0.5)
        written = re.compile(re.escape(prompt) + r"\s?[^\s│█▉▊▋▌▍▎▏]")
        app.type("\r")
        found.append(app.until(lambda: any(map(written.search, app.words()))))  # noqa: B023
        app.idle(4.0)
    return sorted(found)


def has(output: bytes, letter: str) -> bool:
    """Whether a letter is among what is written, not only in control sequences."""
    return letter.encode() in re.sub(rb"\x1b\[[0-9;?]*[ -/]*[@-~]", b"", output)


def redraw(run: Path) -> float:
    """Seconds of the processor for one redraw of the training pane's chart."""
    opened = read_run(run, ())
    history, tail, curves = History(), MetricsTail(run / "metrics.jsonl"), Curves()
    while True:
        history.add(tail.read_new()[0])
        if not tail.more:
            break
    curves.look(opened, history)
    spent = []
    for whole in [False, True] * 10:
        began = time.process_time()
        curves.look(opened, history)
        draw(curves.picture(curves.story(), None, (), ()), View(whole=whole), COLUMNS, ROWS - 12)
        spent.append(time.process_time() - began)
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns without and with the app")
    parser.add_argument("--keys", type=int, default=200, help="letters that are typed")
    parser.add_argument("--texts", type=int, default=20, help="that the poet writes")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of the long run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        kind = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        places = {"TUIGPT_HOME": folder, "TUIGPT_CONFIG": f"{folder}/settings.toml"}
        env = {**os.environ, **kind, **places}
        output = (home / "output").open("w")
        trainer = subprocess.Popen(
            [*TUIGPT, "train", *SMALL], env=env, stdout=output, stderr=output
        )
        log = home / "runs/running/metrics.jsonl"
        app: Watched | None = None
        try:
            while not log.exists() or last_step(log) < 100:
                time.sleep(0.2)
            alone, watched = [], []
            for _ in range(options.rounds):
                alone.append(beside(None, log, options.seconds)[0])
                app = Watched(env)
                app.until_words("^q quit")
                app.type("\x14")  # the training pane
                app.idle(SETTLES)
                watched.append(beside(app, log, options.seconds))
                if len(watched) < options.rounds:
                    app.close()
                    app = None
            assert app is not None
            keys = echoes(app, options.keys)
            trainer.send_signal(signal.SIGINT)
            trainer.wait()
            first_letters = answers(app, options.texts)
            long_run(log.parent, home / "long", options.steps)
            app.type("\x14")
            app.idle(3)
            (home / "long").rename(home / "runs/long")  # the newest run: the app watches it
            opened = app.until_words(f"{options.steps // 1000}k")
            drawn = redraw(home / "runs/long")
        finally:
            if app is not None:
                app.close()
            trainer.kill()
            trainer.wait()
    ratios = [with_app[0] / without for without, with_app in zip(alone, watched, strict=True)]
    print(
        f"steps/s: {statistics.median(alone):.0f} alone,"
        f" {statistics.median(w[0] for w in watched):.0f} beside the app"
    )
    print(f"beside ÷ alone, turn by turn: {' '.join(f'{r:.3f}' for r in ratios)}")
    names = (("of a core", 100, "%"), ("redraws/s", 1, ""), ("bytes/s", 1, ""))
    for place, (name, scale, unit) in enumerate(names, 1):
        values = [scale * w[place] for w in watched]
        print(f"the app, {name}: {statistics.median(values):.1f}{unit}, at most {max(values):.1f}")
    at = [keys[min(len(keys) - 1, int(share * len(keys)))] * 1000 for share in (0.5, 0.99)]
    print(f"a key's echo: {at[0]:.0f} ms, 99th percentile {at[1]:.0f} ms, of {len(keys)}")
    middle = statistics.median(first_letters)
    print(
        f"from enter to the poet's first letter: {1000 * middle:.0f} ms, at most"
        f" {1000 * max(first_letters):.0f} ms, of {len(first_letters)}"
    )
    print(f"{options.steps:,} steps: open after {opened:.2f} s, a redraw {1000 * drawn:.1f} ms")


if __name__ == "__main__":
    main()
