"""Tests of the suffix array and of verbatim matches, against searching by hand."""

import random
from pathlib import Path

import numpy as np
import pytest

from tuigpt.text.copies import Corpus, Span, build_suffix_array, share_copied


def texts() -> list[str]:
    draw = random.Random(0)
    made = ["", "a", "aaaaaaa" * 40, "ab" * 300 + "a", "mississippi", "日本🙂\ud800日本" * 9]
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


@pytest.mark.parametrize("text", texts())
def test_suffixes_are_sorted(text: str) -> None:
    order = build_suffix_array(text).tolist()
    assert order == sorted(range(len(text)), key=lambda i: text[i:])


def by_hand(corpus: str, text: str, at_least: int) -> list[tuple[int, int]]:
    spans, reached = [], 0
    for start in range(len(text)):
        length = 0
        while start + length < len(text) and text[start : start + length + 1] in corpus:
            length += 1
        if length >= at_least and start + length > reached:
            spans.append((start, length))
        reached = max(reached, start + length)
    return spans


@pytest.mark.parametrize("at_least", [1, 3, 10])
def test_spans_are_the_maximal_matches(at_least: int) -> None:
    draw = random.Random(1)
    for corpus in texts()[1:]:
        index = Corpus(corpus, build_suffix_array(corpus))
        for _ in range(4):
            pieces = []
            for _ in range(6):
                start = draw.randrange(len(corpus))
                pieces += [corpus[start : start + draw.randrange(40)], draw.choice("xyab\n")]
            text = "".join(pieces)
            spans = index.copied(text, at_least)
            assert [(s.start, s.length) for s in spans] == by_hand(corpus, text, at_least)
            for s in spans:
                copied = text[s.start : s.start + s.length]
                assert corpus[s.place : s.place + s.length] == copied
                assert s.line == corpus[: s.place].count("\n") + 1
            covered = {i for s in spans for i in range(s.start, s.start + s.length)}
            assert share_copied(spans, len(text)) == pytest.approx(len(covered) / len(text))


def test_long_matches_are_found_whole() -> None:
    draw = random.Random(2)
    corpus = "".join(draw.choice("abcd ") for _ in range(5000))
    index = Corpus(corpus, build_suffix_array(corpus))
    assert index.copied("!" + corpus[100:4100] + "!", 50) == [Span(1, 4000, 100, 1)]


def test_nothing_is_copied_by_nothing() -> None:
    index = Corpus("abc", build_suffix_array("abc"))
    assert index.copied("", 1) == []
    assert index.copied("xyz", 1) == []
    assert index.longest_match("xyz") == (0, 0)
    assert share_copied([], 0) == 0.0


def test_the_index_is_kept_and_made_anew_when_broken(tmp_path: Path) -> None:
    cache = tmp_path / "new"
    first = Corpus.open("banana", "abc123", cache)
    (path,) = cache.iterdir()
    assert path.name == "suffixes-abc123.npy"
    assert np.load(path).tolist() == [5, 3, 1, 0, 4, 2]
    written = path.stat().st_mtime_ns
    again = Corpus.open("banana", "abc123", cache)
    assert path.stat().st_mtime_ns == written
    assert first.copied("xanany", 3) == again.copied("xanany", 3) == [Span(1, 4, 1, 1)]
    path.write_bytes(path.read_bytes()[:-5])
    assert Corpus.open("banana", "abc123", cache).copied("nan", 3) == [Span(0, 3, 2, 1)]
    assert np.load(path).tolist() == [5, 3, 1, 0, 4, 2]
