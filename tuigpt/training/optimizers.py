"""From a recipe's rules to optimizers and first weights."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tuigpt.config import TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.recipes import RECIPES, OptimizerRule

_COMPILER_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def have_compiler_cache(cache: Path) -> None:
    """Let PyTorch have a folder for compiled code, which it makes where its compiler is loaded.

    It is wherever PyTorch wants it, if it can be made there; call this before the first optimizer.

    Args:
        cache: tuigpt's own folder for what saves time.
    """
    try:
        os.makedirs(os.environ.get(_COMPILER_CACHE) or tempfile.gettempdir(), exist_ok=True)
    except OSError:  # such as in a container whose root cannot be written
        os.environ[_COMPILER_CACHE] = str(cache / "compiler")


def build_optimizers(model: GPT, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The recipe's optimizers. Each group's `share` times the learning rate is its rate."""
    return [_built(rule, model, config) for rule in RECIPES[config.recipe].optimizers]


def _built(rule: OptimizerRule, model: GPT, config: TrainConfig) -> torch.optim.Optimizer:
    module, _, name = rule.optimizer.partition(":")
    share = 1.0 if rule.rate is None else float(getattr(config, rule.rate))
    groups: list[dict[str, Any]] = [{"params": _parameters(rule, model), "share": share}]
    options = dict(rule.options)
    if rule.takes_precision:
        options["precision"] = "bfloat16" if config.precision == "bfloat16" else "float32"
    optimizer: torch.optim.Optimizer = _without_compiler(getattr(import_module(module), name))(
        groups,
        lr=config.learning_rate,
        weight_decay=config.weight_decay if rule.decays else 0.0,
        **options,
    )
    return optimizer


@cache
def _without_compiler(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """The same optimizer, one that does not load PyTorch's compiler.

    Those of PyTorch 2.13 load it at the first update, only to tell it that they are not to be
    compiled: a second, and a hundred megabytes.
    """
    for method in vars(torch.optim.Optimizer).values():
        if hasattr(method, "__wrapped__"):
            vars(unwrap(method)).setdefault("__dynamo_disable", unwrap(method))
    step = torch.no_grad()(unwrap(kind.step))
    return type(kind.__name__, (kind,), {"step": step})


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


def state_layout(optimizer: torch.optim.Optimizer) -> dict[str, tuple[torch.Size | None, Any]]:
    """What an optimizer remembers of each parameter once it has updated it.

    Returns:
        shape and dtype by name; the shape is None where it is the parameter's own.
    """
    group = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
    like = optimizer.param_groups[0]["params"][0]
    probe = nn.Parameter(torch.zeros(3, 5, dtype=like.dtype, device=like.device))
    probe.grad = torch.zeros_like(probe)
    trial = type(optimizer)([{"params": [probe], **group}], lr=group["lr"])  # type: ignore[call-arg]
    trial.step()
    return {
        name: (None if value.shape == probe.shape else value.shape, value.dtype)
        for name, value in trial.state[probe].items()
        if isinstance(value, torch.Tensor)
    }
