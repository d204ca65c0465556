"""The built-in model in the app: there at the first start, below the user's own, out of sight."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import MakeRun
from textual.pilot import Pilot
from textual.widgets import TextArea
from tui.conftest import OpenApp, screen_text, settle, until
from tui.test_app import focused_pane

from tuigpt.runs.folder import Run
from tuigpt.runs.poet import hide_poet, poet_is_hidden
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.screens.palette import Palette
from tuigpt.tui.widgets.row_list import RowList


def opened(pilot: Pilot[None]) -> str:
    app = pilot.app
    assert isinstance(app, TuigptApp)
    return app.session.checkpoint.label if app.session.checkpoint else ""


def rows(pilot: Pilot[None]) -> list[str]:
    found = pilot.app.query_one("#list", RowList)
    shown = [" ".join(found.draw(key, 24).plain.split()) for key in found.keys]
    return [re.sub(r"^[▾▸] (?=\D)", "", row) for row in shown]


async def choose(pilot: Pilot[None], command: str) -> None:
    """Carry out what the palette finds."""
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(pilot.app.screen, Palette))
    await pilot.press(*command.partition(": ")[2])
    await until(pilot, lambda: command in screen_text(pilot))
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, Palette))


class TestTheFirstStart:
    @pytest.mark.parametrize("size", [(80, 24), (160, 45), (60, 16)])
    async def test_the_first_prompt_is_answered(
        self, open_app: OpenApp, poet: Run, size: tuple[int, int]
    ) -> None:
        async with open_app(*size) as pilot:
            assert focused_pane(pilot) == "generate"
            text = " ".join(screen_text(pilot).split())
            assert "The poet is open" in text and "poet@5000" in text
            await pilot.press(*"To be", "enter")
            await until(pilot, lambda: "1 · poet@5000 · seed" in screen_text(pilot))

    async def test_enter_alone_is_answered_too(self, open_app: OpenApp, poet: Run) -> None:
        async with open_app(80, 24) as pilot:
            assert "enter alone for ROMEO:" in " ".join(screen_text(pilot).split())
            await pilot.press("enter")
            await until(pilot, lambda: "ROMEO: go[es] on" in screen_text(pilot))

    async def test_nothing_is_written_by_looking(
        self, open_app: OpenApp, poet: Run, home: Path
    ) -> None:
        async with open_app():
            pass
        assert not home.exists()

    async def test_it_is_listed_as_built_in(self, open_app: OpenApp, poet: Run) -> None:
        async with open_app() as pilot:
            assert rows(pilot)[0] == "poet built in"
            assert re.fullmatch(r"▸ 5,000 1\.20★.*", rows(pilot)[1])
            assert "No checkpoints of your own" in screen_text(pilot)
            assert "no run yet" in screen_text(pilot)


class TestBesideOwnRuns:
    async def test_it_stands_below_them_and_is_not_opened(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        make_run("verse", {50: 2.0})
        async with open_app() as pilot:
            assert opened(pilot) == "verse@50"
            assert [row.split()[0] for row in rows(pilot)] == ["verse", "▸", "poet", "5,000"]
            assert "1 checkpoint ·" in screen_text(pilot)  # the poet is none of the user's

    async def test_a_model_of_ones_own_is_offered_and_does_not_replace_it(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        async with open_app() as pilot:
            make_run("verse", {})
            await until(pilot, lambda: "verse finished" in rows(pilot))
            assert opened(pilot) == "poet@5000" and "f6" not in screen_text(pilot)
            make_run("prose", {50: 2.0})
            await until(pilot, lambda: "prose@50 is new: f6 opens it" in screen_text(pilot))
            assert opened(pilot) == "poet@5000"
            await pilot.press("f6")
            await until(pilot, lambda: opened(pilot) == "prose@50")
            await until(pilot, lambda: "f6 opens" not in screen_text(pilot))

    async def test_not_when_it_was_chosen(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+o", "down", "enter")
            await until(pilot, lambda: focused_pane(pilot) == "generate")
            make_run("verse", {50: 2.0})
            await until(pilot, lambda: "verse finished" in rows(pilot))
            await settle(pilot)
            assert opened(pilot) == "poet@5000"

    async def test_it_comes_back_when_all_else_is_gone(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        run = make_run("verse", {50: 2.0})
        async with open_app() as pilot:
            shutil.rmtree(run.folder)
            await until(pilot, lambda: opened(pilot) == "poet@5000")

    async def test_the_cursor_is_on_the_newest_run_unless_it_was_put_elsewhere(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        async with open_app() as pilot:
            cursor = pilot.app.query_one("#list", RowList)
            make_run("verse", {50: 2.0})
            await until(pilot, lambda: len(rows(pilot)) == 4)
            assert cursor.cursor == 0
            await pilot.press("ctrl+o", "down", "down")
            make_run("prose", {50: 2.0})
            await until(pilot, lambda: len(rows(pilot)) == 6)
            assert cursor.cursor == 4

    async def test_its_curve_can_be_looked_at_and_nothing_asked_of_it(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        make_run("verse", {50: 2.0})
        async with open_app() as pilot:
            await pilot.press("ctrl+o", "down", "down", "enter")
            await until(pilot, lambda: "Training · poet" in screen_text(pilot))
            assert "best 1.20 @ 5000" in screen_text(pilot).replace(",", "")
            await pilot.press(*"spgkr")
            await settle(pilot)
            assert not poet.folder.exists() and pilot.app.is_running

    async def test_a_run_of_its_name_takes_its_place(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun
    ) -> None:
        make_run("poet", {50: 2.0})
        async with open_app() as pilot:
            assert opened(pilot) == "poet@50" and len(rows(pilot)) == 2
            assert "poet finished" in rows(pilot)


class TestHiding:
    async def test_by_key_on_its_own_rows_only(
        self, open_app: OpenApp, poet: Run, make_run: MakeRun, home: Path
    ) -> None:
        make_run("verse", {50: 2.0})
        async with open_app() as pilot:
            await pilot.press("ctrl+o", "h")
            await settle(pilot)
            assert len(rows(pilot)) == 4 and "hide the poet" not in screen_text(pilot)
            await pilot.press("end")
            await until(pilot, lambda: "hide the poet" in screen_text(pilot))
            await pilot.press("h")
            await until(pilot, lambda: len(rows(pilot)) == 2)
            await until(pilot, lambda: "the poet is hidden" in screen_text(pilot))
        async with open_app() as pilot:
            assert len(rows(pilot)) == 2

    async def test_the_open_one_closes_and_the_palette_brings_it_back(
        self, open_app: OpenApp, poet: Run, home: Path
    ) -> None:
        async with open_app() as pilot:
            await choose(pilot, "checkpoints: hide the poet")
            await until(pilot, lambda: "no model open" in screen_text(pilot))
            assert rows(pilot) == []
            await choose(pilot, "checkpoints: show the poet")
            await until(pilot, lambda: opened(pilot) == "poet@5000")
            assert rows(pilot)[0] == "poet built in"

    async def test_the_keys_letter_can_be_typed_into_a_prompt(
        self, open_app: OpenApp, poet: Run
    ) -> None:
        async with open_app() as pilot:
            await pilot.press(*"hh")
            assert pilot.app.query_one("#prompt", TextArea).text == "hh"
            assert len(rows(pilot)) == 2

    async def test_a_choice_that_cannot_be_kept_is_told(
        self, open_app: OpenApp, poet: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("TUIGPT_CONFIG", str(tmp_path / "file" / "settings.toml"))
        async with open_app() as pilot:
            await pilot.press("ctrl+o", "h")
            await until(pilot, lambda: "settings.toml" in screen_text(pilot))
            assert len(rows(pilot)) == 2

    async def test_a_hidden_one_is_not_opened(
        self, open_app: OpenApp, poet: Run, home: Path
    ) -> None:
        hide_poet(True)
        async with open_app() as pilot:
            assert focused_pane(pilot) == "training" and not opened(pilot)
            assert poet_is_hidden(home)
