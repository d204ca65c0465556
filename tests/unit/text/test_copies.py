"""Copied parts of a text, against searching by hand."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.runs.record import CorpusFacts
from tuigpt.text import copies as copies_module
from tuigpt.text.copies import Span, find_copies, find_copies_of_training, share_copied


def texts() -> list[str]:
    draw = random.Random(0)
    made = ["a", "aaaaaaa" * 40, "ab" * 300 + "a", "mississippi", "日本🙂\ud800日本" * 9]
    for alphabet in (
        "ab",
        "abc",
        "abcdefghijklmnopqrstuvwxyz\n",
        "".join(map(chr, range(1, 3000))),
    ):
        for size in (2, 17, 400):
            made.append("".join(draw.choice(alphabet) for _ in range(size)))
    made.append(made[-1] * 3)
    return made


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def by_hand(corpus: str, text: str, at_least: int) -> list[tuple[int, int]]:
    """Start and length of the maximal matches, the longest first, each cut by those before it."""
    matches, reached = [], 0
    for start in range(len(text)):
        length = 0
        while start + length < len(text) and text[start : start + length + 1] in corpus:
            length += 1
        if length >= at_least and start + length > reached:
            matches.append((start, length))
        reached = max(reached, start + length)
    taken: set[int] = set()
    spans = []
    for start, length in sorted(matches, key=lambda match: -match[1]):
        rest = sorted(set(range(start, start + length)) - taken)
        if len(rest) >= at_least:
            assert rest[-1] - rest[0] + 1 == len(rest)
            taken |= set(rest)
            spans.append((rest[0], len(rest)))
    return sorted(spans)


@pytest.mark.parametrize("at_least", [1, 3, 10])
@pytest.mark.parametrize("chunk", [7, 10_000])
def test_the_longest_copies_are_found_and_do_not_overlap(at_least: int, chunk: int) -> None:
    draw = random.Random(1)
    for corpus in texts():
        for _ in range(4):
            parts = []
            for _ in range(6):
                start = draw.randrange(len(corpus))
                parts += [corpus[start : start + draw.randrange(40)], draw.choice("xyab\n")]
            text = "".join(parts)
            spans = find_copies(text, at_least, pieces(corpus, chunk))
            assert [(s.start, s.length) for s in spans] == by_hand(corpus, text, at_least)
            for s in spans:
                copied = text[s.start : s.start + s.length]
                assert corpus[s.place : s.place + s.length] == copied
                assert s.line == corpus[: s.place].count("\n") + 1
            covered = {i for s in spans for i in range(s.start, s.start + s.length)}
            assert share_copied(spans, len(text)) == pytest.approx(len(covered) / len(text))


def test_long_copies_are_found_whole() -> None:
    draw = random.Random(2)
    corpus = "".join(draw.choice("abcd ") for _ in range(5000))
    text = "!" + corpus[100:4100] + "!"
    assert find_copies(text, 50, pieces(corpus, 333)) == [Span(1, 4000, 100, 1)]


def test_what_is_repeated_without_end_is_found_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies_module, "MOST_PLACES", 10)
    rare = "here is something that stands nowhere else"
    corpus = "-" * 5000 + rare + "-" * 5000
    (span,) = find_copies(rare, 20, pieces(corpus, 100))
    assert (span.place, span.length) == (5000, len(rare))
    assert find_copies("-" * 200, 20, pieces(corpus, 100))[0].length >= 20


def test_nothing_is_copied_by_nothing() -> None:
    assert find_copies("", 1, ["abc"]) == []
    assert find_copies("xyz", 1, ["abc"]) == []
    assert find_copies("abc", 4, ["abcd"]) == []
    assert find_copies("abc", 1, []) == []
    assert share_copied([], 0) == 0.0


def facts_of(path: Path, text: str) -> CorpusFacts:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return CorpusFacts(path=str(path), sources=[str(path)], sha256=sha256)


def test_a_checkpoints_own_text_is_searched_and_must_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one two three\r\nfour five six\r\n")
    about = facts_of(path, "one two three\nfour five six\n")
    assert find_copies_of_training(about, "+four five+", 5, tmp_path) == [Span(1, 9, 14, 2)]
    path.write_bytes(b"one two three four five six seven")
    for text in ("+four five+", "+"):
        with pytest.raises(UserError, match="has changed since then"):
            find_copies_of_training(about, text, 5, tmp_path)
    path.unlink()
    with pytest.raises(UserError, match="cannot be used: no text at"):
        find_copies_of_training(about, "+four five+", 5, tmp_path)
    with pytest.raises(UserError, match="does not say"):
        find_copies_of_training(CorpusFacts(), "+four five+", 5, tmp_path)
