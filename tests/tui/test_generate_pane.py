"""The generate pane: a text is watched, steered, looked into, and kept in order."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only
from textual import events
from textual.pilot import Pilot
from textual.widgets import TextArea
from tui.conftest import WRITTEN, FakeWriter, OpenApp, screen_text, until

from tuigpt.paths import runs_dir
from tuigpt.runs.folder import checkpoint_path
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.status import RunStatus, write_status
from tuigpt.tui import app as app_module
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.panes.generate import texts_view, writing
from tuigpt.tui.panes.generate.grid import Grid
from tuigpt.tui.panes.generate.inside import Inside
from tuigpt.tui.panes.generate.save import SaveAs
from tuigpt.tui.panes.generate.writing import PACE, READING_PACE

pytestmark = pytest.mark.usefixtures("verse")


@pytest.fixture
def verse(make_run: MakeRun) -> Any:
    return make_run("verse", {50: 2.0, 100: 1.5})


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


def shows(pilot: Pilot[None], words: str) -> bool:
    return words in screen_text(pilot)


async def press(pilot: Pilot[None], key: str, words: str) -> None:
    """Press a key until it has shown its effect."""
    await pilot.press(key)
    await until(pilot, lambda: shows(pilot, words))


@pytest.fixture
def written(open_app: OpenApp, writer: FakeWriter) -> Any:
    """The app after one text."""

    @asynccontextmanager
    async def open_it(columns: int = 80, rows: int = 24) -> AsyncIterator[Pilot[None]]:
        async with open_app(columns, rows, writer=writer) as pilot:
            await pilot.press(*"He")
            await press(pilot, "enter", "/s ──")
            yield pilot

    return open_it


def lines(pilot: Pilot[None]) -> list[str]:
    return [line.strip() for line in screen_text(pilot).splitlines()]


class TestWriting:
    async def test_the_newest_text_stands_above_the_controls(self, written: Any) -> None:
        async with written() as pilot:
            shown = lines(pilot)
            at = shown.index("and on [/INST]")
            assert shown[at - 1] == "He go[es] on"
            assert shown[at - 2].startswith("── 1 · verse@100 · seed ")
            assert shown[at - 2].endswith("── 25 · 50 characters/s ──")
            assert shown[at + 2].startswith("next  ")

    async def test_a_slider_acts_in_mid_text_and_the_rule_says_where(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        writer.hold = 8
        async with open_app(120, 40, writer=writer) as pilot:
            await press(pilot, "enter", "8 of 200")
            await pilot.press("tab", "right", "right")
            await until(pilot, lambda: len(writer.configs) == 2)
            assert writer.configs[-1].temperature == 0.9
            writer.go_on.set()
            await until(pilot, lambda: shows(pilot, "T 0.80 → 0.90 at 8"))
            await until(pilot, lambda: shows(pilot, "no one command prints it again"))

    async def test_top_p_and_min_p_are_a_key_away_and_never_act_unseen(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "ctrl+s", "min-p")
            await pilot.press("left", "left", "ctrl+g")
            await press(pilot, "enter", "p 0.9 ")
            await press(pilot, "f3", "k 11, p 0.9")
            await pilot.press("escape", "ctrl+s")
            await until(pilot, lambda: not shows(pilot, "min-p"))
            await pilot.press("ctrl+g", "enter")
            await until(pilot, lambda: len(writer.asked) == 2)
            assert [asked["config"].top_p for asked in writer.asked] == [0.9, 1.0]

    async def test_letters_on_a_slider_are_meant_for_the_prompt(self, open_app: OpenApp) -> None:
        async with open_app(80, 24) as pilot:
            await pilot.press(*"He", "enter", "tab", "-", *"hello")  # what was sent is replaced
            await until(pilot, lambda: shows(pilot, "│ hello "))
            assert shows(pilot, " 0.80 ")

    async def test_what_is_typed_into_a_field_that_was_clicked_replaces_its_value(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            await pilot.click("#sample-count")
            await pilot.press("2")
            await pilot.click("#length")
            await pilot.press("9", "ctrl+g", "enter")
            await until(pilot, lambda: writer.asked)
            assert writer.asked[0]["samples"] == 2
            assert writer.asked[0]["config"].max_new_tokens == 9

    @pytest.mark.parametrize(
        ("columns", "past"),
        [
            (60, "samples 1"),
            (80, "samples 1    rolling 1.3k/s f7 exact 24/s"),
            (96, "samples 1    rolling 1.3k tokens/s f7 exact 24 tokens/s"),
            (161, "│ samples 1    rolling 1.3k/s f7 exact 24/s"),
        ],
    )
    async def test_settings_are_never_cut(self, open_app: OpenApp, columns: int, past: str) -> None:
        async with open_app(columns, 24) as pilot:
            await pilot.press("ctrl+t" if columns > 100 else "ctrl+g")
            await until(pilot, lambda: past in screen_text(pilot))
            assert past + "…" not in screen_text(pilot)
            assert shows(pilot, "seed new each time")

    async def test_the_first_letters_come_with_their_facts(
        self, open_app: OpenApp, writer: FakeWriter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writing, "TELL_EVERY", 3600.0)
        writer.hold = 1
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "1 of 200")
            writer.go_on.set()

    async def test_it_can_come_all_at_once(self, open_app: OpenApp, writer: FakeWriter) -> None:
        writer.hold = 3
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "3 of 200")
            assert writer.asked[0]["pace"] > 0
            await pilot.press("ctrl+l")
            await until(pilot, lambda: writer.paces == [0.0])
            writer.go_on.set()

    async def test_beside_a_training_of_this_processor_it_comes_more_slowly(
        self, open_app: OpenApp, writer: FakeWriter, make_run: MakeRun
    ) -> None:
        """And says so; and as quickly as ever when the training has ended."""
        facts = {"state": "training", "host": socket.gethostname(), "device": "cpu"}
        folder = make_run("prose", **facts).folder
        writer.hold = 3
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "3 of 200 · slower while a run trains")
            write_status(folder, RunStatus("finished"))
            await until(pilot, lambda: not shows(pilot, "slower"))
            writer.go_on.set()
            await until(pilot, lambda: writer.paces)
            assert writer.asked[0]["pace"] == READING_PACE and writer.paces == [PACE]

    async def test_beside_a_training_the_curves_are_looked_at_less_meanwhile(
        self,
        open_app: OpenApp,
        writer: FakeWriter,
        make_run: MakeRun,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """But a run that comes is still seen at once."""
        monkeypatch.setattr(app_module, "LOOK_EVERY", 0.05)
        monkeypatch.setattr(app_module, "UNHURRIED", 10**6)
        make_run("prose", state="training", host=socket.gethostname(), device="cpu")
        later = make_run("later", state="finished").folder
        later.rename(tmp_path / "aside")
        writer.hold = 3
        async with open_app(80, 24, writer=writer) as pilot:
            session = cast(TuigptApp, pilot.app).session
            seen: list[Snapshot | None] = []  # at each glance
            changed_at = app_module._changed_at

            def glance(folder: Path) -> object:
                seen.append(session.snapshot)
                return changed_at(folder)

            monkeypatch.setattr(app_module, "_changed_at", glance)
            await press(pilot, "enter", "slower while a run trains")
            in_between = 4 * app_module.GLANCES
            await until(
                pilot,
                lambda: len(seen) > in_between and len(set(map(id, seen[-in_between:]))) == 1,
            )
            (tmp_path / "aside").rename(later)
            await until(pilot, lambda: any(run.name == "later" for run in session.runs))
            writer.go_on.set()

    async def test_beside_a_training_it_can_come_all_at_once(
        self, open_app: OpenApp, writer: FakeWriter, make_run: MakeRun
    ) -> None:
        make_run("prose", state="training", host=socket.gethostname(), device="2 × cpu")
        writer.hold = 3
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "slower while a run trains")
            await pilot.press("ctrl+l")
            await until(pilot, lambda: writer.paces == [0.0] and not shows(pilot, "slower"))
            writer.go_on.set()

    @pytest.mark.parametrize(
        "facts",
        [
            {"host": "elsewhere"},
            {"device": "cuda:0 (H200), bfloat16"},
            {"device": "mps"},
            {"state": "paused"},
            {"state": "finished"},
        ],
        ids=lambda facts: " ".join(facts.values()),
    )
    async def test_other_trainings_do_not_slow_it(
        self, open_app: OpenApp, writer: FakeWriter, make_run: MakeRun, facts: dict[str, str]
    ) -> None:
        here = {"state": "training", "host": socket.gethostname(), "device": "cpu"}
        make_run("prose", **here | facts)
        writer.hold = 3
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "3 of 200")
            assert writer.asked[0]["pace"] == PACE and not shows(pilot, "slower")

    async def test_stopping_keeps_what_is_there(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        writer.hold = 8
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "enter", "8 of 200")
            await press(pilot, "escape", "stopped at 8")
            assert shows(pilot, WRITTEN[:8].strip())

    async def test_without_a_length_it_writes_until_it_is_stopped(
        self, open_app: OpenApp, writer: FakeWriter, nothing_timed: None
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            await pilot.press("tab", "tab", "tab", *["backspace"] * 3)
            assert shows(pilot, "endless") and shows(pilot, "rolling past 16")
            await pilot.press("ctrl+g")
            await press(pilot, "enter", "/s ──")
            asked = writer.asked[0]
            assert asked["config"].max_new_tokens >= 10**9 and asked["window"] == "rolling"

    async def test_the_exact_window_is_a_key_away(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            await press(pilot, "f7", "exact ")
            await press(pilot, "enter", "past the context: it sees the newest 16 tokens")
            assert writer.asked[0]["window"] == "sliding"
            await until(pilot, lambda: shows(pilot, "exact 24/s f7 rolling 1.3k/s"))

    async def test_tab_goes_from_the_prompt_to_the_temperature_and_back(
        self, open_app: OpenApp
    ) -> None:
        async with open_app(80, 24) as pilot:
            ids = []
            for _ in range(7):
                focused = pilot.app.focused
                ids.append(focused.id if focused else None)
                await pilot.press("tab")
            assert ids == [
                "prompt",
                "temperature",
                "top-k",
                "length",
                "seed",
                "sample-count",
                "transcript",
            ]


class TestEachText:
    async def test_again_stands_beside_what_was_there(
        self, written: Any, writer: FakeWriter
    ) -> None:
        async with written() as pilot:
            await press(pilot, "f5", "‹ 2 of 2 ›")
            assert [asked["prompt"] for asked in writer.asked] == ["He", "He"]
            assert writer.asked[0]["config"].seed != writer.asked[1]["config"].seed
            assert screen_text(pilot).count("go[es] on") == 1
            await pilot.press("shift+tab")
            await press(pilot, "left", "‹ 1 of 2 ›")

    async def test_continuing_keeps_seed_and_tokens(self, written: Any, writer: FakeWriter) -> None:
        async with written() as pilot:
            await press(pilot, "f2", "[/INST] and on")
            first, second = writer.asked
            assert second["forced_ids"] == [ord(c) for c in WRITTEN]
            assert second["config"].seed == first["config"].seed
            assert second["config"].max_new_tokens == 200 + len(WRITTEN)

    async def test_a_deleted_one_comes_back_to_its_place(self, written: Any) -> None:
        async with written(80, 40) as pilot:
            await press(pilot, "enter", "── 2 ·")
            await until(pilot, lambda: screen_text(pilot).count("/s ──") == 2)
            await pilot.press("shift+tab", "p", "x")
            await until(pilot, lambda: not shows(pilot, "── 1 ·"))
            await press(pilot, "u", "── 1 ·")
            text = screen_text(pilot)
            assert text.index("── 1 ·") < text.index("── 2 ·")

    async def test_a_star_stands_on_its_rule(self, written: Any) -> None:
        async with written() as pilot:
            await pilot.press("shift+tab")
            await press(pilot, "s", "── 1 ★ · verse@100")

    async def test_the_oldest_makes_room_for_the_newest(
        self, written: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(texts_view, "MOST_TEXTS", 2)
        async with written(80, 40) as pilot:
            for number in (2, 3):
                await press(pilot, "enter", f"── {number} ·")
                await until(pilot, lambda: screen_text(pilot).count("/s ──") == 2)
            assert not shows(pilot, "── 1 ·") and shows(pilot, "── 2 ·")

    async def test_it_can_be_edited_and_gone_on_from(self, written: Any) -> None:
        async with written() as pilot:
            await pilot.press("shift+tab", "e")
            assert pilot.app.screen.query_one("#prompt", TextArea).text == "He" + WRITTEN

    async def test_the_command_that_prints_it(self, written: Any, writer: FakeWriter) -> None:
        async with written() as pilot:
            await pilot.press("f8")
            await until(pilot, lambda: pilot.app.clipboard)
            seed = writer.asked[0]["config"].seed
            command = pilot.app.clipboard
            assert command.startswith("tuigpt generate verse@100 ")
            assert f"--prompt=He --max-new-tokens {len(WRITTEN)} " in command
            assert f"--seed {seed}" in command and "--window rolling" in command

    async def test_a_click_chooses_one(self, written: Any) -> None:
        async with written(80, 40) as pilot:
            await press(pilot, "enter", "── 2 ·")
            await until(pilot, lambda: screen_text(pilot).count("/s ──") == 2)
            row = next(n for n, line in enumerate(lines(pilot)) if line.startswith("── 1 ·"))
            await pilot.click(offset=(5, row))
            await press(pilot, "s", "── 1 ★ ·")

    async def test_what_is_copied_is_marked_with_its_place(self, written: Any) -> None:
        async with written() as pilot:
            await pilot.press("shift+tab")
            await press(pilot, "m", "50% is copied from verse: 6 characters at line 3")
            await pilot.press("m")
            await until(pilot, lambda: not shows(pilot, "is copied"))

    async def test_it_is_saved_exactly_and_no_file_is_replaced_unasked(
        self, written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "text-1.txt").write_text("mine")
        async with written() as pilot:
            await pilot.press("shift+tab", "w")
            await until(pilot, lambda: isinstance(pilot.app.screen, SaveAs))
            await press(pilot, "enter", "it exists")
            assert (tmp_path / "text-1.txt").read_text() == "mine"
            await press(pilot, "enter", "saved the text")
            assert (tmp_path / "text-1.txt").read_text() == "He" + WRITTEN

    async def test_a_card_is_verified_first(
        self, written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        async with written() as pilot:
            await pilot.press("shift+tab")
            await press(pilot, "d", "a rolling window is another")
            await pilot.press("f7")
            await press(pilot, "f5", "‹ 2 of 2 ›")
            await until(pilot, lambda: shows(pilot, "/s ──"))
            await pilot.press("d")
            await until(pilot, lambda: isinstance(pilot.app.screen, SaveAs))
            await press(pilot, "enter", "saved the card")
            saved = (tmp_path / "card-1.txt").read_text()
            assert saved.startswith("He" + WRITTEN) and "ab" * 32 in saved
            assert shows(pilot, "verified: the plain loop")


class TestLookingInside:
    async def test_another_token_becomes_another_version(
        self, written: Any, writer: FakeWriter
    ) -> None:
        async with written() as pilot:
            await pilot.press("shift+tab", "f3")
            await until(pilot, lambda: isinstance(pilot.app.screen, Inside))
            await pilot.press("right", "right")
            await until(pilot, lambda: shows(pilot, f"3 of {len(WRITTEN)}: o"))
            assert shows(pilot, "surprise 0.70 nats")
            await pilot.press("down")
            await press(pilot, "enter", "branched from 1 at 2")
            assert writer.asked[-1]["forced_ids"] == [ord(c) for c in " gx"]
            await until(pilot, lambda: shows(pilot, "‹ 2 of 2 ›"))

    async def test_a_pasted_text_is_looked_into_and_gone_on_from_elsewhere(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            pilot.app.post_message(events.Paste("Hexe"))
            await until(pilot, lambda: shows(pilot, "Hexe"))
            await pilot.press("f3")
            await until(pilot, lambda: shows(pilot, "next: e is what the seed draws"))
            await pilot.press("left", "left")
            await until(pilot, lambda: shows(pilot, "3 of the prompt: x · likely 20%"))
            assert shows(pilot, "surprise 1.50 nats")
            await pilot.press("up", "enter")
            await until(pilot, lambda: len(writer.asked) == 1)
            assert writer.asked[0]["prompt"] == "Hee" and writer.asked[0]["forced_ids"] == []

    async def test_a_text_is_written_token_by_token(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with open_app(80, 24, writer=writer) as pilot:
            await pilot.press(*"Oh")
            await pilot.press("f3")
            for text in ("Ohe", "Ohee"):
                await until(pilot, lambda: shows(pilot, "next: e is what the seed draws"))
                await press(pilot, "space", f"│ {text}▏")
            await until(pilot, lambda: shows(pilot, "next: e is what"))
            await pilot.press("minus")
            await until(pilot, lambda: shows(pilot, "temperature 0.75"))
            await press(pilot, "escape", "── 1 · verse@100")
            assert shows(pilot, "Ohee") and writer.asked == []


async def test_a_small_vocabulary_does_not_keep_top_k_down(
    open_app: OpenApp, make_run: MakeRun
) -> None:
    async with open_app(80, 24) as pilot:
        slider: Any = pilot.app.screen.query_one("#top-k")
        assert (slider.maximum, slider.value) == (11, 11)
        await pilot.press("tab", "tab", "left")
        assert slider.value == 10


class TestSideBySide:
    @asynccontextmanager
    async def three(self, open_app: OpenApp, writer: FakeWriter) -> AsyncIterator[Pilot[None]]:
        """The app after three texts were asked for at once."""
        async with open_app(80, 24, writer=writer) as pilot:
            await pilot.press(*["tab"] * 5, "backspace", "3", "ctrl+g", *"He", "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, Grid))
            await until(pilot, lambda: shows(pilot, "real words"))
            yield pilot

    async def test_one_of_several_is_read_starred_and_chosen(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with self.three(open_app, writer) as pilot:
            assert [asked["samples"] for asked in writer.asked] == [3]
            first = writer.asked[0]["config"].seed
            assert all(shows(pilot, f"seed {first + number}") for number in range(3))
            assert shows(pilot, "GO[ES] ON") and shows(pilot, "3 texts · verse@100")
            await pilot.press("right", "s")
            await press(pilot, "space", f"── 2 ★ · seed {first + 1} ──")
            await pilot.press("space")
            await press(pilot, "enter", f"★ · verse@100 · seed {first + 1} · ‹ 2 of 3 ›")
            assert shows(pilot, "HeGO[ES] ON") or shows(pilot, "He GO[ES] ON")
            await pilot.press("shift+tab", "g")
            await until(pilot, lambda: isinstance(pilot.app.screen, Grid))

    async def test_the_one_under_the_cursor_is_looked_into(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        async with self.three(open_app, writer) as pilot:
            await pilot.press("right", "f3")
            await until(pilot, lambda: isinstance(pilot.app.screen, Inside))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, Grid))
            await press(pilot, "escape", "‹ 2 of 3 ›")

    async def test_they_are_stopped_together_and_chosen_by_mouse(
        self, open_app: OpenApp, writer: FakeWriter
    ) -> None:
        writer.hold = 8
        async with open_app(80, 24, writer=writer) as pilot:
            await pilot.press(*["tab"] * 5, "backspace", "2", "ctrl+g", "enter")
            await until(pilot, lambda: shows(pilot, "8 of 200"))
            await pilot.press("escape")
            await until(pilot, lambda: not shows(pilot, "8 of 200"))
            await pilot.click(offset=(45, 2))
            await pilot.click(offset=(45, 2))
            await until(pilot, lambda: shows(pilot, "‹ 2 of 2 ›") and shows(pilot, "stopped at 8"))

    async def test_they_are_sorted_and_hidden(self, open_app: OpenApp, writer: FakeWriter) -> None:
        async with self.three(open_app, writer) as pilot:
            await pilot.press("o")
            await press(pilot, "o", "sorted by share copied")
            shown = screen_text(pilot)
            assert shown.index("0% copied") < shown.index("10% copied") < shown.index("20% copied")
            assert "─ 3 ─" in shown
            await pilot.press("home", "h")
            await until(pilot, lambda: shows(pilot, "1 hidden") and not shows(pilot, "─ 3 ─"))
            await press(pilot, "u", "─ 3 ─")


class TestNewerWeights:
    async def test_both_keys_are_named_beside_the_other_panes(
        self, open_app: OpenApp, home: Path, make_run: MakeRun
    ) -> None:
        async with open_app(160, 45) as pilot:
            await pilot.press("ctrl+t")
            name = "shakespeare-tiny-1"
            make_run(name)
            path = checkpoint_path(runs_dir(home) / name, 150)
            write_header_only(path, checkpoint_header(150, run=name, val_loss=1.4))
            await until(pilot, lambda: shows(pilot, f"{name}@150 is new: f6 opens"))
            assert shows(pilot, "f9 follows")

    async def test_a_run_is_followed_until_the_key_is_pressed_again(
        self, open_app: OpenApp, home: Path, writer: FakeWriter
    ) -> None:
        def save(step: int, val_loss: float) -> None:
            path = checkpoint_path(runs_dir(home) / "verse", step)
            write_header_only(path, checkpoint_header(step, run="verse", val_loss=val_loss))

        async with open_app(80, 24, writer=writer) as pilot:
            save(150, 1.4)
            await until(pilot, lambda: shows(pilot, "verse@150 is new: f6 opens it, f9 follows"))
            await press(pilot, "f9", "follows verse: its newest step writes, 150")
            await press(pilot, "enter", "── 1 · verse@150 · ")
            save(200, 1.6)
            await until(pilot, lambda: shows(pilot, "its newest step writes, 200"))
            assert shows(pilot, "── 1 · verse@150 · ") and shows(pilot, "─ verse@200 ─")
            await pilot.press("f9")
            await until(pilot, lambda: not shows(pilot, "follows verse"))
