"""Recipes: which optimizers, from which first weights, with which learning rate at which step.

`workshop` is the workshop's part 3: AdamW for everything, PyTorch's own first weights, a warm-up
and half a cosine. `fast` reaches the same loss several times sooner: Muon for the matrices inside
the blocks, AdamW for the rest, GPT-2's first weights with every residual branch silent, and a
linear decay.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from tuigpt.config import TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.training.muon import Muon


def build_optimizers(model: GPT, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The recipe's optimizers. Each group's `share` times `learning_rate` is its rate."""
    if config.recipe == "workshop":
        groups = [{"params": list(model.parameters()), "share": 1.0}]
        return [_adamw(groups, config, betas=(0.9, 0.999), weight_decay=config.weight_decay)]
    matrices = [p for p in model.transformer.h.parameters() if p.ndim == 2]
    inside = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in inside]
    muon = Muon(matrices, config.learning_rate, weight_decay=config.weight_decay)
    muon.param_groups[0]["share"] = 1.0
    share = config.adamw_lr_ratio
    return [
        muon,
        _adamw([{"params": rest, "share": share}], config, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def _adamw(
    groups: list[dict[str, Any]],
    config: TrainConfig,
    betas: tuple[float, float],
    weight_decay: float,
) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=betas, weight_decay=weight_decay, fused=True
    )


@torch.no_grad()
def set_first_weights(model: GPT, config: TrainConfig) -> None:
    """Give a new model the recipe's first weights, drawn from torch's global generator.

    `workshop` keeps those that PyTorch's layers come with. `fast` takes GPT-2's (Radford et al.
    2019: normal with deviation 0.02, biases 0) and starts the projections that end the residual
    branches at zero, so that the untrained model is its embeddings alone.
    """
    if config.recipe == "workshop":
        return
    for name, parameter in model.named_parameters():
        if name.endswith("c_proj.weight") or name.endswith(".bias"):
            nn.init.zeros_(parameter)
        elif parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.02)


def learning_rate(step: int, config: TrainConfig) -> float:
    """Learning rate of the update number `step`, counted from 0.

    A linear rise over `warmup_steps`, then down to `min_lr_ratio` of the highest rate, which the
    last update has: along half a cosine (`workshop`) or a straight line (`fast`). It is above 0
    from the first update on.
    """
    highest = config.learning_rate
    if step < config.warmup_steps:
        return highest * (step + 1) / config.warmup_steps
    lowest = highest * config.min_lr_ratio
    decay_steps = max(1, config.max_steps - 1 - config.warmup_steps)
    progress = min(1.0, (step - config.warmup_steps) / decay_steps)
    remaining = 1 - progress
    if config.recipe == "workshop":
        remaining = 0.5 * (1 + math.cos(math.pi * progress))
    return lowest + (highest - lowest) * remaining
