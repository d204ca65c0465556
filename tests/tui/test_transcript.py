"""Text that grows: nothing lost, nothing taken for markup, the reader's place kept."""

from __future__ import annotations

import random
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from tui.conftest import InkApp

from tuigpt.tui.widgets import transcript as transcript_module
from tuigpt.tui.widgets.transcript import Rule, Transcript
from tuigpt.tui.widgets.wrapping import wrap
from tuigpt.wording import visible

BRACKETS = [
    "[/", "[/]", "[/INST]", "[a=1]", "[red]", "[@click=app.quit]x[/]", "[bold", "list[0]", "\\[",
    "[b]bold[/b] [[nested]] [link=https://x]y[/link] [$primary]z[/] \\[/red]", "]", "[", "[]",
]  # fmt: skip

ALPHABET = "abc de fg  \n\n,.[]日本🙂e\u0301é"


class Host(InkApp):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.transcript = Transcript(**options)

    def compose(self) -> ComposeResult:
        yield self.transcript

    @property
    def lines(self) -> list[str]:
        height = self.transcript.size.height
        return [self.transcript.render_line(y).text.rstrip() for y in range(height)]


ALL = Selection(None, None)


def text_of(transcript: Transcript) -> str:
    selected = transcript.get_selection(ALL)
    assert selected is not None
    return selected[0]


def random_text(seed: int, length: int = 400) -> str:
    rng = random.Random(seed)
    text = "".join(rng.choice(ALPHABET) for _ in range(length))
    return text.strip("\n") + "."  # a last newline is not part of what is selected


class TestNothingIsLost:
    @pytest.mark.parametrize("width", [2, 3, 7, 20, 79, 200])
    async def test_text_in_is_text_out_at_any_width(self, width: int) -> None:
        app = Host()
        async with app.run_test(size=(width, 10)):
            for seed in range(5):
                text = random_text(seed)
                app.transcript.clear()
                app.transcript.append(text)
                assert text_of(app.transcript) == text

    async def test_the_pieces_it_came_in_make_no_difference(self) -> None:
        app = Host()
        async with app.run_test(size=(20, 200)) as pilot:
            text = random_text(7)
            app.transcript.append(text)
            await pilot.pause()
            at_once = app.lines
            for size in (1, 2, 5, 33):
                app.transcript.clear()
                for start in range(0, len(text), size):
                    app.transcript.append(text[start : start + size])
                assert app.lines == at_once

    async def test_resizing_wraps_anew_and_loses_nothing(self) -> None:
        app = Host()
        async with app.run_test(size=(40, 200)) as pilot:
            text = random_text(3, 1500)
            app.transcript.append(text)
            await pilot.pause()
            before = app.lines
            for width in (10, 3, 90, 40):
                await pilot.resize_terminal(width, 200)
                await pilot.pause()
                assert text_of(app.transcript) == text
            assert app.lines == before

    async def test_text_that_came_before_there_was_a_size(self) -> None:
        app = Host()
        app.transcript.append("first words before anything shows")
        async with app.run_test(size=(12, 10)) as pilot:
            await pilot.pause()
            assert app.lines[:3] == ["first words", "before", "anything"]

    async def test_words_are_kept_whole_and_long_ones_broken(self) -> None:
        app = Host()
        async with app.run_test(size=(11, 20)) as pilot:  # one column is the scroll bar's
            app.transcript.append("to be or not abcdefghijklmnopqrst  x\n\nend")
            await pilot.pause()
            assert app.lines[:7] == ["to be or", "not", "abcdefghij", "klmnopqrst", "x", "", "end"]

    async def test_wide_characters_never_overflow(self) -> None:
        app = Host()
        async with app.run_test(size=(6, 40)) as pilot:
            app.transcript.append("日本語日本語 a日b本c語 🙂🙂🙂🙂")
            await pilot.pause()
            for y in range(40):
                assert app.transcript.render_line(y).cell_length == 6
            assert app.lines[:3] == ["日本", "語日", "本語"]

    @pytest.mark.parametrize("text", ["❤️a❤️b" * 9, "a🇩🇪🇫🇷b" * 9, "கவிதை நிலா " * 9, "e\u0301x" * 20])
    async def test_what_is_drawn_as_one_is_never_cut(self, text: str) -> None:
        clusters = ["❤️", "🇩🇪", "🇫🇷", "e\u0301", "வி", "தை"]
        app = Host()
        async with app.run_test(size=(8, 60)) as pilot:
            app.transcript.append(text)
            await pilot.pause()
            rows = [app.transcript.render_line(y) for y in range(60)]
            assert all(row.cell_length == 8 for row in rows)
            shown = "".join(row.text.rstrip() for row in rows)
            assert shown.replace(" ", "") == text.replace(" ", "")
            for cluster in clusters:
                assert sum(row.text.count(cluster) for row in rows) == text.count(cluster)


