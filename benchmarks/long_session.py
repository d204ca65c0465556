"""A text that is written without end: does a character cost more the more stand above it?

    python benchmarks/long_session.py [--characters 1000000] [--size 80x24]

The app itself, without a terminal; in the generator's place stands a script that reports made-up
verse as fast as the app takes it in, with the likeliest tokens beside each token as the generator
does. For each tenth of the text it tells the app's processor time for a character, what drawing
the screen anew takes, and the memory. The model's own part, which is flat with a rolling window,
is measured by `benchmarks/generate.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

from tuigpt.generation.protocol import Candidate, Done, Logprobs, Report, Started, Tokens
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.generate.pane import GeneratePane

AT_A_TIME = 20
"""Tokens in a report: what a quick model writes in a thirtieth of a second."""


class Scribe:
    """Reports verse; what else the app asks of a generator, it does not get.

    Attributes:
        written: characters so far.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self.written = 0
        self.go_on = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        async def never(*arguments: Any, **options: Any) -> None:
            if name not in ("warm_up", "close", "set_config", "set_pace"):
                await asyncio.Event().wait()

        return never

    async def generate(self, *arguments: Any, **options: Any) -> AsyncGenerator[Report, None]:
        rng = random.Random(1)
        words = ["".join(rng.choices("aeiounrst", k=rng.randrange(1, 9))) for _ in range(500)]
        yield Started(1, "ROMEO:\n", "", 0, 65, 256, 7)
        text = ""
        await self.go_on.wait()
        while self.written < self._characters:
            while len(text) < AT_A_TIME:
                text += rng.choice(words) + rng.choice("       \n")
            now, text = text[:AT_A_TIME], text[AT_A_TIME:]
            found = [_logprobs(character) for character in now]
            yield Tokens(1, now, len(now), ids=[ord(c) for c in now], logprobs=found)
            self.written += len(now)
            await asyncio.sleep(0)
        yield Done(1, self.written, 1.0, cancelled=False)


def _logprobs(character: str) -> Logprobs:
    top = [Candidate(n, chr(97 + n), 0.5 / 2**n, 0.5 / 2**n, 0.5 / 2**n) for n in range(12)]
    return Logprobs(Candidate(ord(character), character, 0.4, 0.4, 0.4), -0.9, 2, top)


def resident() -> float:
    """Memory of this process, in MB; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def measure(characters: int, columns: int, rows: int, home: Path) -> None:
    scribe = Scribe(characters)
    make = partial(GeneratePane, writer=scribe)
    panes = tuple(p._replace(make=make) if p.id == "generate" else p for p in PANES)
    app = TuigptApp(home, panes=panes, strict=True)
    print("characters   µs a character   ms a redraw   memory")
    async with app.run_test(size=(columns, rows)) as pilot:
        await pilot.pause(1)
        await pilot.press(*["tab"] * 3, *["backspace"] * 3, "ctrl+g", *"ROMEO:", "enter")
        await pilot.pause(1)
        tenth, began = characters // 10, time.process_time()
        scribe.go_on.set()
        costs = []
        for number in range(1, 11):
            while scribe.written < number * tenth:
                await asyncio.sleep(0.005)
            cost = (time.process_time() - began) / tenth
            costs.append(cost)
            before = time.perf_counter()
            app.screen._compositor.render_strips()  # Textual has no public way to draw in memory
            drawn = time.perf_counter() - before
            print(
                f"{number * tenth:10,}   {1e6 * cost:14.0f}   {1000 * drawn:11.1f}"
                f"   {resident():4.0f} MB",
                flush=True,
            )
            began = time.process_time()
    ratio = statistics.mean(costs[-3:]) / statistics.mean(costs[1:4])
    print(f"the last three tenths cost {ratio:.2f} times as much a character as the first ones")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--size", default="80x24")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(measure(options.characters, columns, rows, Path(home)))


if __name__ == "__main__":
    main()
