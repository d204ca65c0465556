"""What is new in a text against the one before."""

from __future__ import annotations

import pytest

from tuigpt.runs.growth import new_parts


@pytest.mark.parametrize(
    "before, now, parts",
    [
        ("a b", "a b", [("a b", False)]),
        ("the cat sat", "the dog sat", [("the ", False), ("dog ", True), ("sat", False)]),
        ("", "all of it", [("all of it", True)]),
        ("some", "", []),
        ("one, two", "one! two", [("one", False), ("! ", True), ("two", False)]),
    ],
)
def test_words_that_stay_and_words_that_are_new(
    before: str, now: str, parts: list[tuple[str, bool]]
) -> None:
    assert new_parts(before, now) == parts
    assert "".join(part for part, _ in new_parts(before, now)) == now
