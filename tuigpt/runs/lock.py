"""One trainer for each run folder: a lock that ends with the process that holds it.

It is the operating system's own lock on a file that stays in the folder. So a kill releases it at
once, and neither a process number that was given out anew nor an old status can be taken for it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from tuigpt.errors import UserError
from tuigpt.files import read_json, to_json
from tuigpt.runs.folder import LOCK_FILE

_held: set[int] = set()


@contextmanager
def trainer_lock(folder: Path) -> Iterator[bool]:
    """Keep every other trainer out of a run folder until the end of the block, or of this process.

    Yields:
        whether the folder is locked: False on a file system that has no locks, where a run's
        status alone must tell whether it is being trained.

    Raises:
        UserError: another trainer holds the lock, or the folder cannot be written.
    """
    path = folder / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
    _held.add(descriptor)
    try:
        locked = _lock(descriptor, folder)
        if locked:
            _sign(descriptor)
        yield locked
    finally:
        if descriptor in _held:  # else this is a child of the process that holds it
            _held.remove(descriptor)
            os.close(descriptor)


def being_trained(name: str, pid: object, host: object) -> UserError:
    """The refusal of a second trainer; names the process, and its machine if it is another.

    Args:
        pid: of the trainer at work, or None.
        host: of that trainer.
    """
    where = "" if host == socket.gethostname() else f" on {host}"
    process = f" (process {pid}{where})" if pid else ""
    return UserError(f"run {name!r} is being trained already{process}")


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        if lock_descriptor(descriptor, blocking=False):
            return True
    except OSError:
        return False
    holder = {}
    with suppress(OSError, ValueError):  # just being written
        holder = read_json(folder / LOCK_FILE)
    raise being_trained(folder.name, holder.get("pid"), holder.get("host"))


def _sign(descriptor: int) -> None:
    """Write down who holds the lock, for the one who is refused."""
    signature = to_json({"pid": os.getpid(), "host": socket.gethostname()}) + "\n"
    with suppress(OSError):  # a full disk takes nothing from the lock
        os.ftruncate(descriptor, 0)
        os.write(descriptor, signature.encode())


def _let_go() -> None:
    """In a forked child: it would hold the lock for as long as it lives, with or without us."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
