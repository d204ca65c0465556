"""The app on a home of runs made by hand, with a generator that needs no torch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import Done, Report, Started, Tokens
from tuigpt.tui import app as app_module
from tuigpt.tui.app import TuigptApp

WRITTEN = " go[es] on\nand on [/INST]"
"""What the fake generator writes after every prompt."""


class FakeGenerator:
    """Writes the same text at once, whatever the checkpoint."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig, **options: Any
    ) -> AsyncIterator[Report]:
        yield Started(1, prompt, "", 0, 11)
        for character in WRITTEN:
            yield Tokens(1, character, 1)
        yield Done(1, len(WRITTEN), 0.5, False)


OpenApp = Callable[..., Any]


@pytest.fixture
def open_app(home: Path, monkeypatch: pytest.MonkeyPatch) -> OpenApp:
    """Opens the app on the home; the first look at it is done by then."""
    monkeypatch.setattr(app_module, "GeneratorClient", FakeGenerator)

    @asynccontextmanager
    async def open_it(columns: int = 160, rows: int = 45) -> AsyncIterator[Pilot[None]]:
        app = TuigptApp(home)
        async with app.run_test(size=(columns, rows), notifications=True) as pilot:
            await until(pilot, lambda: app.query_one("#training").display is not None)
            await settle(pilot)
            yield pilot

    return open_it


async def until(pilot: Pilot[None], condition: Callable[[], object], looks: int = 500) -> None:
    """Wait for something to come true."""
    for _ in range(looks):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came true; the screen was:\n" + screen_text(pilot))


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the app has looked at its home and drawn what it saw."""
    app = pilot.app
    looked = []
    really = app._show  # type: ignore[attr-defined]

    def show(snapshot: Any) -> None:
        really(snapshot)
        looked.append(snapshot)

    app._show = show  # type: ignore[attr-defined]
    await until(pilot, lambda: looked)
    app._show = really  # type: ignore[attr-defined]
    await still(pilot)


async def still(pilot: Pilot[None]) -> None:
    """Wait until the screen holds still: what came in is laid out and drawn."""
    before, quiet = "", 0
    for _ in range(100):
        await pilot.pause(0.02)
        now = screen_text(pilot)
        quiet = quiet + 1 if now == before else 0
        if quiet == 4:
            return
        before = now


def screen_text(pilot: Pilot[None]) -> str:
    """What is on the screen, as text."""
    width, height = pilot.app.size
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(s.text for s in line)[:width].rstrip() for line in lines[:height])
