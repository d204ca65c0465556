"""What a pane asks of the app: to show something else. All else a pane does itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from tuigpt.runs.folder import Checkpoint


@dataclass
class OpenCheckpoint(Message):
    """Write with this checkpoint from now on."""

    checkpoint: Checkpoint


@dataclass
class WatchRun(Message):
    """Show this run in the training pane and the status line."""

    name: str


@dataclass
class StartingRun(Message):
    """A trainer is being started for this run; "" once it has its run folder, or was refused."""

    name: str


@dataclass
class Acknowledged(Message):
    """Something was done, or is being done, as asked: for the status line."""

    text: str
