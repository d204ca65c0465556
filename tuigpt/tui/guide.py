"""Finding out what can be done: the palette of commands, and the pages of help.

What opens only when somebody asks for it is imported then: the first frame does not wait for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tuigpt.tui.furnished import FurnishedApp
from tuigpt.tui.guarded import LOG_FILE
from tuigpt.tui.themes import THEMES
from tuigpt.wording import one_line

if TYPE_CHECKING:
    from tuigpt.tui.commands import Command
    from tuigpt.tui.panes.pane import Pane
    from tuigpt.tui.screens.dialog import Dialog


class Guide(FurnishedApp):
    """An app that explains itself."""

    def commands(self) -> list[Command]:
        """Everything that can be done now; what the pane with the focus can do comes first."""
        from tuigpt.tui.commands import Command, all_commands

        panes = sorted(self.panes.values(), key=lambda pane: pane.entry.id != self.active_pane)
        theme = Command("view: theme", "Change the colours", "", self._choose_theme)
        glyphs = Command(
            "view: glyphs", "Draw charts in braille, blocks or ASCII", "", self._choose_glyphs
        )
        return all_commands(self, panes, theme, glyphs)

    async def action_commands(self) -> None:
        if self.screen is self.screen_stack[0]:
            await self._choose(self.commands(), "search everything that can be done …")

    async def _choose_theme(self) -> None:
        from tuigpt.tui.commands import Command

        names = [theme.name for theme in THEMES]
        themes = [Command(name, "", "", partial(self.use_theme, name)) for name in names]
        await self._choose(themes, "search the themes …")

    async def _choose_glyphs(self) -> None:
        from tuigpt.tui.commands import Command

        names = ("auto", "braille", "blocks", "ascii")
        glyphs = [Command(name, "", "", partial(self.choose_glyphs, name)) for name in names]
        await self._choose(glyphs, "search the glyphs …")

    async def _choose(self, commands: list[Command], placeholder: str) -> None:
        from tuigpt.tui.screens.palette import Palette

        def chosen(command: Command | None) -> None:
            if command is not None:
                self.call_later(command.run)

        await self.push_screen(Palette(commands, placeholder), chosen)

    async def action_help(self) -> None:
        from tuigpt.tui.commands import commands_of
        from tuigpt.tui.keys import with_keys
        from tuigpt.tui.screens.dialog import Dialog
        from tuigpt.tui.screens.explain import explanations
        from tuigpt.tui.screens.help import Help
        from tuigpt.tui.widgets.slider import Slider

        shown: Pane | Dialog[Any] = self.panes[self.active_pane]
        title = self.panes[self.active_pane].entry.title
        everywhere = [(command.key, command.help) for command in commands_of(self)]
        if isinstance(self.screen, Dialog):
            shown, title, everywhere = self.screen, self.screen.HELP_TITLE, []
        if isinstance(shown, Help):
            return
        keys = dict.fromkeys(
            (command.key, command.help)
            for node in shown.walk_children(with_self=True)
            if not isinstance(node, Slider)
            for command in commands_of(node)
        )
        run = self.session.watched or self.session.poet
        pages = explanations(run, self.session.checkpoint)
        log = one_line(f"Errors of the app itself are kept in {self.session.home / LOG_FILE}.")
        page = Help(title, with_keys(shown, shown.HELP), [*keys], everywhere, pages, log)
        await self.push_screen(page)
