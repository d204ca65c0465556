"""No event ends the app, and what is typed reaches what it was typed for."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import MakeRun
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, Static
from tui.conftest import OpenApp, screen_text, settle, until, with_fake_writer
from tui.test_app import RECORDS, RUNNING

from tuigpt.runs.control import last_request
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.guarded import GuardedApp
from tuigpt.tui.screens.help import Help
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.screens.palette import Palette


class Careless(Static, can_focus=True):
    """Has a handler for every kind of mistake."""

    BINDINGS = [Binding("a", "fail", "fail")]

    def on_key(self, event: events.Key) -> None:
        if event.key == "h":
            raise RuntimeError("in a handler")
        if event.key == "d":
            self.app.query_one("#so no such widget")
        if event.key == "l":
            self.call_later(self.action_fail)
        if event.key == "t":
            self.set_timer(0.001, self.action_fail)
        if event.key == "w":
            self.run_worker(self.work())

    def action_fail(self) -> None:
        raise RuntimeError("in an action")

    async def work(self) -> None:
        raise RuntimeError("in a worker")


class Host(GuardedApp):
    def compose(self) -> ComposeResult:
        yield Careless()
        yield Input()


def burst(pilot: Pilot[None], *keys: str) -> None:
    """Keys that come in one write."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))


class TestExceptions:
    @pytest.mark.parametrize("key", list("hdalwt"))
    async def test_are_logged_and_survived(self, tmp_path: Path, key: str) -> None:
        log = tmp_path / "home" / "app.log"
        app = Host(log)
        async with app.run_test() as pilot:
            app.query_one(Careless).focus()
            await pilot.press(key)
            await until(pilot, log.exists)
            assert "Traceback" in log.read_text()
            app.query_one(Input).focus()
            await pilot.press("o", "k")
            await until(pilot, lambda: app.query_one(Input).value == "ok")
            log.unlink()
            app.query_one(Careless).focus()
            await pilot.press("a")  # the widget itself lives on as well
            await until(pilot, log.exists)

    async def test_the_log_stays_small(self, tmp_path: Path) -> None:
        app = Host(tmp_path / "app.log")
        for number in range(300):
            app.write_log(f"{number} " + 20_000 * "x")
            app.write_log(f"{number} " + 20_000 * "x")
        assert (tmp_path / "app.log").read_text().endswith("the same again\n")
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2_100_000

    async def test_a_log_that_cannot_be_written_does_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_text("in the way")
        app = Host(tmp_path / "home" / "app.log")
        async with app.run_test() as pilot:
            app.query_one(Careless).focus()
            await pilot.press("a")
            app.query_one(Input).focus()
            await pilot.press("o", "k")
            await until(pilot, lambda: app.query_one(Input).value == "ok")

    async def test_end_an_app_that_has_no_log(self) -> None:
        with pytest.raises(RuntimeError, match="in an action"):
            async with Host().run_test() as pilot:
                pilot.app.query_one(Careless).focus()
                await pilot.press("a")
                await pilot.pause()


class TestOrder:
    @pytest.mark.parametrize("size", [(160, 45), (80, 24)])
    async def test_a_form_and_a_file_name_in_one_write(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app(*size) as pilot:
            await pilot.press("ctrl+t")
            burst(pilot, "ctrl+n", *"short.txt")
            await until(pilot, lambda: pilot.app.screen.query("NewRun #text"))
            field = pilot.app.screen.query_one("#text", Input)
            await until(pilot, lambda: field.value.endswith("short.txt"))
            assert last_request(run.folder) == 0  # no letter went to the training

    async def test_keys_over_a_dialog_that_opens_and_closes(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app() as pilot:
            await pilot.press("ctrl+t")
            burst(pilot, "d", "s", "p", "escape", "ctrl+g", *"To be")
            prompt = pilot.app.query_one("#prompt")
            await until(pilot, lambda: getattr(prompt, "text", "") == "To be")
            assert last_request(run.folder) == 0

    async def test_the_palette_chosen_from_in_one_write(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        make_run("verse", {10: 2.0})
        async with open_app() as pilot:
            burst(pilot, "ctrl+p", "down", "enter", "enter")
            await settle(pilot)
            burst(pilot, "escape", "ctrl+p", *"view: training", "enter")
            await until(pilot, lambda: pilot.app.focused and pilot.app.focused.id == "chart")

    async def test_help_opened_and_closed_fast(self, open_app: OpenApp, make_run: MakeRun) -> None:
        make_run("verse", {10: 2.0})
        async with open_app() as pilot:
            burst(pilot, *["f1"] * 7)
            await until(pilot, lambda: isinstance(pilot.app.screen, Help))
            burst(pilot, "pagedown", "f1", "ctrl+p")
            await until(pilot, lambda: isinstance(pilot.app.screen, Palette))

    async def test_a_form_closed_while_it_opens(self, open_app: OpenApp) -> None:
        async with open_app() as pilot:
            burst(pilot, *["ctrl+n", "escape"] * 5, "ctrl+n")
            await until(pilot, lambda: isinstance(pilot.app.screen, NewRun))


class TestSizes:
    @pytest.mark.parametrize("size", [(0, 0), (1, 1), (80, 1)])
    async def test_none_ends_it(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        make_run("verse", {10: 2.0})
        async with open_app(80, 24) as pilot:
            for screen in ("", "ctrl+n", "ctrl+p", "f1"):
                if screen:
                    await pilot.press(screen)
                await pilot.resize_terminal(*size)
                await pilot.press("pagedown", "pageup", "tab", "down")
                await pilot.resize_terminal(80, 24)
                await pilot.press("escape")
            await until(pilot, lambda: "verse" in screen_text(pilot))

    async def test_pages_in_a_list_that_has_no_room(self, home: Path, make_run: MakeRun) -> None:
        make_run("verse", {10: 2.0})
        app = TuigptApp(home, panes=with_fake_writer(), strict=True)
        async with app.run_test(size=(59, 15)) as pilot:
            await settle(pilot)
            await pilot.press("ctrl+o", "pagedown", "pageup")
            assert app.is_running
