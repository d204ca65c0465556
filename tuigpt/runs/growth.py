"""How a run's texts change from checkpoint to checkpoint: what is new in each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

LENGTH = 120
"""Tokens that each checkpoint writes, where nobody says."""

SHORTEST_COPY = 20
"""Characters in a row that count as copied."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]+")

Part = tuple[str, bool]
"""A piece of a text, and whether it is new."""


def new_parts(before: str, now: str) -> list[Part]:
    """A text cut where it differs from the one before: the words that stay, and those that are new.

    Blanks belong to what stands before them.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(now)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    parts: list[Part] = []
    end = 0
    for _, start, size in matcher.get_matching_blocks():
        _add(parts, new[end:start], True)
        _add(parts, new[start : start + size], False)
        end = start + size
    return parts


def _add(parts: list[Part], words: Sequence[str], is_new: bool) -> None:
    for word in words:
        # A blank says nothing of its own: alone it would cut what is new into pieces.
        kind = parts[-1][1] if word.isspace() and parts else is_new
        if parts and parts[-1][1] == kind:
            parts[-1] = (parts[-1][0] + word, kind)
        else:
            parts.append((word, kind))
