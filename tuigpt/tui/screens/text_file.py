"""The end of a text file, such as a log, to read and scroll."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tuigpt.files import open_regular
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.wording import one_line, visible

MOST_BYTES = 64 << 10
"""From the end of the file."""


class TextFile(Dialog[None]):
    """Shows the newest part of a file as it was when the screen opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,t", "back", "close", key_display="esc", tooltip="Close this page",
                id="text-file.close"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    TextFile { align: center middle; }
    TextFile > VerticalScroll {
        width: 94%; height: 90%; padding: 0 1;
        border: round $primary; border-title-color: $text-primary; background: $surface;
    }
    TextFile Static { height: auto; }
    """

    def __init__(self, path: Path, title: str) -> None:
        super().__init__()
        self._path = path
        self._title = title

    def compose(self) -> ComposeResult:
        with VerticalScroll() as page:
            page.border_title = Content(self._title)
            page.border_subtitle = Content(f"{one_line(str(self._path))} · esc closes")
            yield Static(self._content(), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).scroll_end(animate=False)

    def _content(self) -> str:
        try:
            with open_regular(self._path) as stream:
                stream.seek(-min(os.fstat(stream.fileno()).st_size, MOST_BYTES), os.SEEK_END)
                text = stream.read(MOST_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return "there is nothing here yet"
        return visible(text).strip() or "there is nothing here yet"
