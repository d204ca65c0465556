"""What `tuigpt train` prints: lines that live on a terminal, plain ones in a pipe."""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean
from typing import TextIO

from tuigpt.cli.flags import as_flag
from tuigpt.cli.ink import BAR, Ink, wrapped
from tuigpt.cli.live_line import LiveLine, columns, fitted
from tuigpt.cli.progress import ProgressLine
from tuigpt.errors import UserError
from tuigpt.loss import bits
from tuigpt.runs.folder import TRAINER_LOG, open_run
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.shell import tuigpt_line
from tuigpt.story import Evaluation, Mood, Story, is_shakespeare, tell
from tuigpt.training.command import Ended
from tuigpt.training.events import Evaluated, Event, PartDone, Sampled, Skipped, Stepped
from tuigpt.wording import duration, loss_text, one_line, short_count, visible

PLAIN_LINE_EVERY = 10.0
"""Least seconds between two plain progress lines."""

SMOOTHED_OVER = 50
"""Updates whose mean is the train loss that is shown."""

LEAST_BAR = 8
"""Columns below which a bar says nothing."""

_MOOD_ROLES = {
    Mood.MEMORISING: "caution",
    Mood.FLAT: "caution",
    Mood.WORSE: "caution",
    Mood.DIVERGED: "error",
}


