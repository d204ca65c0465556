"""A list to choose from, of any size."""

from __future__ import annotations

from textual.widgets import OptionList


class Choices(OptionList):
    """Textual 8.2.8 looks for the option a page away even where no page fits, and finds none."""

    def action_page_up(self) -> None:
        if self._has_room:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        if self._has_room:
            super().action_page_down()  # type: ignore[no-untyped-call]

    @property
    def _has_room(self) -> bool:
        return bool(self.option_count and self.scrollable_content_region.area)
