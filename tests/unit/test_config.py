"""Configurations refuse what cannot work, and say which value and what would."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from tuigpt.config import (
    DEFAULT_PRESET,
    PRESETS,
    GPTConfig,
    SampleConfig,
    TrainConfig,
    help_of,
    parse_field,
    train_defaults,
    train_settings,
)
from tuigpt.errors import ConfigError, Setting, UserError, in_words
from tuigpt.recipes import DEFAULT_RECIPE

CONFIGS = [GPTConfig, TrainConfig, SampleConfig]

NAN, INF = float("nan"), float("inf")

WHOLE = {
    GPTConfig: dict(vocab_size=1, block_size=1, n_layer=1, n_head=1, n_embd=1),
    TrainConfig: dict(max_steps=1, batch_size=1, warmup_steps=0, eval_interval=1, eval_tokens=1,
                      checkpoint_interval=1, sample_tokens=0, seed=0),
    SampleConfig: dict(max_new_tokens=0, top_k=0, seed=0),
}  # fmt: skip
"""Whole numbers and the least each may be."""

REALS: list[tuple[type, str, list[Any], list[Any]]] = [
    (GPTConfig, "dropout", [0, 0.0, 0.5, 0.999], [-0.1, 1, 1.0, 2, NAN, INF, "0", None, True]),
    (TrainConfig, "learning_rate", [1e-9, 1, 1e6], [0, -1, NAN, INF, "1e-3", None, True]),
    (TrainConfig, "weight_decay", [0, 0.5, 10], [-1, NAN, INF, None]),
    (TrainConfig, "grad_clip", [0, 0.5, 10], [-1, NAN, INF, None]),
    (TrainConfig, "min_lr_ratio", [0, 0.5, 1], [-0.1, 1.1, NAN, None]),
    (TrainConfig, "val_fraction", [0, 0.1, 0.9], [-0.1, 1, NAN, None]),
    (SampleConfig, "temperature", [0, 1e-40, 0.8, 100], [-1e-9, -1, NAN, INF, "0.8", None]),
    (SampleConfig, "top_p", [0.1, 1], [-0.5, 1.5, NAN, INF]),
    (SampleConfig, "min_p", [0, 0.1], [-0.5, 1.5, NAN, INF]),
]


def refusal(config: type, name: str, value: object) -> str:
    with pytest.raises(ConfigError) as raised:
        config(**{name: value})
    assert raised.value.field == name
    message = str(raised.value)
    assert isinstance(raised.value, UserError) and "\n" not in message
    return message


@pytest.mark.parametrize("config", CONFIGS)
def test_the_defaults_work_and_cannot_be_changed(config: type) -> None:
    with pytest.raises(FrozenInstanceError):
        config().seed = 5
    assert config() == config()


@pytest.mark.parametrize(
    ("config", "name", "least"), [(c, n, least) for c, names in WHOLE.items()
                                  for n, least in names.items()],
)  # fmt: skip
def test_whole_numbers(config: type, name: str, least: int) -> None:
    others = {"n_head": 1} if name in ("n_embd", "n_head") else {}
    assert getattr(config(**{**others, name: least}), name) == least
    for value in (least - 1, -5, 2.5, float(least), "3", None, True, NAN):
        said = refusal(config, name, value)
        words = in_words(Setting(name))
        assert said == f"{words} is {value!r}, but it must be a whole number, {least} or more"


@pytest.mark.parametrize(("config", "name", "good", "bad"), REALS)
def test_other_numbers(config: type, name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(config(**{name: value}), name) == value
    for value in bad:
        said = refusal(config, name, value)
        assert said.startswith(f"{in_words(Setting(name))} is {value!r}, but it must be ")


def test_a_seed_fits_a_generator() -> None:
    assert TrainConfig(seed=2**63 - 1).seed == 2**63 - 1
    assert "less than 2 to the power of 63" in refusal(TrainConfig, "seed", 2**63)


def test_recipes() -> None:
    assert "'magic'" in refusal(TrainConfig, "recipe", "magic")
    assert "workshop" in refusal(TrainConfig, "recipe", "")


@pytest.mark.parametrize(
    ("chosen", "patience"),
    [
        ({}, 20),
        ({"eval_interval": 10}, 200),
        ({"eval_interval": 5000}, 5),
        ({"patience": 3, "eval_interval": 10}, 3),
        ({"patience": 0}, 0),
        ({"recipe": "workshop"}, 0),
    ],
)
def test_a_training_has_the_patience_of_2000_steps(chosen: dict[str, Any], patience: int) -> None:
    assert train_settings(chosen).patience == patience


def test_a_recipe_sets_what_the_user_leaves_open() -> None:
    assert TrainConfig(**train_defaults("workshop")) == TrainConfig()
    fast = TrainConfig(**{**train_defaults(DEFAULT_RECIPE), "batch_size": 3})
    assert fast.recipe == "fast" and fast.batch_size == 3
    assert fast.learning_rate != TrainConfig().learning_rate


class TestHeads:
    @pytest.mark.parametrize(
        ("n_embd", "n_head"),
        [(30, 4), (384, 5), (7, 2), (1, 2), (128, 129), (97, 96), (1_000_000_007, 4), (12, 10**9)],
    )
    def test_both_ways_out_work(self, n_embd: int, n_head: int) -> None:
        """What the message offers is tried: other heads, or another width."""
        with pytest.raises(ConfigError) as raised:
            GPTConfig(n_embd=n_embd, n_head=n_head)
        assert raised.value.field == "n_head" and raised.value.value == n_head
        offered = {part.name: part.value for part in raised.value.need if isinstance(part, Setting)}
        heads, width = offered["n_head"], offered["n_embd"]
        assert isinstance(heads, int) and isinstance(width, int)
        assert GPTConfig(n_embd=n_embd, n_head=heads).n_head == heads
        assert GPTConfig(n_embd=width, n_head=n_head).n_embd == width

    def test_the_nearest_number_of_heads_is_offered(self) -> None:
        with pytest.raises(ConfigError, match="try n_head 6, or n_embd 378"):
            GPTConfig(n_embd=384, n_head=7)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_work(name: str) -> None:
    config = GPTConfig(**PRESETS[name])
    assert config.n_embd % config.n_head == 0 and DEFAULT_PRESET in PRESETS


def test_the_workshops_sizes() -> None:
    assert GPTConfig(**PRESETS["medium"]) == GPTConfig()
    sizes = {name: GPTConfig(**preset).n_params for name, preset in PRESETS.items()}
    assert sizes["medium"] == 10_770_816
    assert 0.4e6 < sizes["tiny"] < 0.5e6 and 3e6 < sizes["small"] < 4e6 < 25e6 < sizes["large"]


@pytest.mark.parametrize("config", CONFIGS)
def test_every_field_is_explained_in_a_sentence(config: type) -> None:
    for entry in fields(config):
        words = help_of(config, entry.name)
        assert len(words) > 10 and "\n" not in words and not words.endswith(".")


class TestParsing:
    @pytest.mark.parametrize(
        ("config", "name", "text", "value"),
        [
            (TrainConfig, "max_steps", "5000", 5000),
            (TrainConfig, "max_steps", " 7 ", 7),
            (TrainConfig, "learning_rate", "1e-3", 1e-3),
            (TrainConfig, "learning_rate", "3", 3.0),
            (TrainConfig, "sample_prompt", "", ""),
            (SampleConfig, "temperature", ".8", 0.8),
        ],
    )
    def test_what_can_be_read(self, config: type, name: str, text: str, value: object) -> None:
        found = parse_field(config, name, text)
        assert found == value and type(found) is type(value)

    @pytest.mark.parametrize(
        ("config", "name", "text", "need"),
        [
            (TrainConfig, "max_steps", "", "a whole number"),
            (TrainConfig, "max_steps", "5.0", "a whole number"),
            (TrainConfig, "max_steps", "many", "a whole number"),
            (TrainConfig, "max_steps", "9" * 5000, "a whole number"),
            (TrainConfig, "learning_rate", "0,001", "a number such as 0.8"),
            (SampleConfig, "temperature", "", "a number such as 0.8"),
            (SampleConfig, "temperature", "warm", "a number such as 0.8"),
        ],
    )
    def test_what_cannot(self, config: type, name: str, text: str, need: str) -> None:
        with pytest.raises(ConfigError) as raised:
            parse_field(config, name, text)
        assert raised.value.field == name
        assert str(raised.value).endswith(f"but it must be {need}")
