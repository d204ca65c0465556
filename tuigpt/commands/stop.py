"""`tuigpt stop`: ask a run to save and stop."""

import time
from pathlib import Path

from tuigpt.config import UserError
from tuigpt.runs.control import request
from tuigpt.runs.status import read_status
from tuigpt.runs.store import find_run

POLL = 0.1
"""Seconds between two looks at the run's status."""


def run(home: Path, name: str) -> int:
    """Ask, and wait until the trainer has ended (Ctrl-C stops only the waiting).

    Raises:
        UserError: there is no such run, or it is not running.
    """
    found = find_run(name, home)
    if not found.status.alive:
        raise UserError(f"run {name!r} is not running: it is {found.status.state}")
    request(found.folder, "stop")
    print(f"{name}: finishing the step and saving …", flush=True)
    while (status := read_status(found.folder)).alive:
        time.sleep(POLL)
    print(f"{name}: {status.state} at step {status.step:,}")
    return 0 if status.state in ("stopped", "finished") else 1
