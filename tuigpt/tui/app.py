"""The app: the one place where its state changes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import aclosing, suppress
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer, Static

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.client import GeneratorClient
from tuigpt.runs.control import request
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.follow import Follower, Snapshot
from tuigpt.runs.launch import start
from tuigpt.runs.poet import hide_poet, poet_is_hidden
from tuigpt.tui.messages import (
    AskTrainer,
    ChangeRun,
    DiscardRun,
    OpenCheckpoint,
    ResumeRun,
    ShowPoet,
    StopWriting,
    WatchRun,
    Write,
)
from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane
from tuigpt.tui.panes.generate.pane import GeneratePane
from tuigpt.tui.panes.training.pane import TrainingPane
from tuigpt.tui.screens.change import Change
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.widgets.pane_tabs import PaneTabs
from tuigpt.tui.widgets.run_status import RunStatusLine
from tuigpt.wording import one_line

LOOK_EVERY = 0.25
"""Seconds between two looks at the run folders."""

PANES = {
    "generate": ("Generate", "^g"),
    "training": ("Training", "^t"),
    "checkpoints": ("Checkpoints", "^o"),
}
"""Name and key of each pane, in the order of the tabs."""

FIRST_FOCUS = {"generate": "#prompt", "training": "#training", "checkpoints": "#list"}


class TuigptApp(App[None]):
    """Watches the runs of one home, and owns the generator process."""

    TITLE = "tuigpt"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (60, "-narrow"), (140, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-too-short"), (16, "-short"), (24, "-tall")]

    # Keys that move the focus have priority: a key behind them in a burst finds the new field.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "show_pane('generate')", "generate", id="app.generate", show=False,
                priority=True,
                tooltip="Go to the prompt"),
        Binding("ctrl+t", "show_pane('training')", "training", id="app.training", show=False,
                priority=True,
                tooltip="Go to the loss chart and the samples"),
        Binding("ctrl+o", "show_pane('checkpoints')", "checkpoints", id="app.checkpoints",
                show=False, priority=True, tooltip="Go to the list of runs and checkpoints"),
        Binding("tab", "app.focus_next", "next", id="app.next", show=False, priority=True,
                tooltip="Go to the next field"),
        Binding("shift+tab", "app.focus_previous", "previous", id="app.previous", show=False,
                priority=True, tooltip="Go to the field before"),
        Binding("ctrl+n", "new_run", "new run", id="app.new-run", tooltip="Train a new model"),
        Binding("ctrl+p", "command_palette", "commands", id="app.commands", priority=True,
                tooltip="Search everything that can be done"),
        Binding("f1", "toggle_help", "help", id="app.help",
                tooltip="Explain the pane that has the focus, and all its keys"),
        Binding("escape", "close_help", "close help", id="app.close-help", show=False,
                tooltip="Close the explanation"),
        Binding("ctrl+q", "quit", "quit", id="app.quit", show=False, priority=True,
                tooltip="Leave; a training run may go on without the app"),
    ]  # fmt: skip

    pane: reactive[str] = reactive("training", init=False)
    """The pane that has the focus, and in a narrow terminal the one that shows."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._status_line = RunStatusLine(id="run-status")
        self._checkpoints_pane = CheckpointsPane(id="checkpoints")
        self._generate_pane = GeneratePane(id="generate")
        self._training_pane = TrainingPane(id="training")
        self._follower = Follower(home)
        self._home = home
        self._watch: str | None = None
        self._watched: Run | None = None
        self._runs: tuple[Run, ...] = ()
        self._poet: Run | None = None
        self._stand_in = False
        self._followed = False
        self._starting = ""
        self._generator = GeneratorClient(home)

    def compose(self) -> ComposeResult:
        yield self._status_line
        yield PaneTabs(PANES)
        with Horizontal(id="workbench"):
            yield self._checkpoints_pane
            yield self._generate_pane
            yield self._training_pane
        yield Static("tuigpt needs 60 columns\nand 16 rows", id="too-small", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.watch_pane(self.pane)
        # Not before the first layout: what is shown then keeps the size it was given by mistake.
        self.call_after_refresh(self._follow_runs)
        self._stay_down_when_hung_up()
        # Ended from outside, the app still gives the terminal back in order.
        with suppress(NotImplementedError):
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                number = getattr(signal, name, signal.SIGTERM)
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(number, self.exit, None, 128 + number)

    def _stay_down_when_hung_up(self) -> None:
        """Ignore the SIGCONT that a terminal sends when it hangs up.

        Textual would begin to read from it again, and a thread that does so never ends.
        """
        if not hasattr(signal, "SIGCONT"):
            return
        go_on = signal.getsignal(signal.SIGCONT)

        def continued(number: int, frame: FrameType | None) -> None:
            try:
                os.tcgetpgrp(0)
            except OSError:
                return
            if callable(go_on):
                go_on(number, frame)

        signal.signal(signal.SIGCONT, continued)

    async def on_unmount(self) -> None:
        await self._generator.close()

    # --- what the run folders tell ---

    @work(group="follow", exit_on_error=True)
    async def _follow_runs(self) -> None:
        while True:
            snapshot = await asyncio.to_thread(self._follower.look, self._watch)
            self._show(snapshot)
            if not self._followed:
                self._followed = True
                self.action_show_pane("generate" if self._checkpoint else "training")
            await asyncio.sleep(0 if snapshot.reading else LOOK_EVERY)

    def _show(self, snapshot: Snapshot) -> None:
        run, before = snapshot.watched, self._watched
        if run and before and before.name == run.name and run.status.alive:
            for message in snapshot.news:
                self.notify(message)
        self._runs, self._poet, self._watched = snapshot.runs, snapshot.poet, run
        self._status_line.run_name = run.name if run else ""
        self._status_line.status = run.status if run else None
        self._keep_open()
        self._training_pane.show(run, snapshot.history, snapshot.grown)
        self._checkpoints_pane.show(snapshot.runs, self._checkpoint, snapshot.poet)

    @property
    def _checkpoint(self) -> Checkpoint | None:
        return self._generate_pane.checkpoint

    def _keep_open(self) -> None:
        """Have a checkpoint open whenever there is one, though files come and go.

        A run keeps the best so far only until a better one: then that better one opens instead.
        The poet stands in until there is a model of the user's own, unless it was chosen.
        """
        opened = self._checkpoint
        known = [*self._runs, self._poet] if self._poet else self._runs
        if opened is None or (self._stand_in and not self._generate_pane.writing):
            candidates = [r for r in (self._watched, *self._runs) if r and not r.built_in]
            if self._poet:
                candidates.append(self._poet)
        elif any(c.path == opened.path for run in known for c in run.checkpoints):
            return
        else:
            candidates = [run for run in known if run.name == opened.run]
        best = next((run.best or run.last for run in candidates if run.last), None)
        if best is None and opened is None or best and opened and best.path == opened.path:
            return
        if best and self._stand_in:
            self.notify(f"{best.label} is open now; the poet stays in the list", timeout=5)
        self._open(best)
        self._stand_in = best is not None and best.built_in

    def _open(self, checkpoint: Checkpoint | None) -> None:
        self._generate_pane.checkpoint = checkpoint
        if checkpoint is not None:
            self._warm_up()

    @work(group="warm-up", exclusive=True)
    async def _warm_up(self) -> None:
        await self._generator.warm_up()

    # --- panes ---

    def watch_pane(self, pane: str) -> None:
        base = self.screen_stack[0]
        for name in PANES:
            base.query_one(f"#{name}").set_class(name == pane, "-active")
        base.query_one(PaneTabs).active = pane

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane into view and the focus into it."""
        self.pane = pane
        base = self.screen_stack[0]
        base.set_focus(base.query_one(FIRST_FOCUS[pane]))  # now: the next key may be on its way

    @on(PaneTabs.Chosen)
    def _pane_chosen(self, event: PaneTabs.Chosen) -> None:
        self.action_show_pane(event.pane)

    def on_descendant_focus(self) -> None:
        """The pane that the focus moved into, by tab or mouse, is the active one."""
        focused = self.focused
        while focused is not None and focused.id not in PANES:
            focused = focused.parent  # type: ignore[assignment]
        if focused is not None and focused.id is not None:
            self.pane = focused.id

    def on_resize(self) -> None:
        """A terminal too small to show anything takes the focus away: give it back."""
        self.call_after_refresh(self._give_focus_back)

    def _give_focus_back(self) -> None:
        if self.focused is None and self.screen is self.screen_stack[0] and self._followed:
            self.action_show_pane(self.pane)

    def action_close_help(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()

    def action_toggle_help(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    # --- training ---

    @work
    async def action_new_run(self) -> None:
        """Ask for settings, start a trainer, and watch it."""
        if isinstance(self.screen, NewRun):
            return
        name = await self.push_screen_wait(NewRun(self._home))
        if name is not None:
            self._watch = name
            self.action_show_pane("training")

    @on(WatchRun)
    def _watch_run(self, event: WatchRun) -> None:
        self._watch = event.name
        self.action_show_pane("training")

    @on(AskTrainer)
    def _ask_trainer(self, event: AskTrainer) -> None:
        if self._watched is None:
            return
        said = {
            "stop": "finishing the step and saving …",
            "pause": "pausing after this step …",
            "resume": "going on",
            "sample": "a sample comes after this step",
            "checkpoint": "saving after this step",
        }
        if self._ask(self._watched, event.action):
            self.notify(said[event.action], timeout=2)

    def _ask(self, run: Run, action: str, value: float | None = None) -> bool:
        """Ask a run's trainer for something; tells the user if that cannot be written down."""
        try:
            request(run.folder, action, value)
        except OSError as error:
            self.notify(f"cannot ask the trainer: {error}", severity="error")
            return False
        return True

    @on(ChangeRun)
    @work
    async def _change_run(self) -> None:
        run = self._watched
        if run is None or isinstance(self.screen, Change):
            return
        present = {"learning_rate": run.status.learning_rate, "dropout": run.status.dropout}
        wanted = await self.push_screen_wait(Change(run.name, present))
        for setting, value in wanted.items():
            if not self._ask(run, setting, value):
                return

    @on(DiscardRun)
    @work
    async def _discard_run(self) -> None:
        run = self._watched
        if run is None or isinstance(self.screen, Confirm):
            return
        count = len(run.checkpoints)
        what = f"{run.name} and its log"
        if count:
            what = f"{run.name}, its log and its {count} checkpoint{'s' * (count > 1)}"
        answer = await self.push_screen_wait(
            Confirm(
                f"Delete {what}?",
                [("keep", "Keep it"), ("discard", "End the training and delete it")],
            )
        )
        if answer == "discard" and self._ask(run, "discard"):
            self.notify(f"ending and deleting {run.name} …", timeout=2)

    @on(ResumeRun)
    def _resume_run(self, event: ResumeRun) -> None:
        if self._watched is not None:
            self._resume(self._watched.name)

    @work(group="resume", exclusive=True)
    async def _resume(self, name: str) -> None:
        if self._watched is not None and self._watched.last is None:
            self.notify(
                "it saved nothing before it ended: start it anew with ctrl+n", severity="error"
            )
            return
        self._watch = self._starting = name
        self.notify("starting the trainer …", timeout=3)
        try:
            launch = start(self._home, ["--resume", name])
        except OSError as error:
            self.notify(f"cannot start the trainer: {error}", severity="error")
            return
        while launch.log.exists():
            refusal = launch.refusal()
            if refusal is not None:
                self.notify(refusal, severity="error", timeout=10)
                break
            await asyncio.sleep(LOOK_EVERY)
        self._starting = ""

    # --- generating ---

    @on(OpenCheckpoint)
    def _open_checkpoint(self, event: OpenCheckpoint) -> None:
        self._open(event.checkpoint)
        self._stand_in = False
        self.action_show_pane("generate")

    @on(ShowPoet)
    def _show_poet(self, event: ShowPoet) -> None:
        try:
            hide_poet(self._home, not event.shown)
        except UserError as error:
            self.notify(str(error), severity="error")
            return
        if not event.shown:
            self.notify("the poet is hidden; ctrl+p, checkpoints: show the poet", timeout=5)

    @on(Write)
    def _begin_writing(self, event: Write) -> None:
        if self._checkpoint is None:
            self.notify("no model is open yet: train one with ctrl+n", severity="warning")
            return
        self._generate_pane.begin(event.config)
        self._write(self._checkpoint, event.prompt, event.config)

    @work(group="write", exclusive=True)
    async def _write(self, checkpoint: Checkpoint, prompt: str, config: SampleConfig) -> None:
        pane = self._generate_pane
        async with aclosing(self._generator.generate(checkpoint.path, prompt, config)) as reports:
            async for report in reports:
                pane.report(report)

    @on(StopWriting)
    def _stop_writing(self) -> None:
        self.workers.cancel_group(self, "write")
        self._generate_pane.stopped()

    def notify(self, message: str, *, markup: bool = False, **settings: Any) -> None:
        """Show a message in a corner: never markup, never control codes."""
        super().notify(one_line(message), markup=markup, **settings)

    # --- leaving ---

    @work
    async def action_quit(self) -> None:  # type: ignore[override]
        """Leave at once, or ask first what becomes of runs that are at work."""
        at_work = [r for r in self._runs if r.status.alive or r.name == self._starting]
        if not at_work or isinstance(self.screen, Confirm):
            self.exit()
            return
        names = ", ".join(run.name for run in at_work)
        answer = await self.push_screen_wait(
            Confirm(
                f"{names} is still training.",
                [
                    ("keep", "Leave it training, quit"),
                    ("stop", "Stop and save it, quit"),
                    ("cancel", "Stay"),
                ],
            )
        )
        if answer == "stop":
            if not all(self._ask(run, "stop") for run in at_work):
                return
        if answer in ("keep", "stop"):
            self.exit()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action, named `area: verb`."""
        yield SystemCommand("train: new run", "Train a new model", self.action_new_run)
        training = self._training_commands()
        yield from training
        for name, (title, key) in PANES.items():
            yield SystemCommand(
                f"view: {title.lower()}", f"Go to the {title.lower()} pane, {key}",
                lambda pane=name: self.action_show_pane(pane),
            )  # fmt: skip
        if self._poet:
            yield SystemCommand(
                "checkpoints: hide the poet", "Leave the built-in model out of the lists",
                lambda: self.post_message(ShowPoet(False)),
            )  # fmt: skip
        elif poet_is_hidden(self._home):
            yield SystemCommand(
                "checkpoints: show the poet", "Have the built-in model in the lists again",
                lambda: self.post_message(ShowPoet(True)),
            )  # fmt: skip
        pane = self._generate_pane
        yield SystemCommand("generate: copy text", "Copy the newest text", pane.action_copy)
        if pane.writing:
            yield SystemCommand("generate: stop", "Stop writing", pane.action_stop)
        yield SystemCommand("view: help", "Explain this pane and its keys", self.action_toggle_help)
        yield SystemCommand("view: theme", "Change the colours", self.action_change_theme)
        yield SystemCommand("app: quit", "Leave tuigpt", self.action_quit)

    def _training_commands(self) -> Iterable[SystemCommand]:
        pane = self._training_pane
        for binding in TrainingPane.BINDINGS:
            assert isinstance(binding, Binding)
            if pane.check_action(binding.action, ()):
                action = getattr(pane, f"action_{binding.action}")
                yield SystemCommand(f"train: {binding.description}", binding.tooltip, action)
