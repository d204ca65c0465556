"""The prompt box: what is sent is what was typed, and a paste sends nothing."""

from __future__ import annotations

import pytest
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input
from tui.conftest import until

from tuigpt.tui.guarded import GuardedApp
from tuigpt.tui.widgets import prompt_box
from tuigpt.tui.widgets.prompt_box import PromptBox


class Host(GuardedApp):
    BINDINGS = [Binding("q,s,r,question_mark,slash,1", "boom", "boom")]

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield PromptBox(placeholder="type")
        yield Input()

    def on_mount(self) -> None:
        self.box.focus()

    def on_prompt_box_sent(self, event: PromptBox.Sent) -> None:
        assert event.control is self.box
        self.sent.append(event.text)

    def action_boom(self) -> None:
        raise AssertionError("a shortcut took a typed key")

    @property
    def box(self) -> PromptBox:
        return self.query_one(PromptBox)

    def burst(self, *keys: str) -> None:
        """Keys that come all at once, as from a fast typist on a slow line."""
        for key in keys:
            self.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_enter_sends_and_keeps_the_text() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press(*"ROMEO", "enter")
        assert app.sent == ["ROMEO"] and app.box.text == "ROMEO"


async def test_enter_sends_nothing_too() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("enter")
        assert app.sent == [""]


async def test_letters_and_enter_in_one_burst_send_all_letters() -> None:
    app = Host()
    async with app.run_test() as pilot:
        app.burst(*"ROMEO", "enter")
        await pilot.pause()
        assert app.sent == ["ROMEO"]


async def test_a_backspace_in_a_burst_keeps_its_place() -> None:
    app = Host()
    async with app.run_test() as pilot:
        app.burst("b", "a", "backspace", "c")
        await pilot.pause()
        assert app.box.text == "bc"


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_new_line_without_sending(key: str) -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("a", key, "b")
        assert app.box.text == "a\nb" and app.sent == []
        await pilot.press("enter")
        assert app.sent == ["a\nb"]


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("ROMEO:\nO, she doth\n\nJULIET:", None),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("tab\there", None),
        ("[/INST] [red]x[/]", None),
        ("〽️a 日本語 🙂", None),
        ("x" * 50_000, None),
    ],
)
async def test_a_paste_is_whole_and_sends_nothing(pasted: str, text: str | None) -> None:
    app = Host()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(pasted))
        await pilot.pause()
        assert app.box.text == (pasted if text is None else text)
        assert app.sent == []
        await pilot.press("enter")
        assert app.sent == [app.box.text]


async def test_a_paste_replaces_what_is_selected() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press(*"old words")
        app.box.select_all()
        app.post_message(events.Paste("new\r\nwords"))
        await pilot.pause()
        assert app.box.text == "new\nwords"
        await pilot.press("!")
        assert app.box.text == "new\nwords!"


async def test_printable_keys_are_typed_not_bindings() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press(*"qsr1", "question_mark", "slash")
        assert app.box.text == "qsr1?/"


async def test_what_is_typed_around_wide_characters_is_what_is_sent() -> None:
    app = Host()
    async with app.run_test() as pilot:
        app.post_message(events.Paste("日本語"))
        await pilot.pause()
        await pilot.press("left", "backspace", "x", "end", "y", "enter")
        assert app.sent == ["日x語y"]


class TestAPasteThatComesAsKeys:
    async def test_its_line_ends_send_nothing(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.burst(*"one", "enter", *"two", "enter", "enter", *"three", "enter")
            await until(pilot, lambda: app.sent or app.box.text.endswith("three\n"))
            assert app.sent == [] and app.box.text == "one\ntwo\n\nthree\n"

    async def test_enter_sends_when_it_is_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(prompt_box, "_PASTE_ENDS", 0.0)
        app = Host()
        async with app.run_test() as pilot:
            app.burst(*"one", "enter", *"two")
            await until(pilot, lambda: app.box.text.endswith("two"))
            await pilot.press("enter")
            assert app.sent == ["one\ntwo"]


class TestHistory:
    async def test_up_and_down_go_through_what_was_sent(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            for text in ("one", "two", "three"):
                app.box.text = text
                await pilot.press("enter")
            seen = []
            for key in ("up", "up", "up", "down", "down", "down"):
                await pilot.press(key)
                seen.append(app.box.text)
            assert seen[:3] == ["two", "one", "one"]
            assert seen[3:5] == ["two", "three"]

    async def test_a_draft_comes_back(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.box.text = "one"
            await pilot.press("enter", *"a draft", "up")
            assert app.box.text == "one"
            await pilot.press("down")
            assert app.box.text == "a draft"

    async def test_what_was_sent_is_replaced_by_typing_and_kept_by_an_arrow(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            await pilot.press(*"ROMEO:", "enter", "J")
            assert app.box.text == "J"
            await pilot.press("enter", "right", "U")
            assert app.box.text == "JU"

    async def test_earlier_times_are_there(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.box.set_history(["long ago", "yesterday"])
            await pilot.press("up", "up")
            assert app.box.text == "long ago"

    async def test_up_moves_within_several_lines_first(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.box.text = "first"
            await pilot.press("enter")
            app.box.text = "a\nb"
            app.box.move_cursor((1, 1))
            await pilot.press("up")
            assert app.box.text == "a\nb" and app.box.cursor_location == (0, 1)
            await pilot.press("up")
            assert app.box.text == "first"

    async def test_the_same_prompt_again_is_remembered_once(self) -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.box.text = "other"
            await pilot.press("enter")
            app.box.text = "same"
            await pilot.press("enter", "enter", "enter")
            await pilot.press("up", "up")
            assert app.box.text == "other"


async def test_tab_leaves_the_box() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        assert isinstance(app.focused, Input)
