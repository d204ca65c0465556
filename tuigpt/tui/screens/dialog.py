"""What every screen above the workbench has in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None], Generic[Answer]):
    """A screen that is answered once."""

    def answer(self, answer: Answer | None) -> None:
        """Close with an answer; None when the user went back. Nothing happens the second time."""
        if self.is_active:
            self.dismiss(answer)

    def action_back(self) -> None:
        self.answer(None)
