"""A text whose tokens are coloured by surprise, with a cursor that goes from token to token."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tuigpt.tui.widgets.wrapping import wrap
from tuigpt.wording import visible

HEATS = (math.log(2), math.log(6), math.log(20), math.log(100))
"""Surprise in nats up to which a token has heat 0, 1, 2 and 3: it was as unlikely as one of 2, 6,
20 and 100 equal ones."""


def heat(surprise: float) -> str:
    """The name of a surprise's style, from "0" to "4"."""
    return str(bisect_right(HEATS, surprise))


class HeatText(ScrollView, can_focus=False):
    """Tokens in a row, as text. The place after the last one has the cursor too."""

    COMPONENT_CLASSES = {f"heat--{name}" for name in ("prompt", "0", "1", "2", "3", "4", "cursor")}

    # Each heat has a style as well, for terminals without colours.
    DEFAULT_CSS = """
    HeatText {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1;
        & > .heat--prompt { color: $text-primary; text-style: bold; }
        & > .heat--0 { color: $text-success; }
        & > .heat--1 { color: $foreground; }
        & > .heat--2 { color: $text-warning; text-style: underline; }
        & > .heat--3 { color: $text-error; text-style: bold underline; }
        & > .heat--4 { color: $text-error; text-style: bold reverse; }
        & > .heat--cursor { background: $primary; color: $background; text-style: bold; }
    }
    """

    cursor: reactive[int] = reactive(0)
    """The token that the cursor is on."""

    @dataclass
    class Moved(Message):
        """The cursor was put on another token by the mouse."""

        at: int

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._prompt = ""
        self._tokens: list[tuple[str, str]] = []
        self._rows: list[list[tuple[int, str]]] = []

    def show(self, prompt: str, tokens: Sequence[str], surprises: Sequence[float | None]) -> None:
        """Show a prompt and the tokens after it; those without a surprise have no colour."""
        heats = ["1" if nats is None else heat(nats) for nats in surprises[: len(tokens)]]
        heats += ["1"] * (len(tokens) - len(heats))
        self._prompt = prompt
        self._tokens = list(zip(tokens, heats, strict=True))
        self._lay_out()

    def on_resize(self, event: Resize) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        runs = [("-1", visible(self._prompt).replace("\t", "    "))]
        for number, (token, _) in enumerate(self._tokens):
            # A line's end can have the cursor, so it must be seen.
            shown = visible(token).replace("\n", "⏎\n").replace("\t", "    ") or "∅"
            runs.append((str(number), shown))
        runs.append((str(len(self._tokens)), "▏"))
        self._rows = [[(int(n), text) for n, text in row.runs] for row in wrap(runs, width)]
        self.virtual_size = Size(width, len(self._rows))
        self.watch_cursor(self.cursor)

    def watch_cursor(self, at: int) -> None:
        for y, row in enumerate(self._rows):
            if any(number == at for number, _ in row):
                self.scroll_to_region(Region(0, y, 1, 1), animate=False)
                break
        self.refresh()

    def on_click(self, event: Click) -> None:
        y = self.scroll_offset.y + event.y
        if y < len(self._rows):
            columns = 0
            for number, text in self._rows[y]:
                columns += cell_len(text)
                if event.x < columns:
                    if number >= 0:
                        self.post_message(self.Moved(number))
                    break

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        y += self.scroll_offset.y
        if y >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        segments = []
        for number, text in self._rows[y]:
            if number == self.cursor:
                name = "cursor"
            elif number < 0:
                name = "prompt"
            else:
                name = self._tokens[number][1] if number < len(self._tokens) else "1"
            segments.append(Segment(text, self.get_component_rich_style(f"heat--{name}")))
        return Strip(segments).adjust_cell_length(width, self.rich_style)
