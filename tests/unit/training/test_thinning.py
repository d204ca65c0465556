"""Which checkpoints stay to tell how a model grew up."""

from __future__ import annotations

from tuigpt.training.thinning import superfluous


def kept(steps: list[int], most: int) -> list[int]:
    """What is there after each of the steps was saved and the superfluous ones deleted."""
    there: list[int] = []
    for step in steps:
        there.append(step)
        for gone in superfluous(there, most):
            there.remove(gone)
    return there


def test_they_lie_ever_further_apart_from_the_first_to_the_newest() -> None:
    stay = kept([10, 25, 50, *range(100, 5001, 100)], 7)
    assert stay == [10, 25, 100, 300, 800, 3100, 5000]


def test_there_are_never_more_than_fit() -> None:
    steps = list(range(100, 100_001, 100))
    for most in (0, 1, 2, 20):
        assert len(kept(steps, most)) == most
    stay = kept(steps, 20)
    assert stay[0] == 100 and stay[-1] == 100_000
    assert max(b / a for a, b in zip(stay, stay[1:], strict=False)) < 2.5


def test_nothing_goes_while_there_is_room() -> None:
    assert superfluous([100, 200, 300], 3) == []
