"""The workbench: its panes at each size, its keys, leaving it, and what typing must never do."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from json_files import read_json
from textual import events
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input, TextArea
from tui.conftest import OpenApp, screen_text, settle, still, until

from tuigpt.files import to_json
from tuigpt.runs.control import CONTROL_FILE, last_request
from tuigpt.runs.status import status_of_this_process, write_status
from tuigpt.settings import change_settings, read_settings, settings_file
from tuigpt.tui import app as app_module
from tuigpt.tui import asking, starting
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.pane import Pane
from tuigpt.tui.screens.change import Change
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.screens.palette import found
from tuigpt.tui.widgets.prompt_box import PromptBox
from tuigpt.tui.widgets.slider import Slider

RECORDS = [
    {"kind": "eval", "step": 0, "val_loss": 2.4, "whole": False},
    *({"kind": "step", "step": n, "loss": 2.5 - n / 100} for n in range(1, 101)),
    {"kind": "eval", "step": 100, "val_loss": 1.5, "whole": False},
    {"kind": "sample", "step": 100, "prompt": "To be", "text": " or [not] to be"},
]

RUNNING = {"state": "training", "pid": os.getpid(), "host": socket.gethostname()}
"""The status of a run whose trainer is running: that is this process."""


@pytest.fixture
def verse(make_run: MakeRun) -> Any:
    return make_run("verse", {50: 2.0, 100: 1.5}, RECORDS, val_loss=1.5, train_loss=1.5)


def shown(pilot: Pilot[None], selector: str) -> bool:
    widget = pilot.app.screen_stack[0].query_one(selector)
    return bool(widget.region.area) and all(w.display for w in widget.ancestors_with_self
                                            if isinstance(w, Widget))  # fmt: skip


def focused_pane(pilot: Pilot[None]) -> str | None:
    focused = pilot.app.focused
    above = focused.ancestors_with_self if focused else []
    return next((node.id for node in above if isinstance(node, Pane)), None)


def shows(pilot: Pilot[None], words: str) -> bool:
    return words in screen_text(pilot)


def shows_in_flow(pilot: Pilot[None], words: str) -> bool:
    return words in " ".join(screen_text(pilot).split())


def ends(pilot: Pilot[None], words: str) -> bool:
    return screen_text(pilot).endswith(words)


class TestPanes:
    async def test_side_by_side_in_a_wide_terminal(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(160, 45) as pilot:
            regions = [pilot.app.query_one(f"#{name}").region for name in
                       ("checkpoints", "generate", "training")]  # fmt: skip
            assert all(r.height == regions[0].height > 30 for r in regions)
            assert regions[0].right <= regions[1].x and regions[1].right <= regions[2].x <= 160
            assert not shown(pilot, "PaneTabs")

    async def test_one_at_a_time_in_a_narrow_one(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(80, 24) as pilot:
            assert shown(pilot, "PaneTabs")
            for key, pane in (("ctrl+t", "training"), ("ctrl+o", "checkpoints"),
                              ("ctrl+g", "generate")):  # fmt: skip
                await pilot.press(key)
                await pilot.pause()
                assert [p.id for p in PANES if shown(pilot, f"#{p.id}")] == [pane]
                assert focused_pane(pilot) == pane
                assert shown(pilot, "#run-status") and "verse" in screen_text(pilot)

    async def test_a_tab_can_be_clicked(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(80, 24) as pilot:
            for name, title in ((entry.id, entry.title) for entry in PANES):
                row, line = next(
                    (y, line) for y, line in enumerate(screen_text(pilot).splitlines())
                    if "Generate" in line and "Checkpoints" in line
                )  # fmt: skip
                await pilot.click(offset=(line.index(title) + 1, row))
                await pilot.pause()
                assert focused_pane(pilot) == name

    @pytest.mark.parametrize("size", [(50, 12), (59, 30), (100, 15), (20, 5), (1, 1)])
    async def test_too_small_says_so_and_recovers(
        self, open_app: OpenApp, verse: Any, size: tuple[int, int]
    ) -> None:
        async with open_app(*size) as pilot:
            assert shown(pilot, "#too-small") and not shown(pilot, "#workbench")
            if size[0] > 22:
                assert "tuigpt needs 60 columns" in screen_text(pilot)
            await pilot.resize_terminal(80, 24)
            await pilot.pause()
            assert not shown(pilot, "#too-small") and shown(pilot, "#workbench")
            await pilot.press("ctrl+t")
            await settle(pilot)
            assert "─ train" in screen_text(pilot)

    async def test_the_focus_comes_back_when_there_is_room_again(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        async with open_app(80, 24) as pilot:
            await settle(pilot)
            await pilot.press("ctrl+g")
            await pilot.resize_terminal(50, 12)
            await still(pilot)
            await pilot.resize_terminal(80, 24)
            await still(pilot)
            await pilot.press(*"ROMEO")
            assert pilot.app.screen.query_one(PromptBox).text == "ROMEO"

    async def test_sixty_by_sixteen_works(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(60, 16) as pilot:
            for key, words in (("ctrl+t", "─ train"), ("ctrl+o", "1.50 ★"), ("ctrl+g", "temp")):
                await pilot.press(key)
                await pilot.pause()
                assert words in screen_text(pilot)
            assert pilot.app.query_one("#prompt").region.height >= 3

    async def test_resizing_all_the_time(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(80, 24) as pilot:
            for width, height in [(160, 45), (1, 1), (60, 16), (200, 3), (30, 60), (140, 24)] * 3:
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                await pilot.press("ctrl+t")
            assert shown(pilot, "#training")

    async def test_the_first_pane_is_what_can_be_used(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        async with open_app() as pilot:
            assert focused_pane(pilot) == "training"
            assert "^n" in screen_text(pilot)
        make_run("verse", {10: 2.0})
        async with open_app() as pilot:
            assert focused_pane(pilot) == "generate"
            assert "verse@10" in screen_text(pilot)


class TestShowingRuns:
    async def test_curve_words_and_samples(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+t")
            await until(pilot, lambda: "★ best 1.50 @ 100" in screen_text(pilot))
            text = screen_text(pilot)
            assert "finished:" in text
            assert "To be or [not] to be" in text
            assert re.search(r"verse ✓ finished +100/100", text)

    @pytest.mark.parametrize("attempt", range(6))
    async def test_the_words_above_the_curve_are_never_cut(
        self, open_app: OpenApp, verse: Any, home: Path, attempt: int
    ) -> None:
        """However early the run is read, even before the first frame is laid out."""
        app = TuigptApp(home)

        heights = []

        async def look(pilot: Pilot[Any]) -> None:
            await settle(pilot)
            await settle(pilot)
            heights.append(app.query_one("#headline").size.height)
            app.exit()

        await app.run_async(headless=True, size=(140, 40), auto_pilot=look)
        assert heights and heights[0] == 2

    async def test_what_is_written_meanwhile_appears(
        self, open_app: OpenApp, verse: Any, make_run: MakeRun
    ) -> None:
        async with open_app() as pilot:
            make_run("second", {7: 3.0}, RECORDS[:50], step=49, **RUNNING)
            await until(pilot, lambda: "second ● training" in screen_text(pilot))
            assert "Training · second" in screen_text(pilot)
            assert re.search(r" 7 +3\.00★", screen_text(pilot))

    async def test_a_new_run_is_not_waited_for(
        self,
        open_app: OpenApp,
        verse: Any,
        make_run: MakeRun,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(app_module, "LOOK_EVERY", 3600.0)
        monkeypatch.setattr(app_module, "GLANCES", 360_000)
        folder = make_run("second", {7: 3.0}, RECORDS[:50], step=49, **RUNNING).folder
        folder.rename(tmp_path / "aside")
        async with open_app() as pilot:
            (tmp_path / "aside").rename(folder)  # all at once, as a trainer does
            await until(pilot, lambda: "second ● training" in screen_text(pilot))

    async def test_a_run_deleted_while_it_is_watched(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            shutil.rmtree(verse.folder)
            await until(pilot, lambda: "no run yet" in screen_text(pilot))
            await until(pilot, lambda: "No checkpoints of your own" in screen_text(pilot))
            assert "No model is open yet" in screen_text(pilot)

    async def test_broken_folders_do_no_harm(
        self, open_app: OpenApp, verse: Any, make_run: MakeRun
    ) -> None:
        broken = make_run("broken")
        (broken.folder / "run.json").write_text("{")
        bare = make_run("bare", records=RECORDS)
        (bare.folder / "run.json").write_text("{}")
        (bare.folder / "status.json").write_text("[]")
        async with open_app() as pilot:
            assert "verse" in screen_text(pilot)

    @pytest.mark.parametrize("message", ["[/red] no [b", "two\nlines", "\x1b[31mred"])
    async def test_messages_are_shown_as_written(
        self, open_app: OpenApp, make_run: MakeRun, message: str
    ) -> None:
        make_run("odd", {1: 2.0}, RECORDS, state="failed", message=message)
        async with open_app() as pilot:
            text = screen_text(pilot)
            assert "\x1b" not in text
            assert message.split("\n")[0].replace("\x1b", "␛") in text


class TestAskingTheTrainer:
    @pytest.mark.parametrize(
        ("key", "action"), [("s", "stop"), ("p", "pause"), ("g", "sample"), ("k", "checkpoint")]
    )
    async def test_a_key_asks_it(
        self, open_app: OpenApp, make_run: MakeRun, key: str, action: str
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app() as pilot:
            await pilot.press("ctrl+t", key)
            await pilot.pause()
            requests = read_json(run.folder / CONTROL_FILE)["requests"]
            assert [r["action"] for r in requests] == [action]

    @pytest.mark.parametrize("size", [(80, 24), (160, 45)])
    async def test_a_key_right_behind_the_one_that_goes_to_the_pane(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app(*size) as pilot:
            pilot.app.post_message(events.Key("ctrl+t", None))
            pilot.app.post_message(events.Key("s", "s"))
            await until(pilot, lambda: (run.folder / CONTROL_FILE).exists(), looks=100)
            assert pilot.app.query_one("#prompt", TextArea).text == ""

    @pytest.mark.parametrize("size", [(160, 45), (80, 24), (60, 16)])
    async def test_settings_are_changed_in_a_dialog(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING, learning_rate=0.02, dropout=0.0)
        async with open_app(*size) as pilot:
            await pilot.press("ctrl+t", "c")
            await until(pilot, lambda: isinstance(pilot.app.screen, Change))
            await still(pilot)
            text = screen_text(pilot)
            assert re.search(r"learning rate +0\.02", text) and re.search(r"dropout +0 ", text)
            field = pilot.app.screen.query_one("#dropout", Input)
            field.value = "1.5"
            await until(pilot, lambda: "dropout is 1.5" in screen_text(pilot))
            await pilot.press("enter")
            assert isinstance(pilot.app.screen, Change), "it went with a value that cannot work"
            field.value = "0.1"
            await pilot.press("enter")
            await until(pilot, lambda: (run.folder / CONTROL_FILE).exists())
            # What was left alone is not asked for.
            assert read_json(run.folder / CONTROL_FILE)["requests"] == [
                {"number": 1, "action": "dropout", "value": 0.1}
            ]

    async def test_what_the_trainer_tells_is_shown_once(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        earlier = {"kind": "event", "step": 1, "message": "told before we came"}
        run = make_run("verse", {10: 2.0}, [earlier, *RECORDS], **RUNNING)
        async with open_app() as pilot:
            assert "told before" not in screen_text(pilot)
            with open(run.folder / "metrics.jsonl", "a", encoding="utf-8") as log:
                for word in ("rate", "dropout"):
                    record = {"kind": "event", "step": 100, "message": f"the {word} changed"}
                    log.write(to_json(record) + "\n")
            await until(pilot, lambda: "the dropout changed" in screen_text(pilot))
            assert screen_text(pilot).count("the rate changed") == 1

    async def test_a_run_is_discarded_after_asking(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app() as pilot:
            for keys, asked in ((["enter"], False), (["escape"], False), (["down", "enter"], True)):
                await pilot.press("ctrl+t", "d")
                await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
                assert "Delete verse, its log and its 1 checkpoint?" in screen_text(pilot)
                await pilot.press(*keys)
                await until(pilot, lambda: not isinstance(pilot.app.screen, Confirm))
                await pilot.pause()
                assert (run.folder / CONTROL_FILE).exists() == asked
            assert read_json(run.folder / CONTROL_FILE)["requests"][0]["action"] == "discard"

    async def test_a_paused_run_goes_on(self, open_app: OpenApp, make_run: MakeRun) -> None:
        run = make_run("verse", {10: 2.0}, RECORDS, **RUNNING | {"state": "paused"})
        async with open_app() as pilot:
            await pilot.press("ctrl+t", "p")
            await pilot.pause()
            assert read_json(run.folder / CONTROL_FILE)["requests"][0]["action"] == "resume"

    async def test_a_run_that_is_over_is_asked_nothing(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+t", *"spgkrcd")
            await pilot.pause()
            assert not (verse.folder / CONTROL_FILE).exists()

    async def test_one_that_cannot_be_asked_is_told(
        self, open_app: OpenApp, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, **RUNNING)

        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(asking, "request", full)
        async with open_app() as pilot:
            await pilot.press("ctrl+t", "s")
            await until(pilot, lambda: "No space left" in screen_text(pilot))

    async def test_a_trainer_that_cannot_be_started_is_told(
        self, open_app: OpenApp, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, state="stopped")

        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(starting, "start", full)
        async with open_app() as pilot:
            await pilot.press("ctrl+t", "r")
            await until(pilot, lambda: "No space left" in screen_text(pilot), looks=100)
            assert pilot.app.is_running


class TestTyping:
    """Printable keys belong to the field that has the focus."""

    TEXT = "quit stop resume 123 ?/"

    @pytest.fixture(autouse=True)
    def nothing_happens(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for module, name in ((asking, "request"), (starting, "start")):
            monkeypatch.setattr(module, name, lambda *a, **k: pytest.fail("it did something"))
        yield

    async def type(self, pilot: Pilot[None], field: Input | TextArea, *typed: str) -> None:
        """Type into a field until it holds one of these."""
        field.focus()
        await pilot.pause()
        screen = pilot.app.screen
        for character in self.TEXT:
            pilot.app.post_message(events.Key({" ": "space"}.get(character, character), character))
        text = "text" if isinstance(field, TextArea) else "value"
        await until(pilot, lambda: getattr(field, text) in typed)
        assert pilot.app.focused is field and pilot.app.screen is screen
        assert pilot.app.is_running

    async def test_into_every_field_of_the_workbench(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app() as pilot:
            await self.type(pilot, pilot.app.query_one("#prompt", TextArea), self.TEXT)
            for field in pilot.app.query(Input):
                await self.type(pilot, field, "123", "200123", "123200", self.TEXT)

    async def test_into_every_field_of_the_form(self, open_app: OpenApp) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+n")
            await pilot.pause()
            assert isinstance(pilot.app.screen, NewRun)
            await pilot.press("f2")
            for field in pilot.app.screen.query(Input):
                field.value = ""
                await self.type(pilot, field, self.TEXT)
            await pilot.press("escape")

    async def test_a_path_that_is_none_does_no_harm(self, open_app: OpenApp, home: Path) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+n")
            await pilot.pause()
            field = pilot.app.screen.query_one("#text", Input)
            for text in ("~nobody-of-that-name/a;b", "x" * 5000 + ";", "a\0b;c", ";", ";;", " "):
                field.value = text
                await pilot.pause()
                assert pilot.app.is_running
            await pilot.press("escape")
        assert not home.exists()


class TestLeaving:
    async def test_with_nothing_at_work_at_once(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+q")
            await until(pilot, lambda: not pilot.app.is_running)

    @pytest.mark.parametrize(("size"), [(160, 45), (80, 24), (60, 16)])
    async def test_a_run_at_work_is_asked_about(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        run = make_run("my run", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app(*size) as pilot:
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
            await pilot.pause()
            assert "my run is still training" in screen_text(pilot)
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(pilot.app.screen, Confirm))
            assert pilot.app.is_running and last_request(run.folder) == 0

            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
            await pilot.press("enter")  # the first answer: leave it training
            await until(pilot, lambda: not pilot.app.is_running)
        assert last_request(run.folder) == 0

    async def test_stop_and_save(self, open_app: OpenApp, make_run: MakeRun) -> None:
        runs = [make_run(name, {10: 2.0}, RECORDS, **RUNNING) for name in ("one", "two")]
        done = make_run("done", {10: 2.0})
        async with open_app() as pilot:
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
            await pilot.press("down", "enter")
            await until(pilot, lambda: not pilot.app.is_running)
        for run in runs:
            assert read_json(run.folder / CONTROL_FILE)["requests"][0]["action"] == "stop"
        assert not (done.folder / CONTROL_FILE).exists()

    async def test_a_stop_that_cannot_be_asked_for_keeps_the_app_open(
        self, open_app: OpenApp, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, **RUNNING)

        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(asking, "request", full)
        async with open_app() as pilot:
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
            await pilot.press("down", "enter")
            await until(pilot, lambda: "No space left" in screen_text(pilot), looks=100)
            assert pilot.app.is_running

    async def test_a_run_that_began_outside_is_asked_about_too(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        async with open_app() as pilot:
            write_status(verse.folder, status_of_this_process(state="training"))
            await until(pilot, lambda: "verse ● training" in screen_text(pilot))
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))


class TestGenerating:
    async def test_prompt_and_text_stand_as_written(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+g")
            pilot.app.query_one("#prompt", TextArea).text = "[red]He"
            await pilot.press("enter")
            await until(pilot, lambda: "/s ──" in screen_text(pilot))
            text = screen_text(pilot)
            assert "[red]He go[es] on" in text and "and on [/INST]" in text
            await pilot.press("ctrl+y")
            await pilot.pause()
            assert pilot.app.clipboard == "[red]He go[es] on\nand on [/INST]"

    async def test_without_a_model_it_says_so(self, open_app: OpenApp) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+g", *"hello", "enter")
            await until(pilot, lambda: "no model is open yet" in screen_text(pilot))

    async def test_a_checkpoint_is_opened_from_the_list(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        async with open_app() as pilot:
            assert "verse@100" in screen_text(pilot)  # the best is open
            await pilot.press("ctrl+o", "down", "down", "enter")
            await until(pilot, lambda: "Generate · verse@50" in screen_text(pilot))
            assert focused_pane(pilot) == "generate"

    async def test_top_k_ends_at_the_models_vocabulary(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            assert pilot.app.query_one("#top-k").maximum == 11  # type: ignore[attr-defined]


class TestCommands:
    async def test_the_palette_names_area_and_verb(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app() as pilot:
            assert isinstance(pilot.app, TuigptApp)
            commands = pilot.app.commands()
            titles = [command.title for command in commands]
            assert all(re.fullmatch(r"[a-z-]+: [a-z].*", title) for title in titles), titles
            assert len(set(titles)) == len(titles)
            assert all(command.help for command in commands)
            assert {"train: new run", "train: stop & save", "app: quit"} <= set(titles)

    async def test_it_opens_and_runs_one(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            await pilot.press("ctrl+p", *"view: checkpoints")
            await until(pilot, lambda: "Go to the list of runs" in screen_text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: focused_pane(pilot) == "checkpoints")

    async def test_every_key_is_explained(self, open_app: OpenApp, verse: Any) -> None:
        """Each binding of tuigpt's own has a description, a tooltip and an id of its own."""
        async with open_app() as pilot:
            await pilot.press("ctrl+n")
            await pilot.pause()
            owners: list[Any] = [TuigptApp, Confirm, NewRun]
            owners += [type(w) for screen in pilot.app.screen_stack for w in screen.query("*")]
            ids: dict[str, str] = {}
            poor = []
            for owner in dict.fromkeys(owners):
                if not owner.__module__.startswith("tuigpt."):
                    continue
                for binding in owner.__dict__.get("BINDINGS", ()):
                    assert isinstance(binding, Binding)
                    name = f"{owner.__name__}: {binding.key}"
                    if not (binding.description and binding.tooltip and binding.id):
                        poor.append(name)
                        continue
                    assert re.fullmatch(r"[a-z]+([.-][a-z]+)*", binding.id), name
                    assert binding.id not in ids, (name, ids[binding.id])
                    ids[binding.id] = name
            assert poor == []
            await pilot.press("escape")

    async def test_help_can_be_opened_in_every_pane(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app() as pilot:
            for key, words in (("ctrl+g", "temperature"), ("ctrl+t", "memorise"),
                               ("ctrl+o", "usually the best")):  # fmt: skip
                await pilot.press(key, "f1")
                await until(pilot, partial(shows, pilot, words))
                await pilot.press("end")
                await until(pilot, partial(shows, pilot, "app.log"))
                await pilot.press("escape")
                await until(pilot, lambda: pilot.app.screen is pilot.app.screen_stack[0])

    @pytest.mark.parametrize("size", [(160, 45), (120, 60), (80, 70)])
    async def test_help_keeps_keys_and_what_they_do_in_columns(
        self, open_app: OpenApp, verse: Any, size: tuple[int, int]
    ) -> None:
        async with open_app(*size) as pilot:
            await pilot.press("ctrl+t", "f1")
            await until(pilot, partial(shows, pilot, "app.log"))
            rows = screen_text(pilot).split("\n")
            first = next(at for at, row in enumerate(rows) if row.startswith("  x  "))
            table = rows[first : rows.index("", first)]
            begins = [{found.start() for found in re.finditer(r"\S+( \S+)*", row)} for row in table]
            assert len(begins[0]) == (4 if size[0] >= 120 else 2)
            keys, texts = sorted(begins[0])[::2], sorted(begins[0])[1::2]
            for row in begins:
                assert row <= begins[0], table
                for key, text in zip(keys, texts, strict=True):
                    assert text in row or key not in row, table


class TestTheWayOut:
    @pytest.mark.parametrize("size", [(160, 45), (80, 24), (60, 16)])
    async def test_help_and_quit_stand_at_the_end_of_the_footer(
        self, open_app: OpenApp, make_run: MakeRun, size: tuple[int, int]
    ) -> None:
        make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
        async with open_app(*size) as pilot:
            for key, end in (("ctrl+g", "f1 help  ^q quit"), ("ctrl+t", "? help  ^q quit")):
                await pilot.press(key)
                await until(pilot, partial(ends, pilot, end))
            await pilot.press("f1")
            await until(pilot, lambda: screen_text(pilot).endswith("^q quit"))

    async def test_ctrl_c_twice_leaves_and_the_first_says_so(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        async with open_app(80, 24) as pilot:
            await pilot.press("ctrl+c")
            await until(pilot, lambda: "^c again leaves" in screen_text(pilot))
            assert pilot.app.is_running
            await pilot.press("ctrl+c")
            await until(pilot, lambda: not pilot.app.is_running)

    async def test_ctrl_c_copies_what_is_selected(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(80, 24) as pilot:
            await pilot.press("ctrl+g", *"ROMEO", "shift+home", "ctrl+c", "ctrl+c")
            await until(pilot, lambda: pilot.app.clipboard == "ROMEO")
            assert pilot.app.is_running


class TestSizes:
    @pytest.mark.parametrize(
        ("width", "shown_panes"), [(99, 1), (100, 2), (139, 2), (140, 3), (200, 3)]
    )
    async def test_as_many_panes_as_fit_and_one_on_request(
        self, open_app: OpenApp, verse: Any, width: int, shown_panes: int
    ) -> None:
        async with open_app(width, 30) as pilot:
            panes = [f"#{entry.id}" for entry in PANES]
            assert sum(shown(pilot, pane) for pane in panes) == shown_panes
            await pilot.press("ctrl+t", "f4")
            await until(pilot, lambda: [p for p in panes if shown(pilot, p)] == ["#training"])
            await pilot.press("f4")
            await until(pilot, lambda: sum(shown(pilot, p) for p in panes) == shown_panes)

    async def test_the_pane_with_the_focus_is_the_widest(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        async with open_app(160, 45) as pilot:
            for key, name in (("ctrl+o", "checkpoints"), ("ctrl+t", "training")):
                await pilot.press(key)
                await still(pilot)
                widths = {p.id: pilot.app.query_one(f"#{p.id}").region.width for p in PANES}
                assert widths.pop(name) * 2 >= max(widths.values()) * 3 - 4


class TestWhatIsKept:
    async def test_theme_pane_and_sampling_are_found_again(
        self, open_app: OpenApp, verse: Any, home: Path
    ) -> None:
        async with open_app(80, 24) as pilot:
            await pilot.press("ctrl+p", *"theme", "enter")
            await until(pilot, lambda: "search the themes" in screen_text(pilot))
            await pilot.press(*"paper", "enter")
            await until(pilot, lambda: pilot.app.theme == "paper")
            pilot.app.query_one("#temperature", Slider).value = 1.3
            await pilot.press("ctrl+t", "ctrl+q")
            await until(pilot, lambda: not pilot.app.is_running)
        settings = read_settings(home)
        assert (settings.theme, settings.pane) == ("paper", "training")
        async with open_app(80, 24) as pilot:
            assert pilot.app.theme == "paper" and focused_pane(pilot) == "training"
            assert pilot.app.query_one("#temperature", Slider).value == 1.3

    async def test_looking_keeps_nothing(self, open_app: OpenApp, verse: Any) -> None:
        async with open_app(80, 24) as pilot:
            await pilot.press("ctrl+q")
            await until(pilot, lambda: not pilot.app.is_running)
        assert not settings_file().exists()

    async def test_keys_can_be_chosen_and_all_that_names_them_follows(
        self, open_app: OpenApp, verse: Any
    ) -> None:
        change_settings(keys={"view.training": "f7", "app.quit": "f10"})
        async with open_app(120, 60) as pilot:
            assert "f7 Training" in screen_text(pilot)
            assert screen_text(pilot).endswith("f10 quit")
            await pilot.press("f7")
            await until(pilot, lambda: focused_pane(pilot) == "training")
            await pilot.press("f1")
            await until(pilot, lambda: re.search(r"f7 +Go to the loss", screen_text(pilot)))
            assert screen_text(pilot).endswith("f10 quit")
            await pilot.press("escape")
            for opened in ("ctrl+p", "ctrl+n"):
                await pilot.press(opened)
                await until(pilot, lambda: "esc back" in screen_text(pilot))
                assert re.search(r"help +f10 quit$", screen_text(pilot))
                await pilot.press("escape")
            await pilot.press("f10")
            await until(pilot, lambda: not pilot.app.is_running)

    async def test_what_cannot_be_used_is_named(self, open_app: OpenApp, verse: Any) -> None:
        settings_file().write_text("temperature = 9.0\n")
        async with open_app(80, 24) as pilot:
            await until(pilot, lambda: "setting temperature" in screen_text(pilot))


async def test_other_words_find_a_command(open_app: OpenApp, make_run: MakeRun) -> None:
    make_run("verse", {10: 2.0}, RECORDS, **RUNNING)
    async with open_app() as pilot:
        assert isinstance(pilot.app, TuigptApp)
        commands = pilot.app.commands()
        for query, title in (("colour", "view: theme"), ("del", "train: discard"),
                             ("exit", "app: quit"), ("shortcuts", "view: help")):  # fmt: skip
            assert title in [command.title for command in found(commands, query)], query
        assert commands[-1].title == "app: quit"


async def test_four_words_are_explained_with_the_runs_numbers(
    open_app: OpenApp, verse: Any
) -> None:
    async with open_app(80, 24) as pilot:
        await pilot.press("ctrl+t", "f1")
        for key, words in (
            ("1", "knows 11 tokens"), ("2", "writes now is verse@100"),
            ("3", "lowest val was 1.50"), ("4", "1.50 nats = 2.16 bits"),
        ):  # fmt: skip
            await pilot.press(key)
            await until(pilot, partial(shows_in_flow, pilot, words))


async def test_a_field_of_another_pane_is_found_explained_and_gone_to(
    open_app: OpenApp, verse: Any
) -> None:
    async with open_app(80, 24) as pilot:
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "^p commands" in screen_text(pilot))
        await pilot.press("ctrl+p", *"number of samples")
        await until(pilot, lambda: "│ How many texts to write at once, side" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.focused is pilot.app.query_one("#sample-count"))
