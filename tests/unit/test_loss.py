"""Baselines of a run, by today's names and those of older runs."""

from __future__ import annotations

import math

import pytest

from tuigpt.loss import Baselines, read_baselines

NUMBERS = (4.17, 3.32, 2.48, 2.07)


@pytest.mark.parametrize(
    "names",
    [("guessing", "letters", "pairs", "triples"), ("uniform", "unigram", "bigram", "trigram")],
)
def test_baselines_read_by_both_names(names: tuple[str, ...]) -> None:
    assert read_baselines(dict(zip(names, NUMBERS, strict=True))) == Baselines(*NUMBERS)
    only = read_baselines({names[0]: 4.17})
    assert only is not None and only.named() == [("guessing", 4.17)]


@pytest.mark.parametrize(
    "record", [None, [], {}, {"guessing": "much"}, {"letters": 3.0}, {"guessing": math.nan}]
)
def test_what_is_damaged_gives_none(record: object) -> None:
    assert read_baselines(record) is None
