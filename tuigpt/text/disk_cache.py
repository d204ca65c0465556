"""What can be made again, kept under a size limit, the longest unused going first.

Only what tuigpt itself has put here is counted or deleted: it is known by its name and by what it
is made of. Whatever else lies in the folder stays, and no symbolic link is followed.
"""

from __future__ import annotations

import re
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from os import stat_result, utime
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import TEMPORARY_PREFIX
from tuigpt.text.named import REMOTES
from tuigpt.wording import file_size

LIMIT = 10 * 10**9
"""Bytes that the cache may hold; the newest entry stays even if it is larger."""

ABANDONED_AFTER = 3600.0
"""Seconds without a write after which a half-made entry belongs to nobody any more."""

TOKENS, ABOUT = "tokens.bin", "about.json"
"""The files of an entry that is a folder, an encoded text."""

_FOLDERS = re.compile(r"tokens-[0-9a-f]{32}")
_FILES = re.compile(
    "|".join([r"suffixes-[0-9a-f]{64}\.npy", *(re.escape(f"{name}.txt") for name in REMOTES)])
)
"""Fetched texts, and the indices that the first version kept."""

_HALF_MADE = re.compile(re.escape(TEMPORARY_PREFIX) + ".*")


@dataclass(frozen=True)
class Entry:
    """One file or folder of the cache.

    Attributes:
        size: in bytes, everything in it that is ours.
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
        found = self._find(_FOLDERS, _FILES)
        return sorted(found, key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Delete everything that is finished or abandoned; gives the bytes freed.

        A trainer that reads its tokens from here goes on: it holds its file open.
        """
        entries = self.entries()
        for entry in entries:
            self.remove(entry.path)
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
            self.remove(oldest.path)
            total -= oldest.size
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise UserError(
                f"the disk has no room for the encoded text: it takes {file_size(size)} in"
                f" {str(self.folder)!r}, and {file_size(free)} are free"
            )

    def remove(self, path: Path) -> None:
        """Delete an entry, whole or damaged, if it is there; what others put into it stays."""
        with suppress(OSError):
            if stat.S_ISDIR(path.lstat().st_mode):
                # Without the first of them nobody takes the folder for an entry any more.
                for part in (path / ABOUT, path / TOKENS):
                    with suppress(FileNotFoundError):
                        part.rmdir() if stat.S_ISDIR(part.lstat().st_mode) else part.unlink()
                path.rmdir()
            else:
                path.unlink()

    def touch(self, path: Path) -> None:
        """Note that an entry was used."""
        with suppress(OSError):
            utime(path)

    def _sweep(self) -> None:
        """Delete what a killed process left half-made."""
        for entry in self._find(_HALF_MADE, _HALF_MADE):
            if time.time() - entry.used > ABANDONED_AFTER:
                self.remove(entry.path)

    def _find(self, folders: re.Pattern[str], files: re.Pattern[str]) -> list[Entry]:
        try:
            paths = list(self.folder.iterdir())
        except OSError:
            return []
        found = []
        for path in paths:
            facts = _facts(path)
            if facts is None:
                continue
            if stat.S_ISREG(facts.st_mode) and files.fullmatch(path.name):
                found.append(Entry(path, facts.st_size, facts.st_mtime))
            elif stat.S_ISDIR(facts.st_mode) and folders.fullmatch(path.name):
                inside = [_facts(path / name) for name in (ABOUT, TOKENS)]
                there = [f for f in inside if f is not None and stat.S_ISREG(f.st_mode)]
                used = max(f.st_mtime for f in (facts, *there))
                found.append(Entry(path, sum(f.st_size for f in there), used))
        return found


def _facts(path: Path) -> stat_result | None:
    with suppress(OSError):
        return path.lstat()
    return None
