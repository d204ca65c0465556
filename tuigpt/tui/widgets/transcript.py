"""Text that grows while it is read: wrapped, scrollable, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size, split_graphemes
from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
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
    """A row as wrapped; `ends` when a line of the text ends here, not only the width.

    Attributes:
        entry: the entry that it belongs to, or None.
        is_rule: whether it is the entry's rule, which is drawn from its facts.
    """

    runs: list[Run]
    ends: bool = False
    entry: int | None = None
    is_rule: bool = False

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.runs)


class Transcript(ScrollView, can_focus=True):
    """Appended text in a few styles; new text keeps the end in view unless the user scrolled up.

    It may be divided into entries, each under a rule that carries its facts; the rule stays in view
    while its text is scrolled through. Rows above the last never change when text is appended, so
    the cost of an append does not depend on how much is there.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "transcript--prompt",
        "transcript--text",
        "transcript--copied",
        "transcript--note",
        "transcript--error",
        "transcript--rule",
        "transcript--chosen",
    }

    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .transcript--prompt { text-style: bold; color: $text-primary; }
        & > .transcript--text { color: $foreground; }
        & > .transcript--copied { color: $text-warning; text-style: underline; }
        & > .transcript--note { color: $foreground 60%; }
        & > .transcript--error { color: $text-error; }
        & > .transcript--rule { color: $foreground 60%; }
        & > .transcript--chosen { color: $text-primary; text-style: bold; }
    }
    """

    placeholder: reactive[str] = reactive("")

    chosen: reactive[int | None] = reactive(None)
    """The entry whose rule is marked."""

    @dataclass
    class Picked(Message):
        """An entry was clicked."""

        transcript: Transcript
        entry: int

        @property
        def control(self) -> Transcript:
            return self.transcript

    def __init__(
        self,
        *,
        placeholder: str = "",
        from_below: bool = False,
        name: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """
        Args:
            placeholder: shown while there is no text.
            from_below: let a text that does not fill the widget stand at its lower end.
        """
        super().__init__(name=name, id=id)
        self._from_below = from_below
        self._rules: dict[int, tuple[str, str]] = {}
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
            style: prompt, text, copied, note or error.
        """
        if not text:
            return
        open_row = self._rows.pop() if self._rows and not self._rows[-1].ends else None
        first = len(self._rows)
        runs = [*(open_row.runs if open_row else ()), (style, visible(text).replace("\t", "    "))]
        above = open_row or (self._rows[-1] if self._rows else None)
        entry = above.entry if above else None
        self._rows.extend(_of_entry(wrap(runs, self._width), entry))
        self._grew(first)

    def _grew(self, first: int) -> None:
        """Rows from number `first` on are new."""
        del self._rows[: max(0, len(self._rows) - MAX_ROWS)]
        self.virtual_size = Size(self._width, len(self._rows))
        if len(self._rows) == MAX_ROWS or first == 0 or self._gap:
            self.refresh()
        else:
            self.refresh_lines(first, len(self._rows) - first)

    @property
    def _gap(self) -> int:
        """Empty rows above the text."""
        return max(0, self.size.height - len(self._rows)) if self._from_below else 0

    # --- entries ---

    def open_entry(self, entry: int) -> None:
        """Begin an entry at the end: what is appended from here on belongs to it."""
        self.end_line()
        first = len(self._rows)
        if self._rows and self._rows[-1].text:
            self._rows.append(_Row([], True, self._rows[-1].entry))
        self._rows.append(_Row([], True, entry, is_rule=True))
        self._grew(first)

    def set_rule(self, entry: int, left: str, right: str) -> None:
        """Put an entry's facts on its rule."""
        facts = (visible(left).replace("\n", "⏎"), visible(right).replace("\n", "⏎"))
        if self._rules.get(entry) != facts:
            self._rules[entry] = facts
            # Only what is in view is drawn, so the search does not grow with the text.
            top = self.scroll_offset.y
            self.refresh_lines(top, 1)
            for row in range(top, min(top + self.size.height, len(self._rows))):
                if self._rows[row].is_rule and self._rows[row].entry == entry:
                    self.refresh_lines(row + self._gap, 1)
                    break

    def watch_chosen(self) -> None:
        self.refresh()

    def show_entry(self, entry: int) -> None:
        """Scroll so that an entry's rule is in view."""
        for number, row in enumerate(self._rows):
            if row.is_rule and row.entry == entry:
                if not self.scroll_offset.y <= number < self.scroll_offset.y + self.size.height:
                    self.scroll_to(y=number, animate=False)
                break

    def on_click(self, event: Click) -> None:
        """Tell which entry was meant."""
        number = self.scroll_offset.y + event.y - self._gap
        if 0 <= number < len(self._rows) and (entry := self._rows[number].entry) is not None:
            self.post_message(self.Picked(self, entry))

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
        self._rules.clear()
        self.virtual_size = Size(self._width, 0)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            return
        self._width = width
        lines, open_runs = list[_Row](), list[Run]()
        for row in self._rows:
            if row.is_rule:
                lines.append(row)
                continue
            open_runs += row.runs
            if row.ends:
                lines += _of_entry(wrap([*open_runs, ("text", "\n")], width), row.entry)
                open_runs = []
        last = self._rows[-1].entry if self._rows else None
        self._rows = lines + (_of_entry(wrap(open_runs, width), last) if open_runs else [])
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: without the line breaks that wrapping made."""
        parts = []
        for y, row in enumerate(self._rows):
            span = selection.get_span(y)
            if span is not None and not row.is_rule:
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
        row_number = self.scroll_offset.y + y - self._gap
        if not self._rows:
            note = self.get_component_rich_style("transcript--note")
            lines = list(wrap([("note", self.placeholder)], width)) if self.placeholder else []
            number = y - max(0, self.size.height - len(lines) - 1) if self._from_below else y
            text = lines[number].text if 0 <= number < len(lines) else ""
            return Strip([Segment(text, note)]).adjust_cell_length(width, base)
        if not 0 <= row_number < len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[row_number]
        if row.is_rule or (y == 0 and row.entry in self._rules):
            return self._rule(row.entry, width).adjust_cell_length(width, base)
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

    def _rule(self, entry: int | None, width: int) -> Strip:
        """`── facts ───────── more facts ──`, cut on the left where there is no room."""
        left, right = self._rules.get(entry, ("", "")) if entry is not None else ("", "")
        right = f" {right} ──" if right else ""
        room = width - cell_len(right) - 4
        if cell_len(left) > room:
            left = set_cell_size(left, room - 1) + "…" if room > 1 else ""
        left = f"── {left} " if left else "──"
        line = left + "─" * max(0, width - cell_len(left) - cell_len(right)) + right
        style = "chosen" if entry is not None and entry == self.chosen else "rule"
        return Strip([Segment(line, self.get_component_rich_style(f"transcript--{style}"))])


def _of_entry(rows: list[_Row], entry: int | None) -> list[_Row]:
    for row in rows:
        row.entry = entry
    return rows


def wrap(runs: Iterable[Run], width: int) -> list[_Row]:
    """Break runs into rows at newlines, and where a row is full at the last space before it.

    Nothing is lost: spaces at a break stay at the end of their row, out of sight.
    """
    rows: list[_Row] = []
    line: list[Run] = []
    for style, text in runs:
        *ended, rest = text.split("\n")
        for part in ended:
            rows += _wrap_line([*line, (style, part)], width, ends=True)
            line = []
        line.append((style, rest))
    return rows + (_wrap_line(line, width, ends=False) if any(text for _, text in line) else [])


def _wrap_line(runs: list[Run], width: int, ends: bool) -> list[_Row]:
    rows: list[_Row] = []
    row: list[tuple[str, str, int]] = []  # (style, cluster, columns)
    cells, after_space = 0, 0  # after_space: where in the row the last word begins
    for style, cluster, size in _clusters(runs):
        if width > 0 and cells + size > width and cluster != " ":
            end = after_space or len(row)
            rows.append(_Row(_joined(row[:end])))
            row, after_space = row[end:], 0
            cells = sum(columns for _, _, columns in row)
        row.append((style, cluster, size))
        cells += size
        if cluster == " ":
            after_space = len(row)
    return [*rows, _Row(_joined(row), ends)]


def _clusters(runs: list[Run]) -> Iterator[tuple[str, str, int]]:
    """What a terminal draws as one, with its style and its columns: marks stay with their letter,
    the parts of an emoji and the two letters of a flag together.
    """
    text = "".join(text for _, text in runs)
    styles = (style for style, part in runs for _ in part)
    if text.isascii():
        for style, character in zip(styles, text, strict=True):
            yield style, character, 1
        return
    of_character = list(styles)
    spans, _ = split_graphemes(text)
    half_flag: tuple[int, int] | None = None
    for start, end, _ in spans:
        if half_flag is not None:
            begin, half_end = half_flag
            half_flag = None
            if _is_flag_letter(text[start]):
                yield of_character[begin], text[begin:end], cell_len(text[begin:end])
                continue
            yield of_character[begin], text[begin:half_end], cell_len(text[begin:half_end])
        if _is_flag_letter(text[start]):
            half_flag = (start, end)
            continue
        yield of_character[start], text[start:end], cell_len(text[start:end])
    if half_flag is not None:
        begin, end = half_flag
        yield of_character[begin], text[begin:end], cell_len(text[begin:end])


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _joined(characters: list[tuple[str, str, int]]) -> list[Run]:
    runs: list[Run] = []
    for style, cluster, _ in characters:
        if runs and runs[-1][0] == style:
            runs[-1] = (style, runs[-1][1] + cluster)
        else:
            runs.append((style, cluster))
    return runs
