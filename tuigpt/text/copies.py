"""Did it write or recite? The longest verbatim matches of a text in its training corpus.

A suffix array lists the starts of all suffixes of the corpus in alphabetical order, so whatever
occurs in the corpus is found by binary search. It is built once for each corpus and kept on disk.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuigpt.errors import UserError
from tuigpt.files import write_atomic
from tuigpt.text.named import reopen
from tuigpt.wording import file_size

SuffixArray = NDArray[np.int32]

MOST_BYTES = 32_000_000
"""Largest corpus that is indexed, because building takes some sixty times its size in memory."""


@dataclass(frozen=True)
class Span:
    """A part of a text that stands in the corpus letter for letter, and no longer part does.

    Attributes:
        start: where it begins in the text.
        length: its characters.
        place: where one occurrence begins in the corpus, in characters.
        line: the line of that place, counted from 1.
    """

    start: int
    length: int
    place: int
    line: int


def build_suffix_array(text: str) -> SuffixArray:
    """Sort all suffixes of a text, (len(text),).

    Takes about 60 bytes of memory for each character while it works, and 4 afterwards.

    Source: prefix doubling after Manber and Myers, "Suffix arrays: a new method for on-line
    string searches" (1993); groups that are in order already are left alone as in Larsson and
    Sadakane, "Faster suffix sorting" (2007).
    """
    n = len(text)
    if n == 0:
        return np.empty(0, dtype=np.int32)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    symbols, codes = np.unique(points, return_inverse=True)
    # As many characters as fit a 63-bit number are compared in the first round; 0 is "past the
    # end", which sorts before every character.
    bits = int(len(symbols)).bit_length()
    depth = 63 // bits
    key = np.zeros(n, dtype=np.int64)
    for offset in range(depth):
        key <<= bits
        if offset < n:
            key[: n - offset] += codes[offset:] + 1
    order = np.argsort(key, kind="stable").astype(np.int32)
    ordered = key[order]
    fresh = np.empty(n, dtype=bool)  # where a group of equal beginnings starts, in sorted order
    fresh[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    del key, ordered, codes, points
    rank = np.empty(n, dtype=np.int32)  # of each suffix: the sorted place where its group starts
    heads = np.maximum.accumulate(np.where(fresh, np.arange(n, dtype=np.int32), 0))
    rank[order] = heads
    open_ = _in_groups(fresh)  # sorted places whose order is not settled yet
    while len(open_):
        suffixes = order[open_]
        later = suffixes.astype(np.int64) + depth
        second = np.where(later < n, rank[np.minimum(later, n - 1)], -1)
        first = rank[suffixes].astype(np.int64)
        both = (first << 32) + (second.astype(np.int64) + 1)
        by = np.argsort(both, kind="stable")
        both = both[by]
        order[open_] = suffixes[by]
        starts = np.empty(len(open_), dtype=bool)
        starts[0] = True
        np.not_equal(both[1:], both[:-1], out=starts[1:])
        heads = np.maximum.accumulate(np.where(starts, open_, 0))
        rank[order[open_]] = heads
        open_ = open_[_in_groups(starts)]
        depth *= 2
    return order


def _in_groups(starts: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Indices of members of groups of two and more, given where groups start."""
    alone = starts & np.append(starts[1:], True)
    return np.flatnonzero(~alone).astype(np.int32)


