"""Text that grows while it is read: wrapped, scrollable, never markup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Resize
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tuigpt.wording import visible

MAX_ROWS = 20_000
"""The oldest rows are forgotten beyond this number, so that memory levels off."""

Run = tuple[str, str]
"""A style's name and the text that has it."""


@dataclass
class _Row:
    """A row as wrapped; `ends` when a line of the text ends here, not only the width."""

    runs: list[Run]
    ends: bool = False

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.runs)


class Transcript(ScrollView, can_focus=True):
    """Appended text in a few styles; new text keeps the end in view unless the user scrolled up.

    Rows above the last never change when text is appended, so the cost of an append does not
    depend on how much is there.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "transcript--prompt",
        "transcript--text",
        "transcript--note",
        "transcript--error",
    }

    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .transcript--prompt { text-style: bold; color: $text; }
        & > .transcript--text { color: $foreground; }
        & > .transcript--note { color: $foreground 60%; }
        & > .transcript--error { color: $text-error; }
    }
    """

    placeholder: reactive[str] = reactive("")

    def __init__(
        self,
        *,
        placeholder: str = "",
        name: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """
        Args:
            placeholder: shown while there is no text.
        """
        super().__init__(name=name, id=id)
        self.set_reactive(Transcript.placeholder, placeholder)
        self._rows: list[_Row] = []
        self._width = 0

    def on_mount(self) -> None:
        self.anchor()

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def append(self, text: str, style: str = "text") -> None:
        """Add text at the end. Control characters are shown as pictures.

        Args:
            style: prompt, text, note or error.
        """
        if not text:
            return
        open_row = self._rows.pop() if self._rows and not self._rows[-1].ends else None
        first = len(self._rows)
        runs = [*(open_row.runs if open_row else ()), (style, visible(text).replace("\t", "    "))]
        self._rows.extend(_wrap(runs, self._width))
        del self._rows[: max(0, len(self._rows) - MAX_ROWS)]
        self.virtual_size = Size(self._width, len(self._rows))
        if len(self._rows) == MAX_ROWS or first == 0:
            self.refresh()
        else:
            self.refresh_lines(first, len(self._rows) - first)

    def start_entry(self) -> None:
        """Begin a new paragraph, with an empty row above it."""
        if self._rows:
            self.end_line()
            self.append("\n")

    def end_line(self) -> None:
        """Let what comes next stand on a row of its own."""
        if self._rows and not self._rows[-1].ends:
            self.append("\n")

    def clear(self) -> None:
        """Forget all text."""
        self._rows.clear()
        self.virtual_size = Size(self._width, 0)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            return
        self._width = width
        lines, open_runs = list[_Row](), list[Run]()
        for row in self._rows:
            open_runs += row.runs
            if row.ends:
                lines += _wrap([*open_runs, ("text", "\n")], width)
                open_runs = []
        self._rows = lines + (_wrap(open_runs, width) if open_runs else [])
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: without the line breaks that wrapping made."""
        parts = []
        for y, row in enumerate(self._rows):
            span = selection.get_span(y)
            if span is not None:
                start, end = span
                whole_row = end == -1
                parts.append(row.text[start : None if whole_row else end])
                if whole_row and row.ends:
                    parts.append("\n")
        return "".join(parts).removesuffix("\n"), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        row_number = self.scroll_offset.y + y
        if not self._rows:
            note = self.get_component_rich_style("transcript--note")
            lines = list(_wrap([("note", self.placeholder)], width)) if self.placeholder else []
            text = lines[y].text if y < len(lines) else ""
            return Strip([Segment(text, note)]).adjust_cell_length(width, base)
        if row_number >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[row_number]
        segments = [
            Segment(text, self.get_component_rich_style(f"transcript--{style}"))
            for style, text in row.runs
        ]
        strip = Strip(segments)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row_number)) is not None:
            start, end = span
            left = cell_len(row.text[:start])
            right = cell_len(row.text[: None if end == -1 else end])
            chosen = self.screen.get_component_rich_style("screen--selection")
            middle = Strip(Segment.apply_style(strip.crop(left, right), post_style=chosen))
            strip = Strip.join([strip.crop(0, left), middle, strip.crop(right)])
        return strip.adjust_cell_length(width, base).apply_offsets(0, row_number)


def _wrap(runs: Iterable[Run], width: int) -> list[_Row]:
    """Break runs into rows at newlines, and where a row is full at the last space before it.

    Nothing is lost: spaces at a break stay at the end of their row, out of sight.
    """
    rows: list[_Row] = []
    row: list[tuple[str, str]] = []  # (style, character)
    cells, after_space = 0, 0  # after_space: where in the row the last word begins

    def close(count: int, ends: bool) -> None:
        nonlocal row, cells, after_space
        rows.append(_Row(_joined(row[:count]), ends))
        row = row[count:]
        cells = sum(cell_len(c) for _, c in row)
        after_space = 0

    for style, text in runs:
        for character in text:
            if character == "\n":
                close(len(row), ends=True)
                continue
            size = cell_len(character)
            if width > 0 and cells + size > width and character != " ":
                close(after_space or len(row), ends=False)
            row.append((style, character))
            cells += size
            if character == " ":
                after_space = len(row)
    if row:
        close(len(row), ends=False)
    return rows


def _joined(characters: list[tuple[str, str]]) -> list[Run]:
    runs: list[Run] = []
    for style, character in characters:
        if runs and runs[-1][0] == style:
            runs[-1] = (style, runs[-1][1] + character)
        else:
            runs.append((style, character))
    return runs