class Console:
    """Follows one training on a text stream.

    A stream that fails never ends the training.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = LiveLine(stream, plain_every=PLAIN_LINE_EVERY)
        self._ink = Ink(stream)
        self._record: RunRecord | None = None
        self._evaluations: list[Evaluation] = []
        self._train: deque[float] = deque(maxlen=SMOOTHED_OVER)
        self._story: Story | None = None
        self._part = ""

    @property
    def unread(self) -> bool:
        """Whether the stream was a pipe whose reader has gone."""
        return self._line.unread

    def preparing(self) -> ProgressLine:
        """Show how far the reading and timing is within this block."""
        return ProgressLine(self._stream)

    def begin(self, run_name: str, record: RunRecord, status: RunStatus) -> None:
        """Say what is being trained."""
        self._record = record
        if status.best_step is not None and status.best_val_loss is not None:
            self._evaluations = [Evaluation(status.best_step, status.best_val_loss)]
        config = record.model
        unit = "characters" if record.tokenizer.type == "char" else "tokens"
        self._say(
            f"{one_line(run_name)}: {short_count(config.n_params)} parameters"
            f" ({config.n_layer} layers, {config.n_head} heads, {config.n_embd} wide,"
            f" {config.vocab_size} {unit}, block {config.block_size}) on {status.device}"
        )
        if self._line.live:
            self._say("Ctrl-C saves and stops.", "quiet")

    def show(self, event: Event, status: RunStatus) -> None:
        """Print what is worth a line of its own; keep the progress up to date."""
        match event:
            case Evaluated():
                self._evaluated(event)
            case Sampled() if self._line.live:
                self._say(f"step {event.step:,}  sample", "quiet")
                for row in wrapped(visible(event.prompt + event.text), columns() - 4):
                    self._line.print(f"  {self._ink.paint('│', 'accent')} {row}")
            case Sampled():
                self._say(f"step {event.step:,}  sample: {one_line(event.prompt + event.text)}")
            case Skipped():
                self._say(f"step {event.step:,}  {event.what} failed: {one_line(event.reason)}")
            case Stepped():
                if status.train_loss is not None:
                    self._train.append(status.train_loss)
                self._part = ""
                self._progress(status)
            case PartDone() if self._line.live:
                self._part = f"{event.what}: {event.done} of {event.total}"
                self._progress(status)

    def note(self, message: str) -> None:
        """Something worth knowing, besides the training's own events."""
        self._say(one_line(message))

    def end(self, ended: Ended) -> None:
        """Say how it ended, and what can be done next."""
        folder = ended.folder
        name = one_line(folder.name)
        message = ended.message
        if isinstance(message, UserError):
            message = message.spelled(as_flag)
        match ended.how:
            case "gone":
                self._say(f"the run folder of {name} is gone: training ended", "error")
            case "discarded":
                self._say(f"discarded {name}: its folder is deleted")
            case "failed":
                self._say(one_line(message), "error")
                log = folder / TRAINER_LOG
                if log.exists():
                    self._command("details", str(log))
            case how:
                at = f"{name}@{ended.step}: {ended.checkpoint}"
                self._line.print(one_line(f"{how} at step {ended.step:,}; saved {at}"))
                if message:
                    self._say(one_line(message))
                self._what_next(ended)

    def _evaluated(self, event: Evaluated) -> None:
        record = self._record
        assert record is not None, "it has begun"
        loss, before = event.val_loss_per_character, self._story
        if not event.whole:
            train = fmean(self._train) if self._train else None
            self._evaluations.append(Evaluation(event.step, loss, train, event.early))
        story = self._story = self._told()
        val = f"{'~' * event.early}{loss:.4f}"
        head = f"step {event.step:,}  val {val} nats = {bits(loss):.3f} bits per character"
        part = "the whole validation part" if event.whole else f"{event.tokens:,} tokens"
        if record.tokenizer.type != "char":
            part = f"{event.val_loss:.4f} nats per token; {part}"
        if not self._line.live:
            told = ": ".join(filter(None, [f"{head} ({part})", story.stage]))
            self._say("; ".join(filter(None, [told, story.verdict])))
            return
        best = not event.whole and story.best is not None and story.best.step == event.step
        star = self._ink.paint("  ★ best so far", "best") if best else ""
        self._line.print(fitted(head, columns()) + star * (columns() > len(head) + 15))
        if event.whole:
            self._say(f"  over {part}", "quiet")
        if before is None or (before.stage, before.mood) != (story.stage, story.mood):
            words = "; ".join(filter(None, [story.stage, story.verdict]))
            self._say(f"  {words}", _MOOD_ROLES.get(story.mood, "accent"))

    def _told(self) -> Story:
        assert self._record is not None, "it has begun"
        return tell(
            self._evaluations,
            self._record.baselines,
            train=fmean(self._train) if self._train else None,
            shakespeare=is_shakespeare(self._record.corpus.name),
            validates=self._record.train.val_fraction > 0,
        )

    def _progress(self, status: RunStatus) -> None:
        facts = _facts(status, status.train_loss)
        self._line.show("  ".join(facts), lambda width: self._block(status, width))

    def _block(self, status: RunStatus, width: int) -> list[str]:
        """How far it is, and in a row or two what that means."""
        if len(self._evaluations) < 2:
            self._story = self._told()  # still by the train loss
        story = self._story
        train = fmean(self._train) if self._train else None
        first = self._first_row(status, train, width)
        if story is None:
            return [first]
        words = "; ".join(filter(None, [self._part, story.verdict, story.stage]))
        role = _MOOD_ROLES.get(story.mood, "quiet")
        return [first, *(self._ink.paint(row, role) for row in wrapped(words, width)[:2])]

    def _first_row(self, status: RunStatus, train: float | None, width: int) -> str:
        """A bar and all facts, or what of them there is room for."""
        share = status.step / status.max_steps if status.max_steps else 0.0
        percent = f"{share:4.0%}  "
        for facts in (_facts(status, train), _facts(status, train, speed=False)):
            text = percent + "  ".join(facts)
            if (room := width - len(text)) >= LEAST_BAR:
                return self._ink.bar(share, min(room, BAR)) + text
        return fitted("  ".join(facts), width)

    def _what_next(self, ended: Ended) -> None:
        home, name = ended.folder.parent.parent, ended.folder.name
        record, story = self._record, self._story
        assert record is not None, "it has begun"
        best = open_run(ended.folder).best
        subject = name
        if best is not None and best.val_loss is not None and math.isfinite(best.val_loss):
            subject = f"{name}@best"
            star = self._ink.paint("★", "best") if self._line.live else ""
            said = f"best: val {best.val_loss:.4f} nats per character, at step {best.step:,}"
            self._say(f"{star} {said}".strip())
        if story is not None and self._line.live:
            self._say("; ".join(filter(None, [story.stage, story.verdict, story.advice])))
        prompt = f"--prompt={record.train.sample_prompt}"
        self._command("write with", tuigpt_line("generate", subject, prompt, home=home))
        more = []
        if ended.how == "finished":
            more = [f"--max-steps={2 * max(1, ended.step)}"]
        self._command("resume with", tuigpt_line("train", f"--resume={name}", *more, home=home))

    def _command(self, what: str, command: str) -> None:
        """A line that can be copied: nothing breaks it but the terminal itself."""
        self._line.print(f"{what}: {self._ink.paint(one_line(command), 'name')}")

    def _say(self, text: str, role: str = "") -> None:
        """One line that stays; on a terminal it is broken between words."""
        rows = [text]
        if self._line.live:
            indent = "  " if text.startswith("  ") else ""
            rows = [indent + row for row in wrapped(text.strip(), columns() - len(indent))]
        for row in rows:
            self._line.print(self._ink.paint(row, role) if role else row)


def _facts(status: RunStatus, train: float | None, *, speed: bool = True) -> list[str]:
    """Where a training is: step, losses, speed, time left."""
    facts = [f"step {status.step:,}/{status.max_steps:,}", f"train {loss_text(train)}"]
    if status.val_loss is not None:
        facts.append(f"val {loss_text(status.val_loss)}")
    if status.tokens_per_second is not None and speed:
        facts.append(f"{short_count(status.tokens_per_second)} tok/s")
    if status.seconds_left is not None:
        facts.append(f"{duration(status.seconds_left)} left")
    return facts
