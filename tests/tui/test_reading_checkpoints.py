"""How a run grew up, two checkpoints side by side, and the way to and from other programs."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from textual.pilot import Pilot
from textual.widgets import Input
from tui.conftest import FakeWriter, screen_text, settle, still, until, with_fake_writer

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import Done, Report, Started, Tokens
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes.checkpoints.exchange import dropped_paths
from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

LOSSES = {100: 2.5, 200: 2.0, 300: 1.5, 400: 1.8}


class GrowingWriter(FakeWriter):
    """Each checkpoint writes one word more."""

    async def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig, **options: Any
    ) -> AsyncGenerator[Report, None]:
        self.asked.append({"prompt": prompt, "config": config, "path": checkpoint})
        words = ["one", "two", "three", "four"][: int(checkpoint.stem[-3])]
        yield Started(1, prompt, "", 0, 11)
        yield Tokens(1, f" {' '.join(words)}", len(words))
        yield Done(1, len(words), 0.1, False)

    async def copies(self, checkpoint: Path, text: str, at_least: int = 20) -> Any:
        return await super().copies(checkpoint, text + "go[")


def new_app(home: Path, writer: FakeWriter) -> TuigptApp:
    make = partial(CheckpointsPane, generator=lambda home: writer)
    panes = tuple(p._replace(make=make) if p.id == "checkpoints" else p for p in with_fake_writer())
    return TuigptApp(home, panes=panes, strict=True)


@asynccontextmanager
async def browsing(
    home: Path, writer: FakeWriter, columns: int = 80, rows: int = 24
) -> AsyncIterator[Pilot[None]]:
    """The app with the focus in the list of checkpoints."""
    app = new_app(home, writer)
    async with app.run_test(size=(columns, rows), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+o")
        await pilot.pause()
        yield pilot


async def test_a_run_is_read_step_by_step(make_run: MakeRun, home: Path) -> None:
    make_run("verse", LOSSES)
    writer = GrowingWriter()
    async with browsing(home, writer) as pilot:
        await pilot.press("v")
        await until(pilot, lambda: screen_text(pilot).count("50%") >= 4)
        assert "To be or not one" in screen_text(pilot)
        await pilot.press("right")
        await until(pilot, lambda: "To be or not one two" in screen_text(pilot))
        assert "1 of 2 words are new against 100" in screen_text(pilot)
        await pilot.press("left", "p", *"Go", "enter")
        await until(pilot, lambda: "Go one" in screen_text(pilot))
        assert {asked["config"] for asked in writer.asked} == {SampleConfig(max_new_tokens=120)}
        await pilot.press("space")
        await until(pilot, lambda: "Go one two three four" in screen_text(pilot))
        await pilot.press("enter")  # opens it
        await until(pilot, lambda: "verse@400" in screen_text(pilot))


async def test_two_checkpoints_are_held_against_each_other(make_run: MakeRun, home: Path) -> None:
    make_run("prose", {100: 2.25})
    make_run("verse", LOSSES)
    async with browsing(home, GrowingWriter(), 120, 60) as pilot:
        await pilot.press("down", "space", "end", "right", "down", "down", "c")
        await until(pilot, lambda: "0.500 nats = 0.72 bits" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "verse@400 and prose@100" in shown
        assert "To be or not one two three four" in shown  # the left one's text
        # Measured on neither's own text, which the weaker model would find the less surprising.
        assert "surprise at the beginning of verse's validation part" in shown
        assert "and so it ends" in shown
        assert "1.800 nats = 2.60 bits" in shown and "2.250 nats = 3.25 bits" in shown


@pytest.mark.parametrize(
    ("size", "pressed", "words"),
    [
        pytest.param((80, 24), "v right right", "1 of 3 words are new", id="evolution"),
        pytest.param((160, 45), "space down space c", "and so it ends", id="compare"),
    ],
)
def test_how_it_looks(
    snap_compare: Any,
    make_run: MakeRun,
    home: Path,
    size: tuple[int, int],
    pressed: str,
    words: str,
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("ctrl+o", "down", *pressed.split())
        await until(pilot, lambda: words in screen_text(pilot))
        await still(pilot)

    make_run("verse", LOSSES)
    assert snap_compare(new_app(home, GrowingWriter()), terminal_size=size, run_before=before)


async def test_the_open_one_alone_cannot_be_compared_and_that_is_said(
    make_run: MakeRun, home: Path
) -> None:
    make_run("verse", {10: 2.0})
    async with browsing(home, GrowingWriter()) as pilot:
        await pilot.press("down", "enter", "ctrl+o", "c")
        await until(pilot, lambda: "It takes two" in screen_text(pilot))


async def test_out_and_in_again_by_the_dialogs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FIXTURES / "run-v1-char", home / "runs" / "old")
    monkeypatch.chdir(tmp_path)
    async with browsing(home, FakeWriter()) as pilot:
        await pilot.press("down", "e")
        await until(pilot, lambda: pilot.app.screen.query("#program"))
        await pilot.press("enter")
        await until(pilot, lambda: list(tmp_path.glob("*/checkpoint_*.pt")), looks=3000)
        await until(pilot, lambda: not pilot.app.screen.query("#program"), looks=3000)
        (folder,) = {path.parent for path in tmp_path.glob("*/checkpoint_*.pt")}
        await pilot.press("i")
        await until(pilot, lambda: pilot.app.screen.query("#paths"))
        pilot.app.screen.query_one("#paths", Input).value = str(folder)
        await pilot.press("enter")
        await until(
            pilot, lambda: list(home.glob("runs/*workshop*/checkpoints/step-*")), looks=3000
        )


async def test_a_dropped_path_is_offered_for_import(home: Path, tmp_path: Path) -> None:
    model = tmp_path / "my model.pt"
    model.write_bytes(b"")
    async with browsing(home, FakeWriter()) as pilot:
        pilot.app.screen.focused.post_message(_paste(str(tmp_path / "none.pt")))  # type: ignore[union-attr]
        await until(pilot, lambda: "only the path of a model" in screen_text(pilot))
        pilot.app.screen.focused.post_message(_paste(str(model).replace(" ", "\\ ")))  # type: ignore[union-attr]
        await until(pilot, lambda: "Nothing in them runs" in screen_text(pilot))
        assert pilot.app.screen.query_one("#paths", Input).value == str(model)


def _paste(text: str) -> Any:
    from textual.events import Paste

    return Paste(text)


def test_what_terminals_make_of_dropped_files(tmp_path: Path) -> None:
    one, two = tmp_path / "a b.pt", tmp_path / "c.pt"
    for path in (one, two):
        path.write_bytes(b"")
    address = f"file://{str(one).replace(' ', '%20')}"
    for pasted in (f"'{one}' {two}", f"{str(one).replace(' ', chr(92) + ' ')} {two}\n",
                   f"{address} {two}"):  # fmt: skip
        assert dropped_paths(pasted) == [str(one), str(two)]
    assert dropped_paths("To be, or not to be") == dropped_paths("it's") == []


@pytest.mark.parametrize("key, words", [("f", "Fork verse@300"), ("e", "Export verse@300"),
                                        ("m", "Train verse further")])  # fmt: skip
async def test_what_begins_with_a_run_is_asked_for(
    key: str, words: str, make_run: MakeRun, home: Path
) -> None:
    folder = make_run("verse", LOSSES).folder
    (folder / "resume.safetensors").write_bytes(b"")
    async with browsing(home, FakeWriter()) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: words in screen_text(pilot))
        if key == "f":
            await pilot.press(*["backspace"] * 20, *"a/b")
            await until(pilot, lambda: "cannot be a run's name" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: words not in screen_text(pilot))
