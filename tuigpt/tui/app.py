"""The shell around the panes: it follows the runs, opens, moves the focus, and quits."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widgets import Static

from tuigpt.paths import runs_dir
from tuigpt.tui.guide import Guide
from tuigpt.tui.keys import with_keys
from tuigpt.tui.leaving import Leaving
from tuigpt.tui.messages import OpenCheckpoint, StartingRun, WatchRun
from tuigpt.tui.panes import PANES
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.pane_tabs import PaneTabs
from tuigpt.tui.widgets.run_status import RunStatusLine

if TYPE_CHECKING:
    from tuigpt.runs.follow import Follower

TWO_PANES, THREE_PANES = 100, 140
"""Columns from which on so many panes stand side by side."""

LOOK_EVERY, GLANCES = 0.25, 5
"""Seconds between two looks at the run folders, and how often in between it is seen whether a run
came or went: then it is looked at once."""

LOOK_BESIDE, UNHURRIED = 0.5, 4
"""Seconds between two looks beside a training of this processor, without a glance in between, and
how many times as long it is while a text is written, which is what is looked at then: whatever
the app does takes as much of the training's time."""


class TuigptApp(Guide, Leaving):
    """Watches the runs of one home."""

    TITLE = "tuigpt"
    CSS_PATH = "app.tcss"
    AUTO_FOCUS = None  # `on_mount` knows better
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
        super().__init__(home, strict=strict)
        settings = self.session.settings
        panes = [e._replace(key=settings.keys.get(f"view.{e.id}", e.key)) for e in panes]
        if any(entry.id == settings.pane for entry in panes):
            self.set_reactive(TuigptApp.pane, settings.pane)
        self._looked = asyncio.Event()
        self._status_line = RunStatusLine(id="run-status")
        self._tabs = PaneTabs({entry.id: entry.heading for entry in panes})
        self._entries = panes
        self._beside = next(entry.id for entry in panes if entry.id != self.pane)

    def compose(self) -> ComposeResult:
        """The pane with the focus; empty frames keep the places of the others until it stands."""
        # Textual does it only after a first frame in a layout for no size at all.
        for limits, size in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            name = max(limit for limit in limits if limit[0] <= size)[1]
            self.screen.add_class(name, update=False)
        for entry in sorted(self._entries, key=lambda entry: entry.column):
            make = entry.make if entry.id == self.pane else Pane
            self.panes[entry.id] = make(entry, self.session)
        self.watch_pane(self.pane)  # before anything is styled
        yield self._status_line
        yield self._tabs
        with Horizontal(id="workbench"):
            yield from self.panes.values()
        yield Static("tuigpt needs 60 columns\nand 16 rows", id="too-small", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self.action_show_pane(self.pane)
        self.call_after_refresh(self._begin)
        # Ended from outside, the app still gives the terminal back in order.
        with suppress(NotImplementedError):
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                number = getattr(signal, name, signal.SIGTERM)
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(number, self.exit, None, 128 + number)

    @property
    def active_pane(self) -> str:
        return self.pane

    def acknowledge(self, text: str) -> None:
        self._status_line.acknowledge(text)

    # --- following ---

    async def ready_for_input(self) -> None:
        await self._looked.wait()

    @work(group="follow")
    async def _begin(self) -> None:
        """Once the first frame stands, look at the runs, and compose the panes beside it."""
        from tuigpt.runs.follow import Follower

        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        follower = Follower(self.session.home)
        await self._look(follower)
        for entry in self._entries:
            if entry.id != self.pane:
                await self._fill(entry)
        self.furnish()
        if self.session.checkpoint is None and self.pane == PANES[0].id:
            self.action_show_pane("training")
        self._looked.set()
        while True:
            await self._until_next_look()
            await self._look(follower)

    async def _until_next_look(self) -> None:
        """Wait, but not on where a run came or went."""
        if self.session.reading:
            await asyncio.sleep(0)
            return
        folder = runs_dir(self.session.home)
        before = await asyncio.to_thread(_changed_at, folder)
        glances, pause = GLANCES, LOOK_EVERY / GLANCES
        if self.session.trains_here:
            glances, pause = UNHURRIED if self.session.writing else 1, LOOK_BESIDE
        for _ in range(glances):
            await asyncio.sleep(pause)
            if await asyncio.to_thread(_changed_at, folder) != before:
                return

    async def _look(self, follower: Follower) -> None:
        try:
            watch = self.session.watch
            self.session.look(await asyncio.to_thread(follower.look, watch))
            self._show()
        except Exception as error:  # the next look may go well
            self._handle_exception(error)

    async def _fill(self, entry: PaneEntry) -> None:
        """Put a pane where only its frame was."""
        frame, pane = self.panes[entry.id], entry.make(entry, self.session)
        workbench = self.screen_stack[0].query_one("#workbench")
        at = workbench.children.index(frame)
        with self.batch_update():  # it is drawn with what it shows, or not yet
            await frame.remove()
            self.panes[entry.id] = pane.set_classes(frame.classes)
            await workbench.mount(pane, before=at if at < len(workbench.children) else None)
            pane.show()
        if entry.id == self.pane:
            self.action_show_pane(entry.id)

    def _show(self) -> None:
        run = self.session.watched
        self._status_line.known = True
        self._status_line.run_name = run.name if run else ""
        self._status_line.status = run.status if run else None
        for pane in self.panes.values():
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
        from tuigpt.tui.screens.new_run.form import NewRun

        def started(name: str | None) -> None:
            if name is not None:
                self.post_message(WatchRun(name))

        if not isinstance(self.screen, NewRun):
            await self.push_screen(NewRun(self.session.home), started)

    # --- focus ---

    def watch_pane(self, active: str) -> None:
        if self._tabs.active not in ("", active):
            self._beside = self._tabs.active
        for name, pane in self.panes.items():
            pane.set_class(name == active, "-active", update=False)
            pane.set_class(name == self._beside, "-beside", update=False)
        # The panes alone: what is in them looks as before, and is most of what there is.
        self.stylesheet.update_nodes(pane for pane in self.panes.values() if pane.is_attached)
        self._tabs.active = active

    def action_whole(self) -> None:
        """Give the pane with the focus the whole screen, or share it again."""
        whole = self.screen_stack[0].toggle_class("-whole").has_class("-whole")
        if whole and self.size.width >= TWO_PANES:
            self.acknowledge(with_keys(self, "this pane alone; {view.whole} shows the others"))

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane into view and the focus into it."""
        self.pane = pane
        # Now, not with the next refresh: the next key may be on its way.
        for field in self.screen_stack[0].query(self.panes[pane].entry.first_focus):
            self.screen_stack[0].set_focus(field)

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


def _changed_at(folder: Path) -> int:
    """When something came into a folder or left it, in nanoseconds; 0 where there is none."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
