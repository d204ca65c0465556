"""Which settings make the best model in a time: what the user leaves open, a plan decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig, train_settings
from tuigpt.estimate import needed_bytes
from tuigpt.plan.law import (
    TextSize,
    expected_val_loss,
    margin,
    most_readings,
    usual_weight_decay,
)
from tuigpt.plan.speeds import Expected, Speeds
from tuigpt.recipes import DEFAULT_RECIPE
from tuigpt.wording import duration

USUAL_MINUTES = 5.0
"""Length of a run whose user says nothing of it."""

SHAPES = ((2, 2, 128), (4, 4, 128), (4, 3, 192), (4, 4, 256), (6, 6, 384))
"""Layers, heads and width of the models that a plan chooses from."""

BLOCK_SIZES = (64, 128, 256)
BATCH_SIZES = (8, 16)
"""Where a GPU trains, the recipe's own batch is the only one: fewer windows are hardly quicker."""

EVALUATED_SHARE = 0.06
"""Most of the time that goes into evaluations and samples, unless that makes too few of them."""

FEWEST_EVALUATIONS, MOST_EVALUATIONS = 4, 16
EVALUATED_TOKENS = 32_768

_SHAPE = ("n_layer", "n_head", "n_embd")

PLANNED = ("block_size", "batch_size", "weight_decay", "eval_interval")
"""What a plan decides beside the size and the steps."""


@dataclass(frozen=True)
class Asked:
    """What a user says of a new run; the rest is for the plan or the defaults to decide.

    Attributes:
        preset: the size, or None.
        model: fields of GPTConfig.
        train: fields of TrainConfig.
        has_weights: whether the model is there already.
    """

    preset: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    has_weights: bool = False

    @property
    def planned(self) -> bool:
        """Whether the length of a new model's training is a time, in the recipe of plans."""
        timed = "max_steps" not in self.train and bool(self.train.get("minutes", USUAL_MINUTES))
        recipe = self.train.get("recipe", DEFAULT_RECIPE)
        return timed and recipe == DEFAULT_RECIPE and not self.has_weights

    @property
    def size_is_open(self) -> bool:
        """Whether a plan decides how large the model is."""
        named = self.preset is not None or any(name in self.model for name in _SHAPE)
        return self.planned and not named

    @property
    def left_to_the_plan(self) -> tuple[str, ...]:
        """Names of the settings that a plan decides."""
        if not self.planned:
            return ()
        given = {*self.model, *self.train, *(() if self.size_is_open else _SHAPE)}
        return tuple(name for name in (*_SHAPE, *PLANNED) if name not in given)

    @property
    def label(self) -> str:
        """What a run is named after beside its text: its size, or the minutes of a plan."""
        if self.size_is_open:
            return f"{self.train.get('minutes', USUAL_MINUTES):g}min"
        return self.preset or DEFAULT_PRESET

    @property
    def sizes(self) -> GPTConfig:
        """The model as far as it is known without the text; of what a plan decides the smallest.

        Raises:
            ConfigError: a value cannot work.
        """
        open_sizes: dict[str, Any] = dict(PRESETS[self.preset or DEFAULT_PRESET])
        if self.planned:
            open_sizes["block_size"] = BLOCK_SIZES[0]
        return GPTConfig(**{**open_sizes, **self.model})

    def settings(self, device_type: str = "cpu") -> TrainConfig:
        """The training as far as it is known without the text.

        Raises:
            ConfigError: a value cannot work.
        """
        if not self.planned:
            return train_settings(self.train, device_type)
        usual = dict(minutes=USUAL_MINUTES, patience=0, eval_tokens=EVALUATED_TOKENS)
        return train_settings({**usual, **self.train}, device_type)


@dataclass(frozen=True)
class Choice:
    """Settings that a plan may choose.

    Attributes:
        minutes: that there are.
        expected: how long its parts take.
        val_loss: what it will end with, in nats per character; None where nothing can be said.
        margin: by which that may well be missed.
    """

    model: GPTConfig
    train: TrainConfig
    minutes: float
    expected: Expected
    val_loss: float | None
    margin: float

    @property
    def settings(self) -> str:
        """What is chosen, in words."""
        model, train = self.model, self.train
        return (
            f"{model.n_layer} layers, {model.n_embd} wide, context {model.block_size},"
            f" {train.max_steps:,} steps of {train.batch_size} windows,"
            f" weight decay {train.weight_decay:g}"
        )

    @property
    def expectation(self) -> str:
        """What will come of it, in words; or ""."""
        return (
            "" if self.val_loss is None else f"val {self.val_loss:.2f} ± {self.margin:.2f} expected"
        )

    @property
    def words(self) -> str:
        """What is chosen for the time, and what will come of it, in a line."""
        told = [f"for {duration(60 * self.minutes)}: {self.settings}"]
        if not self.train.minutes:
            takes = duration(self.expected.calibration.seconds(self.train))
            told.append(f"they take {takes}: reading the text more often would teach nothing")
        return "; ".join([*told, *filter(None, [self.expectation])])


