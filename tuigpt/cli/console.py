"""What `tuigpt train` prints: a line that lives on a terminal, plain lines in a pipe."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from typing import TextIO

from tuigpt.cli.flags import as_flag
from tuigpt.cli.progress import ProgressLine
from tuigpt.config import GPTConfig
from tuigpt.errors import UserError
from tuigpt.runs.folder import TRAINER_LOG
from tuigpt.runs.status import RunStatus
from tuigpt.training.command import Ended
from tuigpt.training.trainer import Evaluated, Event, PartDone, Sampled, Skipped, Stepped
from tuigpt.wording import bits, duration, loss_text, meaning_of_loss, one_line, short_count

LIVE_LINE_EVERY = 0.2
"""Least seconds between two drawings of the live line."""

PLAIN_LINE_EVERY = 10.0
"""Least seconds between two plain progress lines."""


class Console:
    """Follows one training on a text stream.

    A stream that fails, such as a pipe without a reader or a file on a full disk, is written to no
    more; it never ends the training.

    Attributes:
        unread: whether the stream was a pipe whose reader has gone.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._config = GPTConfig()
        self._symbols: int | None = None
        self._live = stream.isatty()
        self._shown = 0.0
        self._line = ""
        self.unread = False

    def preparing(self) -> ProgressLine:
        """Show how far the reading and timing is within this block."""
        return ProgressLine(self._stream)

    def begin(
        self, run_name: str, config: GPTConfig, symbols: int | None, status: RunStatus
    ) -> None:
        """Say what is being trained.

        Args:
            symbols: number of different characters of the text, where tokens are no characters.
        """
        self._config, self._symbols = config, symbols
        unit = "symbols" if self._symbols is None else "tokens"
        self._print(
            f"{one_line(run_name)}: {short_count(config.n_params)} parameters"
            f" ({config.n_layer} layers, {config.n_head} heads, {config.n_embd} wide,"
            f" {config.vocab_size} {unit}, block {config.block_size}) on {status.device}"
        )
        if self._live:
            self._print("Ctrl-C saves and stops.")

    def show(self, event: Event, status: RunStatus) -> None:
        """Print what is worth a line of its own; keep the progress up to date."""
        match event:
            case Evaluated():
                part = "the whole validation part" if event.whole else f"{event.tokens:,} tokens"
                loss = event.val_loss_per_character
                meaning = meaning_of_loss(loss, self._symbols or self._config.vocab_size)
                if self._symbols is not None:
                    part = f"{event.val_loss:.4f} nats per token; {part}"
                self._print(
                    f"step {event.step:,}  val {loss:.4f} nats"
                    f" = {bits(loss):.3f} bits per character ({part}): {meaning}"
                )
            case Sampled():
                self._print(f"step {event.step:,}  sample: {one_line(event.prompt + event.text)}")
            case Skipped():
                self._print(f"step {event.step:,}  {event.what} failed: {one_line(event.reason)}")
            case Stepped():
                self._progress(self._training_line(status))
            case PartDone():
                if self._live:
                    self._progress(f"step {event.step:,}  {event.what} {event.done}/{event.total}")

    def note(self, message: str) -> None:
        """Something worth knowing, besides the training's own events."""
        self._print(one_line(message))

    def end(self, ended: Ended) -> None:
        """Say how it ended, and what can be done next."""
        name = one_line(ended.folder.name)
        message = ended.message
        if isinstance(message, UserError):
            message = message.spelled(as_flag)
        match ended.how:
            case "gone":
                self._print(f"the run folder of {name} is gone: training ended")
            case "discarded":
                self._print(f"discarded {name}: its folder is deleted")
            case "failed":
                self._print(one_line(message))
                self._print(f"details: {one_line(str(ended.folder / TRAINER_LOG))}")
            case how:
                self._print(
                    f"{how} at step {ended.step:,}; saved {name}@{ended.step}:"
                    f" {one_line(str(ended.checkpoint))}"
                )
                if message:
                    self._print(one_line(message))
                if how == "stopped":
                    resume = shlex.quote(ended.folder.name)
                    self._print(f"resume with: tuigpt train --resume {one_line(resume)}")

    def _training_line(self, status: RunStatus) -> str:
        parts = [f"step {status.step:,}/{status.max_steps:,}"]
        parts.append(f"train {loss_text(status.per_character(status.train_loss))}")
        if status.val_loss is not None:
            parts.append(f"val {loss_text(status.per_character(status.val_loss))}")
        if status.tokens_per_second is not None:
            parts.append(f"{short_count(status.tokens_per_second)} tok/s")
        if status.seconds_left is not None:
            parts.append(f"{duration(status.seconds_left)} left")
        return "  ".join(parts)

    def _progress(self, line: str) -> None:
        now = time.monotonic()
        if now - self._shown < (LIVE_LINE_EVERY if self._live else PLAIN_LINE_EVERY):
            return
        self._shown = now
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._line = line[:width]
            self._write(f"\r{self._line}\x1b[K")
        else:
            self._write(line + "\n")

    def _print(self, line: str) -> None:
        clear = "\r\x1b[K" if self._line else ""
        self._line = ""
        self._write(f"{clear}{line}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self.unread = isinstance(error, BrokenPipeError)
            # What is still in the stream's buffer must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
