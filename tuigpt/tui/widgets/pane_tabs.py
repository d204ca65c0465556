"""The strip of pane names that a narrow terminal shows in place of three panes.

Textual's own Tabs take two rows and the focus, and tell of a tab that the app itself made active
as if the user had chosen it.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget


class PaneTabs(Widget):
    """Names side by side; a click carries out the app's `show_pane`."""

    DEFAULT_CSS = "PaneTabs { height: 1; padding: 0 1; }"

    active: reactive[str] = reactive("")
    """The id of the pane that has the focus."""

    def __init__(self, headings: Mapping[str, str]) -> None:
        """
        Args:
            headings: what each pane is called here, by its id.
        """
        super().__init__()
        self.auto_links = False
        self._headings = headings

    def render(self) -> Content:
        parts: list[Content | str] = []
        for pane, heading in self._headings.items():
            look = "bold reverse $primary" if pane == self.active else "$foreground-muted"
            tab = Content.styled(f" {heading} ", look)
            parts += [tab.stylize(Style.from_meta({"@click": f"app.show_pane('{pane}')"})), " "]
        return Content.assemble(*parts)
