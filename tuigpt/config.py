"""What a model, a training run and a generation are made of, and which values can work.

Frozen dataclasses that refuse impossible values when they are built, so that nothing further in
ever meets one. Every field carries the sentence that explains it (`help_of`), which the command
line and the app's form both show. This module imports neither torch nor numpy.
"""

import encodings
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

from tuigpt.errors import ConfigError, Setting
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES


def _option(default: Any, explanation: str) -> Any:
    return field(default=default, metadata={"help": explanation})


def help_of(config: type, name: str) -> str:
    """The one-sentence explanation of a configuration's field."""
    return str(config.__dataclass_fields__[name].metadata["help"])  # type: ignore[attr-defined]


def _check(ok: bool, name: str, value: object, need: str) -> None:
    if not ok:
        raise ConfigError(name, value, need)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_integers(config: object, at_least: Mapping[str, int]) -> None:
    for name, least in at_least.items():
        value = getattr(config, name)
        need = f"a whole number, {least} or more"
        _check(_is_integer(value) and value >= least, name, value, need)


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of trainable parameters.

    Attributes:
        tokens: the embedding of the tokens, which is the output layer as well.
        positions: the embedding of the positions.
        attention: query, key, value and output projections of all blocks.
        mlp: both layers of all blocks' MLPs.
        norms: two layer norms a block, and the last one.
    """

    tokens: int
    positions: int
    attention: int
    mlp: int
    norms: int

    @property
    def total(self) -> int:
        """All of them, each once."""
        return self.tokens + self.positions + self.attention + self.mlp + self.norms


GELUS = ("tanh", "exact")
"""How GELU can be computed: the tanh approximation of GPT-2 and the workshop, or as nanoGPT does.
The difference is far below what a reader sees, but the same weights mean another model."""

MAX_LAYERS = 1_000
"""More than any transformer has; it keeps a file that claims to hold more from being believed."""


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT, in the workshop's terms. The defaults are its medium model.

    Raises:
        ConfigError: a size is below one, the heads do not divide the width, or dropout is
            outside [0, 1).
    """

    vocab_size: int = _option(65, "number of different tokens; the text decides it")
    block_size: int = _option(256, "how many tokens the model sees at once (the context)")
    n_layer: int = _option(6, "number of transformer blocks")
    n_head: int = _option(6, "attention heads in each block; they divide n_embd evenly")
    n_embd: int = _option(384, "width: every hidden state is a vector of this size")
    dropout: float = _option(0.0, "share of activations dropped while training, 0 = none")
    gelu: str = _option("tanh", "how GELU is computed: tanh, as GPT-2 does, or exact")

    def __post_init__(self) -> None:
        _check(self.gelu in GELUS, "gelu", self.gelu, f"one of {', '.join(GELUS)}")
        _check_integers(self, dict(vocab_size=1, block_size=1, n_layer=1, n_head=1, n_embd=1))
        need = f"at most {MAX_LAYERS:,}"
        _check(self.n_layer <= MAX_LAYERS, "n_layer", self.n_layer, need)
        _check(
            _is_finite(self.dropout) and 0 <= self.dropout < 1,
            "dropout", self.dropout, "at least 0 and less than 1",
        )  # fmt: skip
        if self.n_embd % self.n_head:
            choices = [n for n in range(1, min(self.n_embd, 4096) + 1) if self.n_embd % n == 0]
            near = min(choices, key=lambda n: abs(n - self.n_head))
            width = self.n_head * max(1, self.n_embd // self.n_head)
            raise ConfigError(
                "n_head", self.n_head, "a divisor of ", Setting("n_embd", self.n_embd),
                "; try ", Setting("n_head", near), ", or ", Setting("n_embd", width),
            )  # fmt: skip

    @property
    def parameters(self) -> ParameterCounts:
        """Number of trainable parameters, by part."""
        width, blocks = self.n_embd, self.n_layer
        return ParameterCounts(
            tokens=self.vocab_size * width,
            positions=self.block_size * width,
            attention=blocks * (4 * width * width + 4 * width),  # c_attn and c_proj, with biases
            mlp=blocks * (8 * width * width + 5 * width),  # c_fc and c_proj, with biases
            norms=blocks * 4 * width + 2 * width,  # weight and bias each
        )

    @property
    def block_matrices(self) -> int:
        """How many of the parameters are entries of the matrices inside the blocks."""
        return self.n_layer * 12 * self.n_embd * self.n_embd  # those above without their biases

    @property
    def n_params(self) -> int:
        """Number of trainable parameters; the tied output projection counts once."""
        return self.parameters.total


PRECISIONS = ("auto", "float32", "bfloat16")
"""What the products of matrices are computed in; the weights are float32 with each of them."""


def train_defaults(recipe: str, device_type: str = "cpu") -> dict[str, Any]:
    """What `TrainConfig` holds under a recipe where the user sets nothing.

    Args:
        device_type: of the device that trains: "cpu", "cuda" or "mps".
    """
    plain = {name: entry.default for name, entry in TrainConfig.__dataclass_fields__.items()}
    known = RECIPES.get(recipe)
    if known is None:  # `TrainConfig` refuses it
        return {**plain, "recipe": recipe}
    there = known.defaults_on_cuda if device_type == "cuda" else {}
    return {**plain, **known.defaults, **there, "recipe": recipe}


BPE_SIZES = range(257, 65_537)
"""Vocabularies that byte-pair encoding can have: the 256 bytes and at least one pair."""


def bpe_size(tokenizer: str) -> int | None:
    """N of a tokenizer called `bpe:N`, or None for any other."""
    kind, _, size = tokenizer.partition(":")
    if kind != "bpe" or not (size.isascii() and size.isdigit()) or int(size) not in BPE_SIZES:
        return None
    return int(size)


_ESCAPES = {"idna", "punycode", "raw_unicode_escape", "unicode_escape", "utf-7"}


def _is_encoding(spec: str) -> bool:
    name, colon, errors = spec.partition(":")
    if colon and errors != "replace":
        return False
    if name == "auto":
        return True
    # Python's own codecs only: an installed package may have put in one that takes any name.
    codec = encodings.search_function(name.lower()) if name.isascii() else None
    if codec is None or codec.name in _ESCAPES:
        return False
    try:
        "a".encode(codec.name)
    except (LookupError, ValueError):  # no text encoding, such as rot13
        return False
    return True


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults are the workshop's part 3.

    Raises:
        ConfigError: a value with which no training can work.
    """

    recipe: str = _option(
        "workshop", "; ".join(f"{name}: {recipe.help}" for name, recipe in RECIPES.items())
    )
    max_steps: int = _option(5000, "number of optimizer steps of the whole run")
    minutes: float = _option(0.0, "time for the run, spent as is best here; 0 = set the steps")
    batch_size: int = _option(64, "windows of text in each step")
    micro_batch_size: int = _option(
        0, "windows computed at a time: the same step in less memory, 0 = as suits the device"
    )
    learning_rate: float = _option(1e-3, "highest learning rate, reached after the warm-up")
    adamw_lr_ratio: float = _option(
        0.5, "recipe fast: AdamW's rate for embeddings and norms, as a share of Muon's"
    )
    min_lr_ratio: float = _option(0.1, "learning rate of the last step, as a share of the highest")
    warmup_steps: int = _option(100, "steps during which the learning rate rises to its highest")
    weight_decay: float = _option(0.01, "how strongly weights are pulled towards zero")
    grad_clip: float = _option(1.0, "gradients longer than this are shortened to it, 0 = never")
    val_fraction: float = _option(0.1, "share of the text, at its end, kept for validation")
    eval_interval: int = _option(100, "steps between two evaluations and samples")
    eval_tokens: int = _option(65_536, "most tokens of one evaluation while training")
    patience: int = _option(
        0, "evaluations in a row without a better val loss that end the run, 0 = any number"
    )
    checkpoint_interval: int = _option(1000, "steps between two checkpoints that are kept")
    evolution_mb: int = _option(
        100,
        "megabytes of disk for further checkpoints, ever further apart, that tell how the model"
        " grew up, 0 = none",
    )
    sample_prompt: str = _option("To be or not", "prompt of the samples drawn while training")
    sample_tokens: int = _option(100, "length of the samples drawn while training, 0 = none")
    seed: int = _option(1337, "decides the first weights, the order of the data and the samples")
    device: str = _option("auto", "auto, cpu, cuda, cuda:N or mps")
    precision: str = _option(
        "float32", "float32, bfloat16 (autocast), or auto: what a short trial finds faster"
    )
    compile: bool = _option(False, "compile the model with torch.compile: slow start, quick steps")
    tokenizer: str = _option("char", "char, or bpe:N for N tokens learned from the text")
    encoding: str = _option(
        "auto", "of the text: auto = UTF-8 or by its mark; NAME:replace shows bad bytes as \ufffd"
    )

    def __post_init__(self) -> None:
        _check(
            self.tokenizer == "char" or bpe_size(self.tokenizer) is not None,
            "tokenizer", self.tokenizer,
            f"char, or bpe:N with N from {BPE_SIZES[0]} to {BPE_SIZES[-1]:,}",
        )  # fmt: skip
        _check(
            _is_encoding(self.encoding), "encoding", self.encoding,
            "auto or the name of an encoding, such as cp1252 or utf-16",
        )  # fmt: skip
        _check(
            self.precision in PRECISIONS, "precision", self.precision,
            f"one of {', '.join(PRECISIONS)}",
        )  # fmt: skip
        _check(self.recipe in RECIPES, "recipe", self.recipe, f"one of {', '.join(RECIPES)}")
        _check_integers(
            self,
            dict(max_steps=1, batch_size=1, micro_batch_size=0, warmup_steps=0, eval_interval=1,
                 eval_tokens=1, patience=0, checkpoint_interval=1, evolution_mb=0, sample_tokens=0,
                 seed=0),
        )  # fmt: skip
        rate = self.learning_rate
        _check(_is_finite(rate) and rate > 0, "learning_rate", rate, "a number above 0")
        for name in ("minutes", "weight_decay", "grad_clip"):
            value = getattr(self, name)
            _check(_is_finite(value) and value >= 0, name, value, "a number, 0 or more")
        ratio = self.min_lr_ratio
        _check(_is_finite(ratio) and 0 <= ratio <= 1, "min_lr_ratio", ratio, "from 0 to 1")
        share = self.adamw_lr_ratio
        _check(_is_finite(share) and share > 0, "adamw_lr_ratio", share, "a number above 0")
        part = self.val_fraction
        _check(
            _is_finite(part) and 0 <= part < 1, "val_fraction", part, "at least 0 and less than 1"
        )
        _check(self.seed < 2**63, "seed", self.seed, "less than 2 to the power of 63")

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update number `step`, counted from 0.

        A linear rise over `warmup_steps`, then the recipe's way down to `min_lr_ratio` of the
        highest rate, which the last update has. It is above 0 from the first update on.
        """
        highest = self.learning_rate
        if step < self.warmup_steps:
            return highest * (step + 1) / self.warmup_steps
        lowest = highest * self.min_lr_ratio
        decay_steps = max(1, self.max_steps - 1 - self.warmup_steps)
        progress = min(1.0, (step - self.warmup_steps) / decay_steps)
        return lowest + (highest - lowest) * RECIPES[self.recipe].decay(progress)


def train_settings(chosen: Mapping[str, Any], device_type: str = "cpu") -> TrainConfig:
    """The settings of a training, from those that the user chose and the recipe's defaults.

    Args:
        device_type: "cpu", "cuda" or "mps": some defaults depend on it.

    Raises:
        ConfigError: a value cannot work, or two contradict each other.
    """
    if chosen.get("minutes") and "max_steps" in chosen:
        raise ConfigError(
            "minutes", chosen["minutes"], "left out where ", Setting("max_steps"),
            " is given: both tell the length",
        )  # fmt: skip
    defaults = train_defaults(chosen.get("recipe", DEFAULT_RECIPE), device_type)
    settings = TrainConfig(**{**defaults, **chosen})
    if "patience" in chosen:
        return settings
    return replace(settings, patience=usual_patience(settings))


_LEAST_PATIENCE = 5
"""Evaluations, however many steps lie between them."""


def usual_patience(settings: TrainConfig) -> int:
    """The patience of a training whose user says nothing about it, in evaluations.

    It is the recipe's for the usual interval, and the same number of steps for another.
    """
    usual = train_defaults(settings.recipe)
    steps: int = usual["patience"] * usual["eval_interval"]
    if not steps:
        return 0
    return max(_LEAST_PATIENCE, -(-steps // settings.eval_interval))


@dataclass(frozen=True)
class SampleConfig:
    """How to draw text from a model. The defaults are the workshop's part 4.

    Raises:
        ConfigError: a temperature that is negative, immense or no number, a top_k that is negative
            or fractional, a top_p or min_p outside its range, a length or seed below 0.
    """

    max_new_tokens: int = _option(200, "how many tokens to write")
    temperature: float = _option(0.8, "0 = always the likeliest, 1 = as learned, more = wilder")
    top_k: int = _option(40, "only the k likeliest tokens may be drawn, 0 = all")
    top_p: float = _option(1.0, "only the likeliest that add up to this share, 1 = all")
    min_p: float = _option(0.0, "only those at least this share as likely as the first, 0 = all")
    seed: int = _option(42, "the same seed writes the same text again")

    def __post_init__(self) -> None:
        _check_integers(self, dict(max_new_tokens=0, top_k=0, seed=0))
        heat = self.temperature
        need = "a number from 0 to 1,000,000"  # above it float32 tells no two tokens apart
        _check(_is_finite(heat) and 0 <= heat <= 1e6, "temperature", heat, need)
        share, least = self.top_p, self.min_p
        _check(_is_finite(share) and 0 < share <= 1, "top_p", share, "above 0 and at most 1")
        _check(_is_finite(least) and 0 <= least <= 1, "min_p", least, "from 0 to 1")
        _check(self.seed < 2**63, "seed", self.seed, "less than 2 to the power of 63")


class Preset(TypedDict):
    """The sizes that a name stands for."""

    n_layer: int
    n_head: int
    n_embd: int


PRESETS: Mapping[str, Preset] = {
    "tiny": Preset(n_layer=2, n_head=2, n_embd=128),
    "small": Preset(n_layer=4, n_head=4, n_embd=256),
    "medium": Preset(n_layer=6, n_head=6, n_embd=384),
    "large": Preset(n_layer=8, n_head=8, n_embd=512),
}
"""The workshop's sizes, by name."""

DEFAULT_PRESET = "tiny"
"""The size that a laptop without a GPU trains while its owner watches."""


def parse_field(config: type, name: str, text: str) -> Any:
    """Read a field's value from what a user typed.

    Raises:
        ConfigError: the text is not a value of the field's type.
    """
    kind = next(f.type for f in fields(config) if f.name == name)
    if kind is str:
        return text
    assert kind in (int, float, bool)
    try:
        return {"yes": True, "no": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError):
        needs = {int: "a whole number", float: "a number such as 0.8", bool: "yes or no"}
        raise ConfigError(name, text, needs[kind]) from None
