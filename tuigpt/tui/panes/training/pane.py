"""The training pane: the curve, what it means, and what the model writes as it learns."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from tuigpt.loss import Baselines
from tuigpt.runs.folder import Run
from tuigpt.runs.metrics import History
from tuigpt.runs.status import ALIVE
from tuigpt.tui.messages import AskTrainer, ChangeRun, DiscardRun, ResumeRun
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.tui.widgets.transcript import Transcript
from tuigpt.wording import bits, gap_in_words, meaning_of_loss, one_line

NO_RUN = "No run yet. Press ctrl+n to train a model on Shakespeare, or on your own text."

_WAITING = {
    "preparing": "Reading the text and building the model …",
    "training": "Waiting for the first step …",
    "evaluating": "Measuring the untrained model …",
}


class TrainingPane(Vertical, can_focus=True):
    """Shows one run. Its keys ask that run's trainer for things."""

    BINDING_GROUP_TITLE = "Training"
    HELP = """\
### Training

The line falls as the model learns: **train** is the loss on the text it studies, **val** the loss
on text it never sees. ★ marks the lowest val: the best checkpoint. When val rises while train still
falls, the model has begun to memorise.

A trainer goes on when you close the app. `s` saves and stops it, `r` goes on later, `c` changes
its learning rate or dropout from the next step on, `d` ends it and deletes what it made.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause", id="train.pause",
                tooltip="Hold the training, keeping it in memory; again to go on"),
        Binding("s", "stop", "stop & save", id="train.stop",
                tooltip="Finish the step, save a checkpoint and end the trainer"),
        Binding("g", "sample", "sample", id="train.sample",
                tooltip="Let the model write a sample now"),
        Binding("k", "checkpoint", "save", id="train.checkpoint",
                tooltip="Save a checkpoint now and go on training"),
        Binding("c", "change", "change", id="train.change", show=False,
                tooltip="Give the training another learning rate or dropout"),
        Binding("d", "discard", "discard", id="train.discard", show=False,
                tooltip="End the training and delete its run, after asking"),
        Binding("r", "resume_run", "resume", id="train.resume",
                tooltip="Go on with this run where it was stopped"),
    ]  # fmt: skip

    state: reactive[str] = reactive("", bindings=True, repaint=False)
    """Of the run that is shown (see `RunStatus`), or nothing."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.border_title = "^t Training"
        self._chart = LossChart(placeholder=NO_RUN, id="chart")
        self._meaning = Static(id="meaning", markup=False)
        self._samples = Transcript(id="samples")
        self._shown_run = ""
        self._samples_shown = 0

    def compose(self) -> ComposeResult:
        yield self._chart
        yield self._meaning
        yield self._samples

    def show(self, run: Run | None, history: History, grown: bool) -> None:
        """Show a run as it is now.

        Args:
            grown: whether the history has changed since it was last shown.
        """
        self.state = run.status.state if run else ""
        self._chart.placeholder = _placeholder(run)
        words = _words(run, history)
        if words != self._meaning.content:
            self._meaning.update(words)
        name = run.name if run else ""
        if name != self._shown_run:
            self._shown_run = name
            self.border_title = Content(f"^t Training · {one_line(name)}" if run else "^t Training")
            self._samples.clear()
            self._samples_shown = 0
        if grown:
            self._chart.show(history.train, history.val, _rulers(run, history))
            self._show_samples(history.samples)

    def _show_samples(self, samples: list[dict[str, Any]]) -> None:
        transcript = self._samples
        if len(samples) < self._samples_shown:
            transcript.clear()
            self._samples_shown = 0
        for sample in samples[self._samples_shown :]:
            transcript.start_entry()
            transcript.append(f"step {sample['step']:,}\n", "note")
            transcript.append(str(sample.get("prompt", "")), "prompt")
            transcript.append(str(sample.get("text", "")))
        self._samples_shown = len(samples)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the run can do now is in the footer."""
        alive = self.state in ALIVE
        match action:
            case "pause" | "stop" | "sample" | "checkpoint" | "change" | "discard":
                return alive
            case "resume_run":
                return self.state in ("stopped", "lost", "failed")
        return True

    def action_pause(self) -> None:
        self.post_message(AskTrainer("resume" if self.state == "paused" else "pause"))

    def action_stop(self) -> None:
        self.post_message(AskTrainer("stop"))

    def action_sample(self) -> None:
        self.post_message(AskTrainer("sample"))

    def action_checkpoint(self) -> None:
        self.post_message(AskTrainer("checkpoint"))

    def action_change(self) -> None:
        self.post_message(ChangeRun())

    def action_discard(self) -> None:
        self.post_message(DiscardRun())

    def action_resume_run(self) -> None:
        self.post_message(ResumeRun())


def _placeholder(run: Run | None) -> str:
    return NO_RUN if run is None else _WAITING.get(run.status.state, "")


def _rulers(run: Run | None, history: History) -> tuple[tuple[str, float], ...]:
    """What counting alone reaches on this text, in the chart's nats per token."""
    baselines = Baselines.named(run.record.get("baselines", {})) if run else Baselines()
    return tuple((name, nats * history.characters_per_token) for name, nats in baselines.items())


def _words(run: Run | None, history: History) -> Content:
    """What went wrong, or the newest val loss, what it means, and how it stands to the best."""
    if run is None:
        return Content("")
    if run.status.state in ("failed", "lost"):
        how = "failed" if run.status.state == "failed" else "is lost"
        return Content.styled(f"This run {how}: {one_line(run.status.message)}", "$text-error")
    if not history.val:
        return Content("")
    val = [(step, loss / history.characters_per_token) for step, loss in history.val]
    step, nats = val[-1]
    if not math.isfinite(nats):
        return Content.styled("val is not a number: the model has diverged", "$text-error")
    symbols = run.record["corpus"].get("symbols") or run.record["model"]["vocab_size"]
    return Content.assemble(
        (
            f"val {nats:.3f} nats = {bits(nats):.2f} bits per character, at step {step:,}\n",
            "$foreground-muted",
        ),
        (meaning_of_loss(nats, symbols), "bold"),
        "\n",
        gap_in_words(val),
    )
