"""Asking for the file that a text is written to."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from tuigpt.paths import user_path
from tuigpt.tui.screens.dialog import Dialog


class SaveAs(Dialog[str]):
    """Dismisses with a path as typed; a file that exists is replaced only when asked twice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Write no file", id="save.back"),
    ]

    def __init__(self, what: str, name: str) -> None:
        """
        Args:
            what: is saved, for the title.
            name: of the file, offered to be changed.
        """
        super().__init__()
        self._what, self._name = what, name
        self._warned = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content(f"Save {self._what}")
            dialog.border_subtitle = "enter save · esc back"
            yield Input(self._name, id="path", compact=True, tooltip="Where to write it")
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Save", id="save", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    @on(Input.Submitted)
    @on(Button.Pressed, "#save")
    def _save(self) -> None:
        path = self.query_one("#path", Input).value
        if not path.strip():
            return
        if user_path(path).exists() and self._warned != path:
            self._warned = path
            self.query_one("#verdict", Static).update("it exists: enter again replaces it")
            return
        self.answer(path)

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()
