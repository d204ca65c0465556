"""The dialog that changes settings of a training under way."""

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

LIVE = {name: setting for name, setting in CHANGEABLE.items() if setting.live}
"""What can be changed while a run trains."""


class Change(Dialog[dict[str, float]]):
    """Asks for new values; dismisses with those that differ from the present ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Change nothing", id="change.back"),
    ]

    def __init__(self, run_name: str, present: dict[str, float]) -> None:
        """
        Args:
            present: the values of now, by the setting's name.
        """
        super().__init__()
        self._run_name = run_name
        self._present = present

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            with Grid(id="changes"):
                for name, setting in LIVE.items():
                    yield Label(name.replace("_", " "))
                    yield Input(
                        f"{self._present[name]:.10g}", id=name, compact=True,
                        tooltip=setting.help,
                    )  # fmt: skip
            yield Static("It holds from the next step on, and is logged.", id="hint", markup=False)
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Change", id="change", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        dialog = self.query_one("#dialog")
        dialog.border_title = Content(f"Change {one_line(self._run_name)}")
        dialog.border_subtitle = "enter change · tab next field"

    @on(Input.Changed)
    def _judge(self) -> None:
        self.query(Input).remove_class("wrong")
        verdict = self.query_one("#verdict", Static)
        try:
            self._values()
        except ConfigError as error:
            self.query(f"Input#{error.field}").add_class("wrong")
            verdict.set_class(True, "wrong")
            verdict.update(str(error))
        else:
            verdict.update("")

    def _values(self) -> dict[str, float]:
        return {
            name: setting.parse(self.query_one(f"#{name}", Input).value)
            for name, setting in LIVE.items()
        }

    @on(Input.Submitted)
    @on(Button.Pressed, "#change")
    def action_change(self) -> None:
        """Go back with what is new, if all of it can work."""
        try:
            values = self._values()
        except ConfigError:
            return
        as_shown = {name: float(f"{x:.10g}") for name, x in self._present.items()}
        self.answer({name: x for name, x in values.items() if x != as_shown[name]})

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()
