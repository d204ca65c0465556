"""Which of a run's checkpoints go, so that those that stay tell of its growing up."""

from __future__ import annotations

import math
from collections.abc import Sequence


def superfluous(steps: Sequence[int], most: int) -> list[int]:
    """The steps that go, so that at most so many stay, ever further apart.

    A model changes by the ratio of its steps, not by their number: what lies closest to its
    neighbours in ratio goes first. The newest stays, and as long as it can so does the first.

    Args:
        steps: ascending.
    """
    stay, gone = list(steps), []
    while len(stay) > max(0, most):
        # The newest has no neighbour behind it; it goes only where none may stay.
        at = min(range(len(stay)), key=lambda n: _room(stay, n))
        gone.append(stay.pop(at))
    return gone


def _room(steps: Sequence[int], n: int) -> float:
    """How much the checkpoint's absence would leave open, in the ratio of its neighbours."""
    if n == len(steps) - 1:
        return math.inf
    before = steps[n - 1] if n else 0
    return (steps[n + 1] + 1) / (before + 1)
