"""Did it write or recite? The parts of a text that stand letter for letter in its training text.

The training text streams by once and is never held: whatever occurs in it with at least so many
characters begins with a stretch of exactly so many, and those are few in the text that is judged.
All stretches of the training text are hashed, by numpy, and looked up among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuigpt.errors import UserError
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.named import reopen
from tuigpt.text.tokenizer import Ids, code_points

OnProgress = Callable[[int, int], None]
"""Called with how much of the training text is read and how much there is; it may raise to end it.
"""

MOST_PLACES = 10_000
"""Places of one stretch that are compared; what is repeated more often may be cut into several."""

_FACTOR = 0x9E3779B97F4A7C15  # odd; its powers scatter well modulo 2**64
_TABLE_BITS = 22


@dataclass(frozen=True)
class Span:
    """A part of a text that stands in the training text letter for letter.

    Attributes:
        start: where it begins in the text.
        length: its characters.
        place: where one occurrence begins in the training text, in characters.
        line: the line of that place, counted from 1.
    """

    start: int
    length: int
    place: int
    line: int


def find_copies(text: str, at_least: int, training_text: Iterable[str]) -> list[Span]:
    """The copied parts of a text, in order; they do not overlap.

    The longest copies are taken first. Of one that overlaps a longer one the rest counts, if it is
    long enough itself.

    Args:
        at_least: shortest length that counts, in characters, 1 or more.
        training_text: in pieces of any size, from the beginning.
    """
    if len(text) < at_least:
        for _ in training_text:
            pass  # whoever streams it may check it on its way
        return []
    stretches = _Stretches(text, at_least)
    found = _Occurrences(stretches, _hits(stretches, training_text))
    free = np.ones(len(text), dtype=bool)
    spans = []
    for match in sorted(found.matches(), key=lambda match: -match.length):
        rest = np.flatnonzero(free[match.start : match.start + match.length])
        if len(rest) < at_least:
            continue
        # No match lies inside another, so longer ones cover its ends only.
        skipped = int(rest[0])
        start = match.start + skipped
        free[start : start + len(rest)] = False
        line = match.line + text.count("\n", match.start, start)
        spans.append(Span(start, len(rest), match.place + skipped, line))
    return sorted(spans, key=lambda span: span.start)


def find_copies_of_training(
    facts: CorpusFacts,
    text: str,
    at_least: int,
    cache: Path,
    progress: OnProgress = lambda done, total: None,
) -> list[Span]:
    """`find_copies` in the text that a checkpoint was trained on.

    Args:
        facts: of that text (see `find_corpus`).
        cache: folder with the texts that were fetched.

    Raises:
        UserError: the checkpoint does not name its text, or the text is gone or has changed.
    """
    return find_copies(text, at_least, training_text(facts, cache, progress))


def training_text(
    facts: CorpusFacts, cache: Path, progress: OnProgress = lambda done, total: None
) -> Iterator[str]:
    """The text that a checkpoint was trained on, in pieces.

    Args:
        facts: of that text (see `find_corpus`).
        cache: folder with the texts that were fetched.
        progress: called with the characters read so far, and all of them.

    Raises:
        UserError: the checkpoint does not name its text, or the text is gone, or, at its end, that
            it is another one.
    """
    if not facts.sha256:
        raise UserError("this checkpoint does not say which text it was trained on")
    digest = hashlib.sha256()
    try:
        source = reopen(facts, cache=cache)
        done = 0
        for chunk in source.chunks():
            progress(done, facts.characters)
            done += len(chunk)
            digest.update(chunk.encode())
            yield chunk
    except UserError as error:
        raise UserError(
            "the text this model was trained on cannot be used: ", *error.parts
        ) from None
    if digest.hexdigest() != facts.sha256:
        raise UserError(
            f"the text this model was trained on, {source.sources[0]!r}, has changed since then"
        )


def share_copied(spans: Sequence[Span], length: int) -> float:
    """The share of a text's characters that lie in the spans, from 0 to 1."""
    return sum(span.length for span in spans) / length if length else 0.0


class _Stretches:
    """All stretches of one length of a text, numbered by their content.

    Attributes:
        length: of each, in characters.
        numbers: the number of the stretch that begins at each character, (n,).
    """

    def __init__(self, text: str, length: int) -> None:
        self.length = length
        self._points = code_points(text)
        self._keys, self._first, self.numbers = np.unique(
            _hashes(self._points, length), return_index=True, return_inverse=True
        )
        self._may_be = np.zeros(1 << _TABLE_BITS, dtype=bool)
        self._may_be[self._keys >> (64 - _TABLE_BITS)] = True

    def occur_in(self, points: NDArray[Any]) -> tuple[Ids, Ids]:
        """Where in other code points stretches of the text begin, ascending, and which ones."""
        hashes = _hashes(points, self.length)
        at = np.flatnonzero(self._may_be[hashes >> (64 - _TABLE_BITS)])
        number = np.minimum(np.searchsorted(self._keys, hashes[at]), len(self._keys) - 1)
        same = self._keys[number] == hashes[at]
        at, number = at[same], number[same]
        same = np.ones(len(at), dtype=bool)  # a hash alone is no proof
        for offset in range(self.length):
            same &= points[at + offset] == self._points[self._first[number] + offset]
        return at[same], number[same]