class Corpus:
    """A training text that can be asked where a text was copied from it."""

    def __init__(self, text: str, suffixes: SuffixArray) -> None:
        self._text = text
        self._suffixes = suffixes

    @classmethod
    def open(cls, text: str, sha256: str, cache: Path) -> Corpus:
        """Index a text, with the index kept in a folder under the text's sha256.

        Raises:
            OSError: the folder cannot be written.
        """
        path = cache / f"suffixes-{sha256}.npy"
        try:
            suffixes = np.load(path, mmap_mode="r", allow_pickle=False)
            if suffixes.dtype == np.int32 and suffixes.shape == (len(text),):
                return cls(text, suffixes.view(np.ndarray))
        except (OSError, ValueError):
            pass  # none yet, or a broken one
        suffixes = build_suffix_array(text)
        file = io.BytesIO()
        np.save(file, suffixes, allow_pickle=False)
        cache.mkdir(parents=True, exist_ok=True)
        write_atomic(path, file.getvalue())
        return cls(text, suffixes)

    def longest_match(self, text: str, start: int = 0) -> tuple[int, int]:
        """How many characters of `text[start:]` stand somewhere in the corpus, and where.

        Returns:
            length and place; (0, 0) when not even the first character occurs.
        """
        limit = 256
        while True:
            wanted = text[start : start + limit]
            index = self._first_not_before(wanted)
            best = (0, 0)
            # The longest match is a neighbour of where the text would stand itself.
            for place in self._suffixes[max(0, index - 1) : index + 1].tolist():
                length = _common_prefix(wanted, self._text[place : place + limit])
                best = max(best, (length, place), key=lambda match: match[0])
            if best[0] < limit:
                return best
            limit *= 2

    def copied(self, text: str, at_least: int) -> list[Span]:
        """The parts of a text that stand in the corpus, in order; they may overlap.

        Args:
            at_least: shortest length, in characters, 1 or more.
        """
        spans: list[Span] = []
        start = 0
        while start + at_least <= len(text):
            length, place = self.longest_match(text, start)
            if length >= at_least:
                line = self._text.count("\n", 0, place) + 1
                spans.append(Span(start, length, place, line))
            # The next span reaches further. What occurs still occurs without its first
            # character, so the first start from which it does is found by halves.
            end = start + length + 1
            if end > len(text):
                break
            low, high = start + 1, end
            while low < high:
                middle = (low + high) // 2
                if self._occurs(text[middle:end]):
                    high = middle
                else:
                    low = middle + 1
            start = low
        return spans

    def _first_not_before(self, wanted: str) -> int:
        low, high, size = 0, len(self._suffixes), len(wanted)
        while low < high:
            middle = (low + high) // 2
            place = int(self._suffixes[middle])
            if self._text[place : place + size] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _occurs(self, wanted: str) -> bool:
        index = self._first_not_before(wanted)
        return index < len(self._suffixes) and self._text.startswith(
            wanted, int(self._suffixes[index])
        )


def open_training_corpus(header: dict[str, Any], cache: Path) -> Corpus:
    """Index the text that a checkpoint was trained on.

    Args:
        header: the checkpoint's.
        cache: folder that keeps the index.

    Raises:
        UserError: the checkpoint does not tell its text, or the text is gone, has changed
            or is larger than `MOST_BYTES`.
    """
    facts = header.get("corpus") or {}
    if not facts.get("sha256"):
        raise UserError("this checkpoint does not tell which text it was trained on")
    try:
        source = reopen(facts, cache=cache)
        if source.size > MOST_BYTES:
            raise UserError(
                f"it has {file_size(source.size)}, and copies are looked for in at most"
                f" {file_size(MOST_BYTES)}"
            )
        text = "".join(source.chunks())
    except UserError as error:
        raise UserError(f"the text this model was trained on cannot be used: {error}") from None
    if hashlib.sha256(text.encode()).hexdigest() != facts["sha256"]:
        raise UserError(
            f"the text this model was trained on, {source.sources[0]!r}, has changed since then"
        )
    try:
        return Corpus.open(text, facts["sha256"], cache)
    except OSError as error:
        raise UserError(f"cannot write to {str(cache)!r}: {error.strerror or error}") from None


def share_copied(spans: list[Span], length: int) -> float:
    """The share of a text's characters that lie in any of the spans, from 0 to 1."""
    covered, reached = 0, 0
    for span in spans:
        end = span.start + span.length
        covered += max(0, end - max(span.start, reached))
        reached = max(reached, end)
    return covered / length if length else 0.0


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:  # by halves, because comparing slices is much faster than a Python loop
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
