"""What the model nearly wrote, and how surprised it is by a text."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import Candidate, Logprobs
from tuigpt.generation.samplers import (
    COLDEST,
    broken_logits,
    next_token_probs,
    scale_by_temperature,
)
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import Tokenizer

_BATCH = 8
"""Windows of a text that are read at once."""


def logprobs(
    logits: Tensor, token: int, config: SampleConfig, top: int, tokenizer: Tokenizer
) -> Logprobs:
    """What the model thought where `token` stands.

    Args:
        logits: (vocab_size,) float32 on the CPU.
        config: how tokens are drawn there.
        top: how many of the likeliest tokens are wanted; more than the vocabulary gives it all.
    """
    learned = torch.log_softmax(logits, -1)
    order = torch.sort(logits, descending=True, stable=True).indices[:top].tolist() if top else []
    values = logits.numpy()
    before = (values > values[token]).sum() + (values[:token] == values[token]).sum()
    drawn_from = next_token_probs(logits, config)
    tempered = drawn_from
    if config.temperature >= COLDEST:
        tempered = torch.softmax(scale_by_temperature(logits, config.temperature), -1)
    ids = [token, *order]
    # Through NumPy, because single elements of a tensor are slow to read.
    columns = [shares.numpy()[ids].tolist() for shares in (learned, tempered, drawn_from)]
    chosen, *others = (
        Candidate(i, tokenizer.decode([i]), math.exp(nats), after_temperature, drawn)
        for i, nats, after_temperature, drawn in zip(ids, *columns, strict=True)
    )
    return Logprobs(chosen, logprob=columns[0][0], rank=int(before) + 1, top_logprobs=others)


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
    # window counts in full, the others add what the one before did not reach.
    n_full = max(0, (len(ids) - 1 - size) // stride + 1)
    for first in range(0, n_full, _BATCH):
        starts = torch.arange(first, min(first + _BATCH, n_full)) * stride
        windows = ids[starts[:, None] + torch.arange(size + 1)].to(device)
        nats = _window_surprises(model, windows)
        if first == 0:
            yield nats[0, : size - stride]
        yield nats[:, size - stride :].flatten()
    done = size + (n_full - 1) * stride if n_full else 0  # surprises yielded so far
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
