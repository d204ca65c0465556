"""How long until the app's first frame stands, beside that of an empty Textual app.

    python benchmarks/first_frame.py [--rounds 15] [--size 120x40]

Both run in a real pseudo-terminal, in turns and with the same interpreter. The empty app is one
Input; its frame stands when the field's placeholder is on the screen. tuigpt's stands when the
prompt and its placeholder are, in a home without a run. Prints the median of each, and of the
ratios of neighbours. `RESULTS.md` has figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from system.terminal import Terminal  # type: ignore[import-not-found, unused-ignore]

EMPTY = """
from textual.app import App
from textual.widgets import Input

class Empty(App):
    def compose(self):
        yield Input(placeholder="type a beginning")

Empty().run()
"""

PLACEHOLDER = "type a beginning"


def seconds_to_frame(command: Sequence[str], folder: Path, size: tuple[int, int]) -> float:
    """From the start of a program until its field is on the screen."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8",
        "TERM": "xterm-256color", "COLORTERM": "truecolor",
    }  # fmt: skip
    began = time.perf_counter()
    with Terminal(command, env, columns=size[0], rows=size[1], cwd=folder) as terminal:
        terminal.until(PLACEHOLDER)
        took = time.perf_counter() - began
        terminal.process.kill()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", default="120x40")
    options = parser.parse_args()
    columns, _, rows = options.size.partition("x")
    size = int(columns), int(rows)
    commands = {"empty": [sys.executable, "-c", EMPTY], "tuigpt": [sys.executable, "-m", "tuigpt"]}
    took: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds + 1):
            for name, command in commands.items():
                took[name].append(seconds_to_frame(command, Path(folder), size))
    for name, times in took.items():
        times.pop(0)  # it compiled what is imported, and read it from the disk
        print(f"{name:7} {statistics.median(times):.3f} s  (best {min(times):.3f})")
    ratios = [ours / empty for empty, ours in zip(*took.values(), strict=True)]
    best = min(took["tuigpt"]) / min(took["empty"])
    print(f"ratio   {statistics.median(ratios):.2f}     (of the best {best:.2f})")


if __name__ == "__main__":
    main()
