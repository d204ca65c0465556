"""Whether `torch.compile` pays within the length of a run."""

from __future__ import annotations

import shutil
from dataclasses import replace

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.plan.speeds import Expected, Speeds
from tuigpt.wording import duration, step_time

WORTH_TRYING = 600.0
"""Seconds that a run has to take before compiling is offered. On two cores forty seconds of
compiling made steps 3 to 6 % quicker."""

_COMPILERS = ("c++", "g++", "clang++")


def compile_advice(model: GPTConfig, train: TrainConfig, speeds: Speeds) -> str:
    """What compiling brings here, in words; "" where there is nothing to say.

    Args:
        train: with its steps; whether it is compiled does not matter.
    """
    plain, compiled = (
        speeds.expected(model, replace(train, compile=answer), None) for answer in (False, True)
    )
    if plain is None or compiled is None or not plain.measured:
        return ""
    if not compiled.measured:
        long = plain.calibration.seconds(train) >= WORTH_TRYING
        if not long or not _has_compiler(plain.device.type):
            return ""
        return "may make steps quicker: the same with --compile times that"
    return _compared(train, plain, compiled)


def _compared(train: TrainConfig, plain: Expected, compiled: Expected) -> str:
    one, other = plain.calibration, compiled.calibration
    words = (
        f"takes {duration(other.compile_seconds)}, then {step_time(other.step_seconds)} a step"
        f" instead of {step_time(one.step_seconds)}"
    )
    saved = one.seconds(train) - other.seconds(train)
    if saved > 0:
        return f"{words}: --compile saves {duration(saved)} of {duration(one.seconds(train))}"
    gain = one.step_seconds - other.step_seconds
    if gain <= 0:
        return f"{words}: it does not pay"
    return f"{words}: it pays from {duration(other.compile_seconds / gain * one.step_seconds)} on"


def _has_compiler(device_type: str) -> bool:
    """Whether PyTorch has what it compiles with; for a GPU it brings that itself."""
    return device_type != "cpu" or any(map(shutil.which, _COMPILERS))
