"""What texts of one prompt are compared by. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuigpt.tui.panes.generate.texts import WrittenText


@dataclass(frozen=True)
class Measure:
    """Something that texts are sorted by.

    Attributes:
        name: as one reads it after "sorted by".
        value: of a text; None while it is not known, or where there is none.
        words: a value as it stands beside a text.
        descending: whether the largest comes first.
    """

    name: str
    value: Callable[[WrittenText], float | None]
    words: Callable[[float], str]
    descending: bool = False


def surprise(text: WrittenText) -> float | None:
    """Nats a character, as the model learned it, over what it wrote."""
    length = len(text.written)
    return math.fsum(text.surprises) / length if length and len(text.surprises) else None


def _line_lengths(text: WrittenText) -> list[int]:
    return [len(line) for line in text.written.splitlines() if line.strip()]


def line_length(text: WrittenText) -> float | None:
    """Characters of a line, on average; empty lines are none."""
    lengths = _line_lengths(text)
    return sum(lengths) / len(lengths) if lengths else None


def line_spread(text: WrittenText) -> float | None:
    """How far lines are from the average, in characters: verse is more even than prose."""
    lengths = _line_lengths(text)
    if not lengths:
        return None
    mean = sum(lengths) / len(lengths)
    return math.sqrt(sum((length - mean) ** 2 for length in lengths) / len(lengths))


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


MEASURES: Sequence[Measure] = (
    Measure("seed", lambda text: text.config.seed, lambda value: f"seed {value:.0f}"),
    Measure("surprise", surprise, lambda value: f"{value:.2f} nats"),
    Measure("share copied", lambda text: text.facts.copied if text.facts else None,
            lambda value: f"{_share(value)} copied"),
    Measure("real words", lambda text: text.facts.real_words if text.facts else None,
            lambda value: f"{_share(value)} real words", descending=True),
    Measure("line length", line_length, lambda value: f"{value:.0f} characters a line"),
    Measure("evenness of lines", line_spread, lambda value: f"lines differ by {value:.0f}"),
)  # fmt: skip


def ordered(texts: Sequence[WrittenText], measure: Measure) -> list[WrittenText]:
    """Sorted by a measure; texts without a value come last, in the order they were in."""

    def key(text: WrittenText) -> tuple[bool, float]:
        value = measure.value(text)
        if value is None:
            return True, 0.0
        return False, -value if measure.descending else value

    return sorted(texts, key=key)


def in_words(text: WrittenText) -> list[str]:
    """All that is known of a text, the more important facts first."""
    parts = []
    nats, lengths, spread = surprise(text), line_length(text), line_spread(text)
    if nats is not None:
        parts.append(f"{nats:.2f} nats a character")
    if text.facts is not None:
        parts.append(f"{_share(text.facts.copied)} copied")
        if text.facts.real_words is not None:
            parts.append(f"{_share(text.facts.real_words)} real words")
    if lengths is not None:
        parts.append(f"{lengths:.0f} characters a line")
        if spread is not None and len(_line_lengths(text)) > 1:
            parts.append(f"lines differ by {spread:.0f}")
    return parts
