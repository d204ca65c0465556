"""A page over the workbench that explains the pane one is in, its keys, and four words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.explain import Page
from tuigpt.tui.widgets.key_line import KeyLine

Keys = Sequence[tuple[str, str]]
"""Keys, each with what it does."""

_PROSE, _TABLE, _TWO_COLUMNS = 100, 150, 120
"""How wide a paragraph and a table of keys become at most, and the terminal's columns from which on
keys stand in two columns."""

_AROUND = 6
"""Columns for the page's padding and its scrollbar."""

_EMPTY = Content("")


class Help(Dialog[None]):
    """Words, and keys with what each does; esc closes it, the arrows scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,question_mark,q", "back", "close", key_display="esc",
                tooltip="Close this page", id="help.close"),
        Binding("up,k", "scroll('up')", "scroll", key_display="↑", show=False,
                tooltip="Scroll up", id="help.up"),
        Binding("down,j", "scroll('down')", "scroll", key_display="↓", show=False,
                tooltip="Scroll down", id="help.down"),
        Binding("pageup", "scroll('page_up')", "scroll", show=False,
                tooltip="A page up", id="help.page-up"),
        Binding("pagedown,space", "scroll('page_down')", "scroll", show=False,
                tooltip="A page down", id="help.page-down"),
        Binding("0", "explain(0)", "this pane", show=False,
                tooltip="Back to the pane's own page", id="help.pane"),
        *(
            Binding(str(n), f"explain({n})", "explain", show=False, id=f"help.explain-{word}",
                    tooltip=f"Explain {word.replace('-', ' ')}")
            for n, word in enumerate(("token", "checkpoint", "loss", "nats"), 1)
        ),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Help { background: $background; }
    Help #help-title { height: 1; background: $surface; padding: 0 1; }
    Help VerticalScroll { padding: 1 2; height: 1fr; }
    Help #help-body { height: auto; }
    """

    def __init__(
        self, title: str, words: str, keys: Keys, everywhere: Keys, pages: Sequence[Page], end: str
    ) -> None:
        """
        Args:
            words: markup.
            keys: of this pane.
            everywhere: keys that work in every pane.
            pages: the words that are explained, called up by their numbers.
            end: said at the very end.
        """
        super().__init__()
        self._title, self._words, self._keys = title, words, keys
        self._everywhere, self._pages, self._end = everywhere, pages, end
        self._head = Static(id="help-title", markup=False)
        self._body = Static(id="help-body", markup=False)
        self._body.auto_links = False

    def compose(self) -> ComposeResult:
        yield self._head
        with VerticalScroll(id="help-page"):
            yield self._body
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_explain(0)

    def on_resize(self) -> None:
        self._show()

    _at = 0

    def action_explain(self, number: int) -> None:
        """Show one of the explanations, or 0, the pane's own page."""
        if not 0 <= number <= len(self._pages):
            return
        self._at = number
        title = self._pages[number - 1].title if number else self._title
        how = "0 back · esc closes" if number else "esc closes · ↑ ↓ pgdn scroll"
        self._head.update(
            Content.assemble(("help: ", "bold"), (title, "bold $text-primary"), f"   {how}")
        )
        self._show()
        self.query_one("#help-page").scroll_home(animate=False)

    def action_scroll(self, how: str) -> None:
        page = self.query_one("#help-page", VerticalScroll)
        getattr(page, f"scroll_{how}")(animate=False)

    def _show(self) -> None:
        if self._at:
            words = Content(self._pages[self._at - 1].words)
            lines = [*_hanging(words, self._width(_PROSE)), _EMPTY, self._other_pages()]
        else:
            lines = self._own_page()
        self._body.update(Content("\n").join(lines))

    def _width(self, most: int) -> int:
        return max(1, min(most, self.app.size.width - _AROUND))

    def _own_page(self) -> list[Content]:
        """The lines of the pane's own page."""
        lines = _hanging(Content.from_markup(self._words), self._width(_PROSE))
        lines += [_EMPTY, *self._table(self._keys)]
        if self._everywhere:
            lines += [_EMPTY, Content.styled("Everywhere", "bold"), *self._table(self._everywhere)]
        end = Content.styled(self._end, "$foreground-muted")
        return [*lines, _EMPTY, self._other_pages(), _EMPTY, end]

    def _table(self, keys: Keys) -> list[Content]:
        """Each key with what it does, in a wide terminal in two columns."""
        name = max((len(key) for key, _ in keys), default=0) + 3
        rows = [Content.assemble((key.ljust(name), "bold $text-primary"), what)
                for key, what in keys]  # fmt: skip
        if self.app.size.width < _TWO_COLUMNS:
            return [line for row in rows for line in _hanging(row, self._width(_TABLE))]
        column, half = self._width(_TABLE) // 2, (len(rows) + 1) // 2
        left, right = (
            [line for row in part for line in _hanging(row, column - 4)]
            for part in (rows[:half], rows[half:])
        )
        return [
            Content.assemble(one, " " * (column - one.cell_length), other)
            for one, other in zip_longest(left, right, fillvalue=_EMPTY)
        ]

    def _other_pages(self) -> Content:
        parts: list[Content | str] = ["What is …  "]
        for number, page in enumerate(self._pages, 1):
            if number == self._at:
                continue
            link = Content.assemble((f"{number}", "bold $text-primary"), f" {page.title}   ")
            click = Style.from_meta({"@click": f"screen.explain({number})"})
            parts.append(link.stylize(click))
        return Content.assemble(*parts)


def _hanging(text: Content, width: int) -> list[Content]:
    """The rows of a text, in which what follows a name and a gap stays in its column."""
    rows = []
    for line in text.split("\n", allow_blank=True):
        named = re.match(r"\S.*?  +", line.plain)
        indent = named.end() if named else 0
        first, *others = line[indent:].wrap(max(1, width - indent)) or [_EMPTY]
        rows += [line[:indent] + first, *[Content(" " * indent) + other for other in others]]
    return rows
