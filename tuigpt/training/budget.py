"""Keeps a training within its minutes, however fast its machine turns out to be."""

from __future__ import annotations

from tuigpt.config import TrainConfig
from tuigpt.estimate import Calibration
from tuigpt.training.events import Evaluated, Event, PartDone, Sampled, Stepped

FIRST_LOOK = 1 / 32
"""Share of the time after which the number of steps is fitted for the first time; it is again when
twice as much is spent, and later whenever a quarter of the rest is."""

WORTH_IT = 0.03
"""Least share by which the number of steps has to be off to be changed."""


class Budget:
    """Says how many steps fit into what is left of a training's minutes.

    A trial before the first step can be several times off, on a machine that is busy just then.
    The learning rate depends on the share of steps that are done; with this that is the share of
    the time that is spent.
    """

    def __init__(self, config: TrainConfig, step: int, whole_val_tokens: int) -> None:
        """
        Args:
            config: with the minutes, and the steps that were to fit into them.
            step: updates that are done already, in their share of the time.
            whole_val_tokens: of the evaluation at the end; 0 if there is none.
        """
        self._left = self._seconds = 60 * config.minutes * (1 - step / config.max_steps)
        self._look_at = self._seconds * (1 - FIRST_LOOK)
        self._whole_val_tokens = whole_val_tokens
        self._steps, self._step_seconds = 0, 0.0  # since the last look
        self._all_steps, self._all_step_seconds = 0, 0.0
        self._part_seconds = 0.0
        self._eval_seconds = self._whole_eval_seconds = self._sample_seconds = 0.0

    def spend(self, event: Event, seconds: float) -> None:
        """Take notice of what was done, and of how long that took with writing it down."""
        self._left -= seconds
        match event:
            case PartDone():
                self._part_seconds += seconds
            case Evaluated(early=False, whole=False):
                self._eval_seconds, self._part_seconds = self._part_seconds + seconds, 0.0
                self._whole_eval_seconds = (
                    self._eval_seconds / event.tokens * self._whole_val_tokens
                )
            case Sampled():
                self._sample_seconds, self._part_seconds = self._part_seconds + seconds, 0.0
            case Stepped():
                self._steps += 1
                self._step_seconds += seconds
                self._all_steps += 1
                self._all_step_seconds += seconds
            case _:  # saving, which comes now and then
                self._step_seconds += seconds

    @property
    def step_seconds(self) -> float | None:
        """What a step took on the mean, or None where none was done."""
        return self._all_step_seconds / self._all_steps if self._all_steps else None

    def fitting_steps(self, step: int, config: TrainConfig) -> int | None:
        """How many steps the training should have, where that is worth a change now.

        Args:
            step: updates that are done.
            config: with the steps that it has.
        """
        at_end = step >= config.max_steps
        if not self._steps or (self._left > self._look_at and not at_end):
            return None
        spent = self._seconds - self._left
        self._look_at = self._left - min(spent, self._left / 4)
        timing = Calibration(
            self._step_seconds / self._steps,
            self._eval_seconds,
            self._sample_seconds,
            self._whole_eval_seconds,
        )
        self._steps, self._step_seconds = 0, 0.0
        steps = step
        if timing.step_seconds <= self._left:
            steps += timing.steps_within(self._left, config)
        return steps if abs(steps - config.max_steps) > WORTH_IT * config.max_steps else None
