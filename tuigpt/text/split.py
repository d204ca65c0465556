"""Where a text is split into training and validation part, and whether both are long enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tuigpt.errors import Setting, UserError
from tuigpt.text.tokenizer import Ids

_AT_ONCE = 1 << 22
"""Tokens looked at in one go."""


class TokenIds(Protocol):
    """Token ids in memory or in a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Ids: ...


def train_characters(characters: int, val_fraction: float) -> int:
    """How many characters at the front are for training; the rest is for validation."""
    return int(characters * (1 - val_fraction))


def train_tokens(ids: TokenIds, token_characters: Ids, characters: int) -> int:
    """How many tokens at the front hold the first `characters` characters.

    So every tokenizer is measured on the same validation text. A token across the border counts
    to the training part.
    """
    if (token_characters == 1).all():
        return min(characters, len(ids))
    before = 0
    for first, part in _parts(ids):
        ends = before + np.cumsum(token_characters[part])
        if ends[-1] >= characters:
            # Tokens that begin no character belong to the one before them.
            within = int(np.searchsorted(ends, characters, side="left")) + (characters > 0)
            at = first + within
            while at < len(ids) and token_characters[int(ids[at : at + 1][0])] == 0:
                at += 1
            return at
        before = int(ends[-1])
    return len(ids)


def _parts(ids: TokenIds) -> Iterator[tuple[int, Ids]]:
    for first in range(0, len(ids), _AT_ONCE):
        yield first, np.asarray(ids[first : first + _AT_ONCE])


def check_split(n_train: int, n_val: int, block_size: int, unit: str = "characters") -> None:
    """Refuse parts that are too short to hold one window and the token after it.

    Args:
        n_val: 0 for no validation.
        unit: what is counted: "characters" or "tokens".

    Raises:
        UserError: names both sizes, and choices that work.
    """
    need = block_size + 1
    shorter = min(n_train, n_val) if n_val else n_train
    if shorter >= need:
        return
    total = n_train + n_val
    ways: list[tuple[str | Setting, ...]] = []
    if shorter > 1:
        ways.append((Setting("block_size", shorter - 1),))
    if n_val and unit == "characters" and (share := _working_share(total, need)):
        ways.append((Setting("val_fraction", f"{share:g}"),))
    if n_val and total >= need:
        ways.append((Setting("val_fraction", 0), " for no validation"))
    elif n_val and total > 2:
        ways.append((Setting("val_fraction", 0), " with ", Setting("block_size", total - 1)))
    both = f" and {n_val:,} for validation" if n_val else ""
    advice: list[str | Setting] = [] if ways else ["give a longer text"]
    for number, way in enumerate(ways):
        advice += [", or " if number else "try ", *way]
    raise UserError(
        f"the text is too short: it gives {n_train:,} {unit} to train on{both}, but ",
        Setting("block_size", block_size),
        f" needs at least {need:,}{' in each' if n_val else ''}; ",
        *advice,
    )


def _working_share(total: int, need: int) -> float | None:
    """The smallest round share for validation with which both parts are long enough."""
    for percent in range(1, 100):
        n_train = train_characters(total, percent / 100)
        if min(n_train, total - n_train) >= need:
            return percent / 100
    return None
