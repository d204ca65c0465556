"""What holds the questions: it marks the one that is answered, and tells which keys do that."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

_KEYS = {
    "source": "↑ ↓ choose · or type a path · tab next question",
    "preset": "↑ ↓ choose · tab next question",
    "duration": "← → choose · 0–9 another number · tab next question",
}
_OTHER_KEYS = "tab next field"
"""The keys in each question, and elsewhere."""


class Questions(VerticalScroll, can_focus=False):
    """All questions of the form; each heading has the id of its question, with `asks-` before it.

    The up and down keys go from field to field, also out of a field that is typed in.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "field above", show=False, id="new-run.up",
                tooltip="Go to the field above"),
        Binding("down", "app.focus_next", "field below", show=False, id="new-run.down",
                tooltip="Go to the field below"),
    ]  # fmt: skip

    def mark_asked(self, asked: str) -> str:
        """Mark the heading of one question, if it has one.

        Returns:
            which keys answer it.
        """
        for question in self.query(".question"):
            question.set_class(question.id == f"asks-{asked}", "-asked")
        return _KEYS.get(asked, _OTHER_KEYS)
