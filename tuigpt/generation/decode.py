"""Streaming generation: the workshop's own text, faster.

`plain` is the workshop's loop and the reference: whatever else generates here must give its ids. A
`TextGenerator` computes the same logits with a cache and rounds a little differently, so that in
very rare cases another token could win. It notices when a draw is that close, and lets `plain`'s
own computation decide it. The draw is always made on the CPU from a CPU generator, and so is such a
decision: a laptop and a GPU write the same text. (top-p and min-p, which the workshop does not
have, are drawn from the cached logits as they are.)

Past the edge of the context the workshop's window slides. Learned positions then make the cache
worthless, and each token costs one pass over the window. `window="rolling"` is for endless text:
when the window is full its newest half is kept and read again, so the cost stays flat. From there
on it is not the reference text, and not drawn as carefully.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.generation.kv_cache import CachedGPT
from tuigpt.generation.protocol import MAX_SAMPLES, Window
from tuigpt.generation.samplers import draw_noise, next_token_probs, pick, pick_surely
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.wording import with_line_feeds

WINDOWS: tuple[Window, ...] = get_args(Window)


@dataclass(frozen=True)
class Prompt:
    """A prompt as the model reads it.

    Attributes:
        text: the prompt with LF line ends and without the characters that have no token.
        dropped: those characters, each once.
        ids: (T,) int64, T at least 1.
    """

    text: str
    dropped: str
    ids: Tensor


def read_prompt(prompt: str, tokenizer: Tokenizer) -> Prompt:
    """Prepare what a user typed. One that is empty becomes a newline, or the first symbol."""
    unified = with_line_feeds(prompt)
    kept, dropped = tokenizer.split_unknown(unified)
    kept = kept or tokenizer.opening
    return Prompt(kept, dropped, torch.from_numpy(tokenizer.encode(kept)))


def plain(model: GPT, prompt_ids: Tensor, config: SampleConfig) -> Iterator[int]:
    """The reference: the workshop's loop, which re-feeds the window for every token.

    It crops the ids to the last `block_size`, runs the whole model on them, and draws from the
    last position with `torch.multinomial`, as after `torch.manual_seed(config.seed)`.

    Args:
        model: float32 on the CPU, in eval mode.
        prompt_ids: (T,) int64 with T at least 1.
    """
    generator = torch.Generator().manual_seed(config.seed)
    ids = prompt_ids
    for _ in range(config.max_new_tokens):
        with torch.inference_mode():
            logits = _plain_logits(model, ids[-model.config.block_size :])
            if config.temperature:
                probs = next_token_probs(logits, config)
                token = int(torch.multinomial(probs, 1, generator=generator))
            else:
                token = int(logits.argmax())
            ids = torch.cat((ids, ids.new_tensor([token])))
        yield token


def generate(model: GPT, prompt_ids: Tensor, config: SampleConfig) -> Iterator[int]:
    """Yield new tokens one by one, each as soon as it is drawn.

    Args:
        model: on any device, in any mode; it is left as it was.
        prompt_ids: (T,) int64 with T at least 1.

    Raises:
        UserError: the weights are broken.
    """
    for tokens in TextGenerator(model, prompt_ids, config):
        yield tokens[0]


class TextGenerator:
    """Writes one or more texts after a prompt: an iterator of one token for each.

    Sample number i draws from the seed `config.seed + i`, so each can be written again alone.
    Every token has its own draw, number t of its seed for token t, whether it is needed or not:
    a text continued from any place is the text that it would have been.

    Attributes:
        config: how to draw; it may be replaced between two tokens. The seed and the length are
            taken at the beginning.
        written: how many tokens each text has after the prompt.
        logits: what the newest tokens were drawn from, (samples, vocab_size) float32 on the CPU,
            or None before the first.
        recomputed: how many draws were too close and left to the plain computation.
        rolled: whether a rolling window has moved, so that this is not the reference text.
    """

    def __init__(
        self,
        model: GPT,
        prompt_ids: Tensor,
        config: SampleConfig,
        *,
        samples: int = 1,
        window: str = "sliding",
        forced_ids: Sequence[int] = (),
    ) -> None:
        """Prepare; the model is first run for the first token.

        Args:
            model: on any device; in any mode, it is left in it.
            prompt_ids: (T,) int64 with T at least 1, on any device.
            samples: number of texts.
            window: one of `WINDOWS`.
            forced_ids: tokens that each text is made to begin with, as if they had been drawn; they
                count towards `config.max_new_tokens`.

        Raises:
            ConfigError: the window has no such name, or the samples are too many or too few.
            UserError: a forced token is not in the model's vocabulary, or the memory is too small.
        """
        if window not in WINDOWS:
            raise ConfigError("window", window, f"one of {', '.join(WINDOWS)}")
        if not 1 <= samples <= MAX_SAMPLES:
            raise ConfigError("samples", samples, f"from 1 to {MAX_SAMPLES}")
        for token in forced_ids:
            if not 0 <= token < model.config.vocab_size:
                raise UserError(f"token {token!r} is not in the model's vocabulary")
        self.config = config
        self.written = len(forced_ids)
        self.logits: Tensor | None = None
        self.recomputed = 0
        self.rolled = False
        self._fresh: list[int] = []  # the newest tokens, not read yet
        self._length = config.max_new_tokens
        self._model = model
        self._reference: GPT | None = None
        self._rolling = window == "rolling"
        self._block_size = model.config.block_size
        self._device = model.lm_head.weight.device
        try:
            self._cached = CachedGPT(model, samples)
        except (RuntimeError, MemoryError):  # how PyTorch says that it cannot allocate
            raise UserError(
                f"{samples} texts in a context of {self._block_size:,} tokens do not fit into the"
                " memory; ask for fewer at a time"
            ) from None
        self._noise = torch.empty(samples, model.config.vocab_size)
        self._draws = [
            (row, torch.Generator().manual_seed((config.seed + i) % 2**63))
            for i, row in enumerate(self._noise)
        ]
        for _ in forced_ids:
            self._draw_noise()
        ids = np.append(prompt_ids.cpu().numpy(), np.array(forced_ids, dtype=np.int64))
        self._filled = min(len(ids), self._block_size)
        # What the model sees next, (samples, block_size), of which `_filled` places are in use;
        # one memory with two views, because single elements are quicker to move with NumPy.
        self._window = np.zeros((samples, self._block_size), dtype=np.int64)
        self._window[:, : self._filled] = ids[-self._block_size :]
        self._window_ids = torch.from_numpy(self._window)

    def __iter__(self) -> Iterator[list[int]]:
        return self

    def __next__(self) -> list[int]:
        """Draw the next token of each text.

        Raises:
            UserError: the weights are broken.
        """
        if self.written >= self._length:
            raise StopIteration
        with torch.inference_mode():
            self.logits = logits = self._read().float().cpu()
            self._draw_noise()
            tokens, sure = pick_surely(logits, self.config, self._noise)
            if not self.rolled and not all(sure):
                for row in [i for i, is_sure in enumerate(sure) if not is_sure]:
                    tokens[row] = self._recompute(row)
            self._fresh = tokens
        self.written += 1
        return tokens

    def _draw_noise(self) -> None:
        for row, generator in self._draws:
            draw_noise(row, generator)

    def _read(self) -> Tensor:
        """Bring the newest tokens into the window, and give the logits after them."""
        window, cached = self._window, self._cached
        if not self._fresh:
            # The texts differ only by their draws, so the beginning is read once for all.
            return cached.start(self._window_ids[0, : self._filled].to(self._device))
        if self._filled < self._block_size:
            window[:, self._filled] = self._fresh
            self._filled += 1
            return cached.step(self._window_ids[:, self._filled - 1].to(self._device))
        window[:, :-1] = window[:, 1:]
        window[:, -1] = self._fresh
        if not self._rolling:
            return cached.last_logits(self._window_ids.to(self._device))
        self.rolled = True
        self._filled = max(1, self._block_size // 2)
        window[:, : self._filled] = window[:, -self._filled :]
        return cached.start(self._window_ids[:, : self._filled].to(self._device))

    def _recompute(self, row: int) -> int:
        """Let the plain computation on the CPU decide a draw that rounding could."""
        self.recomputed += 1
        self._reference = model = self._reference or _on_cpu(self._model)
        was_training = model.training
        model.eval()
        try:
            logits = _plain_logits(model, self._window_ids[row, : self._filled])
        finally:
            model.train(was_training)
        return int(pick(logits, self.config, self._noise[row]))


def first_difference(
    model: GPT,
    prompt_ids: Tensor,
    config: SampleConfig,
    ids: Sequence[int],
    progress: Callable[[int], None] = lambda done: None,
) -> int | None:
    """Where a text differs from the reference text of the same settings.

    Args:
        model: float32, on any device; the comparison is made on the CPU.
        ids: the tokens after the prompt.
        progress: called with the number of tokens compared so far.

    Returns:
        the index of the first token that differs or that only one of the texts has, or None.
    """
    count = 0
    for token in plain(_on_cpu(model), prompt_ids, config):
        if count >= len(ids) or ids[count] != token:
            return count
        count += 1
        progress(count)
    return None if count == len(ids) else count


def refuse_broken_weights(model: GPT) -> None:
    """Raise UserError naming the first tensor of the model that holds NaN or infinity."""
    for name, weight in model.named_parameters():
        # A sum is finite only if every term is; so one pass without a mask is enough, mostly.
        if not torch.isfinite(weight.detach().sum()) and not torch.isfinite(weight).all():
            raise UserError(
                f"this checkpoint is broken at {name}: it holds values that are not finite;"
                " open an earlier checkpoint"
            )


def _on_cpu(model: GPT) -> GPT:
    """The model itself if it is on the CPU, else a copy there."""
    return model if model.lm_head.weight.device.type == "cpu" else copy.deepcopy(model).cpu()


def _plain_logits(model: GPT, ids: Tensor) -> Tensor:
    logits: Tensor = model(ids[None])[0][0, -1]  # (vocab_size,)
    return logits
