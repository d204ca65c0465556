"""`tuigpt estimate`: what a training would cost, before it starts."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.flags import add_json, add_settings, add_text, given_fields
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.progress import ProgressLine, end_cleanly_on_signals
from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig
from tuigpt.errors import UserError
from tuigpt.estimate import (
    Calibration,
    Memory,
    Reading,
    memory,
    reading,
    step_flops,
)
from tuigpt.model.device import describe, faster_precision, memory_bytes
from tuigpt.paths import cache_dir, home_dir
from tuigpt.text.named import BUILT_IN
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.prepare import make_corpus, make_tokenizer, read, settings_and_device
from tuigpt.wording import density, duration, file_size, overfitting, short_count, step_time, times

_LABEL_WIDTH = 10

_SMALLER = "try --micro-batch-size 1, a smaller --block-size, or a smaller model"


@dataclass(frozen=True)
class _Plan:
    """A training that has not begun, and what it would cost."""

    config: GPTConfig
    train_config: TrainConfig
    tokenizer: Tokenizer
    corpus: Corpus
    device: torch.device
    characters: int

    @property
    def memory(self) -> Memory:
        return memory(self.config, self.train_config, self.device.type)

    @property
    def reading(self) -> Reading:
        return reading(self.config, self.train_config, self.corpus.n_train, self.characters)

    @property
    def step_flops(self) -> int:
        return step_flops(self.config, self.train_config)

    @property
    def problem(self) -> str:
        """Why there is no use in trying, or ""."""
        need, have = self.memory.peak, memory_bytes(self.device)
        if need <= have:
            return ""
        return (
            f"this needs at least {file_size(need)} of memory, but {self.device} has"
            f" {file_size(have)}: {_SMALLER}"
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
    problem, timing = plan.problem, None
    if not as_json:
        _print(_costs(plan))
    if not problem:
        timing = _timing(plan)
        if minutes := plan.train_config.minutes:
            steps = timing.steps_within(60 * minutes, plan.train_config)
            plan = replace(plan, train_config=replace(plan.train_config, max_steps=steps))
    if as_json:
        print(json.dumps(_facts(plan, problem, timing)))
    else:
        if timing is not None:
            _print([("time", _time_in_words(plan, timing))])
        if timing is not None or not plan.train_config.minutes:
            _print(_length(plan))
    if problem:
        raise UserError(problem)
    return 0


def _print(lines: list[tuple[str, str]]) -> None:
    for label, words in lines:
        print(f"{label:>{_LABEL_WIDTH}}  {words}", flush=True)


def _plan(
    home: Path,
    sources: list[str],
    preset: str,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    progress: ProgressLine,
) -> _Plan:
    train_config, device = settings_and_device(train_fields)
    shape = GPTConfig(**{**PRESETS[preset], **model_fields})
    block_size, cache = shape.block_size, cache_dir(home)
    text = read(sources or [BUILT_IN], train_config, cache, progress)
    tokenizer = make_tokenizer(text, train_config, block_size, progress)
    corpus = make_corpus(text, tokenizer, train_config, block_size, device, cache, progress)
    config = replace(shape, vocab_size=tokenizer.vocab_size)
    if train_config.precision == "auto":
        train_config = replace(train_config, precision=faster_precision(config, device))
    characters = train_characters(text.scan.characters, train_config.val_fraction)
    return _Plan(config, train_config, tokenizer, corpus, device, characters)


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
                f" {plan.device}: {_SMALLER}"
            ) from None
        raise


def _costs(plan: _Plan) -> list[tuple[str, str]]:
    """What is known before a step is timed, as (label, words)."""
    parts, need = plan.config.parameters, plan.memory
    names = {
        "tokens, in and out": parts.tokens,
        "positions": parts.positions,
        "attention": parts.attention,
        "MLPs": parts.mlp,
        "norms": parts.norms,
    }
    kept = {
        "weights": need.weights,
        "gradients": need.gradients,
        "optimizer": need.optimizer,
        "activations": need.activations,
    }
    width = len(f"{parts.total:,}")
    tokens = plan.reading.step_tokens
    return [
        ("parameters", f"{parts.total:,}"),
        *(("", f"{n:>{width},} {n / parts.total:4.0%}  {name}") for name, n in names.items()),
        (
            "memory",
            f"at least {file_size(need.peak)} of {file_size(memory_bytes(plan.device))}"
            f" on {describe(plan.device)}",
        ),
        ("", " · ".join(f"{name} {file_size(size)}" for name, size in kept.items())),
        ("a step", f"{tokens:,} tokens, {short_count(plan.step_flops)} FLOP"),
    ]


def _length(plan: _Plan) -> list[tuple[str, str]]:
    """How much is read, and whether that is too much, as (label, words)."""
    reading = plan.reading
    steps, characters = plan.train_config.max_steps, plan.characters
    return [
        (
            "reads",
            f"{steps:,} steps, {short_count(reading.tokens)} tokens:"
            f" {characters:,} characters {times(reading.epochs)}",
        ),
        ("size", density(reading.parameters_per_character)),
        *[
            ("warning", overfitting(reading.parameters_per_character, reading.epochs))
            for _ in range(reading.overfits)
        ],
    ]


def _time_in_words(plan: _Plan, timing: Calibration) -> str:
    config = plan.train_config
    speed = plan.step_flops / timing.step_seconds
    return (
        f"{duration(timing.seconds(config))} in all on {describe(plan.device)}:"
        f" {step_time(timing.step_seconds)} a step, {short_count(speed)} FLOP/s"
    )


def _facts(plan: _Plan, problem: str, timing: Calibration | None) -> dict[str, Any]:
    parts = plan.config.parameters
    return {
        "parameters": asdict(parts) | {"total": parts.total},
        "memory": asdict(plan.memory),
        "device": describe(plan.device),
        "device_type": plan.device.type,
        "device_memory": memory_bytes(plan.device),
        "max_steps": plan.train_config.max_steps,
        "step_flops": plan.step_flops,
        **asdict(plan.reading),
        "overfits": plan.reading.overfits,
        "train_tokens": plan.corpus.n_train,
        "train_characters": plan.characters,
        "calibration": asdict(timing) if timing else None,
        "seconds": timing.seconds(plan.train_config) if timing else None,
        "problem": problem,
    }


def _add_flags(parser: Parser) -> None:
    add_text(parser)
    add_json(parser)
    add_settings(parser)


def _run(options: Namespace) -> int:
    return run(
        home=home_dir(options.home),
        sources=options.text,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=given_fields(options, TrainConfig),
        as_json=options.json,
    )


COMMANDS = {
    "estimate": Command(
        usage="[TEXT …] [flags of train]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt estimate poems.txt --preset small",
            "tuigpt estimate poems.txt --minutes 10",
        ),
    )
}
