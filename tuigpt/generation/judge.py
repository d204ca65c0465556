"""What a checkpoint's model makes of text: once, for the generator process and the shell.

Each function takes a checkpoint that `open_checkpoint` opened, and text as a user has it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.generation.decode import (
    TextGenerator,
    first_difference,
    read_prompt,
    refuse_broken_weights,
)
from tuigpt.generation.logprobs import logprobs, surprises
from tuigpt.generation.protocol import Logprobs, TextScore, Window, WindowSpeeds
from tuigpt.loss import bits
from tuigpt.model.checkpoint import LoadedCheckpoint, load_checkpoint

_MOMENT = 0.25
"""Seconds over which a speed is taken."""

OnProgress = Callable[[int, int], None]
"""Called with how much of the work is done and how much there is; it may raise to end it."""


def open_checkpoint(path: Path, device: torch.device) -> LoadedCheckpoint:
    """Open a checkpoint whose model can generate and judge.

    Raises:
        UserError: it cannot be opened, or its weights are not finite.
    """
    loaded = load_checkpoint(path, device)
    refuse_broken_weights(loaded.model)
    return loaded


def next_token(
    loaded: LoadedCheckpoint,
    prompt_ids: Tensor,
    config: SampleConfig,
    top: int,
    forced_ids: Sequence[int] = (),
) -> Logprobs:
    """The distribution after a prompt, from learned to drawn, and what the seed picks.

    Args:
        prompt_ids: (T,) int64 with T at least 1.
        top: how many of the likeliest tokens are wanted.
        forced_ids: tokens that stand after the prompt, as if they had been drawn.

    Raises:
        UserError: a forced token is not in the vocabulary, or the weights are broken.
    """
    config = replace(config, max_new_tokens=len(forced_ids) + 1)
    generator = TextGenerator(loaded.model, prompt_ids, config, forced_ids=forced_ids)
    token = next(generator)[0]
    assert generator.logits is not None
    return logprobs(generator.logits[0], token, config, top, loaded.tokenizer)


def score(
    loaded: LoadedCheckpoint, text: str, progress: OnProgress = lambda done, total: None
) -> TextScore:
    """How surprising a text is to the model.

    Raises:
        UserError: the weights are broken.
    """
    tokenizer = loaded.tokenizer
    read = read_prompt(text, tokenizer)
    left_out = sum(character in read.dropped for character in text)
    ids = read.ids if left_out < len(text) else read.ids[:0]  # an empty prompt is given a token
    parts, done = [torch.empty(0)], 0
    for part in surprises(loaded.model, ids) if len(ids) else ():
        parts.append(part)
        done += len(part)
        progress(done, len(ids) - 1)
    nats = torch.cat(parts)
    lengths = tokenizer.token_characters[ids.numpy()].tolist()
    characters = sum(lengths[1:])
    total = float(nats.double().sum())
    return TextScore(
        text=read.text if len(ids) else "",
        dropped=read.dropped,
        left_out=left_out,
        characters=characters,
        surprises=[round(surprise, 4) for surprise in nats.tolist()],
        nats_per_character=total / characters if characters else None,
        bits_per_character=bits(total / characters) if characters else None,
        perplexity=_exp(total / len(nats)) if len(nats) else None,
        token_characters=lengths,
    )


def window_speeds(loaded: LoadedCheckpoint) -> WindowSpeeds:
    """How quickly the model writes past its context, with each window, in less than a second.

    Raises:
        UserError: the weights are broken.
    """
    size = loaded.model.config.block_size
    ids, config = torch.zeros(size, dtype=torch.int64), SampleConfig(max_new_tokens=size + 9)

    def durations(window: Window) -> list[float]:
        """Seconds of some tokens after the window is full, each for itself."""
        generator = TextGenerator(loaded.model, ids, config, window=window)
        next(generator)
        found, began = list[float](), time.perf_counter()
        for _ in range(8):
            before = time.perf_counter()
            next(generator)
            found.append(time.perf_counter() - before)
            if time.perf_counter() - began > _MOMENT:
                break
        return found

    # The quickest of each kind, as other programs only ever slow them down. A rolling window
    # costs one reading of its newest half, and then a step for each token until it is full again.
    sliding = min(durations("sliding"))
    reading, *steps = durations("rolling")
    half = max(1, size // 2)
    rolling = (reading + (half - 1) * min(steps, default=reading)) / half
    return WindowSpeeds(sliding=1 / max(sliding, 1e-9), rolling=1 / max(rolling, 1e-9))


def verify(
    loaded: LoadedCheckpoint,
    prompt_ids: Tensor,
    config: SampleConfig,
    ids: Sequence[int],
    progress: OnProgress = lambda done, total: None,
) -> int | None:
    """Where a text differs from what the plain loop generates, on the CPU in float32.

    Args:
        ids: the tokens after the prompt.

    Returns:
        the index of the first token that differs or that only one of the texts has, or None.
    """
    return first_difference(
        loaded.model, prompt_ids, config, ids, lambda done: progress(done, len(ids))
    )


def _exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
