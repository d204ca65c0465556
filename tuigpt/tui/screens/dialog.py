"""What every screen above the workbench has in common."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tuigpt.tui.widgets.key_line import KeyLine

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None], Generic[Answer]):
    """A screen that is answered once, with its keys in the last line."""

    AUTO_FOCUS = "*"

    HELP_TITLE: ClassVar[str] = "a question"
    HELP: ClassVar[str] = "Nothing is done before you choose an answer."
    """Explains the screen to somebody who meets it for the first time; markup."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "app.help", "help", id="view.help", show=False,
                tooltip="Explain this screen and its keys"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        #dialog {
            width: 90%; max-width: 52; height: auto; max-height: 100%; padding: 1 2;
            border: round $primary; border-title-color: $text-primary; background: $surface;
        }
        #changes { grid-size: 2; grid-columns: 15 1fr; grid-rows: 1; height: auto; }
        #changes { margin-bottom: 1; }
        #dialog Label { margin-bottom: 1; }
        #dialog #changes Label { margin: 0; color: $foreground-muted; }
        #dialog Button { width: 1fr; }
        #changes Input { background: $boost; }
        #changes Input.wrong { background: $error-muted; color: $text-error; }
        #hint { color: $foreground-muted; height: auto; min-height: 1; }
        #verdict { height: auto; min-height: 1; max-height: 4; }
        #verdict.wrong { color: $text-error; }
        #verdict.doubtful { color: $text-warning; }
        #buttons { height: 1; }
        #buttons Button { margin-right: 2; }
    }
    """

    def on_mount(self) -> None:
        if not self.query(KeyLine):
            self.mount(KeyLine())

    def answer(self, answer: Answer | None) -> None:
        """Close with an answer; None when the user went back. Nothing happens the second time."""
        if self.is_active:
            self.dismiss(answer)

    def action_back(self) -> None:
        self.answer(None)
