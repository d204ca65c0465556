"""How fast this machine trains: what trials have told, kept in the home's cache.

So a form that opens can tell at once how long a training takes. A shape that was never timed is
reckoned from the nearest one that was.
"""

from __future__ import annotations

import math
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import Calibration, Reading, reading, step_flops
from tuigpt.files import Count, UnreadableFile, Word, read_record, write_json
from tuigpt.paths import cache_dir
from tuigpt.reports import CostReport, TextFacts

SPEEDS_FILE = "speeds.json"

_MOST_KEPT = 64

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Timing(msgspec.Struct, frozen=True):
    """What one trial told.

    Attributes:
        machine: on which it was made: a home may lie on a shared drive.
        shape: of the model and the step; equal shapes take equally long.
        flops: floating-point operations of a step.
        train_tokens: of the text's training part.
        device, device_type, device_memory: as in `CostReport`.
        step, evaluation, sample, whole_evaluation: seconds, as in `Calibration`.
    """

    machine: Word
    shape: Word
    flops: Annotated[float, msgspec.Meta(gt=0)]
    train_tokens: Count
    device: Word
    device_type: Word
    device_memory: Count
    step: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    evaluation: _Seconds
    sample: _Seconds
    whole_evaluation: _Seconds


class _Record(msgspec.Struct, frozen=True):
    timings: Annotated[list[Timing], msgspec.Meta(max_length=10 * _MOST_KEPT)] = []


@dataclass(frozen=True)
class Expected:
    """How long the parts of a training will take.

    Attributes:
        measured: whether this very shape was timed; else it is reckoned from another.
    """

    calibration: Calibration
    measured: bool
    device: str
    device_type: str
    device_memory: int


class Speeds:
    """The trials that were made on this machine."""

    def __init__(self, home: Path) -> None:
        self._path = cache_dir(home) / SPEEDS_FILE
        try:
            self._timings = read_record(self._path, _Record).timings
        except UnreadableFile:
            self._timings = []

    @property
    def newest(self) -> Timing | None:
        """The newest trial on this machine."""
        return next((t for t in reversed(self._timings) if t.machine == _machine()), None)

    def keep(self, model: GPTConfig, train_config: TrainConfig, report: CostReport) -> None:
        """Keep what a trial told; one of the same shape is replaced."""
        found = report.calibration
        if found is None or not found.step_seconds > 0:
            return
        shape = _shape(model, train_config)
        timing = Timing(
            _machine(), shape, step_flops(model, train_config), report.train_tokens,
            report.device, report.device_type, report.device_memory, found.step_seconds,
            found.eval_seconds, found.sample_seconds, found.whole_eval_seconds,
        )  # fmt: skip
        others = [t for t in self._timings if (t.machine, t.shape) != (timing.machine, shape)]
        self._timings = [*others, timing][-_MOST_KEPT:]
        with suppress(OSError):  # a disk that is full costs only the next form's quick answer
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, _Record(self._timings))

    def expected(
        self, model: GPTConfig, train_config: TrainConfig, train_tokens: int | None
    ) -> Expected | None:
        """How long a training will take; None where nothing was ever timed on this machine.

        Args:
            train_tokens: of the text's training part, if that is known.
        """
        own = [t for t in self._timings if t.machine == _machine()]
        if not own:
            return None
        shape, flops = _shape(model, train_config), step_flops(model, train_config)
        best = min(reversed(own), key=lambda t: (t.shape != shape, abs(math.log(flops / t.flops))))
        factor = flops / best.flops
        longer = (train_tokens or best.train_tokens) / max(1, best.train_tokens)
        return Expected(
            Calibration(
                best.step * factor,
                best.evaluation * factor,
                best.sample * factor,
                best.whole_evaluation * factor * min(1.0, longer),
            ),
            best.shape == shape,
            best.device,
            best.device_type,
            best.device_memory,
        )

    def plan(
        self, model: GPTConfig, train: TrainConfig, facts: TextFacts | None
    ) -> tuple[TrainConfig, Expected | None, Reading | None]:
        """The training with the steps that fit into its minutes, how long it takes, what it reads.

        What cannot be known yet is None.

        Args:
            facts: of the text, if that was read.
        """
        expected = self.expected(model, train, facts.train if facts else None)
        if train.minutes and expected is not None:
            steps = expected.calibration.steps_within(60 * train.minutes, train)
            train = replace(train, max_steps=steps)
        counted = facts is not None and (train.tokenizer == "char" or facts.unit == "tokens")
        if facts is None or not counted or (train.minutes and expected is None):
            return train, expected, None
        return train, expected, reading(model, train, facts.train, facts.train_characters)


def _machine() -> str:
    return f"{platform.node()}, {os.cpu_count()} cores"


def _shape(model: GPTConfig, config: TrainConfig) -> str:
    sizes = (model.n_layer, model.n_head, model.n_embd, model.block_size, model.vocab_size)
    parts = (*sizes, model.dropout, config.batch_size, config.recipe, config.precision)
    return " ".join(str(part) for part in parts)
