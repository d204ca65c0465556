"""The loss curves of a run: zoomed and panned by keys, wheel and drag, read with a cursor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Blur, MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tuigpt.charts.plot import Picture, View, draw, frame_of
from tuigpt.charts.raster import BRAILLE, GLYPHS, Glyphs

ZOOM = 1.5
"""How much nearer or farther one key or one notch of the wheel goes."""

PAN = 0.2
"""The share of the width that one key moves the view by."""

ROLES = (
    "train", "train-raw", "val", "best", "other", "ruler", "gap", "axis", "cursor", "milestone",
    "message", "text",
)  # fmt: skip


class LossChart(Widget, can_focus=True):
    """Shows a `Picture`; what part of it is the user's choice.

    Curves differ by mark as well as by colour: train is a line over its faint raw values, val is
    dotted with a ring at its points, the best is a filled mark.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"loss-chart--{role}" for role in ROLES}
    """One for each role of `charts.plot`."""

    DEFAULT_CSS = """
    LossChart {
        width: 1fr;
        height: 1fr;

        & > .loss-chart--train { color: $train; }
        & > .loss-chart--train-raw { color: $noise; }
        & > .loss-chart--val { color: $val; }
        & > .loss-chart--best { color: $text-success; text-style: bold; }
        & > .loss-chart--other { color: $text-accent; }
        & > .loss-chart--ruler { color: $foreground-muted; }
        & > .loss-chart--gap { color: $warning 40%; }
        & > .loss-chart--axis { color: $foreground-muted; }
        & > .loss-chart--cursor { color: $foreground; }
        & > .loss-chart--milestone { color: $text-success; }
        & > .loss-chart--message { color: $text-error; text-style: bold; }
        & > .loss-chart--text { color: $foreground 80%; }

        &:nocolor > .loss-chart--train-raw { text-style: dim; }
        &:nocolor > .loss-chart--ruler { text-style: dim; }
        &:nocolor > .loss-chart--gap { text-style: dim; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move_cursor(-1)", "cursor left", id="chart.left", show=False,
                tooltip="Move the cursor to the left"),
        Binding("right", "move_cursor(1)", "cursor right", id="chart.right", show=False,
                tooltip="Move the cursor to the right"),
        Binding("plus,equals_sign", "zoom(1)", "zoom in", id="chart.zoom-in", show=False,
                tooltip="Show a shorter part of the run, around the cursor"),
        Binding("minus", "zoom(-1)", "zoom out", id="chart.zoom-out", show=False,
                tooltip="Show a longer part of the run"),
        Binding("shift+left,comma", "pan(-1)", "earlier", id="chart.earlier", show=False,
                tooltip="Move the view towards the beginning"),
        Binding("shift+right,full_stop", "pan(1)", "later", id="chart.later", show=False,
                tooltip="Move the view towards the end"),
        Binding("z", "toggle_whole", "whole run", id="chart.whole",
                tooltip="Show the whole run, or only what still changes"),
        Binding("l", "toggle_log", "log scale", id="chart.log",
                tooltip="Put the losses on a logarithmic scale, or back on a linear one"),
        Binding("escape", "reset", "reset view", id="chart.reset", show=False,
                tooltip="Put the cursor and the zoom away"),
    ]  # fmt: skip

    ALLOW_SELECT = False

    picture: reactive[Picture] = reactive(Picture(), init=False, always_update=True)
    """What is drawn. Its series may have grown in place since they were last set."""

    view: reactive[View] = reactive(View(), init=False)
    """What part of it is shown, and how."""

    glyphs: reactive[Glyphs] = reactive(BRAILLE, init=False)
    """What the terminal's font has; one of `charts.raster.GLYPHS`."""

    @dataclass
    class Read(Message):
        """The cursor stands at another place.

        Attributes:
            chart: The chart.
            x: The place, in the unit of the picture; None where there is no cursor.
        """

        chart: LossChart
        x: float | None

        @property
        def control(self) -> LossChart:
            return self.chart

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._strips: list[Strip] | None = None
        self._styles: dict[str, Style] | None = None
        self._drawn_size = Size(0, 0)
        self._dragged_from: tuple[int, View] | None = None

    def use_glyphs(self, name: str) -> None:
        """Draw with other characters: braille, blocks or ascii."""
        self.glyphs = GLYPHS[name]

    def watch_picture(self) -> None:
        self._redraw()

    def watch_view(self, before: View, view: View) -> None:
        self._redraw()
        if before.cursor != view.cursor:
            self.post_message(self.Read(self, view.cursor))

    def watch_glyphs(self) -> None:
        self._redraw()

    def notify_style_update(self) -> None:
        """Draw again with the new colours."""
        super().notify_style_update()
        self._strips = self._styles = None

    def render_line(self, y: int) -> Strip:
        """One line of the chart, from a drawing kept until data, size or colours change."""
        if self._strips is None or self._drawn_size != self.size:
            self._drawn_size = self.size
            self._strips = self._draw()
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.visual_style.rich_style)

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
        width, height = self.size
        grid = draw(self.picture, self.view, width, height, self.glyphs)
        if self._styles is None:
            parts = {role: self.get_component_rich_style(f"loss-chart--{role}") for role in ROLES}
            self._styles = {**parts, "": self.visual_style.rich_style}
        styles = self._styles
        return [
            Strip([Segment(text, styles[role]) for text, role in grid.runs(y)], width)
            for y in range(height)
        ]

    def action_zoom(self, direction: int) -> None:
        self._zoom(direction, self.view.cursor)

    def _zoom(self, direction: int, around: float | None) -> None:
        if self.picture.extent is not None:
            self.view = self.view.zoomed(self.picture, ZOOM**direction, around)

    def action_pan(self, direction: int) -> None:
        if self.picture.extent is not None:
            self.view = self.view.panned(self.picture, PAN * direction)

    def action_toggle_whole(self) -> None:
        """The whole run, or only what still changes; a zoom ends with it."""
        whole = not self.view.whole if self.view.span is None else self.view.whole
        self.view = replace(self.view, whole=whole, span=None)

    def action_toggle_log(self) -> None:
        self.view = replace(self.view, log=not self.view.log)

    def action_reset(self) -> None:
        self.view = replace(self.view, span=None, cursor=None)

    def action_move_cursor(self, direction: int) -> None:
        """Move the cursor by a column; the first key puts it at the newest step."""
        extent = self.picture.extent
        if extent is None:
            return
        frame = frame_of(self.picture, self.view, *self.size, self.glyphs)
        if self.view.cursor is None:
            self.view = replace(self.view, cursor=extent[1])
            return
        x = frame.x_at(frame.column(self.view.cursor) + direction)
        self.view = replace(self.view, cursor=min(max(x, extent[0]), extent[1]))

    def _x_under(self, column: int) -> float | None:
        extent = self.picture.extent
        if extent is None:
            return None
        frame = frame_of(self.picture, self.view, *self.size, self.glyphs)
        return min(max(frame.x_at(column), extent[0]), extent[1])

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self._zoom(1, self._x_under(event.x))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self._zoom(-1, self._x_under(event.x))

    def on_mouse_down(self, event: MouseDown) -> None:
        self.view = replace(self.view, cursor=self._x_under(event.x))
        self._dragged_from = event.x, self.view
        self.capture_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        if self._dragged_from is None or self.picture.extent is None:
            return
        start, view = self._dragged_from
        width = frame_of(self.picture, view, *self.size, self.glyphs).width
        if event.x != start:
            self.view = view.panned(self.picture, (start - event.x) / width)

    def on_mouse_up(self, event: MouseUp) -> None:
        self._dragged_from = None
        self.release_mouse()

    def on_blur(self, event: Blur) -> None:
        self._dragged_from = None
