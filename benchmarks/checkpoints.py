"""How the list of checkpoints bears many of them.

    python benchmarks/checkpoints.py --checkpoints 10000 --runs 20

Makes a home of runs whose checkpoints have whole headers but no weights (the app reads nothing
else of them), and tells how much of the processor's time the first look takes, one at which nothing
has changed, one after a single checkpoint has come, and each key in the real pane with all runs
unfolded. The same with a hundredth of the checkpoints stands beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tuigpt.files import write_json
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import CHECKPOINTS, checkpoint_path
from tuigpt.runs.follow import Follower
from tuigpt.runs.poet import hide_poet
from tuigpt.runs.status import utc_now
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane
from tuigpt.tui.widgets.row_list import RowList

MODEL = {"vocab_size": 65, "block_size": 64, "n_layer": 2, "n_head": 2, "n_embd": 128,
         "dropout": 0.0}  # fmt: skip
CORPUS = {"name": "shakespeare", "sha256": "0" * 64, "characters": 1_115_394}
TOKENIZER = {"type": "char", "vocab": "".join(map(chr, range(32, 97)))}
TRAIN = {"recipe": "fast", "max_steps": 100_000, "batch_size": 64, "seed": 1337}

KEYS = ("down", "up", "pagedown", "pageup", "end", "home", "space", "s")
"""What is pressed in the list."""

TIMES = 20
"""How often each."""


def write_checkpoint(folder: Path, step: int) -> None:
    """A checkpoint without weights."""
    header = {
        "format": 1, "run": folder.name, "step": step, "train_loss": 1 + 100 / step,
        "val_loss": 1.2 + 100 / step, "model": MODEL, "tokenizer": TOKENIZER, "corpus": CORPUS,
        "train": TRAIN, "created": utc_now(),
    }  # fmt: skip
    content = json.dumps({"__metadata__": {"tuigpt": json.dumps(header)}}).encode()
    checkpoint_path(folder, step).write_bytes(struct.pack("<Q", len(content)) + content)


def make_home(home: Path, n_checkpoints: int, n_runs: int) -> list[Path]:
    """A home of runs with so many checkpoints among them; gives their folders."""
    folders = []
    for n in range(n_runs):
        folder = runs_dir(home) / f"run-{n:03}"
        (folder / CHECKPOINTS).mkdir(parents=True)
        record = {"format": 1, "name": folder.name, "model": MODEL, "train": TRAIN,
                  "tokenizer": {"type": "char", "vocab_size": 65}, "corpus": CORPUS}  # fmt: skip
        write_json(folder / "run.json", record)
        write_json(folder / "status.json", {"state": "finished", "step": 1, "max_steps": 1})
        for step in range(1, n_checkpoints // n_runs + 1):
            write_checkpoint(folder, step * 100)
        folders.append(folder)
    return folders


def timed(work: Callable[[], object]) -> float:
    """Seconds of the processor that something takes: other programs do not count."""
    began = time.process_time()
    work()
    return time.process_time() - began


async def keys(home: Path) -> dict[str, list[float]]:
    """Milliseconds of the processor for each key until the list is drawn, in the app on a home."""
    app = TuigptApp(home, strict=True)
    hide_poet(True)  # which would stand below them
    spent: dict[str, list[float]] = {}
    async with app.run_test(size=(100, 40)) as pilot:
        while app.session.snapshot is None:
            await pilot.pause(0.05)
        await pilot.press("ctrl+o")
        rows = app.query_one(CheckpointsPane).query_one(RowList)
        await pilot.press("end")
        for _ in app.session.runs:  # from the last one up, so that each is one key away
            await pilot.press("right", "up")
        print(f"  {len(rows.keys):,} rows in the list")
        for key in KEYS:
            spent[key] = []
            for _ in range(TIMES):
                began = time.process_time()
                await pilot.press(key)
                spent[key].append(1000 * (time.process_time() - began))
    return spent


def measure(n_checkpoints: int, n_runs: int) -> dict[str, float]:
    """All figures of a home, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        os.environ["TUIGPT_CONFIG"] = str(Path(folder) / "settings.toml")
        runs = make_home(home, n_checkpoints, n_runs)
        follower = Follower(home)
        found = {"first look": 1000 * timed(lambda: follower.look(None))}
        looks = [1000 * timed(lambda: follower.look(None)) for _ in range(10)]
        found["look, nothing new"] = statistics.median(looks)
        write_checkpoint(runs[0], 10**7)
        found["look, one new"] = 1000 * timed(lambda: follower.look(None))
        for key, spent in asyncio.run(keys(home)).items():
            found[key] = statistics.median(spent)
    return found


def main() -> None:
    """Measure many and a hundredth of them, and print both side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    many = measure(options.checkpoints, options.runs)
    few = measure(max(1, options.checkpoints // 100), 1)
    print(f"{'ms':20}{options.checkpoints:>10,}{max(1, options.checkpoints // 100):>10,}")
    for name, value in many.items():
        print(f"{name:20}{value:10.1f}{few[name]:10.1f}")


if __name__ == "__main__":
    main()
