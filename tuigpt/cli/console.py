"""What `tuigpt train` prints: a line that lives on a terminal, plain lines in a pipe."""

from __future__ import annotations

from typing import TextIO

from tuigpt.cli.live_line import LiveLine
from tuigpt.loss import bits
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.training.trainer import Evaluated, Event, Progress, Sampled, Stepped
from tuigpt.wording import duration, loss_text, meaning_of_loss, one_line, short_count

PLAIN_LINE_EVERY = 10.0
"""Least seconds between two plain progress lines."""


class Console:
    """Follows one training on a text stream.

    A stream that fails never ends the training.
    """

    def __init__(self, stream: TextIO, run_name: str, record: RunRecord) -> None:
        self._line = LiveLine(stream, plain_every=PLAIN_LINE_EVERY)
        self._run_name = run_name
        self._record = record

    @property
    def unread(self) -> bool:
        """Whether the stream was a pipe whose reader has gone."""
        return self._line.unread

    def begin(self, status: RunStatus) -> None:
        """Say what is being trained."""
        config = self._record.model
        unit = "characters" if self._record.tokenizer.type == "char" else "tokens"
        self._line.print(
            f"{self._run_name}: {short_count(config.n_params)} parameters"
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
            case Stepped():
                self._line.show(self._training_line(status))
            case Progress():
                if self._line.live:
                    self._line.show(f"step {event.step:,}  {event.what} {event.done}/{event.total}")

    def note(self, message: str) -> None:
        """Something worth knowing, besides the training's own events."""
        self._line.print(message)

    def end(self, message: str) -> None:
        """The last words."""
        self._line.print(message)

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
