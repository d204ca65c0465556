"""What the form's helpers print is read back as it was, and anything else is refused."""

from __future__ import annotations

import json

import pytest

from tuigpt.loss import Baselines
from tuigpt.reports import (
    Offer,
    TextFacts,
    TextProblem,
    TextProgress,
    TextReport,
    read_cost,
    read_text_line,
    to_line,
)

FACTS = TextFacts(
    characters=12,
    lines=2,
    symbols=5,
    sha256="0" * 64,
    train=10,
    val=2,
    unit="characters",
    train_characters=10,
    vocab_size=5,
    baselines=Baselines(guessing=1.6),
    advised="char",
)


@pytest.mark.parametrize(
    "line",
    [
        TextProgress("reading: 5 % of 3 MB"),
        TextReport([("text", "12 characters"), ("", "[red] 👍🏽 \x1b")], "", FACTS),
        TextProblem("is not UTF-8", Offer("read as cp1252", encoding="cp1252")),
        TextProblem("no such file"),
    ],
)
def test_a_line_comes_back(line: TextProgress | TextReport | TextProblem) -> None:
    text = to_line(line)
    assert text.isascii() and "\n" not in text
    assert read_text_line(text.encode()) == line


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"kind": "report"}',
        b'{"kind": "else"}',
        b'{"kind": "progress", "words": 5}',
        b'{"kind": "progress", "words": "half a li',
        b"[" * 100_000,
        json.dumps({"kind": "problem", "message": "x", "offer": ["--fetch"]}).encode(),
    ],
)
def test_what_is_no_report_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        read_text_line(line)
    with pytest.raises(ValueError):
        read_cost(line)
