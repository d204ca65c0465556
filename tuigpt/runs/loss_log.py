"""The workshop's `loss_log.json`: the losses of a training as three lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.files import read_record
from tuigpt.runs.history import Point

LOSS_LOG = "loss_log.json"

EVALUATED_EVERY = 100
"""Steps between two evaluations in the workshop's loop."""

_LOG_LIMIT = 64 << 20


class LossLog(msgspec.Struct, frozen=True):
    """The losses of a training.

    Attributes:
        steps: step of each entry in `train`.
        train: of each step's batch.
        val: of each evaluation, of which there are fewer.
    """

    steps: list[Annotated[int, msgspec.Meta(ge=0, lt=2**53)]]
    train: list[float | None]
    val: list[float | None]

    def curves(self) -> tuple[list[Point], list[Point]]:
        """The training's and the validation's losses, each with its step.

        Raises:
            ValueError: the lists do not fit together.
        """
        if len(self.steps) != len(self.train):
            raise ValueError(
                f"it has {len(self.steps):,} steps, but {len(self.train):,} train losses"
            )
        if any(a >= b for a, b in zip(self.steps, self.steps[1:], strict=False)):
            raise ValueError("its steps are not in order")
        at = _evaluated(self.steps, len(self.val))
        return _points(self.steps, self.train), _points(at, self.val)


def _points(steps: Sequence[int], losses: Sequence[float | None]) -> list[Point]:
    return [(s, loss) for s, loss in zip(steps, losses, strict=True) if loss is not None]


def _evaluated(steps: Sequence[int], count: int) -> list[int]:
    """The steps of so many evaluations at equal intervals."""
    if count == len(steps):
        return list(steps)
    longest = steps[-1] if steps else 0
    for interval in (EVALUATED_EVERY, *range(1, min(longest, 10_000) + 1)):
        if abs(longest // interval + 1 - count) <= 1:
            at = [step for step in steps if step % interval == 0]
            if len(at) == count:
                return at
    raise ValueError(f"it has {count:,} val losses, which fit no interval in {len(steps):,} steps")


def read_loss_log(path: Path) -> LossLog:
    """Read a `loss_log.json`.

    Raises:
        UnreadableFile: it cannot be read, or is none.
    """
    return read_record(path, LossLog, _LOG_LIMIT)


def loss_log(
    train: Mapping[int, float | None], val: Mapping[int, float | None], every: int
) -> LossLog:
    """The `loss_log.json` of a run's curves, by step.

    The workshop pairs its val losses with steps at equal intervals, so only those are written.

    Args:
        every: steps between two evaluations.
    """
    steps = sorted(train)
    return LossLog(
        steps=steps,
        train=[train[step] for step in steps],
        val=[val[step] for step in steps if step % every == 0 and step in val],
    )
