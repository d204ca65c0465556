"""What simple counting reaches on a text, in nats per character: rulers for a model's loss.

All are measured on the validation part with counts of the training part. *Guessing* is ln of the
number of symbols. *Letters* counts symbols (a unigram model), with one added to each count
(Laplace). *Pairs* and *triples* (a bigram and a trigram model) count what follows one and two
symbols, and interpolate with the shorter context after Witten and Bell (1991): a context seen n
times with t different successors lends t / (n + t) of its probability to the shorter one. So
nothing has probability 0, and there is nothing to tune.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tuigpt.loss import Baselines
from tuigpt.text.read import Scan
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import CharTokenizer, Ids

MOST_CHARACTERS = 6_000_000
"""Characters that are counted; of a longer text evenly spread pieces."""

_PIECE = 50_000
_MOST_CELLS = 1 << 22  # up to here counting in a plain array beats sorting


def baselines(scan: Scan, val_fraction: float) -> Baselines:
    """The baselines of a text, of a long one from evenly spread pieces of both parts."""
    size = len(scan.symbols)
    guessing = round(math.log(size), 4)
    train, val = _parts(scan, val_fraction)
    if len(train) < 3 or len(val) < 3:
        return Baselines(guessing)
    counts = np.bincount(train, minlength=size)
    probs = (counts + 1) / (len(train) + size)
    lower = probs[val]
    losses = [_loss(lower)]
    for order in (1, 2):
        lower = _interpolate(lower, train, val, order, size)
        losses.append(_loss(lower))
    return Baselines(guessing, *losses)


def _loss(probs: NDArray[np.float64]) -> float:
    return round(float(-np.log(probs).mean()), 4)


def _interpolate(
    lower: NDArray[np.float64], train: Ids, val: Ids, order: int, size: int
) -> NDArray[np.float64]:
    """Probability of each symbol of `val` after the `order` symbols before it.

    The first ones, without so many before them, keep the probability `lower` of the shorter
    context. Symbols at the joint of two pieces are counted as if the text went on there.
    """
    context_cells = size**order
    train_context = _keys(train[:-1], order, size)
    val_context = _keys(val[:-1], order, size)
    pairs, counts = _count(train_context * size + train[order:], context_cells * size)
    contexts, seen = _count(train_context, context_cells)
    _, successors = _count(pairs // size, context_cells)  # the same contexts, in the same order
    n = _look_up(contexts, seen, val_context)
    t = _look_up(contexts, successors, val_context)
    together = _look_up(pairs, counts, val_context * size + val[order:])
    better = lower.copy()
    share = np.where(n > 0, t / np.maximum(n + t, 1), 1.0)
    better[order:] = together / np.maximum(n + t, 1) + share * lower[order:]
    return better


def _keys(ids: Ids, order: int, size: int) -> Ids:
    """One number for each run of `order` symbols."""
    return ids if order == 1 else ids[:-1] * size + ids[1:]


def _count(keys: Ids, cells: int) -> tuple[Ids, Ids]:
    """The different keys in ascending order, and how often each occurs."""
    if cells <= _MOST_CELLS:
        counts = np.bincount(keys, minlength=1)
        there = np.flatnonzero(counts)
        return there, counts[there]
    return np.unique(keys, return_counts=True)


def _look_up(keys: Ids, values: Ids, wanted: Ids) -> Ids:
    """The value of each wanted key, 0 where it does not occur."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def _parts(scan: Scan, val_fraction: float) -> tuple[Ids, Ids]:
    """Ids of the training and of the validation part, thinned out evenly to what is counted."""
    border = train_characters(scan.characters, val_fraction)
    tokenizer = CharTokenizer(scan.symbols)
    held = sum(len(piece) for _, piece in scan.pieces)
    every = -(-held // MOST_CHARACTERS)
    train, val = [], []
    number = 0
    for start, piece in scan.pieces:
        for at in range(0, len(piece), _PIECE):
            number += 1
            if number % every:
                continue
            part = piece[at : at + _PIECE]
            cut = min(len(part), max(0, border - start - at))
            train.append(part[:cut])
            val.append(part[cut:])
    return _ids(tokenizer, train), _ids(tokenizer, val)


def _ids(tokenizer: CharTokenizer, parts: Iterable[str]) -> Ids:
    return tokenizer.encode("".join(parts))
