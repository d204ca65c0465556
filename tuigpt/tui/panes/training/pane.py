"""The training pane: the story of a run, its curve, and what the model writes as it learns."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from tuigpt.loss import is_measured
from tuigpt.runs.folder import TRAINER_LOG, Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.history import History
from tuigpt.tui.keys import with_keys
from tuigpt.tui.messages import Acknowledged, WatchRun
from tuigpt.tui.panes.pane import PaneEntry
from tuigpt.tui.panes.training.choose_runs import ChooseRuns, Chosen
from tuigpt.tui.panes.training.curves import SMOOTHING, Curves
from tuigpt.tui.panes.training.endings import broken, ended
from tuigpt.tui.panes.training.headline import Headline
from tuigpt.tui.panes.training.overlays import Overlay, chosen, read_history
from tuigpt.tui.panes.training.samples import Samples
from tuigpt.tui.panes.training.steering import Steering
from tuigpt.tui.panes.training.strips import Strips
from tuigpt.tui.panes.training.take_along import (
    save_csv,
    save_loss_log,
    save_png,
    save_svg,
)
from tuigpt.tui.screens.text_file import TextFile
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.wording import duration, loss_text

REPLAY_SECONDS, REPLAY_FRAMES = (20, 10, 5, 60), 10
"""How long a replay may take, and how many pictures a second it has."""

_WAITING = {
    "preparing": "Reading the text and building the model …",
    "training": "Waiting for the first step …",
    "evaluating": "Measuring the untrained model …",
}

_BEFORE = (
    "A model begins by guessing.",
    "Watch yours fall past letters,",
    "pairs and triples: press {train.new-run}.",
)


class TrainingPane(Steering):
    """Shows the watched run, and asks its trainer for things."""

    SCOPED_CSS = False
    DEFAULT_CSS = """
    TrainingPane {
        #chart { height: 3fr; min-height: 5; }
        #strips { display: none; }
        #samples { height: 1fr; min-height: 4; }
    }
    .-wide TrainingPane {
        #strips { display: block; }
        #samples { margin-top: 1; height: 2fr; }
    }
    .-short TrainingPane #samples { display: none; }
    """
    BINDING_GROUP_TITLE = "Training"
    HELP = """\
The line falls as the model learns: [b]train[/b] is the loss on the text it studies, [b]val[/b] \
the loss on text it never sees. ★ marks the lowest val: the best checkpoint. When val rises while \
train still falls, the model has begun to memorise; the gap between them is shaded.

Dotted levels are what counting alone reaches on this text: [b]guessing[/b], knowing how often \
[b]letters[/b] come, and which [b]pairs[/b] and [b]triples[/b] of them.

Arrows read the curve at a step, plus and minus zoom. Below are the model's samples, the \
newest first, and how many of their words are words of the text: tab goes there.

