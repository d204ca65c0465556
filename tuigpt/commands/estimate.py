"""`tuigpt estimate`: what a training would cost, before it starts."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.commands.prepare import make_corpus, make_tokenizer, read
from tuigpt.commands.progress import ProgressLine, end_cleanly_on_signals
from tuigpt.config import (
    DEFAULT_PRESET,
    DEFAULT_RECIPE,
    PRESETS,
    GPTConfig,
    TrainConfig,
    UserError,
    train_defaults,
)
from tuigpt.core.calibrate import calibrate
from tuigpt.core.corpus import Corpus
from tuigpt.core.device import describe, memory_bytes, resolve_device
from tuigpt.core.named import BUILT_IN
from tuigpt.core.split import train_characters
from tuigpt.core.tokenizer import Tokenizer
from tuigpt.estimate import (
    Calibration,
    Memory,
    Parameters,
    Reading,
    count_parameters,
    memory,
    reading,
    step_flops,
)
from tuigpt.paths import cache_dir
from tuigpt.wording import duration, file_size, overfitting, short_count, times

_LABEL_WIDTH = 10


@dataclass(frozen=True)
class _Plan:
    """A training that has not begun, and what it would cost."""

    config: GPTConfig
    train_config: TrainConfig
    tokenizer: Tokenizer
    corpus: Corpus
    device: torch.device
    characters: int
    parameters: Parameters
    memory: Memory
    reading: Reading
    step_flops: int

    @property
    def problem(self) -> str:
        """Why there is no use in trying, or ""."""
        have = memory_bytes(self.device)
        if self.memory.peak <= have:
            return ""
        return (
            f"this needs at least {file_size(self.memory.peak)} of memory: {self.device} has"
            f" {file_size(have)}; try a smaller --batch-size or --block-size, or a smaller model"
        )


def run(
    home: Path,
    sources: list[str],
    preset: str | None,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    as_json: bool,
) -> int:
    """Tell what `tuigpt train` with the same arguments would cost; time a few of its steps.

    Args:
        as_json: print one JSON object instead of lines. Where there is too little memory it has a
            `problem`, and no times.

    Raises:
        UserError: no run with these settings can start.
    """
    end_cleanly_on_signals()
    with ProgressLine(sys.stderr) as progress:
        plan = _plan(home, sources, preset or DEFAULT_PRESET, model_fields, train_fields, progress)
    if not as_json:
        for label, words in _figures(plan):
            print(f"{label:>{_LABEL_WIDTH}}  {words}", flush=True)
    timing = None if plan.problem else _timing(plan)
    if as_json:
        print(json.dumps(_facts(plan, timing)))
    elif timing is not None:
        print(f"{'time':>{_LABEL_WIDTH}}  {_time_in_words(plan, timing)}")
    if plan.problem:
        raise UserError(plan.problem)
    return 0


def _plan(
    home: Path,
    sources: list[str],
    preset: str,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    progress: ProgressLine,
) -> _Plan:
    recipe = train_fields.get("recipe", DEFAULT_RECIPE)
    train_config = TrainConfig(**{**train_defaults(recipe), **train_fields})
    device = resolve_device(train_config.device)
    shape = GPTConfig(**{**PRESETS[preset], **model_fields})
    block_size, cache = shape.block_size, cache_dir(home)
    text = read(sources or [BUILT_IN], train_config, cache, progress)
    tokenizer = make_tokenizer(text, train_config, block_size, progress)
    corpus = make_corpus(text, tokenizer, train_config, block_size, device, cache, progress)
    config = replace(shape, vocab_size=tokenizer.vocab_size)
    characters = train_characters(text.scan.characters, train_config.val_fraction)
    return _Plan(
        config=config,
        train_config=train_config,
        tokenizer=tokenizer,
        corpus=corpus,
        device=device,
        characters=characters,
        parameters=count_parameters(config),
        memory=memory(config, train_config, device.type),
        reading=reading(config, train_config, corpus.n_train, characters),
        step_flops=step_flops(config, train_config),
    )


def _timing(plan: _Plan) -> Calibration:
    try:
        with ProgressLine(sys.stderr) as progress:
            return calibrate(
                plan.config, plan.train_config, plan.tokenizer, plan.corpus, plan.device, progress
            )
    except (RuntimeError, MemoryError) as error:
        reason = str(error)
        if isinstance(error, MemoryError) or "memory" in reason:
            raise UserError(
                f"out of memory: this needs at least {file_size(plan.memory.peak)} on"
                f" {plan.device}; try a smaller --batch-size or --block-size, or a smaller model"
            ) from None
        raise


def _figures(plan: _Plan) -> list[tuple[str, str]]:
    parts, need, reading = plan.parameters, plan.memory, plan.reading
    names = {
        "tokens in and out": parts.tokens,
        "positions": parts.positions,
        "attention": parts.attention,
        "MLPs": parts.mlp,
        "norms": parts.norms,
    }
    width = len(f"{parts.total:,}")
    label, steps = "", f"{plan.train_config.max_steps:,} steps"
    lines = [("parameters", f"{parts.total:>{width},}")]
    lines += [
        (label, f"{count:>{width},}  {count / parts.total:4.0%}  {name}")
        for name, count in names.items()
    ]
    kept = {
        "weights": need.weights,
        "gradients": need.gradients,
        "optimizer": need.optimizer,
        "activations": need.activations,
    }
    words = ", ".join(f"{name} {file_size(size)}" for name, size in kept.items())
    lines += [
        ("memory", f"{file_size(need.peak)} at least, of {file_size(memory_bytes(plan.device))}"
                   f" on {describe(plan.device)}"),
        ("", words),
        ("a step", f"{reading.step_tokens:,} tokens, {short_count(plan.step_flops)} FLOP"),
        ("in all", f"{steps}, {short_count(reading.tokens)} tokens:"
                   f" the text {times(reading.epochs)}"),
        ("text", f"{plan.characters:,} characters to train on:"
                 f" {reading.parameters_per_character:.2g} parameters for each"),
    ]  # fmt: skip
    if reading.overfits:
        lines.append(("warning", overfitting(reading.parameters_per_character, reading.epochs)))
    return lines


def _time_in_words(plan: _Plan, timing: Calibration) -> str:
    config = plan.train_config
    speed = plan.step_flops / timing.step_seconds
    return (
        f"{duration(timing.seconds(config))} in all on {describe(plan.device)}:"
        f" {timing.step_seconds:.2g} s a step ({short_count(speed)} FLOP/s)"
    )


def _facts(plan: _Plan, timing: Calibration | None) -> dict[str, Any]:
    reading = plan.reading
    return {
        "parameters": asdict(plan.parameters) | {"total": plan.parameters.total},
        "memory": asdict(plan.memory)
        | {"peak": plan.memory.peak, "device": memory_bytes(plan.device)},
        "step_flops": plan.step_flops,
        **asdict(reading),
        "train_tokens": plan.corpus.n_train,
        "train_characters": plan.characters,
        "overfits": reading.overfits,
        "device": describe(plan.device),
        "problem": plan.problem,
        "calibration": asdict(timing) if timing else None,
        "seconds": timing.seconds(plan.train_config) if timing else None,
    }
