"""What trials told of this machine's speed is kept, and reckoned with."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tuigpt.config import PRESETS, GPTConfig, TrainConfig
from tuigpt.estimate import Calibration
from tuigpt.paths import cache_dir
from tuigpt.plan.speeds import SPEEDS_FILE, Device, Speeds

TINY = GPTConfig(**PRESETS["tiny"])
SMALL = GPTConfig(**PRESETS["small"])
TRAIN = TrainConfig(recipe="fast", batch_size=16, eval_tokens=50_000)
FOUND = Calibration(0.25, 1.0, 0.5, 3.0)
CPU = Device("cpu", "cpu", 8 << 30)
VAL_TOKENS = 150_000


def test_nothing_is_known_before_a_trial(home: Path) -> None:
    assert Speeds(home).expected(TINY, TRAIN, VAL_TOKENS) is None


def test_what_a_trial_told_is_kept(home: Path) -> None:
    Speeds(home).keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)
    found = Speeds(home).expected(TINY, replace(TRAIN, max_steps=7), VAL_TOKENS)
    assert found is not None and found.measured and found.device == CPU
    assert asdict(found.calibration) == pytest.approx(asdict(FOUND))


def test_evaluations_take_as_long_as_the_text_makes_them(home: Path) -> None:
    speeds = Speeds(home)
    speeds.keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)

    def on(val_tokens: int | None) -> tuple[float, float]:
        found = speeds.expected(TINY, TRAIN, val_tokens)
        assert found is not None
        return found.calibration.eval_seconds, found.calibration.whole_eval_seconds

    assert on(25_000) == pytest.approx((0.5, 0.5))
    assert on(500_000) == pytest.approx((1.0, 10.0))
    assert on(10**9) == pytest.approx((1.0, 0.0))  # too long to be measured whole
    assert on(0) == (0.0, 0.0)
    assert on(None) == pytest.approx((1.0, 0.0))


def test_a_training_corrects_what_a_trial_told(home: Path) -> None:
    trial, training = Speeds(home), Speeds(home)
    training.correct(TINY, TRAIN, 0.1)
    assert Speeds(home).newest is None  # only what was timed is corrected
    trial.keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)
    trial.keep(SMALL, TRAIN, VAL_TOKENS, FOUND, CPU)
    training.correct(TINY, TRAIN, 0.125)
    found = Speeds(home).expected(TINY, TRAIN, VAL_TOKENS)
    assert found is not None and found.measured
    assert found.calibration.step_seconds == 0.125
    assert found.calibration.eval_seconds == pytest.approx(0.5)
    other = Speeds(home).expected(SMALL, TRAIN, VAL_TOKENS)
    assert other is not None and other.calibration.step_seconds == 0.25


def test_another_size_is_reckoned_from_the_nearest(home: Path) -> None:
    speeds = Speeds(home)
    speeds.keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)
    one = speeds.expected(SMALL, TRAIN, VAL_TOKENS)
    assert one is not None and not one.measured
    assert 1.0 < one.calibration.step_seconds < 4.0
    speeds.keep(SMALL, TRAIN, VAL_TOKENS, replace(FOUND, step_seconds=5.0), CPU)
    medium = speeds.expected(GPTConfig(**PRESETS["medium"]), TRAIN, VAL_TOKENS)
    assert medium is not None and medium.calibration.step_seconds > 5.0


def test_a_trial_says_nothing_of_another_device_or_number_of_processes(home: Path) -> None:
    Speeds(home).keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)
    assert Speeds(home).expected(TINY, replace(TRAIN, device="cuda:1"), VAL_TOKENS) is None
    together = Speeds(home, processes=2).expected(TINY, TRAIN, VAL_TOKENS)
    assert together is not None and not together.measured


def test_a_few_more_symbols_need_no_new_trial(home: Path) -> None:
    Speeds(home).keep(replace(TINY, vocab_size=65), TRAIN, VAL_TOKENS, FOUND, CPU)
    for vocab_size, measured in ((80, True), (128, True), (129, False), (64, False)):
        model = replace(TINY, vocab_size=vocab_size)
        found = Speeds(home).expected(model, TRAIN, VAL_TOKENS)
        assert found is not None and found.measured is measured, vocab_size


def test_a_file_that_cannot_be_written_costs_nothing_else(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    home.write_text("a file in the place of the home")
    speeds = Speeds(home)
    speeds.keep(TINY, TRAIN, VAL_TOKENS, FOUND, CPU)
    assert speeds.expected(TINY, TRAIN, VAL_TOKENS) is not None


def test_the_file_stays_small(home: Path) -> None:
    speeds = Speeds(home)
    for block_size in range(1, 100):
        speeds.keep(replace(TINY, block_size=block_size), TRAIN, VAL_TOKENS, FOUND, CPU)
    assert (cache_dir(home) / SPEEDS_FILE).stat().st_size < 40_000
    assert Speeds(home).newest is not None
