"""Recipes: how a training learns, as plain values that need no torch.

A recipe says which settings it comes with, how its learning rate falls, which optimizer learns
which parameters, and from which first weights. Whoever needs one of these facts looks it up here;
`training/optimizers.py` builds from it. Another recipe is another entry of `RECIPES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Parameters = Literal["all", "block matrices", "rest"]
"""Which parameters of a model: all of them, the matrices inside its blocks, or all but those."""

FirstWeights = Literal["pytorch", "silent branches"]
"""How a new model begins. "pytorch": as PyTorch's layers come. "silent branches": as in GPT-2
(Radford et al. 2019: normal with deviation 0.02, biases 0), with the projections that end the
residual branches at zero, so that the untrained model is its embeddings alone."""


class OptimizerRule(NamedTuple):
    """Which optimizer learns some of a model's parameters, and how.

    Attributes:
        optimizer: its class, as "module:name". It takes parameters (or groups of them), `lr`,
            `weight_decay` and the options.
        parameters: those that it learns.
        options: its own settings.
        takes_precision: whether `precision`, as the training has it, is an option of it.
        rate: the training's setting whose value times the learning rate is this optimizer's rate;
            None is the learning rate itself.
        decays: whether the training's weight decay is for these parameters.
        moments: numbers that it remembers for each parameter.
        workspace: numbers that it needs for each parameter while it computes an update.
        products: floating-point operations of an update in products of matrices, for each parameter
            and unit of the model's width.
    """

    optimizer: str
    parameters: Parameters
    options: Mapping[str, Any] = MappingProxyType({})
    takes_precision: bool = False
    rate: str | None = None
    decays: bool = True
    moments: int = 2
    workspace: float = 0.0
    products: float = 0.0


class Recipe(NamedTuple):
    """How a training learns.

    Attributes:
        help: what it is, in a few words.
        optimizers: the rules, which cover every parameter once.
        decay: from the share of the way after the warm-up, 0 to 1, to what is left of the range
            between highest and lowest learning rate, 1 to 0.
        first_weights: of a new model.
        defaults: what it sets in `TrainConfig` where the user sets nothing.
        defaults_on_cuda: what it sets otherwise where PyTorch says cuda.
    """

    help: str
    optimizers: tuple[OptimizerRule, ...]
    decay: Callable[[float], float]
    first_weights: FirstWeights = "pytorch"
    defaults: Mapping[str, Any] = MappingProxyType({})
    defaults_on_cuda: Mapping[str, Any] = MappingProxyType({})


def half_cosine(progress: float) -> float:
    """From 1 to 0 along half a cosine."""
    return 0.5 * (1 + math.cos(math.pi * progress))


def straight_line(progress: float) -> float:
    """From 1 to 0 in a straight line."""
    return 1 - progress


ADAMW = "torch.optim:AdamW"

RECIPES: dict[str, Recipe] = {
    "fast": Recipe(
        help="Muon for the matrices inside the blocks: the same loss several times sooner",
        optimizers=(
            OptimizerRule(
                "tuigpt.training.muon:Muon",
                "block matrices",
                takes_precision=True,
                moments=1,
                # It works on all matrices of a shape at once, at most a third of them: beside
                # every matrix's direction it holds their stack, two iterates, two Gram matrices.
                workspace=1 + 5 / 3,
                # Three iterations of three products: of a block's 12 squares of width by width the
                # four of attention take 6 cubes of the width each, the two fours of the MLP 18.
                products=3 * (4 * 6 + 2 * 18) / 12,
            ),
            OptimizerRule(
                ADAMW, "rest", dict(betas=(0.9, 0.95), fused=True),
                rate="adamw_lr_ratio", decays=False,
            ),
        ),
        decay=straight_line,
        first_weights="silent branches",
        defaults=dict(
            batch_size=16,
            learning_rate=0.02,
            min_lr_ratio=0.01,
            warmup_steps=20,
            weight_decay=0.1,
            patience=20,
            precision="auto",
        ),
        # On such a GPU many windows of a small model take hardly longer than few.
        defaults_on_cuda=dict(batch_size=64),
    ),
    "workshop": Recipe(
        help="AdamW, exactly as the workshop teaches it in its part 3",
        optimizers=(OptimizerRule(ADAMW, "all", dict(betas=(0.9, 0.999), fused=True)),),
        decay=half_cosine,
    ),
}  # fmt: skip
"""All recipes, by name. `TrainConfig`'s own defaults are the workshop's."""

DEFAULT_RECIPE = "fast"
