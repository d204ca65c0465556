"""A field for the path of a text: it completes names, and finds the nearest one."""

from __future__ import annotations

import asyncio
import difflib
import os
from itertools import islice
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.suggester import Suggester
from textual.widgets import Input

from tuigpt.paths import user_path

_MOST_ENTRIES = 5000
"""Entries of a folder that are looked at: a network drive may be slow, and have many."""


def sources_of(typed: str) -> list[str]:
    """The texts that a user named; a semicolon separates them, unless it is in a file's name."""
    if ";" in typed and not _exists(typed):
        return [part.strip() for part in typed.split(";") if part.strip()]
    return [typed.strip()] if typed.strip() else []


def completed(typed: str) -> str | None:
    """What is typed, completed to the first name that begins so; None where there is none.

    Only the last of several paths is completed. A folder gets a slash behind it.
    """
    before, semicolon, last = ("", "", typed) if _exists(typed) else typed.rpartition(";")
    path = last.lstrip()
    folder, name = os.path.split(path)
    if not path or name in (".", ".."):
        return None
    found = [entry for entry in _entries(folder) if entry[0].startswith(name)]
    if not name:  # all of a folder would begin so
        return None
    if not found:
        return None
    best, is_folder = min(found)
    start = before + semicolon + last[: len(last) - len(name)]
    whole = start + best + ("/" if is_folder else "")
    return whole if whole != typed else None


def nearest(path: str) -> str | None:
    """The existing path whose name is most like that of one that does not exist."""
    folder, name = os.path.split(path.rstrip("/"))
    names = [entry for entry, _ in _entries(folder)]
    like = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not like:
        stems = {Path(entry).stem: entry for entry in names}
        like = [stems[s] for s in difflib.get_close_matches(name, stems, n=1, cutoff=0.6)]
    return os.path.join(folder, like[0]) if like else None


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Name of every entry of a folder, and whether it is a folder; hidden ones are left out."""
    try:
        with os.scandir(user_path(folder or ".")) as entries:
            return [
                (entry.name, entry.is_dir())
                for entry in islice(entries, _MOST_ENTRIES)
                if not entry.name.startswith(".")
            ]
    except (OSError, ValueError):
        return []


def _exists(typed: str) -> bool:
    try:
        return os.path.exists(user_path(typed.strip()))
    except ValueError:
        return False


class _Completer(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(completed, value)


class PathField(Input):
    """Shows how a path could end while it is typed; tab takes that.

    With the class `-idle` another answer than the path is chosen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, id="path.complete",
                tooltip="Complete the path, or go to the next field"),
    ]  # fmt: skip

    def __init__(self, *, id: str, placeholder: str, tooltip: str) -> None:  # noqa: A002
        super().__init__(
            id=id, placeholder=placeholder, tooltip=tooltip, compact=True, suggester=_Completer()
        )

    async def action_complete(self) -> None:
        """Take what the path could end in; where there is nothing, go to the next field."""
        can_complete = self.cursor_at_end and not self.has_class("-idle")
        whole = await asyncio.to_thread(completed, self.value) if can_complete else None
        if whole is None:
            self.screen.focus_next()
        else:
            self.value = whole
            self.cursor_position = len(whole)