A trainer keeps training when you close the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause", id="train.pause",
                tooltip="Hold the training, keeping it in memory"),
        Binding("p", "unpause", "resume", id="train.unpause",
                tooltip="Train on after the pause"),
        Binding("s", "stop", "stop & save", id="train.stop",
                tooltip="Finish the step, save a checkpoint and end the trainer"),
        Binding("c", "change", "change", id="train.change",
                tooltip="Give the training another learning rate, dropout, length or patience"),
        Binding("g", "sample", "sample", id="train.sample",
                tooltip="Let the model write a sample now"),
        Binding("k", "checkpoint", "save", id="train.checkpoint",
                tooltip="Save a checkpoint now and keep training"),
        Binding("e", "evaluate", "evaluate", id="train.evaluate", show=False,
                tooltip="Measure the val loss now"),
        Binding("d", "discard", "discard", id="train.discard",
                tooltip="End the training and delete its run, after asking"),
        Binding("w", "write", "write", id="train.write",
                tooltip="Open this run's best checkpoint and write with it"),
        Binding("W", "write_newest", "write with the newest", id="train.write-newest", show=False,
                tooltip="Open this run's newest checkpoint and write with it"),
        Binding("r", "resume_run", "resume", id="train.resume",
                tooltip="Train this run further from where it was stopped"),
        Binding("r", "extend", "more steps", id="train.extend",
                tooltip="Train this finished run further, with more steps"),
        Binding("n,a", "again", "again, otherwise", key_display="n", id="train.again",
                tooltip="Train anew with this run's settings, after changing some of them"),
        Binding("f", "fork", "fork", id="train.fork", show=False,
                tooltip="Begin a new run with the weights of the checkpoint before the cursor, or"
                        " of the best one"),
        Binding("x", "next_unit", "steps/time", id="chart.unit", show=False,
                tooltip="Count steps, tokens, readings of the text or time along the chart"),
        Binding("left_square_bracket", "smooth(-1)", "less smoothing", id="chart.rougher",
                show=False, tooltip="Smooth the train loss less"),
        Binding("right_square_bracket", "smooth(1)", "more smoothing", id="chart.smoother",
                show=False, tooltip="Smooth the train loss more"),
        Binding("o", "runs", "other runs", id="chart.overlay",
                tooltip="Choose which run to watch, and which to lay over its chart"),
        Binding("v", "replay", "replay", id="train.replay", show=False,
                tooltip="Watch the run again from its log"),
        Binding("V", "replay_speed", "replay speed", id="train.replay-speed", show=False,
                tooltip="Let a replay take 20, 10, 5 or 60 seconds"),
        Binding("t", "log", "trainer's log", id="train.log", show=False,
                tooltip="Read what the trainer printed"),
        Binding("f7", "save_csv", "save curves as CSV", id="train.csv", show=False,
                tooltip="Write the curves to a CSV file in the current folder"),
        Binding("f8", "save_loss_log", "save loss_log.json", id="train.loss-log", show=False,
                tooltip="Write the curves as the workshop's loss_log.json"),
        Binding("f9", "save_chart", "save chart as SVG and PNG", id="train.svg", show=False,
                tooltip="Write the chart as it is now to an SVG and a PNG file"),
    ]  # fmt: skip

    draw_every = 0.5
    """Seconds between two drawings while all that is new is in the log."""

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(entry, session)
        self._headline = Headline(id="headline")
        self._chart = LossChart(id="chart")
        self._strips = Strips(id="strips")
        self._samples = Samples(id="samples")
        self._curves = Curves()
        self._told: Snapshot | None = None
        self._shown: tuple[object, ...] = ()
        self._shown_run = ""
        self._overlays: list[Overlay] = []
        self._stale, self._drawn = False, 0.0
        self._replay: Timer | None = None
        self._replay_seconds = REPLAY_SECONDS[0]
        self._poet_history: History | None = None

    def compose(self) -> ComposeResult:
        yield self._headline
        yield self._chart
        yield self._strips
        yield self._samples

    @property
    def _run(self) -> Run | None:
        """The run that is shown: the watched one; before there is any, the poet."""
        return self.session.watched or (self.session.poet if self._poet_history else None)

    @property
    def _history(self) -> History:
        if self.session.watched is None and self._poet_history is not None:
            return self._poet_history
        return self.session.history

    def show(self) -> None:
        run = self.session.watched
        self.state = run.status.state if run else ""
        if self.session.snapshot is not self._told:
            self._told = self.session.snapshot
            if self.session.news:
                self.post_message(Acknowledged(" · ".join(self.session.news[-2:])))
            if run is None and self.session.poet is not None and self._poet_history is None:
                self._play_the_poet(self.session.poet)
        name = run.name if run else ""
        if name != self._shown_run:
            self._shown_run = name
            self.name_subject(name)
            self._end_replay()
            self._overlays = [over for over in self._overlays if over.run.name != name]
            self._chart.action_reset()
        trained = {r.name for r in self.session.runs if r.status.alive}
        grown = [over.read() for over in self._overlays if over.run.name in trained]
        message, reading = run.status.message if run else "", self.session.reading
        mark = (name, self.state, message, reading, bool(self._poet_history))
        self._stale |= self.session.grown or any(grown)
        if mark != self._shown or (self._stale and monotonic() - self._drawn >= self.draw_every):
            self._shown, self._stale, self._drawn = mark, False, monotonic()
            self._draw()

    def _draw(self) -> None:
        """Show the run as far as it is to be seen."""
        run, history, curves = self._run, self._history, self._curves
        curves.look(run, history)
        until = math.inf if curves.until is None else curves.until
        self._samples.show([sample for sample in history.samples if sample.step <= until])
        if run is None:
            self._chart.picture = curves.picture(
                curves.story(), self._poet_val, (), [with_keys(self, line) for line in _BEFORE]
            )
            self._headline.say(with_keys(self, "No run yet: {train.new-run} trains a model."))
            return
        story = curves.story()
        lines = [_WAITING[run.status.state]] if run.status.state in _WAITING else []
        others = [over.drawn(curves.unit, curves.memory) for over in self._overlays]
        self._chart.picture = curves.picture(story, self._poet_val, others, lines)
        if run.status.state in ("failed", "lost"):
            words, more = broken(run)
            self._headline.say(words, with_keys(self, more))
        else:
            self._headline.tell(story, self._readout(), self._ending(run))
        record = run.record
        if record is not None:
            first, last = self._chart.view.shown(self._chart.picture)
            steps = (curves.step_at(first), curves.step_at(last)) if curves.unit != "step" else (
                int(first), int(last))  # fmt: skip
            tokens = record.train.batch_size * record.model.block_size
            changes = [step for step, name in history.changes if name == "learning_rate"]
            self._strips.show(history.updates, changes, *steps, tokens)

    @property
    def _poet_val(self) -> float | None:
        poet = self.session.poet
        best = poet.best if poet else None
        return best.val_loss if best and is_measured(best.val_loss) else None

    def _ending(self, run: Run) -> str:
        """What can be done with a run that trains no more."""
        if self._curves.until is not None:
            whose = "the poet's own training, replayed" if run.built_in else "replay"
            words = f"{whose}: step {self._curves.until:,} · {{train.replay}} ends it"
            return with_keys(self, words)
        if self.session.watched is None:
            words = "this is how the poet learned; {train.new-run} trains a model of your own"
            return with_keys(self, words)
        return with_keys(self, ended(run))

    def step_read(self) -> int | None:
        x = self._chart.view.cursor
        return None if x is None else self._curves.step_at(x)

    def action_sample(self) -> None:
        self._samples.follow()
        super().action_sample()

    def _readout(self) -> str:
        """What the cursor stands on."""
        x = self._chart.view.cursor
        if x is None:
            return ""
        picture, updates = self._chart.picture, self._history.updates
        step = self._curves.step_at(x)
        parts = [f"step {step:,}"]
        if (point := picture.train.smooth.at(x)) is not None:
            parts.append(f"train {loss_text(point[1])}")
        if (measured := self._curves.measured_near(step)) is not None:
            where = f" @ {measured.step:,}" if measured.step != step else ""
            estimate = "~" * measured.early
            parts.append(f"val {estimate}{loss_text(measured.val)}{where}")
        if len(updates.steps):
            place = min(bisect_left(updates.steps, step), len(updates.steps) - 1)
            if math.isfinite(updates.learning_rates[place]):
                parts.append(f"rate {updates.learning_rates[place]:.2g}")
            parts.append(duration(updates.elapsed[place]))
        return "  ".join(parts)

    @on(LossChart.Read)
    def _read(self, event: LossChart.Read) -> None:
        event.stop()
        self._draw()

    # --- what is seen of it ---

    def action_next_unit(self) -> None:
        """Count something else along the chart."""
        units = self._curves.units
        at = units.index(self._curves.unit) if self._curves.unit in units else -1
        self._curves.unit = units[(at + 1) % len(units)]
        self._chart.action_reset()
        self._draw()

    def action_smooth(self, direction: int) -> None:
        """Average the train loss over fewer or more updates."""
        at = SMOOTHING.index(self._curves.memory) + direction
        self._curves.memory = SMOOTHING[min(max(0, at), len(SMOOTHING) - 1)]
        self.post_message(Acknowledged(f"train smoothed over {self._curves.memory:,} updates"))
        self._draw()

    async def action_runs(self) -> None:
        """Choose which run to watch, and which to lay over its chart."""
        runs = [run for run in self._all_runs if not run.problem]
        over = [overlay.run.name for overlay in self._overlays]
        await self.app.push_screen(ChooseRuns(runs, self._shown_run, over), self._choose)

    @property
    def _all_runs(self) -> list[Run]:
        poet = self.session.poet
        return [*self.session.runs, *((poet,) if poet is not None else ())]

    def _choose(self, answer: Chosen | None) -> None:
        if answer is None:
            return
        if answer.watch:
            self.post_message(WatchRun(answer.watch))
        self._lay_over(answer.over)

    @work(group="overlays", exclusive=True)
    async def _lay_over(self, names: tuple[str, ...]) -> None:
        overlays = chosen(names, self._overlays, self._all_runs)
        for overlay in overlays:
            await asyncio.to_thread(overlay.read)
        self._overlays = overlays
        self._draw()

    def action_replay(self) -> None:
        """Watch the run again, or end that."""
        if self._replay is not None:
            self._end_replay()
            self._draw()
            return
        if self._history.train or self._history.val:
            self._curves.until = 0
            self._replay = self.set_interval(1 / REPLAY_FRAMES, self._next_frame)

    def action_replay_speed(self) -> None:
        """Let replays take another time, also the one that is going on."""
        at = REPLAY_SECONDS.index(self._replay_seconds)
        self._replay_seconds = REPLAY_SECONDS[(at + 1) % len(REPLAY_SECONDS)]
        self.post_message(Acknowledged(f"a replay takes {self._replay_seconds} seconds"))

    def _next_frame(self) -> None:
        steps = [s.steps[-1] for s in (self._history.train, self._history.val) if s]
        last = max(steps, default=0)
        if self._curves.until is None or self._curves.until >= last:
            self._end_replay()
        else:
            frames = self._replay_seconds * REPLAY_FRAMES
            self._curves.until += max(1, math.ceil(last / frames))
        if self.is_on_screen:
            self._draw()

    def _end_replay(self) -> None:
        if self._replay is not None:
            self._replay.stop()
        self._replay, self._curves.until = None, None

    @work(group="poet", exclusive=True)
    async def _play_the_poet(self, poet: Run) -> None:
        """Before there is a run, show how the built-in model learned."""
        self._poet_history = await asyncio.to_thread(read_history, poet)
        if self.session.watched is None and self._replay is None:
            self.action_replay()

    async def action_log(self) -> None:
        """Show what the trainer printed."""
        run = self.session.watched
        if run is not None:
            await self.app.push_screen(TextFile(run.folder / TRAINER_LOG, "the trainer's log"))

    # --- taking it along ---

    def action_save_csv(self) -> None:
        self._save("csv", lambda path: save_csv(path, self._history))

    def action_save_loss_log(self) -> None:
        self._save("json", lambda path: save_loss_log(path, self._history), "loss_log")

    def action_save_chart(self) -> None:
        chart, view = self._chart, replace(self._chart.view, cursor=None)
        self._save("svg", lambda path: save_svg(path, chart.picture, view))
        self._save("png", lambda path: save_png(path, chart.picture, view))

    def _save(self, suffix: str, write: Callable[[Path], None], kind: str = "curves") -> None:
        run = self._run
        if run is None:
            return
        path = Path.cwd() / f"{run.name}-{kind}.{suffix}"
        try:
            write(path)
        except OSError as error:
            why = error.strerror or error
            self.app.notify(f"cannot write {str(path)!r}: {why}", severity="error")
        else:
            self.post_message(Acknowledged(f"wrote {path}"))
