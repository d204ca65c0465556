"""`tuigpt estimate`: what a training would cost, before it starts."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.flags import add_json, add_settings, add_text, given_fields
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.progress import ProgressLine
from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.estimate import (
    Calibration,
    memory,
    needed_bytes,
    reading,
    step_flops,
)
from tuigpt.model.device import describe, memory_bytes
from tuigpt.paths import cache_dir, home_dir
from tuigpt.reports import CostReport, to_line
from tuigpt.signals import end_cleanly_on_signals
from tuigpt.text.named import BUILT_IN
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.optimizers import have_compiler_cache
from tuigpt.training.precision import settled_precision
from tuigpt.training.prepare import make_corpus, make_tokenizer, read, settings_and_device
from tuigpt.wording import density, duration, file_size, overfitting, short_count, step_time, times

_LABEL_WIDTH = 10

_SMALLER = (
    "try ", Setting("micro_batch_size", 1), ", a smaller ", Setting("block_size"),
    ", or a smaller model",
)  # fmt: skip


@dataclass(frozen=True)
class _Plan:
    """A training that has not begun."""

    config: GPTConfig
    train_config: TrainConfig
    tokenizer: Tokenizer
    corpus: Corpus
    device: torch.device
    characters: int

    def memory_problem(self) -> UserError | None:
        """Why there is no use in trying, if there is none."""
        need = needed_bytes(self.config, self.train_config, self.device.type)
        have = memory_bytes(self.device)
        if need <= have:
            return None
        return UserError(
            f"this needs at least {file_size(need)} of memory, but {self.device} has"
            f" {file_size(have)}: ", *_SMALLER,
        )  # fmt: skip

    def report(
        self, calibration: Calibration | None = None, problem: UserError | None = None
    ) -> CostReport:
        """What it would cost, as far as that is known."""
        config, train_config = self.config, self.train_config
        plan = reading(config, train_config, self.corpus.n_train, self.characters)
        parts = config.parameters
        return CostReport(
            parameters=asdict(parts) | {"total": parts.total},
            memory=memory(config, train_config, self.device.type),
            device=describe(self.device),
            device_type=self.device.type,
            device_memory=memory_bytes(self.device),
            max_steps=train_config.max_steps,
            step_flops=step_flops(config, train_config),
            step_tokens=plan.step_tokens,
            tokens=plan.tokens,
            epochs=plan.epochs,
            parameters_per_character=plan.parameters_per_character,
            overfits=plan.overfits,
            train_tokens=self.corpus.n_train,
            train_characters=self.characters,
            calibration=calibration,
            seconds=calibration.seconds(train_config) if calibration else None,
            problem=str(problem or ""),
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
        as_json: print a `CostReport` instead of lines. Where there is too little memory it has a
            `problem`, and no times.

    Raises:
        UserError: no run with these settings can start.
    """
    end_cleanly_on_signals()
    with ProgressLine(sys.stderr) as progress:
        plan = _plan(home, sources, preset or DEFAULT_PRESET, model_fields, train_fields, progress)
    problem = plan.memory_problem()
    if not as_json:
        _print(_costs(plan.report()))
    timing = None
    if not problem:
        timing = _timing(plan)
        if minutes := plan.train_config.minutes:
            steps = timing.steps_within(60 * minutes, plan.train_config)
            plan = replace(plan, train_config=replace(plan.train_config, max_steps=steps))
    report = plan.report(timing, problem)
    if as_json:
        print(to_line(report))
    else:
        if timing is not None:
            _print([("time", _time_in_words(report, timing))])
        if timing is not None or not plan.train_config.minutes:
            _print(_length(report))
    if problem:
        raise problem
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
    have_compiler_cache(cache)
    text = read(sources or [BUILT_IN], train_config, cache, progress)
    tokenizer = make_tokenizer(text, train_config, block_size, progress)
    corpus = make_corpus(text, tokenizer, train_config, block_size, device, cache, progress)
    config = replace(shape, vocab_size=tokenizer.vocab_size)
    if train_config.precision == "auto":
        train_config = replace(train_config, precision=settled_precision(config, device, home).name)
    characters = train_characters(text.scan.characters, train_config.val_fraction)
    return _Plan(config, train_config, tokenizer, corpus, device, characters)


def _timing(plan: _Plan) -> Calibration:
    try:
        with ProgressLine(sys.stderr) as progress:
            return calibrate(
                plan.config, plan.train_config, plan.tokenizer, plan.corpus, plan.device, progress
            )
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error):
            need = needed_bytes(plan.config, plan.train_config, plan.device.type)
            raise UserError(
                f"out of memory: this needs at least {file_size(need)} on {plan.device}: ",
                *_SMALLER,
            ) from None
        raise


def _costs(report: CostReport) -> list[tuple[str, str]]:
    """What is known before a step is timed, as (label, words)."""
    counts, need = report.parameters, report.memory
    total = counts["total"]
    names = {
        "tokens": "tokens, in and out",
        "positions": "positions",
        "attention": "attention",
        "mlp": "MLPs",
        "norms": "norms",
    }
    kept = {
        "weights": need.weights,
        "gradients": need.gradients,
        "optimizer": need.optimizer,
        "activations": need.activations,
    }
    width = len(f"{total:,}")
    return [
        ("parameters", f"{total:,}"),
        *(
            ("", f"{counts[part]:>{width},} {counts[part] / total:4.0%}  {name}")
            for part, name in names.items()
        ),
        (
            "memory",
            f"at least {file_size(need.peak)} of {file_size(report.device_memory)}"
            f" on {report.device}",
        ),
        ("", " · ".join(f"{name} {file_size(size)}" for name, size in kept.items())),
        ("a step", f"{report.step_tokens:,} tokens, {short_count(report.step_flops)} FLOP"),
    ]


def _length(report: CostReport) -> list[tuple[str, str]]:
    """How much is read, and whether that is too much, as (label, words)."""
    ratio = report.parameters_per_character
    return [
        (
            "reads",
            f"{report.max_steps:,} steps, {short_count(report.tokens)} tokens:"
            f" {report.train_characters:,} characters {times(report.epochs)}",
        ),
        ("size", density(ratio)),
        *[("warning", overfitting(ratio, report.epochs)) for _ in range(report.overfits)],
    ]


def _time_in_words(report: CostReport, timing: Calibration) -> str:
    assert report.seconds is not None
    speed = report.step_flops / timing.step_seconds
    return (
        f"{duration(report.seconds)} in all on {report.device}:"
        f" {step_time(timing.step_seconds)} a step, {short_count(speed)} FLOP/s"
    )


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
