"""The training pane: the curve, what it means, and what the model writes as it learns."""

from __future__ import annotations

import asyncio
import math
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from tuigpt.loss import bits
from tuigpt.runs.control import ACTIONS
from tuigpt.runs.folder import Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.launch import start
from tuigpt.runs.metrics import History, SampleLine
from tuigpt.runs.status import ALIVE
from tuigpt.tui.asking import ask
from tuigpt.tui.messages import StartingRun, WatchRun
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.screens.change import LIVE, Change
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.tui.widgets.transcript import Transcript
from tuigpt.wording import gap_in_words, meaning_of_loss, one_line

NO_RUN = "No run yet. Press ctrl+n to train a model on Shakespeare, or on your own text."

POLL = 0.25
"""Seconds between two looks whether the trainer has refused."""

_WAITING = {
    "preparing": "Reading the text and building the model …",
    "training": "Waiting for the first step …",
    "evaluating": "Measuring the untrained model …",
}


class TrainingPane(Pane, can_focus=True):
    """Shows the watched run, and asks its trainer for things."""

    BINDING_GROUP_TITLE = "Training"
    HELP = """\
The line falls as the model learns: [b]train[/b] is the loss on the text it studies, [b]val[/b] \
the loss on text it never sees. ★ marks the lowest val: the best checkpoint. When val rises while \
train still falls, the model has begun to memorise.

A trainer keeps training when you close the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause", id="train.pause",
                tooltip="Hold the training, keeping it in memory; again to continue"),
        Binding("s", "stop", "stop & save", id="train.stop",
                tooltip="Finish the step, save a checkpoint and end the trainer"),
        Binding("g", "sample", "sample", id="train.sample",
                tooltip="Let the model write a sample now"),
        Binding("k", "checkpoint", "save", id="train.checkpoint",
                tooltip="Save a checkpoint now and keep training"),
        Binding("c", "change", "change", id="train.change", show=False,
                tooltip="Give the training another learning rate or dropout"),
        Binding("d", "discard", "discard", id="train.discard", show=False,
                tooltip="End the training and delete its run, after asking"),
        Binding("r", "resume_run", "resume", id="train.resume",
                tooltip="Train this run further from where it was stopped"),
    ]  # fmt: skip

    state: reactive[str] = reactive("", bindings=True, repaint=False)
    """Of the run that is shown (see `RunStatus`), or nothing."""

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(entry, session)
        self._chart = LossChart(placeholder=NO_RUN, id="chart")
        self._meaning = Static(id="meaning", markup=False)
        self._samples = Transcript(id="samples")
        self._shown_run = ""
        self._samples_shown = 0
        self._told: Snapshot | None = None

    def compose(self) -> ComposeResult:
        yield self._chart
        yield self._meaning
        yield self._samples

    def show(self) -> None:
        run, history = self.session.watched, self.session.history
        self.state = run.status.state if run else ""
        self._chart.placeholder = _placeholder(run)
        words = _words(run, history)
        if words != self._meaning.content:
            self._meaning.update(words)
        name = run.name if run else ""
        switched = name != self._shown_run
        if switched:
            self._shown_run = name
            self.name_subject(name)
            self._samples.clear()
            self._samples_shown = 0
        if self.session.snapshot is not self._told:
            self._told = self.session.snapshot
            for message in self.session.news:
                self.app.notify(message)
        if self.session.grown or switched:
            self._chart.show(history.train, history.val, _rulers(run))
            self._show_samples(history.samples)

    def _show_samples(self, samples: list[SampleLine]) -> None:
        transcript = self._samples
        if len(samples) < self._samples_shown:
            transcript.clear()
            self._samples_shown = 0
        for sample in samples[self._samples_shown :]:
            transcript.start_entry()
            transcript.append(f"step {sample.step:,}\n", "note")
            transcript.append(sample.prompt, "prompt")
            transcript.append(sample.text)
        self._samples_shown = len(samples)

    # --- what can be asked of the run ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the run can do now is in the footer."""
        alive = self.state in ALIVE
        match action:
            case "pause" | "stop" | "sample" | "checkpoint" | "change" | "discard":
                return alive
            case "resume_run":
                run = self.session.watched
                over = self.state in ("stopped", "lost", "failed")
                return over and run is not None and run.last is not None
        return True

    def _ask(self, action: str, run: Run | None = None) -> None:
        run = run or self.session.watched
        if run is not None and ask(self.app, run, action):
            self.app.notify(f"{ACTIONS[action].at_once} …", timeout=2)

    def action_pause(self) -> None:
        self._ask("resume" if self.state == "paused" else "pause")

    def action_stop(self) -> None:
        self._ask("stop")

    def action_sample(self) -> None:
        self._ask("sample")

    def action_checkpoint(self) -> None:
        self._ask("checkpoint")

    async def action_change(self) -> None:
        """Ask for another learning rate or dropout, and pass it on."""
        run = self.session.watched
        if run is None:
            return

        def changed(wanted: dict[str, float] | None) -> None:
            for setting, value in (wanted or {}).items():
                if not ask(self.app, run, setting, value):
                    return

        present = {name: getattr(run.status, name) for name in LIVE}
        await self.app.push_screen(Change(run.name, present), changed)

    async def action_discard(self) -> None:
        """Ask whether to end the training and delete its run."""
        run = self.session.watched
        if run is None:
            return

        def answered(answer: str | None) -> None:
            if answer == "discard":
                self._ask("discard", run)

        count = len(run.checkpoints)
        what = f"{run.name} and its log"
        if count:
            what = f"{run.name}, its log and its {count} checkpoint{'s' * (count > 1)}"
        answers = [("keep", "Keep it"), ("discard", "End the training and delete it")]
        await self.app.push_screen(Confirm(f"Delete {what}?", answers), answered)

    @work(group="resume", exclusive=True)
    async def action_resume_run(self) -> None:
        """Start a trainer that continues the watched run, and tell if it refuses."""
        run = self.session.watched
        if run is None:
            return
        self.post_message(WatchRun(run.name))
        self.post_message(StartingRun(run.name))
        self.app.notify("starting the trainer …", timeout=3)
        try:
            launch = start(self.session.home, ["--resume", run.name])
            while launch.log.exists():
                refusal = launch.refusal()
                if refusal is not None:
                    self.app.notify(refusal, severity="error", timeout=10)
                    break
                await asyncio.sleep(POLL)
        except OSError as error:
            self.app.notify(f"cannot start the trainer: {error}", severity="error")
        finally:
            self.post_message(StartingRun(""))


