"""Recipes: which optimizers, from which first weights, with which learning rate at which step.

`workshop` is the workshop's part 3: AdamW for everything, PyTorch's own first weights, a warm-up
and half a cosine. `fast` reaches the same loss several times sooner: Muon for the matrices inside
the blocks, AdamW for the rest, GPT-2's first weights with every residual branch silent, and a
linear decay.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from tuigpt.config import TrainConfig
from tuigpt.core.model import GPT


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for matrices only.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with
    its Nesterov momentum, its quintic Newton-Schulz iteration and its coefficients.

    It differs from `torch.optim.Muon` in two ways that a small model feels. It works in the
    gradient's own precision, because bfloat16 is many times slower than float32 on processors
    without it; and it works off all matrices of a shape at once. A matrix three times as tall as
    wide is taken as the three it consists of: the query, key and value projections.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        newton_schulz_steps: int = 5,
    ) -> None:
        """
        Args:
            params: matrices, (rows, columns) each.
            weight_decay: share of lr by which weights shrink in each step.
        """
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                weight_decay=weight_decay,
                newton_schulz_steps=newton_schulz_steps,
            ),
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient; a closure is not supported."""
        for group in self.param_groups:
            same_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum"] = torch.zeros_like(matrix)
                state["momentum"].lerp_(matrix.grad, 1 - group["momentum"])
                direction = matrix.grad.lerp(state["momentum"], group["momentum"])
                parts = 3 if matrix.size(0) == 3 * matrix.size(1) else 1
                for part, toward in zip(matrix.chunk(parts), direction.chunk(parts), strict=True):
                    same_shape[part.shape].append((part, toward))
            for shape, pairs in same_shape.items():
                updates = orthogonalised(
                    torch.stack([toward for _, toward in pairs]), group["newton_schulz_steps"]
                )
                # So that the entries of an update have one size, whatever the matrix's shape.
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for (part, _), update in zip(pairs, updates, strict=True):
                    part.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)


def orthogonalised(matrices: Tensor, steps: int) -> Tensor:
    """Move the singular values of matrices close to 1, by a quintic Newton-Schulz iteration.

    Args:
        matrices: (n, rows, columns).

    Returns:
        matrices of the same shape whose singular values lie roughly between 0.7 and 1.2.
    """
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = 3.4445, -4.7750, 2.0315
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


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
