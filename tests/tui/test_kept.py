"""Texts and prompts over sessions: nothing lost, nothing without bounds, nothing believed."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import MakeRun
from tui.conftest import FakeWriter, OpenApp, screen_text, until

from tuigpt.config import SampleConfig
from tuigpt.runs.folder import Checkpoint
from tuigpt.settings import change_settings
from tuigpt.tui.panes.generate import kept as kept_module
from tuigpt.tui.panes.generate.entries import Texts
from tuigpt.tui.panes.generate.kept import (
    PROMPTS_FILE,
    TEXTS_FILE,
    Kept,
    KeptText,
    keep,
    keep_prompt,
    read_prompts,
    read_texts,
)
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.panes.generate.texts_view import TextsView


def some(name: str, **facts: object) -> KeptText:
    return KeptText(name, "place", prompt=name, **facts)  # type: ignore[arg-type]


class TestTheFile:
    def test_what_was_kept_comes_back_whole(self, home: Path) -> None:
        checkpoint = Checkpoint(Path("/c"), "verse", 7, None, None, 65, 0, "", 0, 0.0)
        text = WrittenText(checkpoint, "To\n", SampleConfig(seed=3), ids=[1, 2], started=True)
        text.add_written("be🙂")
        text.changes = [(1, SampleConfig(temperature=0.1))]
        texts = Texts()
        record = Kept(home).record(texts.add(text), text)
        assert record is not None
        keep(home, [record])
        again = Texts()
        Kept(home).load(again, read_texts(home))
        assert again.entry is not None
        found = again.entry.text
        assert (found.whole, found.ids, found.changes) == ("To\nbe🙂", [1, 2], text.changes)
        assert found.config == text.config and found.checkpoint.label == "verse@7" and found.over

    def test_the_last_word_about_a_text_holds(self, home: Path) -> None:
        keep(home, [some("a"), some("b")])
        keep(home, [some("a", starred=True), KeptText("b", deleted=True)])
        assert [(text.id, text.starred) for text in read_texts(home)] == [("a", True)]

    def test_the_newest_come_back_and_those_with_a_star(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kept_module, "MOST_TEXTS", 2)
        keep(home, [some("a", starred=True), *map(some, "bcd")])
        assert [text.id for text in read_texts(home)] == ["a", "c", "d"]

    def test_the_choice_among_siblings_holds_until_another_is_written(self, home: Path) -> None:
        def shown() -> list[str]:
            return [text.id for text in read_texts(home) if text.shown]

        keep(home, [some("a", shown=True), some("b")])
        keep(home, [KeptText("b", chosen=True), KeptText("gone", chosen=True)])
        assert shown() == ["b"]
        keep(home, [some("c", shown=True)])
        assert shown() == ["c"]

    @pytest.mark.parametrize(
        "line",
        [b"{", b"[]", b"\xff\xfe", b'{"id": 3}', b'{"id": "x", "config": {"temperature": -1}}',
         b'{"id": "x", "ids": [-1]}', b"[" * 100_000, b'{"id": "x", "step": 1' + b"0" * 400 + b"}"],
    )  # fmt: skip
    def test_a_damaged_line_takes_only_itself(self, home: Path, line: bytes) -> None:
        keep(home, [some("a")])
        with open(home / TEXTS_FILE, "ab") as stream:
            stream.write(line)  # cut short: no line end
        keep(home, [some("b")])
        assert [text.id for text in read_texts(home)] == ["a", "b"]

    def test_it_stays_small(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kept_module, "FILE_BYTES", 10_000)
        for number in range(300):
            keep(home, [some(f"{number:03}", written="x" * 100)])
        assert (home / TEXTS_FILE).stat().st_size <= 10_400
        assert read_texts(home)[-1].id == "299"

    def test_prompts(self, home: Path) -> None:
        for prompt in ("one", "two", "one", " ", "x" * 30_000):
            keep_prompt(home, prompt)
        assert read_prompts(home) == ["two", "one"]
        (home / PROMPTS_FILE).write_text('["a", 3]')
        assert read_prompts(home) == []


class TestTheNextStart:
    async def test_texts_and_prompts_are_there(self, open_app: OpenApp, make_run: MakeRun) -> None:
        make_run("verse", {100: 1.5})
        async with open_app(80, 24) as pilot:
            await pilot.press(*"He", "enter")
            await until(pilot, lambda: "/s ──" in screen_text(pilot))
            await pilot.press("shift+tab", "s")
            await until(pilot, lambda: "1 ★" in screen_text(pilot))
        writer = FakeWriter()
        async with open_app(80, 24, writer=writer) as pilot:
            await until(pilot, lambda: "── 1 ★ · verse@100" in screen_text(pilot))
            assert "He go[es] on" in screen_text(pilot)
            await pilot.press("up")
            await until(pilot, lambda: "│ He " in screen_text(pilot))
            await pilot.press("f2")  # its tokens are known still
            await until(pilot, lambda: "[/INST] and on" in screen_text(pilot))

    async def test_the_sample_that_was_chosen_stands_there_and_is_looked_into(
        self, open_app: OpenApp, make_run: MakeRun
    ) -> None:
        make_run("verse", {100: 1.5})
        async with open_app(80, 24) as pilot:
            await pilot.press(*["tab"] * 5, "3", "ctrl+g", *"He", "enter")
            await until(pilot, lambda: "real words" in screen_text(pilot))
            await pilot.press("right", "enter")
            await until(pilot, lambda: "‹ 2 of 3 ›" in screen_text(pilot))
        async with open_app(80, 24) as pilot:
            await until(pilot, lambda: "‹ 2 of 3 ›" in screen_text(pilot))
            await pilot.press("f3")
            await until(pilot, lambda: "│ He go[es] on⏎" in screen_text(pilot))

    async def test_also_what_was_done_just_before_leaving(
        self, open_app: OpenApp, make_run: MakeRun, home: Path
    ) -> None:
        make_run("verse", {100: 1.5})
        async with open_app(80, 24) as pilot:
            await pilot.press(*"He", "enter")
            await until(pilot, lambda: "/s ──" in screen_text(pilot))
            view = pilot.app.screen.query_one(TextsView)
            for _ in range(3):
                view.action_star()
        assert [text.starred for text in read_texts(home)] == [True]

    async def test_unless_that_is_switched_off(
        self, open_app: OpenApp, make_run: MakeRun, home: Path
    ) -> None:
        make_run("verse", {100: 1.5})
        change_settings(keep_texts=False)
        async with open_app(80, 24) as pilot:
            await pilot.press(*"He", "enter")
            await until(pilot, lambda: "/s ──" in screen_text(pilot))
        assert not (home / TEXTS_FILE).exists() and not (home / PROMPTS_FILE).exists()
