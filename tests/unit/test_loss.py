"""A loss and its unit."""

from __future__ import annotations

import math

import pytest

from tuigpt.loss import (
    Baselines,
    bits,
    characters_per_token,
    is_measured,
    per_character,
    per_token,
)


def test_the_units_of_a_loss() -> None:
    assert characters_per_token(300, 100) == 3.0
    assert per_character(6.0, 3.0) == 2.0 and per_token(2.0, 3.0) == 6.0
    assert bits(math.log(2)) == 1.0


@pytest.mark.parametrize("unknown", [None, 0.0])
def test_what_is_not_known_changes_nothing(unknown: float | None) -> None:
    assert per_character(2.0, unknown) == 2.0 == per_token(2.0, unknown)
    assert per_character(None, 3.0) is None and per_token(None, 3.0) is None
    assert characters_per_token(unknown, 5) is None and characters_per_token(5, unknown) is None


@pytest.mark.parametrize("loss", [None, math.nan, math.inf, -math.inf, -0.1])
def test_what_cannot_be_a_loss(loss: float | None) -> None:
    assert not is_measured(loss)


def test_zero_is_a_loss() -> None:
    assert is_measured(0.0)


class TestBaselines:
    def test_of_a_text_that_was_only_counted(self) -> None:
        assert list(Baselines.of_symbols(65).items()) == [("guessing", math.log(65))]
        assert Baselines.of_symbols(0).guessing == 0.0

    def test_the_names_of_the_first_version_are_understood(self) -> None:
        old = Baselines.named({"uniform": 4.0, "unigram": 3.0, "bigram": 2.0, "trigram": 1.0})
        assert old == Baselines(4.0, 3.0, 2.0, 1.0)
        assert old == Baselines.named(dict(old.items()))

    def test_names_that_nobody_knows_are_left_out(self) -> None:
        assert Baselines.named({"guessing": 4.0, "quadruples": 1.0}) == Baselines(guessing=4.0)
