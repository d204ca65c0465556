"""Muon: momentum whose update is made orthogonal, for the matrices inside the blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_COEFFICIENTS = tuple(
    (a / 1.01, b / 1.01**3, c / 1.01**5)
    for a, b, c in (
        (8.28721201814563, -23.595886519098837, 17.300387312530933),
        (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
        (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    )
)
"""Each iteration makes a X + b (X Xᵀ) X + c (X Xᵀ)² X of X: the best three for singular values from
0.001 to 1, which 1.01 keeps away from where rounding would let them grow.

Source: Amsel et al., "The Polar Express: Optimal Matrix Sign Methods and Their Application to the
Muon Algorithm" (2025).
"""


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for matrices only.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with
    its Nesterov momentum.

    It differs from `torch.optim.Muon` in three ways that a small model feels. It iterates in
    bfloat16 only where it is told to, because that is many times slower than float32 on processors
    without it; it works off all matrices of a shape at once; and three iterations do what five do
    there. A matrix three times as tall as wide is taken as the three it consists of: the query, key
    and value projections.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
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
                updates = orthogonalised(directions)
                # So that the entries of an update have one size, whatever the matrix's shape.
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for (part, _), update in zip(pairs, updates, strict=True):
                    part.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Move the singular values of matrices close to 1, by a quintic Newton-Schulz iteration.

    Args:
        matrices: (n, rows, columns).

    Returns:
        matrices of the same shape, whose singular values are around 1, from 0.13 to 1.87; only
        those below a thousandth of the bound on the largest stay smaller.
    """
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    # The norm of X Xᵀ bounds the square of the largest singular value closer than that of X does.
    gram = x @ x.mT
    bound = gram.norm(dim=(-2, -1), keepdim=True) + 1e-7
    x, gram = x / bound.sqrt(), gram / bound
    wide = x.size(-1) >= 2 * x.size(-2)
    if wide and x.dtype == torch.float32 and not x.is_cuda:
        x = _iterated_on_squares(x, gram)
    else:
        (a, b, c), *others = _COEFFICIENTS
        x = torch.baddbmm(x, _polynomial(gram, b, c), x, beta=a)
        for a, b, c in others:
            x = torch.baddbmm(x, _polynomial(x @ x.mT, b, c), x, beta=a)
    return x.mT if tall else x


def _polynomial(gram: Tensor, b: float, c: float) -> Tensor:
    """What an iteration multiplies a matrix with, but for a times the identity, from X Xᵀ."""
    return torch.baddbmm(gram, gram, gram, beta=b, alpha=c)


def _iterated_on_squares(x: Tensor, gram: Tensor) -> Tensor:
    """The same iteration on X Xᵀ alone, whose factors are gathered and multiplied with X once.

    It takes a third less time for matrices four times as wide as high. X Xᵀ has the squares of the
    singular values, so that this needs all the digits of float32: no bfloat16, and no TF32.
    """
    first, *others = _COEFFICIENTS
    factors = factor = _factor(gram, *first)
    for coefficients in others:
        gram = factor @ (factor @ gram)  # all of these are polynomials of X Xᵀ, and commute
        factor = _factor(gram, *coefficients)
        factors = factor @ factors
    return factors @ x


def _factor(gram: Tensor, a: float, b: float, c: float) -> Tensor:
    """What an iteration multiplies a matrix with, from X Xᵀ."""
    factor = _polynomial(gram, b, c)
    factor.diagonal(dim1=-2, dim2=-1).add_(a)
    return factor
