"""The registry of panes: one more entry is one more pane."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static
from tui.conftest import screen_text, until, with_fake_writer

from tuigpt.tui import app as app_module
from tuigpt.tui import panes as panes_module
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.pane import Pane, PaneEntry


class Compare(Pane, can_focus=True):
    HELP = "Two models, [b]side by side[/b]."
    BINDINGS = [
        Binding("x", "swap", "swap", id="compare.swap", tooltip="Let them change places"),
    ]

    def compose(self) -> ComposeResult:
        yield Static("one and the other", id="both")

    def show(self) -> None:
        self.name_subject(f"{len(self.session.runs)} runs")

    def action_swap(self) -> None:
        self.query_one("#both", Static).update("the other and one")


COMPARE = PaneEntry(
    "compare", "Compare", "ctrl+b", "Go to the comparison", "#compare", column=3, make=Compare
)


@pytest.fixture
def app_with_one_more(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The app's module, loaded with one more entry in the registry."""
    monkeypatch.setattr(panes_module, "PANES", (*PANES, COMPARE))
    spec = importlib.util.spec_from_file_location("app_with_one_more", app_module.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_fourth_pane_is_one_entry(
    app_with_one_more: ModuleType, home: Path, size: tuple[int, int]
) -> None:
    app = app_with_one_more.TuigptApp(home, panes=with_fake_writer((*PANES, COMPARE)), strict=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "^b Compare" in screen_text(pilot))  # its tab, or its border
        await pilot.press("ctrl+b")
        await until(pilot, lambda: "one and the other" in screen_text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "the other and one" in screen_text(pilot))
        await pilot.press("f1")
        await until(pilot, lambda: "Let them change places" in screen_text(pilot))
        assert "Two models, side by side." in screen_text(pilot)
        await pilot.press("escape", "ctrl+p", *"compare: swap")
        await until(pilot, lambda: "Let them change places" in screen_text(pilot))


def test_nothing_is_there_twice() -> None:
    for field in ("id", "title", "key", "column"):
        values = [getattr(entry, field) for entry in PANES]
        assert len(set(values)) == len(values)
