"""Whether a text of a million characters costs as much at its end as at its beginning.

    python benchmarks/long_text.py

Appends to the app's transcript what a generator would, counts included, and prints for each tenth
the time for a character and the process's memory.
"""

from __future__ import annotations

import asyncio
import resource
import time

from textual.app import App, ComposeResult

from tuigpt.tui.widgets.transcript import Rule, Transcript

CHARACTERS = 1_000_000
PIECE = "And though the king of all "
"""What comes with one report."""


class Host(App[None]):
    """A transcript alone."""

    def compose(self) -> ComposeResult:
        yield Transcript(from_below=True)


async def measure() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        transcript = app.query_one(Transcript)
        transcript.open_entry(1)
        tenth = CHARACTERS // 10
        for part in range(10):
            began = time.perf_counter()
            for number in range(tenth // len(PIECE)):
                transcript.append(PIECE + "\n" * (number % 3 == 0))
                count = f"{part * tenth + number * len(PIECE):,}"
                transcript.set_rule(1, Rule(["1", "poet"], right=[count]))
                if number % 50 == 0:  # it is drawn now and then
                    await pilot.pause(0)
            each = (time.perf_counter() - began) / tenth
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{(part + 1) * tenth:>9,} characters: {1e6 * each:.0f} µs each, {memory} MB")


if __name__ == "__main__":
    asyncio.run(measure())
