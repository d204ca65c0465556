"""What the app keeps from one start to the next: its colours, its glyphs, its keys, its pane."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from textual import on

from tuigpt.errors import UserError
from tuigpt.settings import change_settings, look_at_settings
from tuigpt.tui.guarded import LOG_FILE, GuardedApp
from tuigpt.tui.messages import Acknowledged
from tuigpt.tui.panes.pane import Pane
from tuigpt.tui.session import Session
from tuigpt.tui.themes import INK, THEMES, default_glyphs, default_theme
from tuigpt.wording import one_line


class FurnishedApp(GuardedApp):
    """An app with the user's settings.

    Attributes:
        session: what is shown, with the settings.
        panes: by their ids, once they are composed.
        chosen_keys: those that the user has bound otherwise, by the action's id.
    """

    def __init__(self, home: Path, *, strict: bool = False) -> None:
        """
        Args:
            strict: let an exception end the app, instead of logging it.
        """
        super().__init__(None if strict else home / LOG_FILE)
        settings, self._problems = look_at_settings(home)
        self.session = Session(home, settings=settings)
        self.panes: dict[str, Pane] = {}
        self._kept: dict[str, object] = {}
        for theme in THEMES:
            self.register_theme(theme)
        kept = any(theme.name == settings.theme for theme in THEMES)
        self.theme = settings.theme if kept else default_theme(self.console.color_system)
        self.chosen_keys = settings.keys
        self.set_keymap(settings.keys)

    @property
    def active_pane(self) -> str:
        """The id of the pane that has the focus."""
        raise NotImplementedError

    def acknowledge(self, text: str) -> None:
        """Say what was just done, at the right end of the status line."""
        raise NotImplementedError

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours of our own roles, under a theme that lacks them."""
        return INK.variables

    def furnish(self) -> None:
        """Apply the settings that need widgets, and say what is wrong with the others."""
        self._kept = self._to_keep()
        self.use_glyphs(self.session.settings.glyphs)
        problems = [*self._problems]
        if self.chosen_keys:
            from tuigpt.tui.keys import unknown_actions

            problems += unknown_actions(self.chosen_keys)
        for problem in problems:
            self.call_after_refresh(self.notify, problem, severity="warning")

    def use_theme(self, name: str) -> None:
        """Take other colours, and keep them."""
        self.theme = name
        self._keep(theme=name)

    def choose_glyphs(self, name: str) -> None:
        """Draw charts with other characters, and keep that."""
        self.use_glyphs(name)
        self._keep(glyphs=name)

    def use_glyphs(self, name: str) -> None:
        """Draw charts with these characters; `auto` goes by the terminal."""
        from tuigpt.tui.widgets.loss_chart import LossChart

        if name == "auto":
            name = default_glyphs(os.environ.get("TERM", ""))
        for chart in self.screen_stack[0].query(LossChart):
            chart.use_glyphs(name)

    def _keep(self, **chosen: object) -> None:
        try:
            change_settings(**chosen)
        except UserError as error:
            self.notify(f"it holds until you leave: {error}", severity="warning")

    def keep_what_changed(self) -> None:
        """Keep what is to be found again at the next start.

        Raises:
            UserError: it cannot be kept.
        """
        now = self._to_keep()
        changed = {name: now[name] for name in now if now[name] != self._kept.get(name)}
        if changed:
            change_settings(**changed)

    def _to_keep(self) -> dict[str, object]:
        """Settings as they stand now."""
        kept: dict[str, object] = {"pane": self.active_pane}
        for pane in self.panes.values():
            kept |= pane.to_keep()
        return kept

    @on(Acknowledged)
    def _acknowledged(self, event: Acknowledged) -> None:
        self.acknowledge(event.text)

    def notify(self, message: str, *, markup: bool = False, **settings: Any) -> None:
        """Say it in the status line, or in a corner if it went wrong; never markup."""
        if settings.get("severity", "information") == "information":
            self.acknowledge(message)
        else:
            super().notify(one_line(message), markup=markup, **settings)
