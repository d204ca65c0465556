"""What every pane of the workbench is, and what the registry says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from tuigpt.tui.session import Session
from tuigpt.wording import one_line


class PaneEntry(NamedTuple):
    """A pane as the registry knows it.

    Attributes:
        id: of its widget.
        key: that goes to it, from everywhere.
        purpose: what that key does, for help and commands.
        first_focus: selector of what has the focus then.
        column: its place from the left where panes stand side by side; tabs are in the order of
            the registry.
        make: makes it, from its entry and the session that it shows.
    """

    id: str
    title: str
    key: str
    purpose: str
    first_focus: str
    column: int
    make: Callable[[PaneEntry, Session], Pane]

    @property
    def heading(self) -> str:
        """Key and title, as in the tab and the border."""
        first, _, _ = self.key.partition(",")
        return f"{first.replace('ctrl+', '^')} {self.title}"

    @property
    def binding(self) -> Binding:
        """Goes to the pane. With priority, because prompts and lists have keys of their own."""
        return Binding(
            self.key, f"show_pane('{self.id}')", self.title.lower(), id=f"view.{self.id}",
            show=False, priority=True, tooltip=self.purpose,
        )  # fmt: skip


class Pane(Vertical):
    """One of the workbench's panes. It owns its services, and shows the session it is given."""

    HELP: ClassVar[str] = ""
    """Explains the pane to somebody who meets it for the first time; markup."""

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(id=entry.id)
        self.entry = entry
        self.session = session
        self.name_subject("")

    def name_subject(self, subject: str) -> None:
        """Say in the border what the pane shows."""
        heading = self.entry.heading
        self.border_title = Content(f"{heading} · {one_line(subject)}" if subject else heading)

    def show(self) -> None:
        """Show the session as it is now; called after every look and every change."""

    def to_keep(self) -> dict[str, object]:
        """Settings, as they stand now, that the next start of the app is to find again."""
        return {}
