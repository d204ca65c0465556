"""How fast this machine trains: what trials have told, kept in the home's cache.

So a form that opens can tell at once how long a training takes, and a plan seldom has to time
anything. A shape that was never timed is reckoned from the nearest one that was.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import LONGEST_WHOLE_PASS, Calibration, step_flops, update_flops
from tuigpt.files import Count, UnreadableFile, Word, read_record, write_json
from tuigpt.paths import cache_dir

SPEEDS_FILE = "speeds.json"

_MOST_KEPT = 64

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Timing(msgspec.Struct, frozen=True):
    """What one trial told.

    Attributes:
        machine: on which it was made: a home may lie on a shared drive.
        asked: the device that was asked for.
        shape: of the model and the step; equal shapes take equally long.
        flops: floating-point operations of a step with its update.
        token_flops: of the step alone, for each of its tokens.
        device, device_type, device_memory: name for people, "cpu", "cuda" or "mps", and bytes.
        step, evaluated_token, sampled_token: seconds of each.
        compiling: seconds until the first step of a compiled model.
    """

    machine: Word
    asked: Word
    shape: Word
    flops: Annotated[float, msgspec.Meta(gt=0)]
    token_flops: Annotated[float, msgspec.Meta(gt=0)]
    device: Word
    device_type: Word
    device_memory: Count
    step: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    evaluated_token: _Seconds
    sampled_token: _Seconds
    compiling: _Seconds = 0.0


class _Record(msgspec.Struct, frozen=True):
    timings: Annotated[list[Timing], msgspec.Meta(max_length=10 * _MOST_KEPT)] = []


@dataclass(frozen=True)
class Device:
    """What trains.

    Attributes:
        name: for people.
        type: "cpu", "cuda" or "mps".
        memory: in bytes.
    """

    name: str
    type: str
    memory: int


@dataclass(frozen=True)
class Expected:
    """How long the parts of a training will take.

    Attributes:
        measured: whether this very shape was timed; else it is reckoned from another.
    """

    calibration: Calibration
    measured: bool
    device: Device


class Speeds:
    """The trials that were made on this machine.

    Attributes:
        processes: that train together, and share a batch among them.
    """

    def __init__(self, home: Path, processes: int = 1) -> None:
        self.processes = processes
        self._path = cache_dir(home) / SPEEDS_FILE
        self._timings: list[Timing] = []
        self._read()

    @property
    def newest(self) -> Timing | None:
        """The newest trial on this machine."""
        return next((t for t in reversed(self._timings) if t.machine == _machine()), None)

    def keep(
        self,
        model: GPTConfig,
        config: TrainConfig,
        val_tokens: int,
        found: Calibration,
        device: Device,
    ) -> None:
        """Keep what a trial told; one of the same shape is replaced.

        Args:
            config: as it was asked for: its precision may still be "auto".
            val_tokens: of the text's validation part.
        """
        if not found.step_seconds > 0:
            return
        evaluated = min(config.eval_tokens, val_tokens)
        step_tokens = config.batch_size * model.block_size
        # Without a validation part: a pass forward is a third of a step.
        evaluated_token = found.step_seconds / 3 / step_tokens
        if evaluated:
            evaluated_token = found.eval_seconds / evaluated
        timing = Timing(
            machine=_machine(),
            asked=config.device,
            shape=self._shape(model, config),
            flops=_flops(model, config),
            token_flops=_token_flops(model, config),
            device=device.name,
            device_type=device.type,
            device_memory=device.memory,
            step=found.step_seconds,
            evaluated_token=evaluated_token,
            sampled_token=found.sample_seconds / max(1, config.sample_tokens),
            compiling=found.compile_seconds,
        )
        self._put(timing)

    def correct(self, model: GPTConfig, config: TrainConfig, step_seconds: float) -> None:
        """Take notice of what a step took in a whole training, if its shape was timed before.

        Args:
            config: as it was asked for.
        """
        shape = self._shape(model, config)
        for old in self._read():
            if _key(old) == (_machine(), config.device, shape):
                slower = step_seconds / old.step
                evaluated, sampled = old.evaluated_token * slower, old.sampled_token * slower
                self._put(
                    msgspec.structs.replace(
                        old, step=step_seconds, evaluated_token=evaluated, sampled_token=sampled
                    )
                )

    def _read(self) -> list[Timing]:
        """What is kept now: other processes time and keep as well."""
        with suppress(UnreadableFile):
            self._timings = read_record(self._path, _Record).timings
        return self._timings

    def _put(self, timing: Timing) -> None:
        others = [t for t in self._read() if _key(t) != _key(timing)]
        self._timings = [*others, timing][-_MOST_KEPT:]
        with suppress(OSError):  # a disk that is full costs only the next quick answer
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, _Record(self._timings))

    def expected(
        self, model: GPTConfig, config: TrainConfig, val_tokens: int | None
    ) -> Expected | None:
        """How long a training will take; None where nothing was ever timed on this machine.

        Args:
            val_tokens: of the text's validation part; None where the text is not read yet.
        """
        here = (_machine(), config.device)
        own = [t for t in self._timings if (t.machine, t.asked) == here]
        if not own:
            return None
        shape, flops = self._shape(model, config), _flops(model, config)
        best = min(reversed(own), key=lambda t: (t.shape != shape, abs(math.log(flops / t.flops))))
        by_token = _token_flops(model, config) / best.token_flops
        evaluated_token = best.evaluated_token * by_token
        evaluated = min(config.eval_tokens, sys.maxsize if val_tokens is None else val_tokens)
        whole = val_tokens if val_tokens and val_tokens <= LONGEST_WHOLE_PASS else 0
        return Expected(
            Calibration(
                step_seconds=best.step * flops / best.flops,
                eval_seconds=evaluated_token * evaluated,
                sample_seconds=best.sampled_token * by_token * config.sample_tokens,
                whole_eval_seconds=evaluated_token * whole,
                compile_seconds=best.compiling if config.compile else 0.0,
            ),
            best.shape == shape,
            Device(best.device, best.device_type, best.device_memory),
        )

    def _shape(self, model: GPTConfig, config: TrainConfig) -> str:
        vocabulary = 1 << (model.vocab_size - 1).bit_length()  # a few symbols more cost nothing
        sizes = (model.n_layer, model.n_head, model.n_embd, model.block_size, vocabulary)
        parts = (*sizes, model.dropout, config.batch_size, config.recipe, config.precision)
        compiled = ("compiled",) if config.compile else ()
        return " ".join(str(part) for part in (*parts, self.processes, *compiled))


def _flops(model: GPTConfig, config: TrainConfig) -> int:
    return step_flops(model, config) + update_flops(model, config)


def _token_flops(model: GPTConfig, config: TrainConfig) -> float:
    return step_flops(model, config) / (config.batch_size * model.block_size)


def _key(timing: Timing) -> tuple[str, str, str]:
    return timing.machine, timing.asked, timing.shape


def _machine() -> str:
    return f"{platform.node()}, {os.cpu_count()} cores"
