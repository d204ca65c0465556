"""Compiling is offered where it pays, with what was measured here."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tuigpt.config import PRESETS, GPTConfig, TrainConfig
from tuigpt.estimate import Calibration
from tuigpt.plan.compiling import compile_advice
from tuigpt.plan.speeds import Device, Speeds

TINY = GPTConfig(**PRESETS["tiny"])
PLAIN = TrainConfig(recipe="fast", eval_interval=10**6)
COMPILED = replace(PLAIN, compile=True)
CPU = Device("cpu", "cpu", 8 << 30)


@pytest.fixture
def speeds(home: Path) -> Speeds:
    """A step takes 0.1 s."""
    known = Speeds(home)
    known.keep(TINY, PLAIN, 10_000, Calibration(0.1, 0.0, 0.0, 0.0), CPU)
    return known


def compiles(speeds: Speeds, step_seconds: float) -> None:
    found = Calibration(step_seconds, 0.0, 0.0, 0.0, compile_seconds=40.0)
    speeds.keep(TINY, COMPILED, 10_000, found, CPU)


@pytest.mark.parametrize("settings", [PLAIN, COMPILED])
def test_what_was_measured_is_compared_over_the_whole_run(
    speeds: Speeds, settings: TrainConfig
) -> None:
    compiles(speeds, 0.09)

    def advice(steps: int) -> str:
        return compile_advice(TINY, replace(settings, max_steps=steps), speeds)

    assert advice(10_000) == (
        "takes 40 s, then 90 ms a step instead of 0.1 s: --compile saves 60 s of 17 min"
    )
    assert advice(1000).endswith("instead of 0.1 s: it pays from 7 min on")
    compiles(speeds, 0.11)
    assert advice(10_000).endswith(": it does not pay")


def test_only_a_long_run_on_a_machine_with_a_compiler_is_told_to_try(
    speeds: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "--compile" in compile_advice(TINY, replace(PLAIN, max_steps=9000), speeds)
    assert compile_advice(TINY, replace(PLAIN, max_steps=900), speeds) == ""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert compile_advice(TINY, replace(PLAIN, max_steps=9000), speeds) == ""


def test_nothing_is_said_before_a_step_was_timed(home: Path) -> None:
    assert compile_advice(TINY, replace(PLAIN, max_steps=9000), Speeds(home)) == ""
