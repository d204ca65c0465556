"""What every screen above the workbench has in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None], Generic[Answer]):
    """A screen that is answered once."""

    AUTO_FOCUS = "*"

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

    def answer(self, answer: Answer | None) -> None:
        """Close with an answer; None when the user went back. Nothing happens the second time."""
        if self.is_active:
            self.dismiss(answer)

    def action_back(self) -> None:
        self.answer(None)
