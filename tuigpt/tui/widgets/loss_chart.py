"""The loss curves of a run, drawn in braille."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tuigpt.charts.raster import Canvas, Grid, outline
from tuigpt.charts.scale import Axis, Bucket, Point, Series, finite_range, step_axis, value_axis

GUTTER = 6
"""Columns left of the plot: a label of five and the axis; fixed, so that the plot never jumps."""

MARK_DISTANCE = 4
"""Columns between two marks of the val curve, at least."""

LAYERS = ("reference", "train-raw", "val", "train")
"""The component classes of the canvas layers; the last one wins a cell."""


class Frame(NamedTuple):
    """Where the plot lies in the widget, and its axes; an axis is `None` without data."""

    left: int
    top: int
    width: int
    height: int
    x_axis: Axis | None = None
    y_axis: Axis | None = None
    broken: tuple[int, ...] = ()

    def column(self, step: float) -> int:
        """The column of a step in the widget."""
        assert self.x_axis
        return self.left + math.floor(self.x_axis.position(step, 2 * self.width) + 0.5) // 2

    def dot(self, value: float) -> float:
        """The distance of a value from the top of the plot, in braille dots."""
        assert self.y_axis
        return 4 * self.height - 1 - self.y_axis.position(value, 4 * self.height)

    def row(self, value: float) -> int:
        """The row of a value in the widget."""
        return self.top + round(self.dot(value)) // 4


class LossChart(Widget):
    """Train and val loss against the step, with the best point and reference levels.

    Curves differ by mark as well as by colour: train is a line over its faint raw values, val has
    `○` at its steps and `★` at its lowest. Values that are not finite are gaps, marked on the step
    axis and named in words. A reference counts to the range of the losses only if it is within a
    quarter of their span, so that a level far away never flattens the curve; else it is left out.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "loss-chart--train",
        "loss-chart--train-raw",
        "loss-chart--val",
        "loss-chart--best",
        "loss-chart--axis",
        "loss-chart--reference",
        "loss-chart--message",
        "loss-chart--text",
    }
    """
    | Class | Description |
    | :- | :- |
    | `loss-chart--train` | The smoothed train loss. |
    | `loss-chart--train-raw` | The train loss as it was logged. |
    | `loss-chart--val` | The val loss, line and marks. |
    | `loss-chart--best` | The mark at the lowest val loss. |
    | `loss-chart--axis` | Axes, ticks and their labels. |
    | `loss-chart--reference` | Reference levels and their labels. |
    | `loss-chart--message` | Where the loss was not a number. |
    | `loss-chart--text` | The figures of the legend, and the placeholder. |
    """

    DEFAULT_CSS = """
    LossChart {
        width: 1fr;
        height: 1fr;

        & > .loss-chart--train { color: $text-primary; }
        & > .loss-chart--train-raw { color: $primary 45%; }
        & > .loss-chart--val { color: $text-warning; }
        & > .loss-chart--best { color: $text-success; text-style: bold; }
        & > .loss-chart--axis { color: $foreground 45%; }
        & > .loss-chart--reference { color: $foreground 40%; }
        & > .loss-chart--message { color: $text-error; text-style: bold; }
        & > .loss-chart--text { color: $foreground 70%; }

        &:nocolor > .loss-chart--train-raw { text-style: dim; }
        &:nocolor > .loss-chart--reference { text-style: dim; }
    }
    """

    ALLOW_SELECT = False

    placeholder: reactive[str] = reactive("", init=False)
    """What an empty chart says."""

    def __init__(
        self,
        *,
        placeholder: str = "",
        name: str | None = None,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        """Initialise an empty chart.

        Args:
            placeholder: What an empty chart says.
            name: The name of the widget.
            id: The ID of the widget in the DOM.
            classes: The CSS classes of the widget.
            disabled: Whether the widget is disabled.
        """
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        self.set_reactive(LossChart.placeholder, placeholder)
        self._train = Series()
        self._val = Series()
        self._references: tuple[tuple[str, float], ...] = ()
        self._strips: list[Strip] | None = None
        self._drawn_size = Size(0, 0)

    def show(
        self,
        train: Sequence[Point],
        val: Sequence[Point],
        references: Sequence[tuple[str, float]] = (),
    ) -> None:
        """Replace the curves. Cheap if they only grew; nothing is redrawn if nothing changed.

        Args:
            train: Steps and train losses, in nats per character; losses may be NaN or infinite.
            val: Steps and val losses.
            references: Names and values of levels to compare with.
        """
        new_train, new_val = self._train.replace(train), self._val.replace(val)
        if new_train or new_val or tuple(references) != self._references:
            self._references = tuple(references)
            self._redraw()

    def watch_placeholder(self) -> None:
        """Draw the new text."""
        self._redraw()

    def notify_style_update(self) -> None:
        """Draw again with the new colours."""
        super().notify_style_update()
        self._strips = None

    def render_line(self, y: int) -> Strip:
        """One line of the chart, from a drawing kept until data, size or colours change."""
        if self._strips is None or self._drawn_size != self.size:
            self._drawn_size = self.size
            self._strips = self._draw()
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)

    def _redraw(self) -> None:
        """Have only the rows that changed sent to the terminal, which may be far away."""
        before, self._strips = self._strips, None
        if before is None or self._drawn_size != self.size or not self.is_on_screen:
            self.refresh()
            return
        self._strips = self._draw()
        changed = [
            y for y, (old, new) in enumerate(zip(before, self._strips, strict=True)) if old != new
        ]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _draw(self) -> list[Strip]:
        """Draw everything into a grid of characters, each with its component class."""
        width, height = self.size
        grid = Grid(width, height)
        axes = width >= 20 and height >= 5
        legend = width >= 24 and height >= 8
        left, top = GUTTER * axes, int(legend)
        frame = Frame(left, top, width - left, height - top - 2 * axes)
        if self._train or self._val:
            frame = self._draw_plot(grid, frame)
        if axes:
            self._draw_axes(grid, frame)
        self._draw_legend(grid, frame, legend)
        if not (self._train or self._val):
            self._draw_placeholder(grid, frame)
        styles = {
            name.removeprefix("loss-chart--"): self.get_component_rich_style(name)
            for name in self.COMPONENT_CLASSES
        }
        styles[""] = self.rich_style
        return [
            Strip([Segment(text, styles[owner]) for text, owner in grid.runs(y)], width)
            for y in range(height)
        ]

    def _draw_plot(self, grid: Grid, frame: Frame) -> Frame:
        """Draw curves, references and marks; returns the frame with its axes."""
        steps = [s.steps[edge] for s in (self._train, self._val) if s for edge in (0, -1)]
        x_axis = step_axis(min(steps), max(steps), max(2, frame.width // 10))
        dots = 2 * frame.width
        raw = self._train.buckets(x_axis, dots) if frame.height >= 6 else []
        train = self._train.buckets(x_axis, dots, smooth=True)
        val = self._val.buckets(x_axis, dots)
        # A level is of use only with its name beside it.
        levels = [
            (name, value)
            for name, value in self._references
            if 2 * cell_len(name) + 12 <= frame.width and math.isfinite(value)
        ]
        y_axis = _value_axis([*raw, *train, *val], levels, 2 * frame.height // 5)
        broken = (frame.left + b.column // 2 for b in (*train, *val) if b.broken)
        frame = frame._replace(x_axis=x_axis, y_axis=y_axis, broken=tuple(broken))
        if y_axis is None:
            return frame
        levels = [level for level in levels if y_axis.low <= level[1] <= y_axis.high]
        canvas = Canvas(frame.width, frame.height, len(LAYERS))
        for _, value in levels:
            canvas.dotted(0, round(frame.dot(value)), every=4)
        for layer, (buckets, every) in enumerate(((raw, 1), (val, 2), (train, 1)), 1):
            canvas.polyline(layer, ((x, frame.dot(y)) for x, y in outline(buckets)), every)
        for y, row in enumerate(canvas.rows(), frame.top):
            for x, (glyph, layer) in enumerate(row, frame.left):
                if layer >= 0:
                    grid.put(x, y, glyph, LAYERS[layer])
        self._draw_levels(grid, frame, levels)
        self._draw_marks(grid, frame, train, val)
        return frame

    def _draw_levels(self, grid: Grid, frame: Frame, levels: Sequence[tuple[str, float]]) -> None:
        """Label references at their right end, else at their left, where no curve is."""
        for name, value in levels:
            label = _cells(f" {name} {_number(value)} ")
            y, end = frame.row(value), frame.left + frame.width
            for x in (end - len(label), frame.left + 1):
                if x >= frame.left and grid.owners(x, y, len(label)) <= {"", "reference"}:
                    grid.put(x, y, label, "reference")
                    break

    def _draw_marks(
        self, grid: Grid, frame: Frame, train: Sequence[Bucket], val: Sequence[Bucket]
    ) -> None:
        """Mark val points, thinned by powers of two so that the marks hold still, and the best."""
        if len(train) == 1 and not train[0].is_gap:
            # One braille dot alone would be overlooked.
            grid.put(frame.left + train[0].column // 2, frame.row(train[0].last), "•", "train")
        points = [bucket for bucket in val if not bucket.is_gap]
        stride = 1
        while points and len(points) * MARK_DISTANCE > stride * frame.width:
            stride *= 2
        for bucket in {*points[::stride], *points[-1:]}:
            grid.put(frame.left + bucket.column // 2, frame.row(bucket.last), "○", "val")
        if best := self._val.lowest:
            grid.put(frame.column(best[0]), frame.row(best[1]), "★", "best")

    def _draw_axes(self, grid: Grid, frame: Frame) -> None:
        """Draw both axes with ticks, labels, and marks where a loss was not finite."""
        bottom, x = frame.top + frame.height, frame.left - 1
        for y in range(frame.top, bottom):
            grid.put(x, y, "│", "axis")
        grid.put(x, bottom, "└" + "─" * frame.width, "axis")
        grid.put(0, bottom + 1, "step".rjust(x), "axis")
        for value, label in frame.y_axis.ticks if frame.y_axis else ():
            grid.put(x, frame.row(value), "┤", "axis")
            if len(label) <= x:
                grid.put(0, frame.row(value), label.rjust(x), "axis")
        free = frame.left
        for value, label in frame.x_axis.ticks if frame.x_axis else ():
            column = frame.column(value)
            grid.put(column, bottom, "┬", "axis")
            start = min(max(free, column - len(label) // 2), grid.width - len(label))
            if start >= free:
                grid.put(start, bottom + 1, label, "axis")
                free = start + len(label) + 1
        for column in frame.broken:
            grid.put(column, bottom, "×", "message")

    def _draw_legend(self, grid: Grid, frame: Frame, has_row: bool) -> None:
        """Say where a loss was not finite and, given a row, which mark is which curve."""
        message = self._message()
        room = grid.width - len(message)
        grid.put(max(0, room), 0, message, "message")
        if not has_row:
            return
        grid.put(0, 0, "loss".rjust(frame.left - 1), "axis")
        for parts in self._legends():
            x = frame.left + 1
            if x + sum(len(text) for text, _ in parts) < room:
                for text, owner in parts:
                    grid.put(x, 0, text, owner)
                    x += len(text)
                break

    def _message(self) -> str:
        """Where a loss was not finite for the first time, and how many more there are."""
        series = [s.nonfinite for s in (self._train, self._val) if s.nonfinite]
        if not series:
            return ""
        step, value = min((points[0] for points in series), key=itemgetter(0))
        count = sum(map(len, series))
        more = f" (+{count - 1})" if count > 1 else ""
        return f"{'NaN' if math.isnan(value) else value} at step {step}{more}"

    def _legends(self) -> Iterator[list[tuple[str, str]]]:
        """Ever shorter legends, as texts with their component class."""
        curves = [("─ train  ", "train")] if self._train else []
        curves += [("○ val  ", "val")] if self._val else []
        if best := self._val.lowest:
            loss = _number(best[1])
            for figures in (f" best {loss} @ {best[0]}", f" {loss} @ {best[0]}", f" {loss}"):
                yield [*curves, ("★", "best"), (figures, "text")]
        yield curves

    def _draw_placeholder(self, grid: Grid, frame: Frame) -> None:
        """Write the placeholder into the middle of the plot."""
        lines = [
            line
            for paragraph in self.placeholder.splitlines()
            for line in textwrap.wrap(paragraph, max(1, frame.width - 2)) or [""]
        ][: frame.height]
        for y, line in enumerate(lines, frame.top + (frame.height - len(lines)) // 2):
            cells = _cells(line)
            grid.put(frame.left + (frame.width - len(cells)) // 2, y, cells, "text")


def _value_axis(
    buckets: Sequence[Bucket], levels: Sequence[tuple[str, float]], ticks: int
) -> Axis | None:
    """The axis of the losses and of the levels near them; `None` without a finite loss."""
    losses = finite_range(chain.from_iterable((b.low, b.high) for b in buckets))
    if losses is None:
        return None
    low, high = losses
    near = 0.25 * max(high - low, 0.04 * abs(high))
    shown = [value for _, value in levels if low - near <= value <= high + near]
    return value_axis(min([low, *shown]), max([high, *shown]), max(2, ticks))


def _number(value: float) -> str:
    """A loss in words."""
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.0e}".replace("+", "")


def _cells(text: str) -> list[str]:
    """Text as one string a cell, control characters replaced."""
    cells: list[str] = []
    for character in text:
        width = cell_len(character) if character.isprintable() else 1
        if width:
            cells += [character if character.isprintable() else "\ufffd", *[""] * (width - 1)]
    return cells
