"""Numbers and losses in words; text that cannot hurt a terminal."""

from __future__ import annotations

import math
import unicodedata

import pytest

from tuigpt.wording import (
    age,
    duration,
    file_size,
    loss_text,
    one_line,
    overfitting,
    short_count,
    step_time,
    symbols_shown,
    times,
    visible,
)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (950, "950"), (999, "999"), (1000, "1.0k"), (8_123, "8.1k"), (99_940, "99.9k"),
     (99_960, "100k"), (438_000, "438k"), (999_499, "999k"), (999_600, "1.0M"),
     (10_770_816, "10.8M"), (85e6, "85.0M"), (1.5e9, "1.5G"), (123e9, "123G")],
)  # fmt: skip
def test_counts(number: float, words: str) -> None:
    assert short_count(number) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (346, "346 B"), (4_000, "4.0 kB"), (41e6, "41.0 MB"), (412e6, "412 MB"),
     (3e9, "3.0 GB")],
)  # fmt: skip
def test_sizes(size: float, words: str) -> None:
    assert file_size(size) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (45.4, "45 s"), (99.4, "99 s"), (100, "2 min"), (360, "6 min"),
     (99 * 60, "99 min"), (7500, "2 h 05 min"), (47 * 3600, "47 h 00 min"), (76 * 3600, "3 d 4 h")],
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "now"), (0, "now"), (59, "now"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
     (86_399, "23 h"), (86_400, "1 d"), (1e7, "115 d")],
)  # fmt: skip
def test_ages(seconds: float, words: str) -> None:
    assert age(seconds) == words


def test_losses() -> None:
    assert [loss_text(x) for x in (1.567, None, math.nan, math.inf)] == ["1.57", "–", "NaN", "NaN"]


class TestTextOnATerminal:
    def test_no_control_character_is_left(self) -> None:
        everything = "".join(map(chr, range(0x300))) + "\u2028"
        shown = visible(everything)
        assert len(shown) == len(everything)
        assert {c for c in shown if unicodedata.category(c) == "Cc"} == {"\n", "\t"}

    def test_what_is_harmless_stays(self) -> None:
        text = "To be, or not [to] be\n\tgröße 日本 🙂 e\u0301 [/red]"
        assert visible(text) == text

    def test_control_characters_become_their_pictures(self) -> None:
        assert visible("\x1b[31mred\x07\x7f\r") == "␛[31mred␇␡␍"
        assert visible("\x9b31m") == "\ufffd31m"

    def test_one_line(self) -> None:
        assert one_line("a\nb\r\nc") == "a⏎b␍⏎c"
        assert "\n" not in one_line("".join(map(chr, range(256))))


def test_how_often_and_how_long_in_few_characters() -> None:
    assert [times(n) for n in (0.25, 4.77, 254, 3800)] == [
        "0.2 times", "4.8 times", "254 times", "3.8k times"
    ]  # fmt: skip
    assert [step_time(s) for s in (0.0123, 0.27, 6.21, 25, 600)] == [
        "12 ms", "0.27 s", "6.2 s", "25 s", "10 min"
    ]  # fmt: skip


def test_overfitting_names_both_causes() -> None:
    assert overfitting(10.7, 24.5).startswith(
        "it would memorise the text: 11 parameters a character, and the text read 24 times; "
    )


def test_characters_are_named_so_that_they_can_be_read() -> None:
    assert symbols_shown("a\u0301 \t\u200d") == "'a', '◌\u0301', space, '⇥', U+200D"
    assert symbols_shown("abc", most=2) == "'a', 'b', …"
    assert symbols_shown("") == ""
