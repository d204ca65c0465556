"""Asking a run's trainer for something, with a word where that cannot be written down."""

from __future__ import annotations

from typing import Any

from textual.app import App

from tuigpt.runs.control import request
from tuigpt.runs.folder import Run


def ask(app: App[Any], run: Run, action: str, value: float | None = None) -> bool:
    """Write the request down (see `runs.control`); False, and a notice, if that fails."""
    try:
        request(run.folder, action, value)
    except OSError as error:
        app.notify(f"cannot ask the trainer: {error}", severity="error")
        return False
    return True
