"""A page that explains the pane one is in, and its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tuigpt.tui.screens.dialog import Dialog


class Help(Dialog[None]):
    """Words, and keys with what each does; esc closes it, the arrows scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,question_mark,q", "back", "close", key_display="esc",
                tooltip="Close this page", id="help.close"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > VerticalScroll {
        width: 90%; max-width: 84; height: auto; max-height: 100%;
        border: round $primary; border-title-color: $text-primary; background: $surface;
        padding: 1 2;
    }
    Help Static { height: auto; }
    """

    def __init__(self, title: str, words: str, keys: Sequence[tuple[str, str]], end: str) -> None:
        """
        Args:
            words: markup.
            keys: each key and what it does.
            end: said below the keys.
        """
        super().__init__()
        self._title, self._words, self._keys, self._end = title, words, keys, end

    def compose(self) -> ComposeResult:
        width = max((len(key) for key, _ in self._keys), default=0) + 2
        with VerticalScroll() as page:
            page.border_title = Content(self._title)
            page.border_subtitle = "esc closes · ↑ ↓ scroll"
            yield Static(Content.from_markup(self._words))
            yield Static()
            for key, what in self._keys:
                yield Static(Content.assemble((key.ljust(width), "bold $text-primary"), what))
            yield Static()
            yield Static(Content.styled(self._end, "$foreground-muted"))
