"""The rows of the questions how big and how long: what each costs here, and what it will write."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from tuigpt.config import DEFAULT_PRESET
from tuigpt.tui.screens.new_run.fields import AUTO, SHORT_MINUTES
from tuigpt.tui.screens.new_run.prospect import Prospect
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


def size_rows(
    prospects: Mapping[str, Prospect], plays: bool, width: int
) -> list[tuple[str, Content]]:
    """Name and words of each size.

    Args:
        prospects: what is known of each.
        plays: whether the text is Shakespeare's.
        width: cells that a row has.
    """
    longest = max((p.seconds or 0.0 for p in prospects.values()), default=0.0) or 1.0
    rows = []
    for name, prospect in prospects.items():
        model, seconds = prospect.model, prospect.seconds
        shape, count = f"{model.n_layer}×{model.n_embd}", short_count(model.n_params)
        if name == AUTO and prospect.plan is None and prospect.train.minutes:
            shape = count = "…"
        time = "…"
        if prospect.expected is not None and seconds is not None:
            time = f"{'' if prospect.expected.measured else '≈ '}{duration(seconds)}"
        parts: list[Content | str | tuple[str, str]] = [f"{name:<7}{shape:<6}{count:>6}  "]
        if width >= _BAR_FROM:
            cells = round(_BAR * (seconds or 0.0) / longest)
            parts.append((f"{'▇' * max(cells, seconds is not None):<{_BAR}} ", "$primary"))
        parts.append(f"{time:<15}")
        parts.append(_outcome(name, prospect, plays))
        rows.append((name, Content.assemble(*parts)))
    return rows


def _outcome(name: str, prospect: Prospect, plays: bool) -> str | tuple[str, str]:
    """What will come of it."""
    steps = prospect.train.max_steps
    if prospect.read is not None and prospect.read.overfits:
        return MEMORISES, "$text-warning"
    if prospect.seconds is not None and steps < _FEW_STEPS:
        return f"too few steps: {steps:,}", "$text-warning"
    if name == AUTO and not prospect.train.minutes and prospect.plan is None:
        return f"{DEFAULT_PRESET}; with a time, what suits it"
    if prospect.plan is not None and prospect.plan.expectation:
        return prospect.plan.expectation
    return "what suits the time" if name == AUTO else _WRITES[name][0 if plays else 1]


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
