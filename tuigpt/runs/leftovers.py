"""What killed trainers leave half-made, and its removal."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from tuigpt.files import remove_unfinished
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import CHECKPOINTS
from tuigpt.runs.launch import STARTING_LOGS

ABANDONED_AFTER = 24 * 3600.0
"""Seconds without a write after which nobody is at work on a new run's draft or first log."""


def remove_from_home(home: Path) -> None:
    """Remove what trainers left that ended before they had a run folder."""
    before = time.time() - ABANDONED_AFTER
    remove_unfinished(runs_dir(home), before)
    for log in home.glob(STARTING_LOGS):
        with suppress(OSError):
            if log.lstat().st_mtime < before:
                log.unlink()


def remove_from_run(folder: Path) -> None:
    """Remove what killed saves left in a run folder, of which the caller holds the lock."""
    remove_unfinished(folder)
    remove_unfinished(folder / CHECKPOINTS)
