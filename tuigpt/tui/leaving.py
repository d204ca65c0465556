"""The ways out of the app, and what becomes of runs that train."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any

from textual.widgets import Input, TextArea

from tuigpt.errors import UserError
from tuigpt.tui.furnished import FurnishedApp
from tuigpt.tui.keys import with_keys

LEAVE_WITHIN = 3.0
"""Seconds within which a second ctrl+c leaves."""


class Leaving(FurnishedApp):
    """An app that can be left at once, or after a question."""

    _asked_to_leave = 0.0

    def exit(self, *arguments: Any, **settings: Any) -> None:
        """Leave, and keep what is to be found again at the next start."""
        with suppress(UserError):  # what cannot be kept keeps nobody from leaving
            self.keep_what_changed()
        super().exit(*arguments, **settings)

    async def action_copy_or_leave(self) -> None:
        """Copy the selection; without one, leave at the second time."""
        focused = self.focused
        if isinstance(focused, Input | TextArea) and focused.selected_text:
            focused.action_copy()
        elif selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif monotonic() - self._asked_to_leave < LEAVE_WITHIN:
            await self.action_quit()
        else:
            self._asked_to_leave = monotonic()
            self.acknowledge(with_keys(self, "{app.leave} again leaves"))

    async def action_quit(self) -> None:
        """Leave at once, or ask first what becomes of runs that train."""
        from tuigpt.tui.asking import ask
        from tuigpt.tui.screens.confirm import Confirm

        running = self.session.running
        if not running or isinstance(self.screen, Confirm):
            self.exit()
            return

        def answered(answer: str | None) -> None:
            if answer == "stop" and not all([ask(self, run, "stop") for run in running]):
                return
            if answer in ("keep", "stop"):
                self.exit()

        names = ", ".join(run.name for run in running)
        answers = [
            ("keep", "Leave it training, quit"),
            ("stop", "Stop and save it, quit"),
            ("cancel", "Stay"),
        ]
        await self.push_screen(Confirm(f"{names} is still training.", answers), answered)