def _hashes(points: NDArray[Any], length: int) -> NDArray[np.uint64]:
    """A hash of each stretch of `length` code points, (len(points) - length + 1,).

    Those of two neighbours make that of twice the length, so the passes over all points are as
    many as `length` has bits.
    """
    n = len(points) - length + 1
    if n < 1:
        return np.empty(0, dtype=np.uint64)
    blocks = points.astype(np.uint64) + np.uint64(1)
    hashes, offset, size, factor = np.zeros(n, dtype=np.uint64), 0, 1, _FACTOR
    while size <= length:
        if length & size:
            hashes = hashes * np.uint64(factor) + blocks[offset : offset + n]
            offset += size
        if 2 * size <= length:
            blocks = blocks[:-size] * np.uint64(factor) + blocks[size:]
        size, factor = 2 * size, factor * factor % 2**64
    return hashes * np.uint64(_FACTOR)


_Hits = tuple[Ids, Ids, Ids]
"""Places in the training text where stretches begin, ascending; their numbers; their lines."""


def _hits(stretches: _Stretches, training_text: Iterable[str]) -> Iterator[_Hits]:
    counts = np.zeros(int(stretches.numbers.max()) + 1, dtype=np.int64)
    before, lines, rest = 0, 1, ""
    yield (np.empty(0, dtype=np.int64),) * 3
    for chunk in training_text:
        piece = rest + chunk
        points = code_points(piece)
        at, numbers = stretches.occur_in(points)
        ends = np.flatnonzero(points == 10)
        if len(at):
            # A run of places counts as long as one of its stretches is not too common.
            runs = np.cumsum(np.diff(at, prepend=at[0]) != 1)
            rare = np.bincount(runs, counts[numbers] < MOST_PLACES, minlength=runs[-1] + 1) > 0
            counts += np.bincount(numbers, minlength=len(counts))
            kept = rare[runs]
            at, numbers = at[kept], numbers[kept]
            yield before + at, numbers, lines + np.searchsorted(ends, at)
        # What may still begin a stretch comes again; what does not, is done with.
        done = max(0, len(piece) - stretches.length + 1)
        before, lines, rest = before + done, lines + int((ends < done).sum()), piece[done:]


class _Occurrences:
    """Where the stretches of a text occur, and how they join."""

    def __init__(self, stretches: _Stretches, hits: Iterable[_Hits]) -> None:
        self._length = stretches.length
        self._numbers = stretches.numbers
        self._places, self._there, self._lines = map(np.concatenate, zip(*hits, strict=True))
        # Hits of one number lie together in this order, their places ascending.
        self._by_number = np.argsort(self._there, kind="stable")
        self._bounds = np.searchsorted(
            self._there[self._by_number], np.arange(int(stretches.numbers.max()) + 2)
        )

    def matches(self) -> Iterator[Span]:
        """The matches that cannot be made longer, from left to right; they may overlap."""
        last = len(self._numbers)
        occur = np.flatnonzero(np.diff(self._bounds)[self._numbers])  # ascending
        start = 0
        while (next_one := int(np.searchsorted(occur, start))) < len(occur):
            start = int(occur[next_one])
            steps, hit = self._longest(start, 1)
            place, line = int(self._places[hit]), int(self._lines[hit])
            yield Span(start, steps + self._length - 1, place, line)
            # The next match ends further right: it holds the first stretch that this one lacks.
            beyond = start + steps
            if beyond >= last:
                return
            back, _ = self._longest(beyond, -1)
            start = beyond - max(0, back - 1)

    def _longest(self, start: int, step: int) -> tuple[int, int]:
        """How many stretches from one on occur in a row, to the right or left, and one hit."""
        number = self._numbers[start]
        first, end = self._bounds[number : number + 2]
        alive = self._by_number[first : min(end, first + MOST_PLACES)]
        if not len(alive):
            return 0, -1
        steps = 1
        while 0 <= (at := start + steps * step) < len(self._numbers):
            there = alive + steps * step
            inside = (there >= 0) & (there < len(self._places))
            there, going = there[inside], alive[inside]
            going = going[
                (self._places[there] == self._places[going] + steps * step)
                & (self._there[there] == self._numbers[at])
            ]
            if not len(going):
                break
            alive, steps = going, steps + 1
            if len(alive) == 1:
                return steps + self._further(int(alive[0]), start, steps, step), int(alive[0])
        return steps, int(alive[0])

    def _further(self, hit: int, start: int, steps: int, step: int) -> int:
        """How many stretches more occur in a row with one hit, looked at in growing windows."""
        found, window = 0, 32
        while True:
            ahead = (steps + found + np.arange(window)) * step
            there, at = hit + ahead, start + ahead
            inside = (
                (there >= 0) & (there < len(self._places)) & (at >= 0) & (at < len(self._numbers))
            )
            there, at, ahead = there[inside], at[inside], ahead[inside]
            same = (self._places[there] == self._places[hit] + ahead) & (
                self._there[there] == self._numbers[at]
            )
            run = int(np.argmin(same)) if not same.all() else len(same)
            found += run
            if run < window:
                return found
            window *= 2