def ranked(asked: Asked, text: TextSize, speeds: Speeds, device_type: str = "cpu") -> list[Choice]:
    """What a run can be made of, the best first; nothing where no speed is known yet.

    Args:
        asked: of which `planned` holds.

    Raises:
        ConfigError: what was asked for cannot work.
    """
    choices = []
    for model, train in candidates(asked, text, device_type, speeds.processes):
        expected = speeds.expected(model, train, text.val_tokens)
        if expected is not None:
            choices.append(_fitted(asked, model, train, text, expected))
    fitting = [
        c
        for c in choices
        if needed_bytes(c.model, c.train, device_type) <= c.expected.device.memory
    ]
    return sorted(
        fitting or choices, key=lambda choice: expected_val_loss(choice.model, choice.train, text)
    )


def candidates(
    asked: Asked, text: TextSize, device_type: str, processes: int = 1
) -> list[tuple[GPTConfig, TrainConfig]]:
    """What a plan chooses from, the smallest first; the numbers of steps are still to be found.

    Args:
        processes: among which a batch is shared out.
    """
    settings = asked.settings(device_type)
    sizes = replace(asked.sizes, vocab_size=text.vocab_size)
    shapes: list[dict[str, Any]] = [{}]
    if asked.size_is_open:
        shapes = [dict(zip(_SHAPE, shape, strict=True)) for shape in SHAPES]
    shorter = min(text.train_tokens, text.val_tokens or text.train_tokens)
    blocks = [size for size in BLOCK_SIZES if size < shorter] or [BLOCK_SIZES[0]]
    if "block_size" not in asked.left_to_the_plan:
        blocks = [sizes.block_size]
    batches = [size for size in BATCH_SIZES if size % processes == 0]
    if not batches or "batch_size" not in asked.left_to_the_plan or device_type == "cuda":
        batches = [settings.batch_size]
    return [
        (replace(sizes, **shape, block_size=block_size), replace(settings, batch_size=batch_size))
        for shape in shapes
        for block_size in blocks
        for batch_size in batches
    ]


def _fitted(
    asked: Asked, model: GPTConfig, train: TrainConfig, text: TextSize, expected: Expected
) -> Choice:
    """With the steps that fit into the time, and what depends on them."""
    timing, seconds = expected.calibration, 60 * train.minutes
    step_tokens = train.batch_size * model.block_size
    most = max(1, int(most_readings(text.train_tokens) * text.train_tokens / step_tokens))
    if "eval_interval" in asked.left_to_the_plan:
        cost = max(timing.eval_seconds + timing.sample_seconds, 1e-9)
        count = min(MOST_EVALUATIONS, max(FEWEST_EVALUATIONS, EVALUATED_SHARE * seconds / cost))
        about = min(most, seconds / timing.step_seconds)
        train = replace(train, eval_interval=_round_number(about / count))
    steps = timing.steps_within(seconds, train)
    useful = _useful_steps(model, train, text, min(steps, most))
    if useful < steps:
        train = replace(train, minutes=0.0)
    train = replace(train, max_steps=useful)
    if "weight_decay" in asked.left_to_the_plan:
        weight_decay = usual_weight_decay(
            model.block_matrices, useful * step_tokens, text.train_tokens
        )
        train = replace(train, weight_decay=weight_decay)
    told = train.tokenizer == "char" and text.val_tokens > 0
    val_loss = expected_val_loss(model, train, text) if told else None
    return Choice(model, train, seconds / 60, expected, val_loss, margin(text))


def _useful_steps(model: GPTConfig, train: TrainConfig, text: TextSize, steps: int) -> int:
    """So many steps, or fewer if those memorise less and learn as much."""

    def val_loss(steps: int) -> float:
        return expected_val_loss(model, replace(train, max_steps=steps), text)

    while steps > 1 and val_loss(fewer := int(0.8 * steps) or 1) < val_loss(steps):
        steps = fewer
    return steps


def _round_number(value: float) -> int:
    """The nearest whole number, 1 or more, of one digit and zeros."""
    digits = int(10 ** math.floor(math.log10(max(1.0, value))))
    return max(1, round(value / digits)) * digits
