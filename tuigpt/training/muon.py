"""Muon: momentum whose update is made orthogonal, for the matrices inside the blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_A, _B, _C = 3.4445, -4.7750, 2.0315
"""An iteration makes a X + b (X Xᵀ) X + c (X Xᵀ)² X of X."""


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for matrices only.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with
    its Nesterov momentum, its quintic Newton-Schulz iteration and its coefficients.

    It differs from `torch.optim.Muon` in two ways that a small model feels. It iterates in bfloat16
    only where it is told to, because that is many times slower than float32 on processors without
    it; and it works off all matrices of a shape at once. A matrix three times as tall as wide is
    taken as the three it consists of: the query, key and value projections.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        newton_schulz_steps: int = 5,
        precision: str = "float32",
    ) -> None:
        """
        Args:
            params: matrices, (rows, columns) each, or groups of them.
            weight_decay: share of lr by which weights shrink in each step.
            precision: what the iteration is computed in, float32 or bfloat16.
        """
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                weight_decay=weight_decay,
                newton_schulz_steps=newton_schulz_steps,
                precision=precision,
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
            dtype = getattr(torch, group["precision"])
            for shape, pairs in same_shape.items():
                directions = torch.stack([toward for _, toward in pairs]).to(dtype)
                updates = orthogonalised(directions, group["newton_schulz_steps"])
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
    wide = x.size(-1) >= 2 * x.size(-2)
    if wide and x.dtype == torch.float32 and not x.is_cuda:
        x = _iterated_on_squares(x, steps)
    else:
        for _ in range(steps):
            x = torch.baddbmm(x, _polynomial(x @ x.mT), x, beta=_A)
    return x.mT if tall else x


def _polynomial(gram: Tensor) -> Tensor:
    """What an iteration multiplies a matrix with, but for its first term, from X Xᵀ."""
    return torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)


def _iterated_on_squares(x: Tensor, steps: int) -> Tensor:
    """The same iteration on X Xᵀ alone, whose factors are gathered and multiplied with X once.

    It takes a third less time for matrices four times as wide as high. X Xᵀ has the squares of the
    singular values, so that this needs all the digits of float32: no bfloat16, and no TF32.
    """
    gram = x @ x.mT
    factors = None
    for step in range(steps):
        factor = _polynomial(gram)
        factor.diagonal(dim1=-2, dim2=-1).add_(_A)
        factors = factor if factors is None else factor @ factors
        if step < steps - 1:
            gram = factor @ (factor @ gram)  # all of these are polynomials of X Xᵀ, and commute
    return x if factors is None else factors @ x
