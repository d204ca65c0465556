"""One trainer for each run folder, and the truth about who lives.

It is the operating system's own lock on a file that stays in the folder. So a kill releases it at
once, and neither a process number that was given out anew nor an old status can be taken for it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tuigpt.errors import UserError
from tuigpt.files import (
    Count,
    UnreadableFile,
    Word,
    open_regular,
    open_to_append,
    read_record,
    to_json,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "trainer.lock"

_PATIENCE, _POLL = 0.25, 0.005
"""Seconds that a trainer tries for the lock, which one who asks who lives holds for an instant."""

_held: set[int] = set()


class Signature(msgspec.Struct):
    """What the holder of a lock writes into it."""

    pid: Count = 0
    host: Word = ""


@contextmanager
def trainer_lock(folder: Path) -> Iterator[bool]:
    """Keep every other trainer out of a run folder until the end of the block, or of this process.

    The lock file is never followed out of the folder: a symbolic link in its place is refused.

    Yields:
        whether the folder is locked: False on a file system that has no locks, where a run's
        status alone must tell whether it is being trained.

    Raises:
        UserError: another trainer holds the lock, or the folder cannot be written.
    """
    path = folder / LOCK_FILE
    try:
        descriptor = open_to_append(path)
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


def is_locked(folder: Path) -> bool | None:
    """Whether a trainer holds a run's lock; None where that cannot be known.

    It cannot before a first trainer has locked, and on a file system without locks.
    """
    try:
        with open_regular(folder / LOCK_FILE) as stream:
            if fcntl is None:
                from filelock import lock_descriptor

                return not lock_descriptor(stream.fileno(), blocking=False)
            # Shared, so that two who ask at the same time do not take each other for a trainer.
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return None


def being_trained(name: str, pid: int, host: str) -> UserError:
    """The refusal of a second trainer; names the process, and its machine if it is another.

    Args:
        pid: of the running trainer, or 0 where that is not known.
        host: of that trainer.
    """
    where = "" if host == socket.gethostname() else f" on {host}"
    process = f" (process {pid}{where})" if pid else ""
    return UserError(f"run {name!r} is being trained already{process}")


def _lock(descriptor: int, folder: Path) -> bool:
    from filelock import lock_descriptor  # not needed to see who lives

    patient_until = time.monotonic() + _PATIENCE
    try:
        while not lock_descriptor(descriptor, blocking=False):
            if time.monotonic() >= patient_until:
                break
            time.sleep(_POLL)
        else:
            return True
    except OSError:
        return False
    holder = Signature()
    with suppress(UnreadableFile):  # just being written
        holder = read_record(folder / LOCK_FILE, Signature)
    raise being_trained(folder.name, holder.pid, holder.host)


def _sign(descriptor: int) -> None:
    """Write down who holds the lock, for the one who is refused."""
    signature = to_json(Signature(os.getpid(), socket.gethostname())) + "\n"
    with suppress(OSError):  # a full disk takes nothing from the lock
        os.ftruncate(descriptor, 0)
        os.write(descriptor, signature.encode())


def _let_go() -> None:
    """In a forked child: it would hold the lock for as long as it lives, with or without us."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
