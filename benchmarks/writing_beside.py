"""What a text that is written in the app costs a training beside it.

    python benchmarks/writing_beside.py [--seconds 6] [--rounds 10]

A small model trains on all cores while the app is open, 140 × 40. In turns all of the app is
stopped, nothing is written, and the poet writes at the pace that the app has beside a training.
What is told is the training's updates a second in each, as shares of those right before and after
it, with the app stopped, by the median of the rounds. Needs Linux (`/proc`) and pyte.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from app import SETTLES, SMALL, TUIGPT, Watched, beside, last_step


def stop(app: Watched, number: signal.Signals) -> None:
    """Stop the app and its generator, or let them go on."""
    children = Path(f"/proc/{app.pid}/task/{app.pid}/children").read_text().split()
    for pid in [app.pid, *map(int, children)]:
        os.kill(pid, number)


def measure(app: Watched, log: Path, seconds: float, rounds: int) -> dict[str, list[float]]:
    """Shares of the training's speed alone, by what the app does."""

    def alone() -> float:
        stop(app, signal.SIGSTOP)
        time.sleep(0.5)
        found = beside(None, log, seconds)[0]
        stop(app, signal.SIGCONT)
        app.idle(0.5)
        return found

    shares: dict[str, list[float]] = {"nothing is written": [], "the poet writes": []}
    before = alone()
    for _ in range(rounds):
        for name, found in shares.items():
            if name == "the poet writes":
                app.type("Q\r")
                app.until_words("Q")
                app.idle(1.0)
            now = beside(app, log, seconds)[0]
            app.type("\x1b")
            app.idle(0.5)
            after = alone()
            found.append(2 * now / (before + after))
            before = after
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        kind = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        places = {"TUIGPT_HOME": folder, "TUIGPT_CONFIG": f"{folder}/settings.toml"}
        env = {**os.environ, **kind, **places}
        with (home / "output").open("w") as output:
            command = [*TUIGPT, "train", *SMALL]
            trainer = subprocess.Popen(command, env=env, stdout=output, stderr=output)
        log = home / "runs/running/metrics.jsonl"
        app: Watched | None = None
        try:
            while not log.exists() or last_step(log) < 100:
                time.sleep(0.2)
            app = Watched(env)
            app.until_words("^q quit")
            app.idle(SETTLES)
            app.type("\x07")  # the generate pane
            app.idle(1.0)
            shares = measure(app, log, options.seconds, options.rounds)
        finally:
            if app is not None:
                app.close()
            trainer.kill()
            trainer.wait()
    for name, values in shares.items():
        print(
            f"{name}: {statistics.median(values):.3f} of the training's speed alone"
            f" (from {min(values):.2f} to {max(values):.2f} in {options.rounds} rounds)"
        )


if __name__ == "__main__":
    main()
