"""Flags that several commands share: one for each field of a configuration, and a few more."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import Field, fields
from typing import Any

from tuigpt.cli.parser import Group, Parser, filled
from tuigpt.config import (
    DEFAULT_PRESET,
    PRESETS,
    GPTConfig,
    SampleConfig,
    TrainConfig,
    parse_field,
    train_defaults,
)
from tuigpt.errors import ConfigError, Setting
from tuigpt.plan.choose import PLANNED, USUAL_MINUTES, Asked
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES

_SECTIONS = {
    "how it is watched": (
        "val_fraction", "eval_interval", "eval_tokens", "patience", "checkpoint_interval",
        "evolution_mb", "sample_prompt", "sample_tokens",
    ),
    "how it is computed": ("seed", "device", "precision", "compile", "micro_batch_size"),
    "how the text is read": ("tokenizer", "encoding"),
}  # fmt: skip
"""Titles in the help for settings of a training; what is in none stands under "training"."""


_ESSENTIAL = {"max_steps", "minutes"}
"""Settings of a training that stand among the first flags."""

_NOT_CHOSEN = {"vocab_size", "gelu"}
"""What no flag of a new model sets: the text decides the one, and only imported models differ in
the other."""


def add_home(parser: Parser) -> None:
    """`--home`, which every command takes."""
    parser.flag(
        "--home", type=filled, metavar="FOLDER",
        help="where runs are kept (else $TUIGPT_HOME, else home in the settings)",
    )  # fmt: skip


def add_text(parser: Parser) -> None:
    """The text that is read."""
    parser.add_argument(
        "text", nargs="*", type=filled, metavar="TEXT",
        help="text files or folders, joined in this order; or shakespeare, the built-in text"
        " (default), or tinyshakespeare, which is fetched",
    )  # fmt: skip


def add_essentials(parser: Parser) -> Group:
    """The settings of a new run that most people choose, before all the others."""
    group = parser.add_argument_group("the essentials")
    parser.flag(
        "--preset", group=group, choices=list(PRESETS),
        help="size of the model (default: as suits the minutes; with a number of steps"
        f" {DEFAULT_PRESET})",
    )  # fmt: skip
    everything = {entry.name for entry in fields(TrainConfig)}
    _add_fields(parser, group, TrainConfig, leave_out=everything - _ESSENTIAL)
    return group


def add_settings(parser: Parser) -> None:
    """All other settings of a new run: the model's and the training's."""
    model = parser.add_argument_group("model")
    _add_fields(parser, model, GPTConfig, leave_out=_NOT_CHOSEN, default="the preset's")
    named = {name for names in _SECTIONS.values() for name in names}
    training = parser.add_argument_group("training")
    _add_fields(parser, training, TrainConfig, leave_out=named | _ESSENTIAL)
    everything = {entry.name for entry in fields(TrainConfig)}
    for title, names in _SECTIONS.items():
        section = parser.add_argument_group(title)
        _add_fields(parser, section, TrainConfig, leave_out=everything - set(names))


def add_sample_settings(parser: Parser, leave_out: Collection[str] = ()) -> None:
    """The settings of drawing text."""
    _add_fields(parser, parser.add_argument_group("how it is drawn"), SampleConfig, leave_out)


def add_checkpoint(parser: Parser) -> None:
    """The model that is used."""
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", type=filled,
        help="a file, RUN, RUN@STEP or RUN@best; poet is the built-in model",
    )  # fmt: skip


def add_device(parser: Parser) -> None:
    """Where a model computes that is not trained."""
    parser.flag("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")


def add_json(parser: Parser) -> None:
    """Output for programs."""
    parser.flag("--json", action="store_true", help="print one JSON object instead")


def given_fields(options: argparse.Namespace, config: type) -> dict[str, Any]:
    """The fields of a configuration that the user gave, read to their types.

    Raises:
        ConfigError: a value is not of its field's type.
    """
    return {
        entry.name: parse_field(config, entry.name, text)
        for entry in fields(config)
        if (text := getattr(options, entry.name, None)) is not None
    }


def asked(options: argparse.Namespace) -> Asked:
    """What the user says of a new run's model and training.

    Raises:
        ConfigError: a value is not of its field's type.
    """
    model, train = given_fields(options, GPTConfig), given_fields(options, TrainConfig)
    return Asked(options.preset, model, train)


def count(name: str, text: str, at_least: int) -> int:
    """Read a whole number that is no field of a configuration.

    Raises:
        ConfigError: it is none, or less than `at_least`.
    """
    if not text.strip().isdecimal() or int(text) < at_least:
        raise ConfigError(name, text, f"a whole number, {at_least} or more")
    return int(text)


def _add_fields(
    parser: Parser,
    group: Group,
    config: type,
    leave_out: Collection[str] = (),
    default: str | None = None,
) -> None:
    """One flag for each field of a configuration, by its own name; unset flags are None."""
    for entry in fields(config):
        if entry.name in leave_out:
            continue
        flag = f"--{entry.name.replace('_', '-')}"
        if entry.type is bool:
            help_text = entry.metadata["help"]
            parser.flag(flag, group=group, action="store_const", const="yes", help=help_text)
            continue
        shown = default if default and entry.name != "dropout" else _shown(config, entry)
        if entry.name == "minutes":
            shown = f"{USUAL_MINUTES:g}, unless the steps are set"
        elif entry.name in (*PLANNED, "max_steps"):
            shown = f"as suits the minutes, else {shown}"
        parser.flag(
            flag,
            group=group,
            dest=entry.name,
            metavar="|".join(RECIPES) if entry.name == "recipe" else _metavar(entry),
            help=f"{entry.metadata['help']} (default {shown})".replace("%", "%%"),
        )


def _metavar(entry: Field[object]) -> str:
    return "N" if entry.type is int else "X" if entry.type is float else "TEXT"


def _shown(config: type, entry: Field[object]) -> str:
    """The default in words; where it depends on the recipe, for each."""
    if config is not TrainConfig or entry.name == "recipe":
        return DEFAULT_RECIPE if entry.name == "recipe" else _value_shown(entry.default)
    values = {}
    for recipe in RECIPES:
        value, on_cuda = (train_defaults(recipe, kind)[entry.name] for kind in ("cpu", "cuda"))
        values[recipe] = _value_shown(value)
        if on_cuda != value:
            values[recipe] += f" (on cuda {_value_shown(on_cuda)})"
    if len(set(values.values())) == 1:
        return values[DEFAULT_RECIPE]
    return ", ".join(f"{recipe}: {value}" for recipe, value in values.items())


def _value_shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value) if " " in value else value
    return f"{value:g}"


def as_flag(setting: Setting) -> str:
    """A setting as a shell spells it: --block-size 64."""
    flag = f"--{setting.name.replace('_', '-')}"
    return flag if setting.value is None else f"{flag} {setting.value}"
