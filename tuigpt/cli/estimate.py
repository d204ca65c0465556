"""`tuigpt estimate`: what a training would cost, before it starts."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from tuigpt.cli.flags import add_essentials, add_json, add_settings, add_text, asked
from tuigpt.cli.ink import print_labelled
from tuigpt.cli.live_line import waiting
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.progress import ProgressLine
from tuigpt.errors import UserError
from tuigpt.estimate import Calibration
from tuigpt.paths import home_dir
from tuigpt.plan.choose import Asked
from tuigpt.reports import CostReport, to_line
from tuigpt.signals import end_cleanly_on_signals
from tuigpt.wording import density, duration, file_size, overfitting, short_count, step_time, times


def run(home: Path, sources: list[str], asked: Asked, as_json: bool) -> int:
    """Tell what `tuigpt train` with the same arguments would cost; time a few of its steps.

    Args:
        as_json: print a `CostReport` instead of lines. Where there is too little memory it has a
            `problem`, and no times.

    Raises:
        UserError: no run with these settings can start.
    """
    end_cleanly_on_signals()
    with waiting("starting"):
        from tuigpt.training.draft import Draft

    with ProgressLine(sys.stderr) as progress:
        draft = Draft.make(sources, asked, home, progress)
    costs = _costs(draft.report())
    if not as_json and not asked.planned:
        print_labelled(costs)
    problem = None
    with ProgressLine(sys.stderr) as progress:
        try:
            draft = draft.settle(progress)
        except UserError as error:
            problem = error
    report = draft.report(problem)
    if as_json:
        print(to_line(report))
    else:
        if asked.planned:
            print_labelled([("plan", report.plan)] if report.plan else [])
            print_labelled(_costs(report))
        if report.calibration is not None:
            print_labelled([("time", _time_in_words(report, report.calibration))])
            print_labelled([("compiling", report.compiling)] if report.compiling else [])
        if report.calibration is not None or not draft.train_config.minutes:
            print_labelled(_length(report))
    if problem:
        raise problem
    return 0


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
    add_essentials(parser)
    add_settings(parser)


def _run(options: Namespace) -> int:
    return run(
        home=home_dir(options.home),
        sources=options.text,
        asked=asked(options),
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
