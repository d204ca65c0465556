"""A page over the workbench that explains the pane one is in, its keys, and four words."""

from __future__ import annotations

from collections.abc import Sequence
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

_TWO_COLUMNS = 120
"""Columns of the terminal from which on keys stand in two columns."""


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
    Help Static { height: auto; max-width: 110; }
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
        if self._at == 0:
            self._body.update(self._pane_page())

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
        if number:
            page = Content(f"{self._pages[number - 1].words}\n\n")
            self._body.update(Content.assemble(page, self._other_pages()))
        else:
            self._body.update(self._pane_page())
        self.query_one("#help-page").scroll_home(animate=False)

    def action_scroll(self, how: str) -> None:
        page = self.query_one("#help-page", VerticalScroll)
        getattr(page, f"scroll_{how}")(animate=False)

    def _pane_page(self) -> Content:
        return Content.assemble(
            Content.from_markup(self._words), "\n\n",
            self._table(self._keys), "\n",
            ("Everywhere\n" if self._everywhere else "", "bold"),
            self._table(self._everywhere), "\n",
            self._other_pages(), "\n\n",
            (self._end, "$foreground-muted"),
        )  # fmt: skip

    def _table(self, keys: Keys) -> Content:
        """A row for each key, or in a wide terminal for two."""
        width = max((len(key) for key, _ in keys), default=0) + 3
        rows = [Content.assemble((key.ljust(width), "bold $text-primary"), what)
                for key, what in keys]  # fmt: skip
        if self.app.size.width >= _TWO_COLUMNS and rows:
            half = (len(rows) + 1) // 2
            column = max(row.cell_length for row in rows[:half]) + 4
            others = [*rows[half:], *[Content("")] * (2 * half - len(rows))]
            rows = [
                Content.assemble(left, " " * (column - left.cell_length), right)
                for left, right in zip(rows[:half], others, strict=True)
            ]
        return Content.assemble(*(Content.assemble(row, "\n") for row in rows))

    def _other_pages(self) -> Content:
        parts: list[Content | str] = ["What is …  "]
        for number, page in enumerate(self._pages, 1):
            if number == self._at:
                continue
            link = Content.assemble((f"{number}", "bold $text-primary"), f" {page.title}   ")
            click = Style.from_meta({"@click": f"screen.explain({number})"})
            parts.append(link.stylize(click))
        return Content.assemble(*parts)
