"""From logits to the next token: pure functions over the last dimension.

The samplers work in this order, each on what the one before left: temperature, top-k, top-p,
min-p; then one token is drawn. All filters keep a head of the tokens ordered by likelihood.

The draw is `torch.multinomial`'s own: probabilities divided by exponential noise, the largest
quotient wins. Having the noise shows how close the draw was (`pick_surely`).
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError

COLDEST = 1e-6
"""Temperatures below it count as 0, because dividing by them overflows float32; the limit of the
distribution is the likeliest token alone."""

ROUNDING = 2.0**-15
"""How far two ways to compute the same logits may differ, relative to the largest logit: about
fifty times what cached and plain float32 passes are seen to differ by."""


def scale_by_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide the logits by a temperature, at least `COLDEST`; 1 leaves them as learned.

    Source: Ackley, Hinton and Sejnowski, "A Learning Algorithm for Boltzmann Machines" (1985).
    """
    return logits / temperature


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Set every logit below the k-th largest to -inf; ties with the k-th stay.

    Args:
        logits: (..., vocab_size).
        k: 0, or anything from vocab_size up, keeps all.

    Source: Fan, Lewis and Dauphin, "Hierarchical Neural Story Generation" (2018), section 5.1;
    ties as in the workshop's part 4.
    """
    if k <= 0 or k >= logits.size(-1):
        return logits
    kth_largest = torch.topk(logits, k).values[..., -1:]
    return logits.masked_fill(logits < kth_largest, -torch.inf)


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    """Keep the fewest likeliest tokens whose probabilities add up to p; set others to -inf.

    Args:
        logits: (..., vocab_size); -inf counts as left out already.
        p: above 0; 1 keeps all. At least one token stays; of equals, the lower ids.

    Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020), section 3.1.
    """
    if p >= 1:
        return logits
    ordered, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    probs = torch.softmax(ordered, dim=-1)
    before = probs.cumsum(-1) - probs  # what the likelier tokens have together
    left_out = before >= p
    left_out[..., 0] = False
    return logits.masked_fill(left_out.scatter(-1, order, left_out), -torch.inf)


def min_p_filter(logits: Tensor, min_p: float) -> Tensor:
    """Set every token less likely than `min_p` times the likeliest to -inf; 0 keeps all.

    Source: Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM
    Outputs" (2024), section 3, with p(x) >= min_p * p_max taken in logarithms.
    """
    if min_p <= 0:
        return logits
    threshold = logits.amax(-1, keepdim=True) + math.log(min_p)
    return logits.masked_fill(logits < threshold, -torch.inf)


def apply_samplers(logits: Tensor, config: SampleConfig) -> Tensor:
    """Temperature, top-k, top-p, min-p, in this order.

    Args:
        logits: (..., vocab_size) float, finite.

    Returns:
        logits whose softmax is drawn from, (..., vocab_size). A temperature of 0 leaves one token,
        the likeliest; of equals, the one with the lowest id.
    """
    if config.temperature < COLDEST:
        likeliest = logits.argmax(-1, keepdim=True)
        return torch.full_like(logits, -torch.inf).scatter(-1, likeliest, 0.0)
    logits = scale_by_temperature(logits, config.temperature)
    logits = top_k_filter(logits, config.top_k)
    logits = top_p_filter(logits, config.top_p)
    return min_p_filter(logits, config.min_p)


def next_token_probs(logits: Tensor, config: SampleConfig) -> Tensor:
    """The distribution that the next token is drawn from, (..., vocab_size)."""
    return torch.softmax(apply_samplers(logits, config), dim=-1)


def draw_noise(out: Tensor, generator: torch.Generator) -> Tensor:
    """Fill `out` (vocab_size,) with the exponential noise of one `torch.multinomial` draw."""
    return out.exponential_(1, generator=generator)


def pick(logits: Tensor, config: SampleConfig, noise: Tensor) -> Tensor:
    """Draw the next token with the noise of a draw, as `torch.multinomial` would.

    Args:
        logits: (..., vocab_size) float32 on the CPU.
        noise: of the same shape, from `draw_noise`.

    Returns:
        ids, (...) int64.

    Raises:
        UserError: a logit is not finite, so the weights are broken.
    """
    if not torch.isfinite(logits).all():
        raise broken_logits()
    if config.temperature < COLDEST:
        return logits.argmax(-1)
    return (next_token_probs(logits, config) / noise).argmax(-1)


def broken_logits() -> UserError:
    """The refusal when a model's logits are not finite."""
    return UserError(
        "this checkpoint is broken: its weights give logits that are not finite;"
        " open an earlier checkpoint"
    )


class SurePick(NamedTuple):
    """A draw, and whether rounding could have changed it.

    Attributes:
        tokens: one id for each row.
        sure: False where the draw was so close that differently rounded logits may give another.
    """

    tokens: list[int]
    sure: list[bool]


def pick_surely(logits: Tensor, config: SampleConfig, noise: Tensor) -> SurePick:
    """Draw like `pick`, and say where `ROUNDING` could decide.

    In logarithms the winner is the largest of `logit / temperature - log(noise)` among the kept
    tokens. A draw is sure when the winner is kept, and leads everyone who may be kept, whatever
    the rounding.

    With top-p or min-p every draw counts as sure: no other program has them in this order, so
    there is no text that rounding could depart from.

    Args:
        logits: (rows, vocab_size) float32 on the CPU.
        noise: of the same shape.

    Raises:
        UserError: a logit is not finite.
    """
    heat, k = config.temperature, config.top_k
    if heat >= COLDEST and (config.top_p < 1 or config.min_p > 0):
        return SurePick(pick(logits, config, noise).tolist(), [True] * len(logits))
    # NumPy, because on so few numbers an operation costs a tenth of what it does in PyTorch.
    values = logits.numpy()
    rows, vocab_size = np.arange(values.shape[0]), values.shape[1]
    highest, lowest = values.max(1), values.min(1)
    if not (np.isfinite(highest) & np.isfinite(lowest)).all():
        raise broken_logits()
    slack = 2 * ROUNDING * np.maximum(1.0, np.maximum(np.abs(highest), np.abs(lowest)))[:, None]
    if heat < COLDEST:
        scores, room, k = values.copy(), slack, 0
    else:
        scores, room = values / np.float32(heat) - np.log(noise.numpy()), slack / heat
    if 0 < k < vocab_size:
        ordered = np.partition(values, (vocab_size - k - 1, vocab_size - k), axis=1)
        after_kth, kth = ordered[:, vocab_size - k - 1], ordered[:, vocab_size - k]
        scores[values < kth[:, None] - slack] = -np.inf
    winner = scores.argmax(1)
    best = scores[rows, winner]
    scores[rows, winner] = -np.inf
    sure = best - scores.max(1) > room[:, 0]
    if 0 < k < vocab_size:
        sure &= values[rows, winner] > after_kth + slack[:, 0]
    return SurePick(winner.tolist(), sure.tolist())
