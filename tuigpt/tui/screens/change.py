"""The dialog that changes settings of a training under way."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from tuigpt.config import GPTConfig, TrainConfig, help_of, parse_field
from tuigpt.errors import ConfigError
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.wording import one_line

_FIELDS = {"learning_rate": TrainConfig, "dropout": GPTConfig}
"""What can be changed, and the configuration that knows which values work."""


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
                for name, config in _FIELDS.items():
                    yield Label(name.replace("_", " "))
                    yield Input(
                        f"{self._present[name]:g}", id=name, compact=True,
                        tooltip=help_of(config, name),
                    )  # fmt: skip
            yield Static("It holds from the next step on, and is logged.", id="hint", markup=False)
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Change", id="change", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        dialog = self.query_one("#dialog")
        dialog.border_title = Content(f"Change {one_line(self._run_name)}")
        dialog.border_subtitle = "enter change · tab next field · esc back"

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
        values: dict[str, float] = {}
        for name, config in _FIELDS.items():
            values[name] = parse_field(config, name, self.query_one(f"#{name}", Input).value)
            config(**{name: values[name]})
        return values

    @on(Input.Submitted)
    @on(Button.Pressed, "#change")
    def action_change(self) -> None:
        """Go back with what is new, if all of it can work."""
        try:
            values = self._values()
        except ConfigError:
            return
        as_shown = {name: float(f"{x:g}") for name, x in self._present.items()}
        self.answer({name: x for name, x in values.items() if x != as_shown[name]})

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()
