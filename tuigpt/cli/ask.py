"""`tuigpt ask` and `tuigpt stop`: what a person wants of a trainer at work."""

import time
from pathlib import Path

from tuigpt.errors import ConfigError, UserError
from tuigpt.runs.control import ACTIONS, CHANGES, request
from tuigpt.runs.names import find_run
from tuigpt.runs.status import read_status

POLL = 0.1
"""Seconds between two looks at the run's status."""


def run(home: Path, name: str, action: str, value: str | None = None) -> int:
    """Ask, and wait until the trainer has done it (Ctrl-C stops only the waiting).

    Args:
        action: of `ACTIONS`, or of `CHANGES` with a value; hyphens stand for underscores.

    Raises:
        UserError: there is no such run, it is not running, or this cannot be asked for.
    """
    action = action.replace("-", "_")
    number = _value(action, value)
    found = find_run(name, home)
    if not found.status.alive:
        raise UserError(f"run {name!r} is not running: it is {found.status.state}")
    try:
        asked = request(found.folder, action, number)
    except OSError as error:
        raise UserError(f"cannot ask the trainer of {name!r}: {error.strerror}") from None
    if action in ("stop", "discard"):
        return _until_ended(found.folder, name, action)
    while (status := read_status(found.folder)).alive and status.answered < asked:
        time.sleep(POLL)
    print(f"{name}: {status.message or status.state} at step {status.step:,}")
    return 0 if status.answered >= asked else 1


def _value(action: str, value: str | None) -> float | None:
    known = ", ".join(sorted(name.replace("_", "-") for name in ACTIONS | CHANGES))
    if action not in ACTIONS | CHANGES:
        raise UserError(f"cannot ask a trainer to {action!r}: it knows {known}")
    if (value is None) != (action in ACTIONS):
        need = "takes no value" if action in ACTIONS else "needs a value, such as 0.01"
        raise UserError(f"{action.replace('_', '-')} {need}")
    try:
        return None if value is None else float(value)
    except ValueError:
        raise ConfigError(action, value, "a number") from None


def _until_ended(folder: Path, name: str, action: str) -> int:
    if action == "stop":
        print(f"{name}: finishing the step and saving …", flush=True)
    while (status := read_status(folder)).alive:
        time.sleep(POLL)
    if action == "discard":
        gone = not folder.exists()
        print(f"{name}: {'deleted' if gone else status.state}")
        return 0 if gone else 1
    print(f"{name}: {status.state} at step {status.step:,}")
    return 0 if status.state in ("stopped", "finished") else 1
