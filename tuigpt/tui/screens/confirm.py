"""A question with a few answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Button, Label

from tuigpt.tui.screens.dialog import Dialog
from tuigpt.wording import one_line


class Confirm(Dialog[str]):
    """Asks; dismisses with the answer's name, or None when the user went back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Do nothing", id="confirm.back"),
        Binding("up", "app.focus_previous", "up", show=False, tooltip="The answer above",
                id="confirm.up"),
        Binding("down", "app.focus_next", "down", show=False, tooltip="The answer below",
                id="confirm.down"),
    ]  # fmt: skip

    def __init__(self, question: str, answers: Sequence[tuple[str, str]]) -> None:
        """
        Args:
            answers: name and label of each; the first has the focus.
        """
        super().__init__()
        self._question = question
        self._answers = answers

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(one_line(self._question), markup=False)
            for name, label in self._answers:
                yield Button(label, id=name, compact=True)

    @on(Button.Pressed)
    def _answered(self, event: Button.Pressed) -> None:
        event.stop()
        self.answer(event.button.id)
