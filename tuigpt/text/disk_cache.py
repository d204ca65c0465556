"""What can be made again, kept under a size limit, the longest unused going first."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import TEMPORARY_PREFIX
from tuigpt.wording import file_size

LIMIT = 10 * 10**9
"""Bytes that the cache may hold; the newest entry stays even if it is larger."""

ABANDONED_AFTER = 3600.0
"""Seconds without a write after which a half-made entry belongs to nobody any more."""


@dataclass(frozen=True)
class Entry:
    """One file or folder of the cache.

    Attributes:
        size: in bytes, everything in it.
        used: when it was last used or written, in seconds since the epoch.
    """

    path: Path
    size: int
    used: float


class Cache:
    """A folder whose entries are files and folders that anybody may delete at any time."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit

    def entries(self) -> list[Entry]:
        """What there is, the newest used first."""
        found = [_entry(path) for path in self._children() if not _half_made(path)]
        return sorted(found, key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Delete everything that is finished or abandoned; gives the bytes freed.

        A trainer that reads its tokens from here goes on: it holds its file open.
        """
        entries = self.entries()
        for entry in entries:
            _delete(entry.path)
        self._sweep()
        return sum(entry.size for entry in entries)

    def make_room(self, size: int) -> None:
        """Delete what has not been used for longest, until so many bytes more fit the limit.

        Raises:
            UserError: the disk itself has no room for them.
        """
        self._sweep()
        self.folder.mkdir(parents=True, exist_ok=True)
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        while entries and total + size > self.limit:
            oldest = entries.pop()
            _delete(oldest.path)
            total -= oldest.size
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise UserError(
                f"the disk has no room for the encoded text: it takes {file_size(size)} in"
                f" {str(self.folder)!r}, and {file_size(free)} are free"
            )

    def remove(self, path: Path) -> None:
        """Delete an entry, if it is there."""
        _delete(path)

    def touch(self, path: Path) -> None:
        """Note that an entry was used."""
        with suppress(OSError):
            os.utime(path)

    def _children(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except OSError:
            return []

    def _sweep(self) -> None:
        """Delete what a killed process left half-made."""
        for path in self._children():
            if _half_made(path) and time.time() - _last_write(path) > ABANDONED_AFTER:
                _delete(path)


def _half_made(path: Path) -> bool:
    return path.name.startswith(TEMPORARY_PREFIX)


def _last_write(path: Path) -> float:
    times = [0.0]
    for file in (path, *path.rglob("*")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)


def _entry(path: Path) -> Entry:
    size, used = 0, 0.0
    for file in (path, *path.rglob("*")):
        with suppress(OSError):
            facts = file.stat()
            used = max(used, facts.st_mtime)
            size += 0 if file.is_dir() else facts.st_size
    return Entry(path, size, used)


def _delete(path: Path) -> None:
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path
    if not _half_made(path):
        # Out of sight first: nobody may find a folder that has lost half its files.
        doomed = path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{os.getpid()}")
        try:
            path.rename(doomed)
        except OSError:
            return
    shutil.rmtree(doomed, ignore_errors=True)
