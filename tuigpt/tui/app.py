"""The shell around the panes: it follows the runs, opens, moves the focus, and quits."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widgets import Input, Static, TextArea

from tuigpt.errors import UserError
from tuigpt.runs.follow import Follower
from tuigpt.settings import change_settings, look_at_settings
from tuigpt.tui.asking import ask
from tuigpt.tui.commands import Command, all_commands, commands_of
from tuigpt.tui.guarded import LOG_FILE, GuardedApp
from tuigpt.tui.messages import Acknowledged, OpenCheckpoint, StartingRun, WatchRun
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.screens.explain import explanations
from tuigpt.tui.screens.help import Help
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.screens.palette import Palette
from tuigpt.tui.session import Session
from tuigpt.tui.themes import INK, THEMES, default_glyphs, default_theme
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.tui.widgets.pane_tabs import PaneTabs
from tuigpt.tui.widgets.run_status import RunStatusLine
from tuigpt.tui.widgets.slider import Slider
from tuigpt.wording import one_line

TWO_PANES, THREE_PANES = 100, 140
"""Columns from which on so many panes stand side by side."""

LEAVE_WITHIN = 3.0
"""Seconds within which a second ctrl+c leaves."""

LOOK_EVERY = 0.25
"""Seconds between two looks at the run folders."""


class TuigptApp(GuardedApp):
    """Watches the runs of one home."""

    TITLE = "tuigpt"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [
        (0, "-too-narrow"), (60, "-narrow"), (TWO_PANES, "-medium"), (THREE_PANES, "-wide"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [(0, "-too-short"), (16, "-short"), (24, "-tall")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "new_run", "new run", id="train.new-run", tooltip="Train a new model"),
        *(entry.binding for entry in PANES),
        Binding("tab", "app.focus_next", "next field", id="view.next", show=False,
                tooltip="Go to the next field"),
        Binding("shift+tab", "app.focus_previous", "field before", id="view.previous", show=False,
                tooltip="Go to the field before"),
        Binding("ctrl+p", "commands", "commands", id="view.commands", priority=True,
                tooltip="Search everything that can be done"),
        Binding("f1,question_mark", "help", "help", id="view.help",
                tooltip="Explain the pane that has the focus, and all its keys"),
        Binding("f4", "whole", "whole pane", id="view.whole", show=False, priority=True,
                tooltip="Give this pane the whole screen; again to share it"),
        Binding("ctrl+c", "copy_or_leave", "copy or leave", id="app.leave", show=False,
                priority=True, tooltip="Copy what is selected; else leave at the second time"),
        Binding("ctrl+z", "suspend_process", "suspend", id="app.suspend", show=False,
                priority=True, tooltip="Back to the shell for a while; fg brings tuigpt back"),
        Binding("ctrl+q", "quit", "quit", id="app.quit", priority=True,
                tooltip="Leave; a training run may keep training without the app"),
    ]  # fmt: skip

    pane: reactive[str] = reactive(PANES[0].id, init=False)
    """The pane that has the focus, and in a narrow terminal the one that shows."""

    def __init__(
        self, home: Path, *, panes: Sequence[PaneEntry] = PANES, strict: bool = False
    ) -> None:
        """
        Args:
            strict: let an exception end the app, instead of logging it.
        """
        super().__init__(None if strict else home / LOG_FILE)
        settings, self._problems = look_at_settings(home)
        self.session = Session(home, settings=settings)
        panes = [replace(e, key=settings.keys.get(f"view.{e.id}", e.key)) for e in panes]
        if any(entry.id == settings.pane for entry in panes):
            self.set_reactive(TuigptApp.pane, settings.pane)
        self._follower = Follower(home)
        self._looked = asyncio.Event()
        self._status_line = RunStatusLine(id="run-status")
        self._tabs = PaneTabs({entry.id: entry.heading for entry in panes})
        self._entries = panes
        self._panes: dict[str, Pane] = {}
        self._beside = next(entry.id for entry in panes if entry.id != self.pane)
        self._asked_to_leave = 0.0
        self._kept: dict[str, object] = {"pane": self.pane}
        for theme in THEMES:
            self.register_theme(theme)
        kept = any(theme.name == settings.theme for theme in THEMES)
        self.theme = settings.theme if kept else default_theme(self.console.color_system)
        self.set_keymap(settings.keys)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours of our own roles, under a theme that lacks them."""
        return INK.variables

    def compose(self) -> ComposeResult:
        self._panes = {entry.id: entry.make(entry, self.session) for entry in self._entries}
        self.watch_pane(self.pane)  # before anything is styled
        yield self._status_line
        yield self._tabs
        with Horizontal(id="workbench"):
            yield from sorted(self._panes.values(), key=lambda pane: pane.entry.column)
        yield Static("tuigpt needs 60 columns\nand 16 rows", id="too-small", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_show_pane(self.pane)
        self._kept = self._to_keep()
        self._use_glyphs(self.session.settings.glyphs)
        for problem in self._problems:
            self.call_after_refresh(self.notify, problem, severity="warning")
        # Not before the first layout: what is shown then keeps the size it was given by mistake.
        self.call_after_refresh(self._follow_runs)
        # Ended from outside, the app still gives the terminal back in order.
        with suppress(NotImplementedError):
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                number = getattr(signal, name, signal.SIGTERM)
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(number, self.exit, None, 128 + number)

    # --- following ---

    async def ready_for_input(self) -> None:
        await self._looked.wait()

    @work(group="follow")
    async def _follow_runs(self) -> None:
        while True:
            try:
                watch = self.session.watch
                self.session.look(await asyncio.to_thread(self._follower.look, watch))
                self._show()
            except Exception as error:  # the next look may go well
                self._handle_exception(error)
            if not self._looked.is_set():
                self._looked.set()
                if self.session.checkpoint is None and self.pane == PANES[0].id:
                    self.action_show_pane("training")
            await asyncio.sleep(0 if self.session.reading else LOOK_EVERY)

    def _show(self) -> None:
        run = self.session.watched
        self._status_line.run_name = run.name if run else ""
        self._status_line.status = run.status if run else None
        for pane in self._panes.values():
            pane.show()

    @on(WatchRun)
    def _watch_run(self, event: WatchRun) -> None:
        self.session.watch = event.name
        self.action_show_pane("training")

    @on(StartingRun)
    def _starting_run(self, event: StartingRun) -> None:
        self.session.starting = event.name

    @on(OpenCheckpoint)
    def _open_checkpoint(self, event: OpenCheckpoint) -> None:
        self.session.open(event.checkpoint)
        self._show()
        self.action_show_pane("generate")

    async def action_new_run(self) -> None:
        """Ask for settings, start a trainer, and watch it."""

        def started(name: str | None) -> None:
            if name is not None:
                self.post_message(WatchRun(name))

        if not isinstance(self.screen, NewRun):
            await self.push_screen(NewRun(self.session.home), started)

    # --- focus ---

    def watch_pane(self, active: str) -> None:
        if self._tabs.active not in ("", active):
            self._beside = self._tabs.active
        for name, pane in self._panes.items():
            pane.set_class(name == active, "-active")
            pane.set_class(name == self._beside, "-beside")
        self._tabs.active = active

    def action_whole(self) -> None:
        """Give the pane with the focus the whole screen, or share it again."""
        whole = self.screen_stack[0].toggle_class("-whole").has_class("-whole")
        if whole and self.size.width >= TWO_PANES:
            self.acknowledge("this pane alone; f4 shows the others")

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane into view and the focus into it."""
        self.pane = pane
        # Now, not with the next refresh: the next key may be on its way.
        shown = self._panes[pane]
        focus = shown.entry.first_focus
        self.screen_stack[0].set_focus(self.screen_stack[0].query_one(focus))

    def on_descendant_focus(self) -> None:
        """The pane that the focus moved into, by tab or mouse, is the active one."""
        if self.screen_stack and self.focused is not None:
            for node in self.focused.ancestors_with_self:
                if isinstance(node, Pane):
                    self.pane = node.entry.id

    def on_resize(self) -> None:
        """A terminal too small to show anything takes the focus away: give it back."""
        self.call_after_refresh(self._give_focus_back)

    def _give_focus_back(self) -> None:
        if self.focused is None and self.screen is self.screen_stack[0]:
            self.action_show_pane(self.pane)

    # --- what can be done, and what it means ---

    def commands(self) -> list[Command]:
        """Everything that can be done now; what the pane with the focus can do comes first."""
        panes = sorted(self._panes.values(), key=lambda pane: pane.entry.id != self.pane)
        theme = Command("view: theme", "Change the colours", "", self._choose_theme)
        glyphs = Command(
            "view: glyphs", "Draw charts in braille, blocks or ASCII", "", self._choose_glyphs
        )
        return all_commands(self, panes, theme, glyphs)

    async def action_commands(self) -> None:
        if self.screen is self.screen_stack[0]:
            await self._choose(self.commands(), "search everything that can be done …")

    async def _choose_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        themes = [Command(name, "", "", partial(self._use_theme, name)) for name in names]
        await self._choose(themes, "search the themes …")

    def _use_theme(self, name: str) -> None:
        self.theme = name
        self._keep(theme=name)

    async def _choose_glyphs(self) -> None:
        names = ("auto", "braille", "blocks", "ascii")

        def use(name: str) -> None:
            self._use_glyphs(name)
            self._keep(glyphs=name)

        await self._choose(
            [Command(name, "", "", partial(use, name)) for name in names], "search the glyphs …"
        )

    def _use_glyphs(self, name: str) -> None:
        if name == "auto":
            name = default_glyphs(os.environ.get("TERM", ""))
        for chart in self.screen_stack[0].query(LossChart):
            chart.use_glyphs(name)

    def _keep(self, **chosen: object) -> None:
        try:
            change_settings(**chosen)
        except UserError as error:
            self.notify(f"it holds until you leave: {error}", severity="warning")

    async def _choose(self, commands: list[Command], placeholder: str) -> None:
        def chosen(command: Command | None) -> None:
            if command is not None:
                self.call_later(command.run)

        await self.push_screen(Palette(commands, placeholder), chosen)

    async def action_help(self) -> None:
        pane = self._panes[self.pane]
        if self.screen is not self.screen_stack[0]:
            return
        keys = [
            (command.key, command.help)
            for node in pane.walk_children(with_self=True)
            if not isinstance(node, Slider)
            for command in commands_of(node)
        ]
        everywhere = [(command.key, command.help) for command in commands_of(self)]
        run = self.session.watched or self.session.poet
        pages = explanations(run, self.session.checkpoint)
        log = one_line(f"Errors of the app itself are kept in {self.session.home / LOG_FILE}.")
        page = Help(pane.entry.title, pane.HELP, keys, everywhere, pages, log)
        await self.push_screen(page)

    @on(Acknowledged)
    def _acknowledged(self, event: Acknowledged) -> None:
        self.acknowledge(event.text)

    def acknowledge(self, text: str) -> None:
        """Say what was just done, at the right end of the status line."""
        self._status_line.acknowledge(text)

    def notify(self, message: str, *, markup: bool = False, **settings: Any) -> None:
        """Say it in the status line, or in a corner if it went wrong; never markup."""
        if settings.get("severity", "information") == "information":
            self.acknowledge(message)
        else:
            super().notify(one_line(message), markup=markup, **settings)

    # --- leaving ---

    def exit(self, *arguments: Any, **settings: Any) -> None:
        """Leave, and keep what is to be found again at the next start."""
        now = self._to_keep()
        changed = {name: now[name] for name in now if now[name] != self._kept.get(name)}
        if changed:
            with suppress(UserError):  # what cannot be kept keeps nobody from leaving
                change_settings(**changed)
        super().exit(*arguments, **settings)

    def _to_keep(self) -> dict[str, object]:
        """Settings as they stand now."""
        kept: dict[str, object] = {"pane": self.pane}
        for pane in self._panes.values():
            kept |= pane.to_keep()
        return kept

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
            self.acknowledge("ctrl+c again leaves")

    async def action_quit(self) -> None:
        """Leave at once, or ask first what becomes of runs that train."""
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
