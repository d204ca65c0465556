"""How long the command takes, all included, to the loss that nanoGPT publishes.

    python benchmarks/published_loss.py tinyshakespeare.txt --seeds 1 2 3

takes flags of `tuigpt train` as well, which then replace those of `SETTINGS`.

nanoGPT's README gives 1.4697 as its best validation loss on tiny Shakespeare, over random batches,
from a model of 6 layers, 6 heads, 384 wide, on a GPU. Here `tuigpt train` runs once for each seed,
with `SETTINGS`; a stopwatch goes from before its start to behind its end. Losses are over the whole
validation part, with the weights of the last step.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tuigpt.paths import runs_dir
from tuigpt.runs.folder import open_run
from tuigpt.runs.header import read_header

PUBLISHED = 1.4697

SETTINGS = [
    "--n-layer=4", "--n-head=3", "--n-embd=192", "--block-size=256", "--weight-decay=0.3",
    "--max-steps=1800", "--eval-interval=200", "--sample-tokens=0",
]  # fmt: skip


def train(text: Path, seed: int, settings: list[str], home: Path) -> tuple[float, float]:
    """Seconds that a training takes, and its loss."""
    command = [sys.executable, "-m", "tuigpt", "train", str(text), f"--home={home}"]
    began = time.perf_counter()
    subprocess.run(
        [*command, f"--name=seed-{seed}", f"--seed={seed}", *settings],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    checkpoint = open_run(runs_dir(home) / f"seed-{seed}").checkpoints[-1]
    loss = read_header(checkpoint.path).whole_val_loss
    assert loss is not None
    return seconds, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    asked, others = parser.parse_known_args()
    settings = [*SETTINGS, *others]
    print("tuigpt train TEXT", *settings)
    found = []
    with tempfile.TemporaryDirectory() as home:
        for seed in asked.seeds:
            seconds, loss = train(asked.text, seed, settings, Path(home))
            found.append((seconds, loss))
            print(f"seed {seed}: {seconds / 60:.1f} minutes, val {loss:.4f}", flush=True)
    seconds, loss = (statistics.median(values) for values in zip(*found, strict=True))
    verdict = "below" if loss <= PUBLISHED else "above"
    print(f"median: {seconds / 60:.1f} minutes, val {loss:.4f}, {verdict} {PUBLISHED}")


if __name__ == "__main__":
    main()
