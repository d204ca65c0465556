"""Thin curves below the chart: learning rate, gradient norm and speed, on the chart's own steps."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tuigpt.charts.plot import GUTTER
from tuigpt.runs.history import Updates
from tuigpt.wording import file_size, short_count

_LEVELS = "▁▂▃▄▅▆▇█"


class Strips(Widget):
    """One row for each figure: its name, its newest value, and its course.

    The value stands on the oldest columns of the course, so that each column is below the chart's.
    """

    DEFAULT_CSS = "Strips { height: auto; color: $foreground 70%; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._rows: list[tuple[str, str, str]] = []
        self._drawn: tuple[object, ...] = ()
        self._shown: tuple[Updates, Sequence[int], int, int, int] | None = None

    def on_resize(self) -> None:
        if self._shown is not None:
            self.show(*self._shown)

    def show(
        self, updates: Updates, changes: Sequence[int], first: int, last: int, tokens: int
    ) -> None:
        """Show the updates from one step to another.

        Args:
            changes: steps at which the learning rate was changed.
            tokens: of one update.
        """
        self._shown = updates, changes, first, last, tokens
        columns = max(1, self.size.width - GUTTER)
        mark = (len(updates.steps), updates.steps[-1] if updates.steps else 0, first, last, columns)
        if mark == self._drawn:
            return
        self._drawn = mark
        speeds = [tokens / s if s else math.nan for s in updates.seconds]
        figures: list[tuple[str, Sequence[float], Callable[[float], str]]] = [
            ("rate", updates.learning_rates, lambda x: f"{x:.2g}"),
            ("grad", updates.grad_norms, lambda x: f"{x:.2g}"),
            ("tok/s", speeds, short_count),
        ]
        if any(map(math.isfinite, updates.memories)):
            figures.append(("GPU", updates.memories, lambda x: file_size(int(x))))
        start, end = bisect_left(updates.steps, first), bisect_right(updates.steps, last)
        before, self._rows = len(self._rows), []
        for name, values, spell in figures:
            shown = list(values[start:end])
            newest = next((v for v in reversed(shown) if math.isfinite(v)), math.nan)
            words = f"{spell(newest)} " if math.isfinite(newest) else ""
            course = sparkline(_columns(updates.steps[start:end], shown, first, last, columns))
            if name == "rate":
                course = _marked(course, changes, first, last)
            self._rows.append((name, course, words))
        self.refresh(layout=len(self._rows) != before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(3, len(self._rows))

    def render(self) -> Content:
        return Content("\n").join(
            Content.assemble(f"{name:>{GUTTER - 1}} ", (words, "$foreground"), course[len(words) :])
            for name, course, words in self._rows
        )


def _columns(
    steps: Sequence[int], values: Sequence[float], first: int, last: int, columns: int
) -> list[float]:
    """The highest value of each column; NaN where there is none."""
    found = [math.nan] * columns
    width = max(1, last - first) / columns
    for step, value in zip(steps, values, strict=True):
        column = min(columns - 1, int((step - first) / width))
        if math.isfinite(value) and not found[column] >= value:
            found[column] = value
    # A group of updates may be wider than a column: its value holds until the next.
    for column in range(1, columns):
        if math.isnan(found[column]) and steps and first + column * width < steps[-1]:
            found[column] = found[column - 1]
    return found


def _marked(course: str, steps: Sequence[int], first: int, last: int) -> str:
    """A strip with a mark where a setting was changed."""
    cells = list(course)
    for step in steps:
        if first <= step <= last and cells:
            cells[min(len(cells) - 1, int((step - first) / max(1, last - first) * len(cells)))] = (
                "│"
            )
    return "".join(cells)


def sparkline(values: Sequence[float]) -> str:
    """Values as one row of blocks from 0 to the highest, or from the lowest if that is near."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return " " * len(values)
    low, high = min(finite), max(finite)
    low = low if 0.5 * high < low < 0.95 * high else min(0.0, low)
    span = (high - low) or 1.0
    return "".join(
        " " if math.isnan(value) else _LEVELS[min(7, int((value - low) / span * 7.999))]
        for value in values
    )
