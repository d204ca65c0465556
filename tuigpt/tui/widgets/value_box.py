"""A box with one short value, which typing replaces."""

from __future__ import annotations

from textual.events import Click
from textual.widgets import Input


class ValueBox(Input):
    """An input whose value a click selects, as coming to it by key does.

    A mouse that is dragged selects what it was dragged over.
    """

    def on_click(self, event: Click) -> None:
        if self.selection.is_empty:
            self.action_select_all()
