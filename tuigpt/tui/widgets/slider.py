"""A number on a line, set by key, mouse, wheel or typing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

MINIMUM_TRACK = 5
"""Columns that the track keeps while there is a label to cut."""

_ADJUST = Binding.Group("adjust", compact=True)


class Slider(Widget, can_focus=True):
    """A slider one row high: `label ━━━━━●──────── 0.80`.

    Typing digits while it has the focus enters a number in place of the value: enter sets it,
    escape forgets it.
    """

    BINDING_GROUP_TITLE = "Slider"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "left,down",
            "step(-1)",
            "Less",
            tooltip="One step less",
            id="slider.less",
            group=_ADJUST,
        ),
        Binding(
            "right,up",
            "step(1)",
            "More",
            tooltip="One step more",
            id="slider.more",
            group=_ADJUST,
        ),
        Binding(
            "shift+left,pagedown",
            "step(-10)",
            "Ten less",
            show=False,
            tooltip="Ten steps less",
            id="slider.ten-less",
        ),
        Binding(
            "shift+right,pageup",
            "step(10)",
            "Ten more",
            show=False,
            tooltip="Ten steps more",
            id="slider.ten-more",
        ),
        Binding(
            "home", "minimum", "Lowest", show=False, tooltip="Lowest value", id="slider.lowest"
        ),
        Binding(
            "end", "maximum", "Highest", show=False, tooltip="Highest value", id="slider.highest"
        ),
    ]
    """
    | Key(s) | Description |
    | :- | :- |
    | left,down | One step less. |
    | right,up | One step more. |
    | shift+left,pagedown | Ten steps less. |
    | shift+right,pageup | Ten steps more. |
    | home | The lowest value. |
    | end | The highest value. |
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "slider--label",
        "slider--fill",
        "slider--thumb",
        "slider--track",
        "slider--value",
        "slider--entry",
    }
    """
    | Class | Description |
    | :- | :- |
    | `slider--label` | The label. |
    | `slider--fill` | The line left of the thumb. |
    | `slider--thumb` | The thumb. |
    | `slider--track` | The line right of the thumb. |
    | `slider--value` | The value. |
    | `slider--entry` | A number while it is typed. |
    """

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    Slider {
        width: 1fr;
        height: 1;
        pointer: pointer;

        & > .slider--label { color: $foreground 70%; }
        & > .slider--fill { color: $primary; }
        & > .slider--thumb { color: $primary; }
        & > .slider--track { color: $line; }
        & > .slider--value { color: $foreground; }
        & > .slider--entry { color: $foreground; text-style: reverse; }

        &:hover > .slider--thumb { color: $text-primary; }

        &:focus {
            & > .slider--label { color: $foreground; text-style: bold; }
            & > .slider--fill { color: $accent; }
            & > .slider--thumb { color: $accent; text-style: bold; }
            & > .slider--value { text-style: bold; }
        }

        &:disabled {
            & > .slider--label { color: $foreground 35%; }
            & > .slider--fill { color: $foreground 25%; }
            & > .slider--thumb { color: $foreground 35%; }
            & > .slider--value { color: $foreground 35%; }
        }
    }
    """

    value: reactive[float] = reactive(0.0, init=False)
    """The value: always on a step from `minimum`, never outside; an `int` if the steps are."""

    maximum: reactive[float] = reactive(1.0, init=False)
    """The end of the slider; if it is lowered below the value, the value follows."""

    _entry: reactive[str] = reactive("", init=False, bindings=True)

    @dataclass
    class Changed(Message):
        """Posted when the value has changed, whoever changed it."""

        slider: Slider
        """The slider."""

        value: float
        """Its new value."""

        @property
        def control(self) -> Slider:
            """The slider."""
            return self.slider

    def __init__(
        self,
        minimum: float,
        maximum: float,
        *,
        step: float,
        value: float,
        label: str = "",
        format: str = "{:.2f}",  # noqa: A002
        off_at: float | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
        disabled: bool = False,
        tooltip: str | None = None,
    ) -> None:
        """Initialise a slider.

        Args:
            minimum: The lowest value.
            maximum: The highest value; if it is not on a step, the last step before it is.
            step: The distance between two values; values are `int` if it and `minimum` are.
            value: The value to start with; it is clamped and put on a step.
            label: What stands left of the slider.
            format: How the value is written, as for `str.format`.
            off_at: The value that is written as "off".
            name: The name of the widget.
            id: The ID of the widget in the DOM.
            classes: The CSS classes of the widget.
            disabled: Whether the widget is disabled.
            tooltip: What the pointer shows when it rests here.

        Raises:
            ValueError: If there is no value to choose from.
        """
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        if not (math.isfinite(minimum) and math.isfinite(maximum) and 0 < step < math.inf):
            raise ValueError(f"no slider from {minimum} to {maximum} in steps of {step}")
        if tooltip is not None:
            self.tooltip = tooltip
        self.minimum, self.step, self.label = minimum, step, label
        self.format, self.off_at = format, off_at
        self._dragging = False
        self.set_reactive(Slider.maximum, max(minimum, maximum))
        self.set_reactive(Slider.value, self._at(0))
        self.set_reactive(Slider.value, self.validate_value(value))

    def validate_maximum(self, maximum: float) -> float:
        """Keep the end at or above the beginning."""
        return max(self.minimum, maximum) if math.isfinite(maximum) else self.maximum

    def watch_maximum(self) -> None:
        """Bring the value back onto the slider."""
        self.value = self.value

    def validate_value(self, value: float) -> float:
        """Clamp a value and put it on the nearest step; what is not a number changes nothing."""
        if math.isnan(value):
            return self.value
        return self._at(self._nearest(clamp(value, self.minimum, self.maximum)))

    def watch_value(self, value: float) -> None:
        """Tell about the change."""
        self.post_message(self.Changed(self, value))

    def action_step(self, count: int) -> None:
        """Go `count` steps to the right, or to the left if it is negative."""
        self.value = self._at(clamp(self._nearest(self.value) + count, 0, self._ticks))

    def action_minimum(self) -> None:
        """Go to the lowest value."""
        self.value = self.minimum

    def action_maximum(self) -> None:
        """Go to the highest value."""
        self.value = self.maximum

    @property
    def _ticks(self) -> int:
        """How many steps fit between the ends."""
        # Decimals of what was written in the source, so that 2.00 in steps of 0.05 are 40 exactly.
        span = Decimal(str(self.maximum)) - Decimal(str(self.minimum))
        return int(span / Decimal(str(self.step)))

    def _at(self, tick: int) -> float:
        """The value a number of steps above the minimum."""
        if isinstance(self.minimum, int) and isinstance(self.step, int):
            return self.minimum + tick * self.step
        return float(Decimal(str(self.minimum)) + tick * Decimal(str(self.step)))

    def _nearest(self, value: float) -> int:
        """The step nearest to a value on the slider."""
        return min(self._ticks, round((value - self.minimum) / self.step))

    # Typing

    def _accepts(self, character: str | None) -> bool:
        """Whether a character belongs to a number that could be entered here."""
        allowed = "0123456789"
        if isinstance(self._at(0), float):
            allowed += ".,"
        if self.minimum < 0:
            allowed += "-"
        return character is not None and character in set(allowed)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Digits go to the slider rather than to a binding of the app."""
        typing = bool(self._entry) and (character is not None or key in ("enter", "escape"))
        return typing or self._accepts(character)

    def on_key(self, event: events.Key) -> None:
        """Take digits, and what ends or mends a number while there is one."""
        if self._accepts(event.character):
            if len(self._entry) < self._value_width:
                self._entry += (event.character or "").replace(",", ".")
            else:
                self.app.bell()
        elif not self._entry:
            return
        elif event.key == "enter":
            self._commit()
        elif event.key == "escape":
            self._entry = ""
        elif event.key == "backspace":
            self._entry = self._entry[:-1]
        elif event.is_printable:
            self.app.bell()
        else:
            # An arrow or tab: the number counts, and the key does what it does.
            self._commit()
            return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        """Keep what was typed, and let go of the mouse."""
        if self._entry:
            self._commit()
        self._stop_drag()

    def _commit(self) -> None:
        """Set the number typed; what is none or lies outside rings the bell."""
        entry, self._entry = self._entry, ""
        try:
            value = float(entry)
        except ValueError:
            self.app.bell()
            return
        if not self.minimum <= value <= self.maximum:
            self.app.bell()
        self.value = value

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Jump to the pointer and follow it until the button is let go."""
        event.stop()
        _, start, width = self._layout()
        x = event.get_content_offset_capture(self).x
        if event.button == 1 and start <= x < start + width:
            self._entry = ""
            self._dragging = True
            self.capture_mouse()
            self._jump(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the pointer while dragging."""
        if self._dragging:
            event.stop()
            self._jump(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End dragging."""
        event.stop()
        self._stop_drag()

    def on_mouse_release(self) -> None:
        """End dragging if something else took the mouse."""
        self._dragging = False

    def on_click(self, event: events.Click) -> None:
        """Keep the click from what lies beneath."""
        event.stop()

    def on_unmount(self) -> None:
        """Never keep the mouse of a widget that is gone."""
        self._stop_drag()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """One step more."""
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """One step less."""
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, count: int) -> None:
        if not self.is_disabled:
            # The pane beneath would scroll as well.
            event.stop()
            event.prevent_default()
            self.action_step(count)

    def _jump(self, event: events.MouseEvent) -> None:
        """Go to the step under the pointer."""
        _, start, width = self._layout()
        x = clamp(event.get_content_offset_capture(self).x - start, 0, width - 1)
        self.value = self._at(round(x / max(1, width - 1) * self._ticks))

    def _stop_drag(self) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    # Drawing

    def _text(self, value: float) -> str:
        """A value in words."""
        return "off" if value == self.off_at else self.format.format(value)

    @property
    def _value_width(self) -> int:
        """Columns for the widest value, so that nothing moves when it changes."""
        ticks = (0, min(1, self._ticks), self._ticks)
        return max(cell_len(self._text(self._at(tick))) for tick in ticks)

    def _layout(self) -> tuple[str, int, int]:
        """The label as far as there is room, and where the track starts and how wide it is."""
        room = self.size.width - 1 - self._value_width
        label = f"{self.label} " if self.label else ""
        if room - cell_len(label) < MINIMUM_TRACK and label:
            cut = room - MINIMUM_TRACK - 2
            label = f"{set_cell_size(self.label, cut)}… " if cut > 0 else ""
        start = cell_len(label)
        return label, start, max(0, room - start)

    def render_line(self, y: int) -> Strip:
        """The whole slider on the first line."""
        size = self.size
        if y > 0:
            return Strip.blank(size.width, self.rich_style)
        label, _, width = self._layout()
        ticks = self._ticks
        thumb = round(self._nearest(self.value) / ticks * (width - 1)) if ticks else 0
        parts = [(label, "label")]
        if width:
            # The thumb changes its shape too, for terminals without colours.
            parts += [
                ("━" * thumb, "fill"),
                ("◉" if self.has_focus else "●", "thumb"),
                ("─" * (width - 1 - thumb), "track"),
                (" ", "value"),
            ]
        text = self._entry or self._text(self.value)
        text = text.rjust(self._value_width if width else size.width)
        parts += [(text, "entry" if self._entry else "value")]
        strip = Strip(
            Segment(text, self.get_component_rich_style(f"slider--{part}"))
            for text, part in parts
            if text
        )
        return strip.adjust_cell_length(size.width, self.rich_style)
