"""The rows of the questions how big and how long: what each costs here, and what it will write."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from tuigpt.config import PRESETS
from tuigpt.tui.screens.new_run.fields import SHORT_MINUTES
from tuigpt.wording import MEMORISES, duration, short_count

_WRITES = {
    "tiny": ("words, the shape of a play", "words and short phrases"),
    "small": ("whole phrases, verse", "whole phrases"),
    "medium": ("better; wants a GPU or patience",) * 2,
    "large": ("the best, on a GPU",) * 2,
}
"""Of each size what it writes like in the end: on Shakespeare's plays, on other texts."""

_FEW_STEPS = 300
"""Below these even a tiny model has hardly learned to spell."""

_BAR, _BAR_FROM = 12, 90
"""Cells of the longest bar, and the width from which on there is room for bars."""


@dataclass(frozen=True)
class Size:
    """What is known of one size under the other answers.

    Attributes:
        n_params: with the text's vocabulary, if that is known.
        seconds: of the whole run, or None where nothing was ever timed.
        measured: whether this very shape was timed.
        steps: how many fit into the time, or are asked for.
        memorises: whether it will memorise the text.
    """

    n_params: int
    seconds: float | None
    measured: bool
    steps: int
    memorises: bool


def size_rows(sizes: dict[str, Size], plays: bool, width: int) -> list[tuple[str, Content]]:
    """Name and words of each size.

    Args:
        plays: whether the text is Shakespeare's.
        width: cells that a row has.
    """
    longest = max((s.seconds or 0.0 for s in sizes.values()), default=0.0) or 1.0
    rows = []
    for name, size in sizes.items():
        shape = f"{PRESETS[name]['n_layer']}×{PRESETS[name]['n_embd']}"
        front = f"{name:<7}{shape:<6}{short_count(size.n_params):>6}  "
        time = "…"
        if size.seconds is not None:
            time = f"{'' if size.measured else '≈ '}{duration(size.seconds)}"
        parts: list[Content | str | tuple[str, str]] = [front]
        if width >= _BAR_FROM:
            cells = round(_BAR * (size.seconds or 0.0) / longest)
            parts.append((f"{'▇' * max(cells, size.seconds is not None):<{_BAR}} ", "$primary"))
        parts.append(f"{time:<15}")
        if size.memorises:
            parts.append((MEMORISES, "$text-warning"))
        elif size.seconds is not None and size.steps < _FEW_STEPS:
            parts.append((f"only {size.steps:,} steps: too few to learn much", "$text-warning"))
        else:
            parts.append(_WRITES[name][0 if plays else 1])
        rows.append((name, Content.assemble(*parts)))
    return rows


def heading(width: int) -> str:
    """The headings over the rows' columns behind their names, for the same width."""
    bar = " " * (_BAR + 1) if width >= _BAR_FROM else ""
    return f"{'shape':<6}{'params':>6}  {'this machine':<15}{bar}writes like"


def length_rows(steps: str, minutes: str, seconds: float | None) -> list[tuple[str, Content]]:
    """Name and words of each of `LENGTHS`.

    Args:
        steps, minutes: as they are typed.
        seconds: that the steps take; None to leave it out.
    """
    count = f"{int(steps):,}" if steps.isascii() and steps.isdigit() else steps
    took = "" if seconds is None else f", {duration(seconds)}"
    return [
        ("steps", Content(f"{count} steps{took}")),
        ("short", Content(f"{SHORT_MINUTES} min")),
        ("long", Content(f"{minutes} min")),
        ("patience", Content("until val stops falling")),
    ]
