"""Text that grows while it is read: wrapped, scrollable, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tuigpt.tui.widgets.wrapping import Row, Run, wrap
from tuigpt.wording import visible

MAX_ROWS = 20_000
"""The oldest rows are forgotten beyond this number, so that memory levels off."""


class Rule(NamedTuple):
    """What stands on the rule above an entry.

    Attributes:
        facts: on the left, the more important ones first.
        keep: the one of them that stays where there is no room for others.
        right: what stands on the right, in several ways of saying it, the longest first.
    """

    facts: Sequence[str] = ()
    keep: str = ""
    right: Sequence[str] = ("",)

    def fitting(self, room: int) -> tuple[str, str]:
        """What fits into so many columns: shorter words first, then fewer facts, each whole."""
        facts = [_in_a_line(fact) for fact in self.facts]
        keep = _in_a_line(self.keep)
        for right in map(_in_a_line, self.right):
            left = _joined(facts)
            if cell_len(left) + cell_len(right) <= room:
                return left, right
        while cell_len(left) + cell_len(right) > room and len(facts) > 2:
            facts.pop(next(n for n in range(len(facts) - 1, -1, -1) if facts[n] != keep))
            left = _joined(facts)
        if cell_len(left) + cell_len(right) > room:
            right = ""
        return left if cell_len(left) <= room else set_cell_size(keep, max(0, room)), right


def _joined(facts: Sequence[str]) -> str:
    return " · ".join(facts)


def _in_a_line(text: str) -> str:
    return visible(text).replace("\n", "⏎")


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
        self._rules: dict[int, Rule] = {}
        self.set_reactive(Transcript.placeholder, placeholder)
        self._rows: list[Row] = []
        self._width = 0
        self._wrapped: tuple[tuple[str, int], list[Row]] = ("", 0), []

    def on_mount(self) -> None:
        self.anchor()

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def append(self, text: str, style: str = "text", entry: int | None = None) -> None:
        """Add text at the end, or at the end of an entry. Control characters become pictures.

        Args:
            style: prompt, text, copied, note or error.
        """
        rows = self._rows
        end = len(rows)
        if entry is not None and rows and rows[-1].entry != entry:
            end = self._span(entry)[1]
        elif entry is None and rows:
            entry = rows[-1].entry
        if not text or (entry is not None and end == 0):
            return
        runs, first = [_run(style, text)], end
        if end and (rows[end - 1].closed or not rows[end - 1].ends):
            first = end - 1
            runs = rows[first].runs + runs
        self._replace(first, end, runs, entry)

    def replace_entry(self, entry: int, parts: Sequence[Run]) -> None:
        """Put other text under an entry's rule; the rows of all others stay as they are."""
        first, end = self._span(entry)
        if end:
            self._replace(first, end, [_run(style, text) for style, text in parts], entry)

    def _span(self, entry: int) -> tuple[int, int]:
        """The rows of an entry's text, from its first to behind its last; (0, 0) if it is gone.

        What is looked for is mostly near the end, so the search begins there.
        """
        rows, end = self._rows, len(self._rows)
        while end and (rows[end - 1].entry != entry or rows[end - 1].kind == "gap"):
            end -= 1
        first = end
        while first and rows[first - 1].entry == entry and rows[first - 1].kind == "text":
            first -= 1
        return first, end

    def _replace(self, first: int, end: int, runs: list[Run], entry: int | None) -> None:
        """Let runs stand instead of the rows from `first` to before `end`."""
        rows = wrap(runs, self._width)
        for row in rows:
            row.entry = entry
        is_last = end == len(self._rows)
        if rows and not is_last and not rows[-1].ends:
            rows[-1].ends = rows[-1].closed = True
        shown_from_below = self._gap > 0 and len(rows) != end - first
        self._rows[first:end] = rows
        moved = shown_from_below or not (is_last or len(rows) == end - first)
        self._changed(first, None if moved else len(rows))

    def _changed(self, first: int, count: int | None) -> None:
        """So many rows from number `first` on are new, or all that follow."""
        height = len(self._rows)
        del self._rows[: max(0, height - MAX_ROWS)]
        self._fit()
        if count is None or height > MAX_ROWS or first == 0:
            self.refresh()
        else:
            self.refresh_lines(first + self._gap, count)

    def _fit(self) -> None:
        """Let what can be scrolled through be as high as the rows are many.

        Textual lays the whole screen out for a new `virtual_size`, which a first letter would wait
        for; only a scrollbar that comes or goes needs that.
        """
        size, bar = Size(self._width, len(self._rows)), self.show_vertical_scrollbar
        if (size.height > self.scrollable_content_region.height) != bar:
            self.virtual_size = size
            return
        at_end = self.is_vertical_scroll_end
        self.set_reactive(Transcript.virtual_size, size)
        if bar:
            self.vertical_scrollbar.window_virtual_size = size.height
        if at_end or self.scroll_y > self.max_scroll_y:
            self.scroll_target_y = self.scroll_y = self.max_scroll_y

    @property
    def _gap(self) -> int:
        """Empty rows above the text."""
        return max(0, self.size.height - len(self._rows)) if self._from_below else 0

    # --- entries ---

    def open_entry(self, entry: int) -> None:
        """Begin an entry at the end: what is appended from here on belongs to it."""
        if self._rows:
            last = self._rows[-1]
            if not last.ends:
                last.ends = last.closed = True
            if last.text:
                self._rows.append(Row([], True, last.entry, "gap"))
        self._rows.append(Row([], True, entry, "rule"))
        self._changed(0, None)

    def drop_entry(self, entry: int) -> None:
        """Take an old entry out, with the gap below it."""
        rows = self._rows
        first = next((n for n, row in enumerate(rows) if row.entry == entry), len(rows))
        behind = (n for n in range(first, len(rows)) if rows[n].entry != entry)
        del rows[first : next(behind, len(rows))]
        self._rules.pop(entry, None)
        self._changed(0, None)

    def set_rule(self, entry: int, rule: Rule) -> None:
        """Put an entry's facts on its rule."""
        if self._rules.get(entry) != rule:
            self._rules[entry] = rule
            # Only what is in view is drawn, so the search does not grow with the text.
            top = self.scroll_offset.y
            self.refresh_lines(top, 1)
            for row in range(top, min(top + self.size.height, len(self._rows))):
                if self._rows[row].kind == "rule" and self._rows[row].entry == entry:
                    self.refresh_lines(row + self._gap, 1)
                    break

    def watch_chosen(self) -> None:
        self.refresh()

    def show_entry(self, entry: int) -> None:
        """Scroll so that an entry's rule is in view."""
        for number, row in enumerate(self._rows):
            if row.kind == "rule" and row.entry == entry:
                if not self.scroll_offset.y <= number < self.scroll_offset.y + self.size.height:
                    self.scroll_to(y=number, animate=False)
                break

    def on_click(self, event: Click) -> None:
        """Tell which entry was meant."""
        number = self.scroll_offset.y + event.y - self._gap
        if 0 <= number < len(self._rows) and (entry := self._rows[number].entry) is not None:
            self.post_message(self.Picked(self, entry))

    def clear(self) -> None:
        """Forget all text."""
        self._rows.clear()
        self._rules.clear()
        self._fit()
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            return
        self._width = width
        lines, open_runs = list[Row](), list[Run]()
        for row in self._rows:
            if row.kind != "text":
                lines.append(row)
                continue
            open_runs += row.runs
            if row.ends:
                lines += self._wrapped_anew(open_runs, row)
                open_runs = []
        if open_runs:
            lines += self._wrapped_anew(open_runs, self._rows[-1])
        self._rows = lines
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def _wrapped_anew(self, runs: list[Run], last: Row) -> list[Row]:
        rows = wrap([*runs, ("text", "\n")], self._width)
        rows[-1].ends, rows[-1].closed = last.ends, last.closed
        for row in rows:
            row.entry = last.entry
        return rows

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: without the line breaks that wrapping made."""
        parts = []
        for y, row in enumerate(self._rows):
            span = selection.get_span(y)
            if span is not None and row.kind != "rule":
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
        base = self.visual_style.rich_style
        row_number = self.scroll_offset.y + y - self._gap
        if not self._rows:
            note = self._style("note")
            lines = self._placeholder_rows(width)
            number = y - max(0, self.size.height - len(lines) - 1) if self._from_below else y
            text = lines[number].text if 0 <= number < len(lines) else ""
            return Strip([Segment(text, note)]).adjust_cell_length(width, base)
        if not 0 <= row_number < len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[row_number]
        if row.kind == "rule" or (y == 0 and row.entry in self._rules):
            return self._rule(row.entry, width).adjust_cell_length(width, base)
        strip = Strip([Segment(text, self._style(name)) for name, text in row.runs])
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row_number)) is not None:
            start, end = span
            left = cell_len(row.text[:start])
            right = cell_len(row.text[: None if end == -1 else end])
            chosen = self.screen.get_component_rich_style("screen--selection")
            middle = Strip(Segment.apply_style(strip.crop(left, right), post_style=chosen))
            strip = Strip.join([strip.crop(0, left), middle, strip.crop(right)])
        return strip.adjust_cell_length(width, base).apply_offsets(0, row_number)

    def _placeholder_rows(self, width: int) -> list[Row]:
        if self._wrapped[0] != (self.placeholder, width):
            rows = wrap([("note", self.placeholder)], width) if self.placeholder else []
            self._wrapped = (self.placeholder, width), rows
        return self._wrapped[1]

    def _rule(self, entry: int | None, width: int) -> Strip:
        """`── facts ───────── how far it is ──`."""
        rule = self._rules.get(entry) if entry is not None else None
        left, right = rule.fitting(width - 8) if rule else ("", "")
        right = f" {right} ──" if right else ""
        left = f"── {left} " if left else "──"
        line = left + "─" * max(0, width - cell_len(left) - cell_len(right)) + right
        style = self._style("chosen" if entry is not None and entry == self.chosen else "rule")
        return Strip([Segment(line, style)])

    def _style(self, name: str) -> Style:
        # A component's rich style would be computed anew after each refresh.
        return self.get_visual_style(f"transcript--{name}").rich_style


def _run(style: str, text: str) -> Run:
    return style, visible(text).replace("\t", "    ")
