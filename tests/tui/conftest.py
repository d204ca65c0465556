"""The app on a home of runs made by hand, with a writer that needs no torch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import (
    Candidate,
    ConfigChanged,
    Copies,
    Copy,
    Done,
    Logprobs,
    NextTokenFound,
    Report,
    Started,
    TextFacts,
    TextScore,
    Tokens,
    Unseen,
    Verified,
    WindowSpeeds,
)
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.history import History
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.generate import settings_bar
from tuigpt.tui.panes.generate.pane import GeneratePane
from tuigpt.tui.panes.pane import PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.themes import INK

WRITTEN = " go[es] on\nand on [/INST]"
"""What the fake writer writes after every prompt."""


class InkApp(App[None]):
    """An app for a single widget or pane, with the colours of tuigpt's roles."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return INK.variables


class FakeWriter:
    """Writes the same text at once, whatever the checkpoint; its tokens are characters.

    Attributes:
        asked: what each text was asked for with.
        configs: what was asked for while a text was written.
        hold: how many tokens come before it waits for `go_on`; None for all.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.configs: list[SampleConfig] = []
        self.paces: list[float] = []
        self.hold: int | None = None
        self.go_on = asyncio.Event()

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig, **options: Any
    ) -> AsyncGenerator[Report, None]:
        self.asked.append({"prompt": prompt, "config": config, **options})
        samples = options.get("samples", 1)
        text = "".join(map(chr, options.get("forced_ids", ())))
        number = len(self.asked)
        yield Started(number, prompt, "", 0, 11, 16, len(prompt))
        rest = WRITTEN.removeprefix(text) if text != WRITTEN else " and on"
        for at, character in enumerate(rest):
            if at == self.hold:
                await self.go_on.wait()
                for changed in self.configs:
                    yield ConfigChanged(number, at, changed)
            found = logprobs(character)
            for sample in range(samples):
                own = character.upper() if sample % 2 else character
                yield Tokens(number, own, 1, sample, [ord(own)], [found])
        yield Done(number, len(rest), 0.5, False, reproducible=not self.configs)

    async def set_config(self, number: int, config: SampleConfig) -> None:
        self.configs.append(config)

    async def set_pace(self, number: int, pace: float) -> None:
        self.paces.append(pace)

    async def next_token(
        self, checkpoint: Path, prompt: str, config: SampleConfig, **options: Any
    ) -> NextTokenFound:
        return NextTokenFound(0, prompt, "", logprobs("e", config.temperature))

    async def copies(self, checkpoint: Path, text: str, at_least: int = 20) -> Copies:
        return Copies("verse", 0.5, [Copy(text.index("go["), 6, 10, 3)])

    async def compare(self, checkpoint: Path, texts: Sequence[str]) -> list[TextFacts]:
        return [TextFacts(0.1 * n, 1 - 0.1 * n) for n in reversed(range(len(texts)))]

    async def score(self, checkpoint: Path, text: str) -> TextScore:
        nats = [0.5 + len(checkpoint.stem) % 2] * (len(text) - 1)
        return TextScore(text, "", 0, len(nats), nats, 0.5, 0.72, 1.6, [1] * len(text))

    async def unseen(self, checkpoint: Path) -> Unseen:
        return Unseen("verse", "and so it ends")

    async def window_speeds(self, checkpoint: Path) -> WindowSpeeds:
        return WindowSpeeds(24.4, 1300.0)

    async def verify(
        self, checkpoint: Path, prompt: str, config: SampleConfig, ids: Sequence[int]
    ) -> Verified:
        return Verified(0, None, "ab" * 32)


def logprobs(chosen: str, temperature: float = 1.0) -> Logprobs:
    """A made-up distribution; a temperature below 1 makes the first likelier."""
    first = 0.5 if temperature >= 1 else 0.7
    shares = {chosen: first, "x": 0.9 - first, "y": 0.1, "z": 0.0}
    top = [Candidate(ord(c), c, share or 0.01, share, share) for c, share in shares.items()]
    return Logprobs(top[0], -0.7, 1, top)


def entry(name: str) -> PaneEntry:
    """A pane's entry in the registry."""
    return next(found for found in PANES if found.id == name)


def with_fake_writer(
    panes: tuple[PaneEntry, ...] = PANES, writer: FakeWriter | None = None
) -> tuple[PaneEntry, ...]:
    """The panes, with a generate pane that starts no process."""
    make = partial(GeneratePane, writer=writer or FakeWriter())
    return tuple(p._replace(make=make) if p.id == "generate" else p for p in panes)


def session(
    *runs: Run,
    watched: Run | None = None,
    history: History | None = None,
    checkpoint: Checkpoint | None = None,
    poet: Run | None = None,
    home: Path = Path("/nowhere"),
) -> Session:
    """A session that has seen these runs."""
    snapshot = Snapshot(runs, poet, watched, history or History(), grown=history is not None)
    return Session(home, snapshot=snapshot, checkpoint=checkpoint)


@pytest.fixture(autouse=True)
def all_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of all colours, wherever the tests run."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def nothing_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model's windows are timed, whose speeds would come at some moment."""
    monkeypatch.setattr(settings_bar, "QUIET", 3600.0)


@pytest.fixture(autouse=True)
def workers_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's app ends as one does that a person leaves: its workers first, then what they show.

    `run_test` of Textual 8.2.8 lets the workers go on while the widgets are taken away.
    """
    shutdown = App._shutdown

    async def end(app: App[object]) -> None:
        app.workers.cancel_all()
        await shutdown(app)

    monkeypatch.setattr(App, "_shutdown", end)


OpenApp = Callable[..., AbstractAsyncContextManager[Pilot[None]]]


@pytest.fixture
def open_app(home: Path) -> OpenApp:
    """Opens the app on the home; the first look at it is done by then."""

    @asynccontextmanager
    async def open_it(
        columns: int = 160, rows: int = 45, writer: FakeWriter | None = None
    ) -> AsyncIterator[Pilot[None]]:
        app = TuigptApp(home, panes=with_fake_writer(writer=writer), strict=True)
        async with app.run_test(size=(columns, rows), notifications=True) as pilot:
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
    """Wait until the app has looked at its home once more, and has drawn what it saw."""
    app = pilot.app
    assert isinstance(app, TuigptApp)
    before = app.session.snapshot
    await until(pilot, lambda: app.session.snapshot is not before)
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
    # Textual can export its screen as a picture only.
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(s.text for s in line)[:width].rstrip() for line in lines[:height])
