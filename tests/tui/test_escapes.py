"""What others named or wrote is never markup, and never reaches the terminal as control codes."""

from __future__ import annotations

import pytest
from conftest import MakeRun
from tui.conftest import OpenApp, screen_text, settle, until
from tui.test_app import RECORDS, RUNNING

from tuigpt.tui.screens.change import Change
from tuigpt.tui.screens.confirm import Confirm

NAMES = ["\x1b[31mred", "[@click=app.quit]x", "\x9b5n", "a\nb", "[/]"]


def shown_as(name: str) -> str:
    return name.replace("\x1b", "␛").replace("\x9b", "\ufffd").replace("\n", "⏎")


@pytest.mark.parametrize("name", NAMES)
async def test_the_name_of_a_run_folder(open_app: OpenApp, make_run: MakeRun, name: str) -> None:
    if "/" in name:
        pytest.skip("no name of a folder")
    run = make_run(name, {10: 2.0}, RECORDS, **RUNNING, learning_rate=0.02, dropout=0.0)
    assert run.folder.name == name
    async with open_app(160, 45) as pilot:
        text = screen_text(pilot)
        assert text.count(shown_as(name)) >= 3  # status line, list, titles
        for key in ("c", "d", "ctrl+q"):
            await pilot.press("ctrl+t", key)
            await until(pilot, lambda: isinstance(pilot.app.screen, Change | Confirm))
            await until(pilot, lambda: shown_as(name)[:8] in dialog_text(screen_text(pilot)))
            assert not set(screen_text(pilot)) & {"\x1b", "\x9b"}
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is pilot.app.screen_stack[0])


def dialog_text(text: str) -> str:
    """The rows in the middle of the screen."""
    return "\n".join(line[40:120] for line in text.splitlines()[10:35])


@pytest.mark.parametrize("words", NAMES)
@pytest.mark.parametrize("field", ["device", "state", "message"])
async def test_a_status(open_app: OpenApp, make_run: MakeRun, field: str, words: str) -> None:
    make_run("odd", {10: 2.0}, RECORDS, **{"state": "failed", field: words})
    async with open_app(160, 45) as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert not set(text) & {"\x1b", "\x9b"} and "odd" in text
