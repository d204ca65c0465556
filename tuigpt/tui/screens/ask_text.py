"""A question that is answered with a line of text."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label

from tuigpt.tui.screens.dialog import Dialog
from tuigpt.wording import one_line


class AskText(Dialog[str]):
    """Dismisses with what was typed, or None when the user went back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Change nothing", id="ask-text.back"),
    ]

    def __init__(self, question: str, value: str, verb: str) -> None:
        """
        Args:
            value: that stands in the field already.
            verb: of the button that takes the answer.
        """
        super().__init__()
        self._question, self._value, self._verb = question, value, verb

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(one_line(self._question), markup=False)
            yield Input(one_line(self._value), id="answer", compact=True)
            with Horizontal(id="buttons"):
                yield Button(self._verb, id="take", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    @on(Input.Submitted)
    @on(Button.Pressed, "#take")
    def _take(self) -> None:
        self.answer(self.query_one("#answer", Input).value.strip())

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()
