"""Text in, batches out: reading a text, splitting it, drawing windows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tuigpt.config import UserError
from tuigpt.core.tokenizer import CharTokenizer
from tuigpt.paths import asset

BUILT_IN = "shakespeare"
"""Names the text that ships with tuigpt; everything else is a path."""


@dataclass(frozen=True)
class Text:
    """A text as read from disk.

    Attributes:
        name: short name for people: the built-in's name, or the file's name without its suffix.
        path: where it was read.
        text: its characters, with line ends as LF and without a byte order mark.
        sha256: of the characters, encoded as UTF-8.
    """

    name: str
    path: Path
    text: str
    sha256: str


def read_text(source: str) -> Text:
    """Read the built-in text or a UTF-8 file, whatever the locale.

    Raises:
        UserError: no such file, a folder, unreadable, empty, or not UTF-8.
    """
    path = asset("shakespeare.txt") if source == BUILT_IN else Path(source).expanduser()
    name = source if source == BUILT_IN else path.stem
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"no text at {str(path)!r}: give the path of a text file, or {BUILT_IN!r}"
            " for the built-in one"
        ) from None
    except IsADirectoryError:
        raise UserError(f"{str(path)!r} is a folder: give the path of a text file") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{str(path)!r} is not UTF-8: byte {raw[error.start]:#04x} at offset {error.start},"
            f" line {line}; save it as UTF-8 and try again"
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise UserError(f"{str(path)!r} is {'blank' if text else 'empty'}: nothing to learn from")
    return Text(name, path.absolute(), text, hashlib.sha256(text.encode()).hexdigest())


class Corpus:
    """A tokenized text, split in two, resident on the device that trains on it.

    Attributes:
        train: token ids of the training part, (n_train,) int64 on the device.
        val: token ids of the validation part, (n_val,) int64 on the device; may be empty.
        block_size: length of a window.
    """

    def __init__(self, ids: Tensor, val_fraction: float, block_size: int) -> None:
        """Split token ids: the last `val_fraction` of them is for validation.

        Raises:
            UserError: a part is too short to hold one window and the token after it.
        """
        n_val = len(ids) - int(len(ids) * (1 - val_fraction))
        self.block_size = block_size
        self.train, self.val = ids[: len(ids) - n_val], ids[len(ids) - n_val :]
        need = block_size + 1
        sizes = f"{len(self.train):,} tokens to train on and {n_val:,} for validation"
        shorter = len(self.train) if not val_fraction else min(len(self.train), n_val)
        if shorter < need:
            way_on = f"try --block-size {shorter - 1}" if shorter > 2 else "give a longer text"
            if val_fraction and len(ids) >= need:
                way_on += ", or --val-fraction 0 to train without validation"
            raise UserError(
                f"the text is too short: it gives {sizes}, but --block-size {block_size} needs"
                f" at least {need:,} in each; {way_on}"
            )

    @classmethod
    def from_text(
        cls,
        text: str,
        tokenizer: CharTokenizer,
        val_fraction: float,
        block_size: int,
        device: torch.device,
    ) -> Corpus:
        """Tokenize a text onto a device. Raises as the constructor does."""
        ids = torch.from_numpy(tokenizer.encode(text)).to(device)
        return cls(ids, val_fraction, block_size)

    def batch(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw windows of the training part, their starts uniform.

        Args:
            generator: on the CPU, so that every device sees the same data in the same order.

        Returns:
            inputs and targets, (batch_size, block_size) each; a target is the next token.
        """
        last_start = len(self.train) - self.block_size
        starts = torch.randint(last_start, (batch_size, 1), generator=generator)
        offsets = torch.arange(self.block_size + 1)
        windows = self.train[(starts + offsets).to(self.train.device)]  # (B, T + 1), one gather
        return windows[:, :-1], windows[:, 1:]

    def val_batches(
        self, batch_size: int, max_tokens: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Walk over fixed windows of the validation part that do not overlap.

        Args:
            max_tokens: take so many windows that this number is not passed (but one at least),
                spread evenly over the part; None takes the whole part, its short tail included.

        Yields:
            inputs and targets, (B, T) each.
        """
        size = self.block_size
        n_full = (len(self.val) - 1) // size
        chosen = np.arange(n_full)
        if max_tokens is not None and max_tokens < n_full * size:
            count = max(1, max_tokens // size)
            chosen = np.arange(count) * n_full // count
        for first in range(0, len(chosen), batch_size):
            starts = torch.from_numpy(chosen[first : first + batch_size] * size)[:, None]
            windows = self.val[(starts + torch.arange(size + 1)).to(self.val.device)]
            yield windows[:, :-1], windows[:, 1:]
        tail = self.val[n_full * size :]
        if max_tokens is None and len(tail) > 1:
            yield tail[None, :-1], tail[None, 1:]
