"""The dialog that trains a finished run further."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from tuigpt.errors import ConfigError
from tuigpt.runs.control import CHANGEABLE
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.wording import one_line


class Extend(Dialog[int]):
    """Asks for a new number of steps in all; dismisses with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Leave the run as it is", id="extend.back"),
    ]

    def __init__(self, run_name: str, done: int) -> None:
        """
        Args:
            done: steps that the run has done.
        """
        super().__init__()
        self._run_name = run_name
        self._done = done

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            with Grid(id="changes"):
                yield Label("steps in all")
                yield Input(
                    str(2 * self._done), id="max_steps", compact=True, restrict=r"\d{0,9}",
                    tooltip=CHANGEABLE["max_steps"].help,
                )  # fmt: skip
            yield Static(
                f"It has done {self._done:,} steps. The learning rate falls anew, towards the new"
                " end.", id="hint", markup=False,
            )  # fmt: skip
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Train further", id="extend", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        dialog = self.query_one("#dialog")
        dialog.border_title = Content(f"Train {one_line(self._run_name)} further")
        dialog.border_subtitle = "enter train"

    def _steps(self) -> int:
        steps = int(CHANGEABLE["max_steps"].parse(self.query_one("#max_steps", Input).value))
        if steps <= self._done:
            raise ConfigError("max_steps", steps, f"more than the {self._done:,} it has done")
        return steps

    @on(Input.Changed)
    def _judge(self) -> None:
        verdict, said = self.query_one("#verdict", Static), ""
        try:
            self._steps()
        except ConfigError as error:
            said = str(error)
        verdict.set_class(bool(said), "wrong")
        verdict.update(said)

    @on(Input.Submitted)
    @on(Button.Pressed, "#extend")
    def action_extend(self) -> None:
        """Go back with the number of steps, if it can work."""
        try:
            steps = self._steps()
        except ConfigError:
            return
        self.answer(steps)

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()
