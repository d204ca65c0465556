"""Texts of one prompt side by side: to read, star, hide and sort, and to choose one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from tuigpt.errors import UserError
from tuigpt.tui.panes.generate.entries import Entry
from tuigpt.tui.panes.generate.measures import MEASURES, Measure, in_words, ordered
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.panes.generate.texts_view import TextsView
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.transcript import Rule, Transcript
from tuigpt.tui.widgets.wrapping import Row, wrap
from tuigpt.wording import one_line, visible

CARD_WIDTH, CARD_ROWS = 36, 6
"""Columns that a card has at least, and rows of text on it."""

_GAP = 2
"""Columns between two cards."""


class Cards(ScrollView, can_focus=False):
    """A card for each text: a rule with its number and measure, and the beginning of the text."""

    COMPONENT_CLASSES = {
        f"cards--{name}" for name in ("prompt", "text", "rule", "cursor", "starred")
    }

    DEFAULT_CSS = """
    Cards {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        & > .cards--prompt { color: $text-primary; text-style: bold; }
        & > .cards--text { color: $foreground; }
        & > .cards--rule { color: $foreground 60%; }
        & > .cards--starred { color: $text-success; }
        & > .cards--cursor { color: $text-primary; text-style: bold reverse; }
    }
    """

    cursor: reactive[int] = reactive(0)
    """The card that is meant, counted from the left and from above."""

    @dataclass
    class Picked(Message):
        """A card was clicked that had the cursor."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.shown: list[WrittenText] = []
        self._measure = MEASURES[0]
        self._numbers: dict[int, int] = {}
        self._card_rows = CARD_ROWS
        self._wrapped: dict[int, tuple[tuple[int, int, int, str], list[Row]]] = {}

    def show(self, texts: list[WrittenText], numbers: dict[int, int], measure: Measure) -> None:
        """Show texts in this order.

        Args:
            numbers: what each is called, by the text's identity.
            measure: whose values stand on the cards.
        """
        self.shown, self._measure, self._numbers = texts, measure, numbers
        self._lay_out()
        self.cursor = self.cursor  # it stays among them
        self.refresh()

    @property
    def text(self) -> WrittenText | None:
        """The one that is meant."""
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    @property
    def columns(self) -> int:
        """Cards side by side."""
        return max(1, (self._width + _GAP) // (CARD_WIDTH + _GAP))

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _card_width(self) -> int:
        return max(1, (self._width + _GAP) // self.columns - _GAP)

    def on_resize(self, event: Resize) -> None:
        self._lay_out()
        self.watch_cursor(self.cursor)

    def _lay_out(self) -> None:
        rows = max(1, -(-len(self.shown) // self.columns))
        # Where all fit, they share the height.
        self._card_rows = max(CARD_ROWS, (self.size.height + 1) // rows - 2)
        self.virtual_size = Size(self._width, max(0, rows * (self._card_rows + 2) - 1))

    def validate_cursor(self, at: int) -> int:
        return max(0, min(at, len(self.shown) - 1))

    def watch_cursor(self, at: int) -> None:
        top = at // self.columns * (self._card_rows + 2)
        self.scroll_to_region(Region(0, top, 1, self._card_rows + 1), animate=False)
        self.refresh()

    def on_click(self, event: Click) -> None:
        column = min(event.x // (self._card_width + _GAP), self.columns - 1)
        at = (self.scroll_offset.y + event.y) // (self._card_rows + 2) * self.columns + column
        if at < len(self.shown):
            if at == self.cursor:
                self.post_message(self.Picked())
            self.cursor = at

    def render_line(self, y: int) -> Strip:
        row, line = divmod(y + self.scroll_offset.y, self._card_rows + 2)
        strips = []
        first = row * self.columns
        if line <= self._card_rows:
            for at in range(first, min(first + self.columns, len(self.shown))):
                strips.append(self._rule(at) if line == 0 else self._line(at, line - 1))
                strips.append(Strip.blank(_GAP, self.rich_style))
        return Strip.join(strips).adjust_cell_length(self.size.width, self.rich_style)

    def _rule(self, at: int) -> Strip:
        text, width = self.shown[at], self._card_width
        value = self._measure.value(text)
        right = f" {self._measure.words(value)} ─" if value is not None else "─"
        left = f"─ {self._numbers[id(text)]}{' ★' * text.starred} "
        line = left + "─" * max(0, width - cell_len(left) - cell_len(right)) + right
        name = "cursor" if at == self.cursor else "starred" if text.starred else "rule"
        style = self.get_component_rich_style(f"cards--{name}")
        return Strip([Segment(set_cell_size(line, width), style)])

    def _rows(self, text: WrittenText, width: int) -> list[Row]:
        """The beginning of a text, wrapped; it is kept until the text has grown."""
        if not text.started:
            return []
        state = (width, self._card_rows, text.count, text.prompt)
        before = self._wrapped.get(id(text))
        if before is not None and before[0] == state:
            return before[1]
        # What is beyond the last row needs no wrapping.
        most = (self._card_rows + 1) * width
        prompt = visible(text.prompt[:most]).replace("\t", "    ")
        written = visible(text.written[:most]).replace("\t", "    ")
        rows = wrap([("prompt", prompt), ("text", written)], width)
        self._wrapped[id(text)] = state, rows
        return rows

    def _line(self, at: int, line: int) -> Strip:
        text, width = self.shown[at], self._card_width
        rows = self._rows(text, width)
        runs = rows[line].runs if line < len(rows) else []
        strip = Strip(
            [Segment(part, self.get_component_rich_style(f"cards--{name}")) for name, part in runs]
        ).adjust_cell_length(width, self.rich_style)
        if line == self._card_rows - 1 and len(rows) > self._card_rows:
            more = Segment("…", self.get_component_rich_style("cards--rule"))
            strip = Strip.join([strip.crop(0, width - 1), Strip([more])])
        return strip


class Grid(Dialog[Entry]):
    """Shows the siblings of an entry, also while they are being written.

    The one that was chosen last is the one that stands in the transcript. Dismisses with the entry
    where that one is to be looked into.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "choose", id="grid.choose",
                tooltip="Let this text stand in the transcript"),
        Binding("space", "read", "read", id="grid.read",
                tooltip="Read the whole text; again for all of them"),
        Binding("f3", "inside", "look inside", id="grid.inside",
                tooltip="See what the model thought at each token of this text"),
        Binding("s", "star", "star", id="grid.star", tooltip="Mark the text with a star"),
        Binding("h", "hide", "hide", id="grid.hide",
                tooltip="Take the text out of sight; u brings it back"),
        Binding("u", "show_hidden", "show hidden", id="grid.show-hidden",
                tooltip="Bring back all that were hidden"),
        Binding("o", "sort(1)", "sort", id="grid.sort",
                tooltip="Sort by seed, surprise, share copied, real words, or lines"),
        Binding("d", "card", "card", id="grid.card",
                tooltip="Verify the text and save it with all that prints it again: a submission"),
        Binding("escape", "leave", "back", id="grid.back",
                tooltip="Stop what is being written, or go back to the texts"),
        Binding("left", "move(-1)", "before", id="grid.left", show=False,
                tooltip="The text before"),
        Binding("right", "move(1)", "after", id="grid.right", show=False,
                tooltip="The text after"),
        Binding("up", "row(-1)", "above", id="grid.up", show=False, tooltip="The text above"),
        Binding("down", "row(1)", "below", id="grid.down", show=False, tooltip="The text below"),
        Binding("home", "move(-1000)", "first", id="grid.first", show=False,
                tooltip="The first text"),
        Binding("end", "move(1000)", "last", id="grid.last", show=False, tooltip="The last text"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Grid > Vertical {
        width: 100%; height: 1fr;
        border: round $primary; border-title-color: $text-primary; background: $surface;
        border-subtitle-color: $foreground 75%; padding: 0 1;
    }
    Grid #whole { display: none; }
    Grid.-reading { #whole { display: block; } Cards { display: none; } }
    Grid #facts { height: 1; text-wrap: nowrap; text-overflow: ellipsis; color: $foreground 75%; }
    """

    def __init__(self, view: TextsView, entry: Entry) -> None:
        """
        Args:
            view: of the entry; it stars, keeps, draws and writes.
        """
        super().__init__()
        self._view, self._entry = view, entry
        self._measure = 0
        self._why = ""
        self._frame = Vertical()
        self._cards = Cards(id="cards")
        self._whole = Transcript(id="whole")
        self._facts = Static(id="facts", markup=False)

    def compose(self) -> ComposeResult:
        with self._frame:
            yield self._cards
            yield self._whole
            yield self._facts
        yield KeyLine()

    def on_mount(self) -> None:
        self._arrange(self._entry.text)
        self.watch(self._view, "grown", self._grew, init=False)
        self.watch(self._view, "writing", self._writing_changed)

    def _arrange(self, keep: WrittenText | None = None) -> None:
        """Put the texts in order; the cursor stays on a text."""
        keep = keep or self._cards.text
        texts = self._entry.texts
        measure = MEASURES[self._measure]
        shown = ordered([text for text in texts if not text.hidden], measure)
        self._cards.show(shown, {id(text): n for n, text in enumerate(texts, 1)}, measure)
        self._cards.cursor = next((n for n, text in enumerate(shown) if text is keep), 0)
        self._tell()

    def _tell(self) -> None:
        """Say what is shown, and what is known of the text that is meant."""
        entry, text = self._entry, self._cards.text
        words = [f"{len(entry.texts)} texts", entry.text.checkpoint.label,
                 f"sorted by {MEASURES[self._measure].name}"]  # fmt: skip
        if hidden := sum(text.hidden for text in entry.texts):
            words.append(f"{hidden} hidden")
        if self._view.desk.entry is entry:
            words.append(entry.progress(self._view.desk.speed(entry))[0])
        self._frame.border_title = Content(one_line(" · ".join(words)))
        if text is None:
            facts = "all are hidden: u brings them back"
        elif self._why or text.problem:
            facts = self._why or text.problem
        else:
            facts = Rule(in_words(text)).fitting(self.app.size.width - 4)[0]
        self._facts.update(one_line(facts))
        self.refresh_bindings()

    # --- while they are written ---

    def _grew(self) -> None:
        self._cards.refresh()
        if self.has_class("-reading") and (text := self._cards.text) is not None:
            self._whole.replace_entry(0, text.parts())
        self._tell()

    def _writing_changed(self) -> None:
        self._tell()
        self._look_closer()

    @work(group="compare", exclusive=True)
    async def _look_closer(self) -> None:
        """Once all are written, find out how much of each is copied, and which words are real."""
        texts = [text for text in self._entry.texts if text.written]
        if not self._view.writing and texts and all(text.over for text in texts):
            if any(text.facts is None for text in texts):
                self._why = "reading the training text …"
                self._tell()
                try:
                    await self._view.compare(texts)
                    self._why = ""
                except UserError as error:
                    self._why = str(error)
            self._arrange()

    # --- what can be done ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "show_hidden":
                return any(text.hidden for text in self._entry.texts)
            case "card" | "inside":
                text = self._cards.text
                return text is not None and text.over
            case "take" | "read" | "star" | "hide":
                return self._cards.text is not None
        return True

    def action_move(self, count: int) -> None:
        self._cards.cursor += count
        if self.has_class("-reading"):
            self._show_whole()
        self._tell()

    def action_row(self, count: int) -> None:
        if self.has_class("-reading"):
            self._whole.scroll_relative(y=count, animate=False)
        else:
            at = self._cards.cursor + count * self._cards.columns
            if 0 <= at < len(self._cards.shown):
                self.action_move(at - self._cards.cursor)

    def action_read(self) -> None:
        self.toggle_class("-reading")
        self._show_whole()

    def _show_whole(self) -> None:
        if (text := self._cards.text) is not None:
            self._whole.clear()
            self._whole.open_entry(0)
            number = self._entry.place(text) + 1
            seed = f"seed {text.config.seed}"
            self._whole.set_rule(0, Rule([f"{number}{' ★' * text.starred}", seed], seed))
            self._whole.replace_entry(0, text.parts())
            self._whole.scroll_home(animate=False)

    def action_star(self) -> None:
        if (text := self._cards.text) is not None:
            text.starred = not text.starred
            self._keep(text)

    def action_hide(self) -> None:
        if (text := self._cards.text) is not None:
            at = self._cards.cursor
            text.hidden = True
            self._keep(text)
            self.action_move(at - self._cards.cursor)

    def action_show_hidden(self) -> None:
        hidden = [text for text in self._entry.texts if text.hidden]
        for text in hidden:
            text.hidden = False
        self._keep(*hidden)

    def _keep(self, *texts: WrittenText) -> None:
        self._view.keeper.keep(self._entry, *(text for text in texts if text.over))
        self._arrange()
        if self.has_class("-reading"):
            self._show_whole()

    def action_sort(self, count: int) -> None:
        self._measure = (self._measure + count) % len(MEASURES)
        self._arrange()

    @on(Cards.Picked)
    def action_take(self) -> None:
        """Let the text that is meant stand in the transcript, and go back there."""
        self._show_in_transcript()
        self.answer(None)

    def _show_in_transcript(self) -> None:
        if (text := self._cards.text) is not None:
            self._view.show_sibling(self._entry, self._entry.place(text))

    def action_inside(self) -> None:
        self._show_in_transcript()
        self.answer(self._entry)

    def action_card(self) -> None:
        self._show_in_transcript()
        self._view.action_card()

    def action_leave(self) -> None:
        if self.has_class("-reading"):
            self.action_read()
        elif self._view.desk.entry is self._entry:
            self._view.desk.stop()
        else:
            self.answer(None)
