"""The strip of pane names that a narrow terminal shows in place of three panes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class PaneTabs(Widget):
    """Names side by side; a click chooses one."""

    DEFAULT_CSS = """
    PaneTabs { height: 1; padding: 0 1; }
    """

    @dataclass
    class Chosen(Message):
        """A name was clicked."""

        pane: str

    active: reactive[str] = reactive("")

    def __init__(self, panes: Mapping[str, tuple[str, str]]) -> None:
        """
        Args:
            panes: id, and name and key, of each.
        """
        super().__init__()
        self._panes = panes

    def render(self) -> Content:
        parts = []
        for pane, (name, key) in self._panes.items():
            style = "bold reverse $primary" if pane == self.active else "$foreground-muted"
            parts += [Content.styled(f" {key} {name} ", style), Content(" ")]
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        column = 0
        for pane, (name, key) in self._panes.items():
            column += len(f" {key} {name}  ")
            if offset.x < column - 1:
                self.post_message(self.Chosen(pane))
                return
