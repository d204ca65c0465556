"""Tokens in, batches out: drawing windows from the two parts of a text."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
import torch
from torch import Tensor

from tuigpt.model.device import memory_bytes
from tuigpt.text.split import TokenIds, check_split, train_characters, train_tokens
from tuigpt.text.token_file import TokenFile
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer

RESIDENT_BYTES = 64 << 20
"""Most bytes of token ids that are held in memory; more are read from their file."""

GPU_SHARE = 8
"""A GPU holds token ids as long as they take less than this part of its memory."""

_AT_ONCE = 16 << 20
"""Token ids that are on their way to the device at a time."""


class Corpus:
    """A tokenized text, split in two.

    Small texts lie on the device that trains on them; large ones stay in their file. Both give
    the same windows in the same order.

    Attributes:
        n_train: number of tokens of the training part, at the front.
        n_val: number of tokens of the validation part behind it; may be 0.
        block_size: length of a window.
        token_characters: how many characters begin in each token, (vocab_size,) int64 on the
            device.
    """

    def __init__(
        self,
        ids: TokenIds,
        tokenizer: Tokenizer,
        n_train_characters: int,
        block_size: int,
        device: torch.device,
        *,
        resident_bytes: int | None = None,
    ) -> None:
        """Split token ids where the training part's characters end.

        Args:
            resident_bytes: most bytes of token ids that are held on the device; None is as suits
                it.

        Raises:
            UserError: a part is too short to hold one window and the token after it.
        """
        per_token = tokenizer.token_characters
        self._tokenizer = tokenizer
        self.n_train = train_tokens(ids, per_token, n_train_characters)
        self.n_val = len(ids) - self.n_train
        self.block_size = block_size
        self.token_characters = torch.from_numpy(per_token).to(device)
        total = len(ids)
        unit = "characters" if isinstance(tokenizer, CharTokenizer) else "tokens"
        check_split(self.n_train, self.n_val, block_size, unit)
        self._device = device
        self._on_device: Tensor | None = None
        self._in_file = ids
        width = torch.uint8 if len(per_token) <= 256 else torch.int32
        if resident_bytes is None:
            resident_bytes = RESIDENT_BYTES
            if device.type == "cuda":
                resident_bytes = memory_bytes(device) // GPU_SHARE
        if not isinstance(ids, TokenFile) or total * width.itemsize <= resident_bytes:
            self._on_device = torch.empty(total, dtype=width, device=device)
            for first in range(0, total, _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                self._on_device[part] = torch.from_numpy(ids[part])

    @classmethod
    def from_text(
        cls,
        text: str,
        tokenizer: Tokenizer,
        val_fraction: float,
        block_size: int,
        device: torch.device,
    ) -> Corpus:
        """Tokenize a text in memory. Raises as the constructor does."""
        n_train = train_characters(len(text), val_fraction)
        return cls(tokenizer.encode(text), tokenizer, n_train, block_size, device)

    def with_block_size(self, block_size: int) -> Corpus:
        """The same tokens, cut into other windows. Raises as the constructor does."""
        unit = "characters" if isinstance(self._tokenizer, CharTokenizer) else "tokens"
        check_split(self.n_train, self.n_val, block_size, unit)
        other = copy(self)
        other.block_size = block_size
        return other

    def batch(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw windows of the training part, their starts uniform.

        Args:
            generator: on the CPU, so that every device sees the same data in the same order.

        Returns:
            inputs and targets, (batch_size, block_size) int64 each; a target is the next token.
        """
        last_start = self.n_train - self.block_size
        starts = torch.randint(last_start, (batch_size, 1), generator=generator)
        windows = self._windows(starts, self.block_size + 1)
        return windows[:, :-1], windows[:, 1:]

    def pieces(self, most_tokens: int) -> Iterator[str]:
        """The beginning of the text, in pieces of which each begins anew with a token."""
        end = min(len(self._in_file), most_tokens)
        for first in range(0, end, _AT_ONCE // 4):
            yield self._tokenizer.decode(self._in_file[first : min(end, first + _AT_ONCE // 4)])

    def val_batches(
        self, batch_size: int, max_tokens: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Walk over fixed windows of the validation part that do not overlap.

        Args:
            max_tokens: take so many windows that this number is not passed (but one at least),
                spread evenly over the part; None takes the whole part, its short tail included.

        Yields:
            inputs and targets, (B, T) int64 each.
        """
        chosen = self._val_windows(max_tokens)
        size = self.block_size
        for first in range(0, len(chosen), batch_size):
            starts = torch.from_numpy(chosen[first : first + batch_size] * size)[:, None]
            windows = self._windows(self.n_train + starts, size + 1)
            yield windows[:, :-1], windows[:, 1:]
        at = max(0, self.n_val - 1) // size * size
        if max_tokens is None and self.n_val - at > 1:
            tail = self._windows(torch.tensor([[self.n_train + at]]), self.n_val - at)
            yield tail[:, :-1], tail[:, 1:]

    def n_val_batches(self, batch_size: int, max_tokens: int | None = None) -> int:
        """How many batches `val_batches` gives for the same arguments."""
        full = -(-len(self._val_windows(max_tokens)) // batch_size)
        at = max(0, self.n_val - 1) // self.block_size * self.block_size
        return full + (max_tokens is None and self.n_val - at > 1)

    def _val_windows(self, max_tokens: int | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        size = self.block_size
        n_full = max(0, self.n_val - 1) // size
        if max_tokens is None or max_tokens >= n_full * size:
            return np.arange(n_full)
        count = max(1, max_tokens // size)
        return np.arange(count) * n_full // count

    def _windows(self, starts: Tensor, length: int) -> Tensor:
        """The tokens from each of `starts`, (B, 1), on: (B, length) int64 on the device."""
        places = starts + torch.arange(length)
        if self._on_device is not None:
            return self._on_device[self._sent(places)].long()  # one gather a batch
        gathered = self._in_file[places.numpy()]  # type: ignore[index]
        return self._sent(torch.from_numpy(gathered))

    def _sent(self, tensor: Tensor) -> Tensor:
        """A tensor of this processor on the device, without waiting for what that is at."""
        if self._device.type == "cuda":  # which fetches by itself, but from pinned memory only
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)
