"""What `tuigpt train` prints: a line that lives on a terminal, plain lines in a pipe."""

from __future__ import annotations

from typing import TextIO

from tuigpt.cli.flags import as_flag
from tuigpt.cli.live_line import LiveLine
from tuigpt.cli.progress import ProgressLine
from tuigpt.errors import UserError
from tuigpt.loss import bits
from tuigpt.runs.folder import TRAINER_LOG
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.shell import tuigpt_line
from tuigpt.training.command import Ended
from tuigpt.training.trainer import Evaluated, Event, PartDone, Sampled, Skipped, Stepped
from tuigpt.wording import duration, loss_text, meaning_of_loss, one_line, short_count

PLAIN_LINE_EVERY = 10.0
"""Least seconds between two plain progress lines."""


class Console:
    """Follows one training on a text stream.

    A stream that fails never ends the training.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = LiveLine(stream, plain_every=PLAIN_LINE_EVERY)
        self._record: RunRecord | None = None

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
        config = record.model
        unit = "characters" if record.tokenizer.type == "char" else "tokens"
        self._line.print(
            f"{one_line(run_name)}: {short_count(config.n_params)} parameters"
            f" ({config.n_layer} layers, {config.n_head} heads, {config.n_embd} wide,"
            f" {config.vocab_size} {unit}, block {config.block_size}) on {status.device}"
        )
        if self._line.live:
            self._line.print("Ctrl-C saves and stops.")

    def show(self, event: Event, status: RunStatus) -> None:
        """Print what is worth a line of its own; keep the progress up to date."""
        match event:
            case Evaluated():
                part = "the whole validation part" if event.whole else f"{event.tokens:,} tokens"
                loss = event.val_loss_per_character
                record = self._record
                assert record is not None, "it has begun"
                meaning = meaning_of_loss(loss, record.baselines, record.corpus.name)
                if record.tokenizer.type != "char":
                    part = f"{event.val_loss:.4f} nats per token; {part}"
                self._line.print(
                    f"step {event.step:,}  val {loss:.4f} nats"
                    f" = {bits(loss):.3f} bits per character ({part}): {meaning}"
                )
            case Sampled():
                self._line.print(
                    f"step {event.step:,}  sample: {one_line(event.prompt + event.text)}"
                )
            case Skipped():
                self._line.print(
                    f"step {event.step:,}  {event.what} failed: {one_line(event.reason)}"
                )
            case Stepped():
                self._line.show(self._training_line(status))
            case PartDone():
                if self._line.live:
                    self._line.show(f"step {event.step:,}  {event.what} {event.done}/{event.total}")

    def note(self, message: str) -> None:
        """Something worth knowing, besides the training's own events."""
        self._line.print(one_line(message))

    def end(self, ended: Ended) -> None:
        """Say how it ended, and what can be done next."""
        folder = ended.folder
        name = one_line(folder.name)
        message = ended.message
        if isinstance(message, UserError):
            message = message.spelled(as_flag)
        match ended.how:
            case "gone":
                lines = [f"the run folder of {name} is gone: training ended"]
            case "discarded":
                lines = [f"discarded {name}: its folder is deleted"]
            case "failed":
                log = folder / TRAINER_LOG
                lines = [message, f"details: {log}" if log.exists() else ""]
            case how:
                at = f"{name}@{ended.step}: {ended.checkpoint}"
                lines = [f"{how} at step {ended.step:,}; saved {at}", message]
        if ended.how == "stopped":
            resume = tuigpt_line("train", f"--resume={folder.name}", home=folder.parent.parent)
            lines.append(f"resume with: {resume}")
        for line in filter(None, lines):
            self._line.print(one_line(line))

    def _training_line(self, status: RunStatus) -> str:
        parts = [f"step {status.step:,}/{status.max_steps:,}"]
        parts.append(f"train {loss_text(status.train_loss)}")
        if status.val_loss is not None:
            parts.append(f"val {loss_text(status.val_loss)}")
        if status.tokens_per_second is not None:
            parts.append(f"{short_count(status.tokens_per_second)} tok/s")
        if status.seconds_left is not None:
            parts.append(f"{duration(status.seconds_left)} left")
        return "  ".join(parts)
