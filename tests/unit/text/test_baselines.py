"""What counting reaches on a text, against counting by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tuigpt.text.baselines import baselines
from tuigpt.text.named import open_text
from tuigpt.text.read import Scan, scan

VERSE = "அகர முதல எழுத்தெல்லாம்\nto be or not to be,\nthat is the question 👍🏽\n" * 200


def scanned(tmp_path: Path, content: str) -> Scan:
    path = tmp_path / "a.txt"
    path.write_text(content, "utf-8")
    return scan(open_text([str(path)], cache=tmp_path))


def test_baselines_are_what_counting_by_hand_gives(tmp_path: Path) -> None:
    found = baselines(scanned(tmp_path, "aabab" + "abba"), 4 / 9)
    # Train "aabab": a 3, b 2. After a: a 1, b 2 (t = 2). After b: a 1 (t = 1). Then "abba".
    a, b = (3 + 1) / 7, (2 + 1) / 7
    b_after_a = (2 + 2 * b) / (3 + 2)
    b_after_b = (0 + 1 * b) / (1 + 1)
    a_after_b = (1 + 1 * a) / (1 + 1)
    assert found.guessing == pytest.approx(math.log(2), abs=1e-4)
    assert found.letters == pytest.approx(-(2 * math.log(a) + 2 * math.log(b)) / 4, abs=1e-4)
    by_pairs = [a, b_after_a, b_after_b, a_after_b]
    assert found.pairs == pytest.approx(-sum(map(math.log, by_pairs)) / 4, abs=1e-4)
    # Contexts of two: ab was followed by a once; bb never was, so pairs decide.
    after_ab = (0 + 1 * b_after_b) / (1 + 1)
    by_triples = [a, b_after_a, after_ab, a_after_b]
    assert found.triples == pytest.approx(-sum(map(math.log, by_triples)) / 4, abs=1e-4)


def test_longer_contexts_tell_more_about_prose(tmp_path: Path) -> None:
    found = baselines(scanned(tmp_path, VERSE), 0.1)
    names, losses = zip(*found.items(), strict=True)
    assert names == ("guessing", "letters", "pairs", "triples")
    assert list(losses) == sorted(losses, reverse=True)


def test_baselines_need_a_validation_part(tmp_path: Path) -> None:
    found = baselines(scanned(tmp_path, VERSE), 0)
    assert [name for name, _ in found.items()] == ["guessing"]


def test_large_alphabets_are_counted_sparsely(tmp_path: Path) -> None:
    everything = "".join(chr(0x4E00 + i * 7 % 20_000) for i in range(60_000))
    found = baselines(scanned(tmp_path, everything), 0.1)
    assert found.triples and found.letters
    assert found.triples < found.letters < math.log(20_000) + 0.5
