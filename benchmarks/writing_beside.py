"""What a text that is written costs a training beside it.

    python benchmarks/writing_beside.py [--seconds 6] [--rounds 10]

A small model trains on all cores; in turns nothing else happens, and the generator process writes
with the poet at the pace at which the app lets a text appear beside a training, at its usual one,
or as fast as it can. What is told is the training's updates a second in each, as shares of those
right before and after it, alone, by the median of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.generation.client import GeneratorClient
from tuigpt.runs.poet import open_poet
from tuigpt.tui.panes.generate.texts import ENDLESS
from tuigpt.tui.panes.generate.writing import CALMER, PACE, TOP

SMALL = [
    "--n-layer=2", "--n-head=2", "--n-embd=128", "--block-size=64", "--batch-size=16",
    "--max-steps=10000000", "--patience=0", "--checkpoint-interval=100000", "--eval-tokens=4096",
    "--device=cpu", "--name=running",
]  # fmt: skip


def last_step(log: Path) -> int:
    """The newest step in a log."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        found = re.findall(rb'"step": ?(\d+)', stream.read())
    return int(found[-1]) if found else 0


async def speed(log: Path, seconds: float) -> float:
    """Updates a second from now on."""
    began, first = time.monotonic(), last_step(log)
    await asyncio.sleep(seconds)
    return (last_step(log) - first) / (time.monotonic() - began)


async def measure(log: Path, home: Path, seconds: float, rounds: int) -> None:
    poet = open_poet().checkpoints[-1].path
    client = GeneratorClient(home)
    config = SampleConfig(max_new_tokens=ENDLESS)

    async def write(pace: float) -> None:
        reports = client.generate(
            poet, "ROMEO:", config, window="rolling", top_logprobs=TOP, pace=pace
        )
        async for _ in reports:
            pass

    await client.next_token(poet, "ROMEO:", config)  # the poet is read before the first turn
    paces: dict[str, float | None] = {"idle": None}
    paces |= {f"{pace:.0f} a second": pace for pace in (PACE / CALMER, PACE)}
    paces["all it can"] = 0.0
    shares: dict[str, list[float]] = {name: [] for name in paces}
    before = await speed(log, seconds)
    for _ in range(rounds):
        for name, pace in paces.items():
            tasks = [] if pace is None else [asyncio.create_task(write(pace))]
            await asyncio.sleep(0.5)
            found = await speed(log, seconds)
            for task in tasks:
                task.cancel()
                await asyncio.wait([task])
            await asyncio.sleep(0.5)
            after = await speed(log, seconds)
            shares[name].append(2 * found / (before + after))
            before = after
    await client.close()
    for name, values in shares.items():
        print(
            f"generator {name}: {statistics.median(values):.3f} of the training's speed alone"
            f" (from {min(values):.2f} to {max(values):.2f} in {rounds} rounds)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = {**os.environ, "TUIGPT_HOME": folder, "TUIGPT_CONFIG": f"{folder}/settings.toml"}
        with (home / "output").open("w") as output:
            command = [sys.executable, "-m", "tuigpt", "train", *SMALL]
            trainer = subprocess.Popen(command, env=env, stdout=output, stderr=output)
        log = home / "runs/running/metrics.jsonl"
        try:
            while not log.exists() or last_step(log) < 100:
                time.sleep(0.2)
            asyncio.run(measure(log, home, options.seconds, options.rounds))
        finally:
            trainer.kill()
            trainer.wait()


if __name__ == "__main__":
    main()
