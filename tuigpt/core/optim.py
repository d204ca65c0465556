"""Recipes: which optimizer, and which learning rate at which step."""

import math

import torch
from torch import nn

from tuigpt.config import TrainConfig


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The workshop's AdamW over all parameters, with PyTorch's default betas."""
    return torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )


def learning_rate(step: int, config: TrainConfig) -> float:
    """Learning rate of the update number `step`, counted from 0.

    A linear rise over `warmup_steps`, then half a cosine down to `min_lr_ratio` of the highest
    rate, which the last update has. It is above 0 from the first update on.
    """
    highest = config.learning_rate
    if step < config.warmup_steps:
        return highest * (step + 1) / config.warmup_steps
    lowest = highest * config.min_lr_ratio
    decay_steps = max(1, config.max_steps - 1 - config.warmup_steps)
    progress = min(1.0, (step - config.warmup_steps) / decay_steps)
    return lowest + 0.5 * (highest - lowest) * (1 + math.cos(math.pi * progress))
