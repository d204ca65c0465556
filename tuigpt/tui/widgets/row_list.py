"""A list of any number of rows, of which only those in view are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual


class RowList(ScrollView, can_focus=True):
    """Rows of one line each, with a cursor. A row is known by its key, and keeps its place by it.

    Attributes:
        draw: gives a row from its key and the width it has, in cells.
    """

    # Textual's own list measures every row before it shows one; ten thousand take seconds.
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", "row-list--cursor-unfocused"}

    DEFAULT_CSS = """
    RowList {
        height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable; background: transparent;
        & > .row-list--cursor { background: $block-cursor-background; }
        & > .row-list--cursor-unfocused { background: $boost; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "move_page(-1)", "page up", show=False),
        Binding("pagedown", "move_page(1)", "page down", show=False),
        Binding("home", "move_to(0)", "first", show=False),
        Binding("end", "move_to(-1)", "last", show=False),
    ]

    cursor: reactive[int] = reactive(0, init=False)
    """Number of the row with the cursor."""

    @dataclass
    class Moved(Message):
        """The cursor has come to another row."""

        key: str

    @dataclass
    class Chosen(Message):
        """A row was chosen by enter or a click.

        Attributes:
            x: where it was clicked, in cells from the left; None for enter.
        """

        key: str
        x: int | None

    def __init__(self, name: str, draw: Callable[[str, int], Content]) -> None:
        """
        Args:
            name: the widget's id.
            draw: see above.
        """
        super().__init__(id=name)
        self.draw = draw
        self._keys: Sequence[str] = ()
        self._drawn: dict[int, tuple[str, Content]] = {}

    @property
    def keys(self) -> Sequence[str]:
        return self._keys

    @property
    def cursor_key(self) -> str | None:
        """Of the row with the cursor; None where there are no rows."""
        return self._keys[self.cursor] if self.cursor < len(self._keys) else None

    def set_rows(self, keys: Sequence[str], cursor_key: str | None) -> None:
        """Show other rows.

        Args:
            cursor_key: the row to put the cursor on, if it is there; else it stays in its place.
        """
        if keys == self._keys and cursor_key == self.cursor_key:
            self._refresh_changed()
            return
        offset, before = self.scroll_offset, self.cursor_key
        row_in_view = self.cursor - offset.y
        self._keys = keys
        at = keys.index(cursor_key) if cursor_key in keys else min(self.cursor, len(keys) - 1)
        self.set_reactive(RowList.cursor, max(0, at))
        self.virtual_size = Size(self._row_width, len(keys))
        # What one looks at stays where it is, whatever comes in above it.
        self.scroll_to(y=max(0, self.cursor - row_in_view), animate=False, force=True)
        self.refresh()
        if self.cursor_key != before and self.cursor_key is not None:
            self.post_message(self.Moved(self.cursor_key))

    def _refresh_changed(self) -> None:
        """Draw those rows in view again that have become others."""
        top, width = self.scroll_offset.y, self._row_width
        for at in range(top, min(top + self.size.height, len(self._keys))):
            key, row = self._keys[at], self.draw(self._keys[at], width)
            known = self._drawn.get(at)
            if known is None or known[0] != key or not known[1].is_same(row):
                self.refresh_line(at)

    @property
    def _row_width(self) -> int:
        return max(1, self.scrollable_content_region.width)

    def on_resize(self, event: Resize) -> None:
        self.virtual_size = Size(self._row_width, len(self._keys))
        self._keep_in_view()

    def watch_cursor(self, before: int, now: int) -> None:
        top = self.scroll_offset.y
        self._keep_in_view()
        if self.scroll_offset.y == top:  # only the two rows look otherwise than before
            self.refresh_line(before)
            self.refresh_line(now)
        else:
            self.refresh()
        if self.cursor_key is not None:
            self.post_message(self.Moved(self.cursor_key))

    def _keep_in_view(self) -> None:
        if self._keys and self.size.height:
            region = Region(0, self.cursor, 1, 1)
            self.scroll_to_region(region, animate=False, force=True, x_axis=False)

    def action_move(self, by: int) -> None:
        self.cursor = max(0, min(len(self._keys) - 1, self.cursor + by))

    def action_move_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_move_to(self, at: int) -> None:
        self.cursor = max(0, len(self._keys) - 1) if at < 0 else at

    def choose(self) -> None:
        """As if enter had been pressed."""
        if self.cursor_key is not None:
            self.post_message(self.Chosen(self.cursor_key, None))

    def on_click(self, event: Click) -> None:
        """A first click moves the cursor, one on the cursor's row chooses it."""
        at = event.y + self.scroll_offset.y
        if at < len(self._keys):
            there = at == self.cursor
            self.cursor = at
            if there or event.x < 2:
                self.post_message(self.Chosen(self._keys[at], event.x))

    def render_line(self, y: int) -> Strip:
        width, at = self._row_width, y + self.scroll_offset.y
        base = self.visual_style
        if at >= len(self._keys):
            return Strip.blank(self.size.width, self.visual_style.rich_style)
        if at == self.cursor:
            name = "row-list--cursor" if self.has_focus else "row-list--cursor-unfocused"
            base = self.get_visual_style(name)
        row = self.draw(self._keys[at], width)
        if len(self._drawn) > 4 * self.size.height:
            self._drawn.clear()
        self._drawn[at] = self._keys[at], row
        strips = Visual.to_strips(self, row.truncate(width), width, 1, base)
        strip = strips[0] if strips else Strip.blank(width, self.visual_style.rich_style)
        return strip.extend_cell_length(width, base.rich_style).crop(0, width)