class TestItIsNeverMarkup:
    @pytest.mark.parametrize("text", BRACKETS)
    async def test_brackets_stand_as_written_at_every_prefix(self, text: str) -> None:
        app = Host()
        async with app.run_test(size=(90, 5)) as pilot:
            for end, character in enumerate(text, 1):
                app.transcript.append(character)
                await pilot.pause()
                assert app.lines[0] == text[:end].rstrip()
            assert all(
                segment.style is None or not segment.style.meta.get("@click")
                for segment in app.transcript.render_line(0)
            )

    async def test_the_placeholder_too(self) -> None:
        app = Host(placeholder="[/INST] say [red]something")
        async with app.run_test(size=(60, 5)) as pilot:
            await pilot.pause()
            assert app.lines[0] == "[/INST] say [red]something"

    async def test_control_characters_become_pictures(self) -> None:
        app = Host()
        async with app.run_test(size=(60, 5)) as pilot:
            app.transcript.append("a\x1b[31mb\x07c\rd\x9b5me\x7f\tf")
            await pilot.pause()
            assert app.lines[0] == visible("a\x1b[31mb\x07c\rd\x9b5me\x7f") + "    f"
            assert "\x1b" not in "".join(s.text for s in app.transcript.render_line(0))


class TestItsPlace:
    async def filled(self, pilot: Pilot[None]) -> Transcript:
        transcript = pilot.app.query_one(Transcript)
        transcript.append("".join(f"row {n}\n" for n in range(50)))
        await pilot.pause()
        return transcript

    async def test_new_text_is_followed(self) -> None:
        app = Host()
        async with app.run_test(size=(30, 10)) as pilot:
            transcript = await self.filled(pilot)
            assert "row 49" in app.lines
            transcript.append("row 50\n")
            await pilot.pause()
            assert "row 50" in app.lines

    async def test_a_reader_who_scrolled_up_is_left_alone(self) -> None:
        app = Host()
        async with app.run_test(size=(30, 10)) as pilot:
            transcript = await self.filled(pilot)
            transcript.focus()
            await pilot.press("pageup")
            await pilot.wait_for_scheduled_animations()
            before = app.lines
            assert "row 49" not in before
            for n in range(50, 60):
                transcript.append(f"row {n}\n")
                await pilot.pause()
            assert app.lines == before
            await pilot.press("end")
            await pilot.wait_for_scheduled_animations()
            transcript.append("row 60\n")
            await pilot.pause()
            assert "row 60" in app.lines  # at the end again, it follows again

    async def test_the_oldest_rows_are_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transcript_module, "MAX_ROWS", 100)
        app = Host()
        async with app.run_test(size=(30, 10)) as pilot:
            for n in range(300):
                app.transcript.append(f"row {n}\n")
            await pilot.pause()
            assert app.transcript.virtual_size.height == 100
            assert text_of(app.transcript).startswith("row 200\n")
            assert "row 299" in app.lines


class TestSelection:
    async def test_it_has_no_breaks_of_the_wrapping(self) -> None:
        app = Host()
        async with app.run_test(size=(12, 10)) as pilot:
            app.transcript.append("to be or not to be,\nthat is the question  \nend")
            await pilot.pause()
            assert text_of(app.transcript) == "to be or not to be,\nthat is the question  \nend"
            part = Selection(Offset(3, 0), Offset(5, 1))
            assert app.transcript.get_selection(part) == ("be or not t", "\n")

    async def test_by_mouse(self) -> None:
        app = Host()
        async with app.run_test(size=(30, 10)) as pilot:
            app.transcript.append("to be or not\nto be")
            await pilot.pause()
            await pilot.mouse_down(Transcript, offset=(3, 0))
            await pilot.hover(Transcript, offset=(2, 1))
            await pilot.mouse_up(Transcript, offset=(2, 1))
            await pilot.pause()
            selected = app.screen.get_selected_text()
            assert selected is not None and selected.startswith("be or not\nto")


