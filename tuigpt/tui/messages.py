"""Messages that the panes send to the app, which alone acts on them."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from tuigpt.config import SampleConfig
from tuigpt.runs.folder import Checkpoint


@dataclass
class OpenCheckpoint(Message):
    """Generate from this checkpoint from now on."""

    checkpoint: Checkpoint


@dataclass
class WatchRun(Message):
    """Show this run in the training pane and the status line."""

    name: str


@dataclass
class ShowPoet(Message):
    """Have the built-in model in the lists from now on, or not."""

    shown: bool


@dataclass
class Write(Message):
    """Let the open checkpoint go on from a prompt."""

    prompt: str
    config: SampleConfig


class StopWriting(Message):
    """End the text that is being written, and keep it."""


@dataclass
class AskTrainer(Message):
    """Ask the watched run's trainer for something (see `runs.control`)."""

    action: str


class ResumeRun(Message):
    """Go on with the watched run, which is not running."""


class ChangeRun(Message):
    """Ask for other settings of the watched run, which is at work."""


class DiscardRun(Message):
    """Ask whether to end the watched run, which is at work, and to delete it."""