def _placeholder(run: Run | None) -> str:
    return NO_RUN if run is None else _WAITING.get(run.status.state, "")


def _rulers(run: Run | None) -> tuple[tuple[str, float], ...]:
    """What counting alone reaches on this text, in nats per character."""
    return tuple(run.record.baselines.items()) if run and run.record else ()


def _words(run: Run | None, history: History) -> Content:
    """What went wrong, or the newest val loss, what it means, and how it stands to the best."""
    if run is None:
        return Content("")
    if run.status.state in ("failed", "lost"):
        how = "failed" if run.status.state == "failed" else "is lost"
        words = f"This run {how}: {one_line(run.status.message)}"
        if run.last is None:
            words += "\nIt saved nothing before it ended: ctrl+n starts anew."
        return Content.styled(words, "$text-error")
    if not history.val:
        return Content("")
    val = history.val
    step, nats = val[-1]
    if not math.isfinite(nats):
        return Content.styled("val is not a number: the model has diverged", "$text-error")
    best = min(loss for _, loss in val if math.isfinite(loss))
    meaning = ""
    if run.record is not None:
        meaning = meaning_of_loss(best, run.record.baselines, run.record.corpus.name)
    return Content.assemble(
        (
            f"val {nats:.3f} nats = {bits(nats):.2f} bits per character, at step {step:,}\n",
            "$foreground-muted",
        ),
        (meaning, "bold"),
        "\n",
        gap_in_words(val),
    )
