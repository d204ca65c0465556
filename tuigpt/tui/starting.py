"""Starting trainers from the app, and telling what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from textual.widget import Widget

from tuigpt.runs.launch import Launch, start
from tuigpt.runs.record import RUN_FILE
from tuigpt.tui.messages import Acknowledged, StartingRun, WatchRun

POLL = 0.1
"""Seconds between two looks at what a trainer has made of its start."""


async def until_begun(
    launch: Launch, folder: Path, say: Callable[[str], None] = lambda words: None
) -> str | None:
    """Wait until a new run has its folder.

    Args:
        say: is told what the trainer is at.

    Returns:
        None once it has; else why the trainer refused.
    """
    while not (folder / RUN_FILE).exists():
        refusal = launch.refusal()
        if refusal is not None:
            return refusal
        if words := launch.last_words():
            say(words)
        await asyncio.sleep(POLL)
    return None


async def train_further(widget: Widget, home: Path, run: str, flags: Sequence[str] = ()) -> None:
    """Start a trainer that resumes a run, watch it, and tell if it refuses.

    Args:
        widget: that sends the messages.
        flags: settings that become others, as `tuigpt train --resume` takes them.
    """
    widget.post_message(WatchRun(run))
    widget.post_message(StartingRun(run))
    widget.post_message(Acknowledged("starting the trainer …"))
    try:
        launch = start(home, ["--resume", run, *flags])
        while launch.log.exists():
            refusal = launch.refusal()
            if refusal is not None:
                widget.app.notify(refusal, severity="error", timeout=10)
                break
            await asyncio.sleep(POLL)
    except OSError as error:
        widget.app.notify(f"cannot start the trainer: {error}", severity="error")
    finally:
        widget.post_message(StartingRun(""))
