"""A training that keeps to its minutes, on machines of any mood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tuigpt.config import TrainConfig
from tuigpt.estimate import Calibration
from tuigpt.training.budget import Budget
from tuigpt.training.events import Evaluated, Event, PartDone, Sampled, Stepped

VAL_TOKENS, EVAL_TOKENS = 100_000, 10_000
EVAL_SECONDS, SAMPLE_SECONDS = 2.0, 0.5


def train(
    config: TrainConfig, step_seconds: Callable[[float], float]
) -> tuple[float, list[tuple[int, int]]]:
    """A training that takes so long.

    Args:
        step_seconds: of a step that begins after so many seconds.

    Returns:
        its seconds, and its (step, number of steps) wherever that number was changed.
    """
    budget = Budget(config, 0, VAL_TOKENS)
    clock, step, changes = 0.0, 0, []

    def spend(event: Event, seconds: float) -> None:
        nonlocal clock
        clock += seconds
        budget.spend(event, seconds)

    def evaluate(share: float) -> None:
        tokens = round(EVAL_TOKENS * share)
        spend(PartDone(step, "evaluation", 1, 1), EVAL_SECONDS * share)
        spend(Evaluated(step, 2.0, 2.0, tokens, whole=share > 1), 0.0)

    while step < config.max_steps:
        if step % config.eval_interval == 0:
            evaluate(1)
            if step:
                spend(PartDone(step, "sample", 1, 1), SAMPLE_SECONDS)
                spend(Sampled(step, "", ""), 0.0)
        step += 1
        spend(Stepped(step, 2.0, 0.1, 1.0, 0.0), step_seconds(clock))
        if (steps := budget.fitting_steps(step, config)) is not None:
            config = replace(config, max_steps=steps)
            changes.append((step, steps))
    evaluate(1)
    evaluate(VAL_TOKENS / EVAL_TOKENS)
    spend(Sampled(step, "", ""), SAMPLE_SECONDS)
    return clock, changes


@pytest.mark.parametrize("minutes", [2.0, 15.0, 120.0])
@pytest.mark.parametrize(
    "speed",
    [
        lambda seconds, whole: 0.1,
        lambda seconds, whole: 0.4,  # the trial saw a quiet moment
        lambda seconds, whole: 0.025,  # the trial saw a busy one
        lambda seconds, whole: 0.1 if seconds < whole / 2 else 0.3,
        lambda seconds, whole: 0.1 if seconds < 0.9 * whole else 0.3,
        lambda seconds, whole: 0.3 if 0.2 < seconds / whole < 0.4 else 0.1,
    ],
)
def test_it_ends_in_time_whatever_the_machine_does(
    minutes: float, speed: Callable[[float, float], float]
) -> None:
    config = TrainConfig(minutes=minutes, max_steps=round(540 * minutes), eval_interval=200)
    seconds, _ = train(config, lambda clock: speed(clock, 60 * minutes))
    assert seconds == pytest.approx(60 * minutes, rel=0.1)


def test_what_fits_is_left_alone() -> None:
    config = TrainConfig(minutes=10.0, eval_interval=200)
    whole_eval_seconds = EVAL_SECONDS * VAL_TOKENS / EVAL_TOKENS
    trial = Calibration(0.1, EVAL_SECONDS, SAMPLE_SECONDS, whole_eval_seconds)
    config = replace(config, max_steps=trial.steps_within(60 * config.minutes, config))
    assert train(config, lambda _: trial.step_seconds)[1] == []


def test_it_is_told_seldom_and_early() -> None:
    config = TrainConfig(minutes=10.0, max_steps=6000, eval_interval=200)
    _, changes = train(config, lambda _: 0.4)
    (first, fitted), *later = changes
    assert first < 0.05 * fitted and len(later) <= 3


def test_what_is_resumed_has_its_share_of_the_time() -> None:
    config = TrainConfig(minutes=10.0, max_steps=1000, eval_interval=10_000)
    budget = Budget(config, 750, 0)
    for step in range(751, 760):
        budget.spend(Stepped(step, 2.0, 0.1, 1.0, 0.0), 1.0)
    assert budget.fitting_steps(759, config) == 759 + 141
