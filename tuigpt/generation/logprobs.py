"""What the model nearly wrote, and how surprised it is by a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from tuigpt.config import SampleConfig
from tuigpt.generation.decode import Prompt, Writer
from tuigpt.generation.samplers import (
    COLDEST,
    broken_logits,
    next_token_probs,
    scale_by_temperature,
)
from tuigpt.model.gpt import GPT

_BATCH = 8
"""Windows of a text that are read at once."""


@dataclass(frozen=True)
class Candidate:
    """A token that could come next.

    Attributes:
        token: its id.
        learned: its probability as the model learned it.
        tempered: after temperature.
        drawn_from: after all samplers; 0 when they leave it out.
    """

    token: int
    learned: float
    tempered: float
    drawn_from: float


@dataclass(frozen=True)
class Insight:
    """One place in a text.

    Attributes:
        chosen: the token that stands there.
        logprob: natural logarithm of its probability as learned; minus this is the surprise.
        rank: 1 for the likeliest token; of equals, the lower id comes first.
        likeliest: the likeliest tokens, in order. The samplers keep that order, so these are the
            top alternatives before them and, while `drawn_from` is above 0, after them.
    """

    chosen: Candidate
    logprob: float
    rank: int
    likeliest: tuple[Candidate, ...]


def insight(logits: Tensor, token: int, config: SampleConfig, count: int) -> Insight:
    """What the model thought where it wrote `token`.

    Args:
        logits: (vocab_size,) float32 on the CPU.
        count: how many of the likeliest tokens are wanted; more than the vocabulary gives it all.
    """
    learned = torch.log_softmax(logits, -1)
    order = torch.sort(logits, descending=True, stable=True).indices
    drawn_from = next_token_probs(logits, config)
    tempered = drawn_from
    if config.temperature >= COLDEST:
        tempered = torch.softmax(scale_by_temperature(logits, config.temperature), -1)

    def candidate(i: int) -> Candidate:
        return Candidate(i, math.exp(learned[i]), float(tempered[i]), float(drawn_from[i]))

    return Insight(
        chosen=candidate(token),
        logprob=float(learned[token]),
        rank=int((order == token).nonzero()) + 1,
        likeliest=tuple(candidate(int(i)) for i in order[:count]),
    )


def next_token(
    model: GPT, prompt: Prompt, config: SampleConfig, count: int, given: Sequence[int] = ()
) -> Insight:
    """The distribution after a prompt, from learned to drawn, and what the seed picks.

    Args:
        count: how many of the likeliest tokens are wanted.
        given: ids that stand after the prompt, as if they had been drawn.

    Raises:
        UserError: the weights are broken.
    """
    config = replace(config, max_new_tokens=len(given) + 1)
    writer = Writer(model, prompt.ids, config, given=given)
    token = next(writer)[0]
    assert writer.logits is not None
    return insight(writer.logits[0], token, config, count)


def surprises(model: GPT, ids: Tensor) -> Iterator[Tensor]:
    """How surprising each token of a text is after those before it.

    The text is read in windows of `block_size` that overlap by half, so that every token but the
    first ones has at least half a window before it. The first token has none and is not measured.

    Args:
        model: in eval mode, on any device.
        ids: (T,) int64.

    Yields:
        parts of the T - 1 surprises in nats, in order, on the CPU.

    Raises:
        UserError: the weights are broken.
    """
    size = model.config.block_size
    stride = max(1, size // 2)
    device = model.lm_head.weight.device
    # Window number i predicts the tokens [i * stride + 1, i * stride + size]; only the first
    # window counts whole, the others add what the one before did not reach.
    n_full = max(0, (len(ids) - 1 - size) // stride + 1)
    for first in range(0, n_full, _BATCH):
        starts = torch.arange(first, min(first + _BATCH, n_full)) * stride
        windows = ids[starts[:, None] + torch.arange(size + 1)].to(device)
        nats = _window_surprises(model, windows)
        if first == 0:
            yield nats[0, : size - stride]
        yield nats[:, size - stride :].flatten()
    done = size + (n_full - 1) * stride if n_full else 0  # surprises given so far
    if done < len(ids) - 1:
        start = max(0, len(ids) - 1 - size)
        yield _window_surprises(model, ids[None, start:].to(device))[0, done - start :]


def _window_surprises(model: GPT, windows: Tensor) -> Tensor:
    with torch.inference_mode():
        logits = model(windows[:, :-1])[0].float()
        nats = F.cross_entropy(logits.transpose(1, 2), windows[:, 1:], reduction="none").cpu()
    if not torch.isfinite(nats).all():
        raise broken_logits()
    return nats


@dataclass(frozen=True)
class Score:
    """How well a model knows a text.

    Attributes:
        nats: surprise of all measured tokens together.
        tokens: measured tokens, one less than the text has.
        characters: of those tokens.
    """

    nats: float
    tokens: int
    characters: int

    @property
    def nats_per_character(self) -> float:
        return self.nats / self.characters if self.characters else math.nan

    @property
    def bits_per_character(self) -> float:
        return self.nats_per_character / math.log(2)

    @property
    def perplexity(self) -> float:
        """Among how many equally likely tokens the model would be as unsure, on average."""
        return math.exp(self.nats / self.tokens) if self.tokens else math.nan
