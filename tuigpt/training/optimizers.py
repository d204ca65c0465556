"""From a recipe's rules to optimizers and first weights."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import nn

from tuigpt.config import TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.recipes import RECIPES, OptimizerRule


def build_optimizers(model: GPT, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The recipe's optimizers. Each group's `share` times the learning rate is its rate."""
    return [_built(rule, model, config) for rule in RECIPES[config.recipe].optimizers]


def _built(rule: OptimizerRule, model: GPT, config: TrainConfig) -> torch.optim.Optimizer:
    module, _, name = rule.optimizer.partition(":")
    share = 1.0 if rule.rate is None else float(getattr(config, rule.rate))
    groups: list[dict[str, Any]] = [{"params": _parameters(rule, model), "share": share}]
    optimizer: torch.optim.Optimizer = getattr(import_module(module), name)(
        groups,
        lr=config.learning_rate,
        weight_decay=config.weight_decay if rule.decays else 0.0,
        **rule.options,
    )
    return optimizer


def _parameters(rule: OptimizerRule, model: GPT) -> list[nn.Parameter]:
    matrices = [p for p in model.transformer.h.parameters() if p.ndim == 2]
    inside = {id(p) for p in matrices}
    match rule.parameters:
        case "block matrices":
            return matrices
        case "rest":
            return [p for p in model.parameters() if id(p) not in inside]
        case "all":
            return list(model.parameters())


@torch.no_grad()
def set_first_weights(model: GPT, config: TrainConfig) -> None:
    """Give a new model the recipe's first weights, drawn from torch's global generator."""
    if RECIPES[config.recipe].first_weights == "pytorch":
        return
    for name, parameter in model.named_parameters():
        if name.endswith("c_proj.weight") or name.endswith(".bias"):
            nn.init.zeros_(parameter)
        elif parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.02)