class TestCost:
    async def test_a_long_text_in_small_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Appending looks only at the row that is open, however much stands above it."""
        wrapped = 0
        really = wrap

        def counting(runs: Any, width: int) -> Any:
            nonlocal wrapped
            runs = list(runs)
            wrapped += sum(len(text) for _, text in runs)
            return really(runs, width)

        monkeypatch.setattr(transcript_module, "wrap", counting)
        app = Host()
        async with app.run_test(size=(80, 24)):
            rng = random.Random(1)
            pieces = ["".join(rng.choices("abcdefgh  ", k=3)) for _ in range(100_000 // 3)]
            for number, piece in enumerate(pieces):
                app.transcript.append(piece + "\n" * (number % 20 == 0))
            assert wrapped < 100_000 * 80 / 3

    async def test_a_longer_text_lays_the_screen_out_only_for_its_scrollbar(self) -> None:
        app, laid_out = Host(), list[object]()
        async with app.run_test(size=(40, 12)) as pilot:
            transcript = app.transcript
            transcript.append("line\n" * 20)
            await pilot.pause()
            app.screen.screen_layout_refresh_signal.subscribe(transcript, laid_out.append)
            bar = transcript.vertical_scrollbar
            for count in range(21, 60):
                transcript.append(f"line {count}\n")
                await pilot.pause()
                rows = transcript.virtual_size.height
                assert bar.window_virtual_size == rows
                assert bar.position == transcript.scroll_y == rows - transcript.size.height
            assert app.lines[-1] == "line 59" and not laid_out
            transcript.clear()
            await pilot.pause()
            assert not transcript.show_vertical_scrollbar and transcript.scroll_y == 0
            assert laid_out

    async def test_without_any_newline_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        longest = 0
        really = wrap

        def measuring(runs: Any, width: int) -> Any:
            nonlocal longest
            runs = list(runs)
            longest = max(longest, sum(len(text) for _, text in runs))
            return really(runs, width)

        monkeypatch.setattr(transcript_module, "wrap", measuring)
        app = Host()
        async with app.run_test(size=(40, 10)):
            for _ in range(5000):
                app.transcript.append("ab")
            assert longest <= 42


class TestEntries:
    async def test_they_are_apart_and_each_can_grow_or_be_replaced(self) -> None:
        app = Host()
        async with app.run_test(size=(30, 12)) as pilot:
            transcript = app.transcript
            for number, text in enumerate(("one", "two\n", "three"), 1):
                transcript.open_entry(number)
                transcript.set_rule(number, Rule([str(number)]))
                transcript.append(text)
            transcript.append(" more", entry=1)
            transcript.append("again", entry=2)
            await pilot.pause()
            width = transcript.scrollable_content_region.width + 1
            one, two, three = (f"── {number} ".ljust(width, "─") for number in (1, 2, 3))
            shown = [one, "one more", "", two, "two", "again", "", three, "three"]
            assert app.lines == [*shown, "", "", ""]
            transcript.replace_entry(2, [("prompt", "2")])
            transcript.append("!", entry=2)
            transcript.append("!", entry=3)
            await pilot.pause()
            assert app.lines[3:9] == [two, "2!", "", three, "three!", ""]
            assert text_of(transcript) == "one more\n\n2!\n\nthree!"

    async def test_one_can_go(self) -> None:
        app = Host()
        async with app.run_test(size=(30, 12)) as pilot:
            transcript = app.transcript
            for number, text in enumerate(("one", "two", "three"), 1):
                transcript.open_entry(number)
                transcript.append(text)
            transcript.drop_entry(1)
            transcript.drop_entry(1)
            transcript.append(" or so", entry=2)
            await pilot.pause()
            assert app.lines[1] == "two or so" and text_of(transcript) == "two or so\n\nthree"
            transcript.drop_entry(2)
            transcript.drop_entry(3)
            assert transcript.is_empty

    async def test_an_older_one_grows_without_wrapping_the_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrapped = 0
        really = wrap

        def counting(runs: Any, width: int) -> Any:
            nonlocal wrapped
            wrapped += sum(len(text) for _, text in runs)
            return really(runs, width)

        app = Host()
        async with app.run_test(size=(40, 10)):
            for number in range(20):
                app.transcript.open_entry(number)
                app.transcript.append("to be or not " * 50)
            monkeypatch.setattr(transcript_module, "wrap", counting)
            for _ in range(100):
                app.transcript.append("ab ", entry=3)
            assert wrapped < 100 * 43
