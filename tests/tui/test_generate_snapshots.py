"""How the generate pane looks in each of its states, each at another size."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from textual.pilot import Pilot
from textual.widgets import TextArea
from tui.conftest import FakeWriter, screen_text, settle, still, until, with_fake_writer

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import Failed, Report, Started
from tuigpt.runs.folder import Run
from tuigpt.tui.app import TuigptApp


class BrokenWriter(FakeWriter):
    """Fails after it has begun."""

    async def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig, **options: Any
    ) -> AsyncGenerator[Report, None]:
        yield Started(1, prompt, "ü", 0, 11, 16, len(prompt))
        yield Failed(1, "this checkpoint is broken: it holds values that are not finite")


@pytest.fixture(autouse=True)
def same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "randrange", lambda stop: 768)


@pytest.fixture
def verse(make_run: MakeRun) -> Run:
    return make_run("verse", {50: 2.0, 100: 1.5})


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


@pytest.fixture
def shows(snap_compare: Any, home: Path, writer: FakeWriter) -> Any:
    """Compares the screen after keys that each wait for words that they bring."""

    def compare(size: tuple[int, int], *steps: tuple[str, str], by: FakeWriter = writer) -> bool:
        async def before(pilot: Pilot[None]) -> None:
            await settle(pilot)
            for box in pilot.app.query(TextArea):
                box.cursor_blink = False
            for keys, words in steps:
                await pilot.press(*keys.split())
                await until(pilot, lambda words=words: words in screen_text(pilot))  # type: ignore[misc]
            await still(pilot)

        app = TuigptApp(home, panes=with_fake_writer(writer=by), strict=True)
        return bool(snap_compare(app, terminal_size=size, run_before=before))

    return compare


TIMED = "rolling 1.3k/s"
"""What stands there once the model's windows are timed."""


def test_first_start(shows: Any, poet: Run) -> None:
    assert shows((80, 24), ("ctrl+g", TIMED))


@pytest.mark.usefixtures("verse")
class TestStates:
    def test_streaming(self, shows: Any, writer: FakeWriter) -> None:
        writer.hold = 14
        assert shows((60, 16), ("T o", "│ To"), ("enter", "14 of 200"))

    def test_steered(self, shows: Any, writer: FakeWriter) -> None:
        writer.hold = 8
        writer.configs.append(SampleConfig(temperature=1.05, top_k=11))
        writer.go_on.set()
        assert shows((120, 40), ("T o enter", "T 0.80 → 1.05 at 8"), ("tab", "f7 exact"))

    def test_heat_map(self, shows: Any) -> None:
        assert shows((80, 24), ("T o enter", TIMED), ("shift+tab f3 right", "2 of 25"))

    def test_distribution(self, shows: Any) -> None:
        assert shows((120, 40), ("T o enter", "f7 exact"), ("f3", "is what the seed draws"))

    def test_grid(self, shows: Any) -> None:
        steps = ("tab tab tab tab tab backspace 7 ctrl+g", "samples 7"), ("T o enter", "real words")
        assert shows((200, 60), *steps, ("o o o right s", "sorted by real words"))

    def test_error(self, shows: Any) -> None:
        assert shows((80, 24), ("T o enter", "broken"), ("tab", TIMED), by=BrokenWriter())
