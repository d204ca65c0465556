"""Keeping what is written while it is being written, beside what the user does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from textual.widget import Widget

from tuigpt.settings import read_settings
from tuigpt.tui.panes.generate.entries import Entry, Texts
from tuigpt.tui.panes.generate.kept import (
    Kept,
    KeptText,
    keep,
    keep_prompt,
    read_prompts,
    read_texts,
)
from tuigpt.tui.panes.generate.texts import WrittenText


class Keeper:
    """Reads texts and prompts of earlier times, and adds to them, one write at a time.

    Nothing is read or written where the user has switched that off.
    """

    def __init__(self, home: Path, owner: Widget) -> None:
        """
        Args:
            owner: a widget of the app that does the work.
        """
        self._home, self._owner = home, owner
        self._kept = Kept(home)
        self._on = False
        self._lock = asyncio.Lock()
        self._writing: set[asyncio.Task[None]] = set()

    async def read(self) -> tuple[list[KeptText], list[str]]:
        """What was kept: texts and prompts, oldest first."""
        self._on = (await asyncio.to_thread(read_settings, self._home)).keep_texts
        if not self._on:
            return [], []
        prompts = await asyncio.to_thread(read_prompts, self._home)
        return await asyncio.to_thread(read_texts, self._home), prompts

    def load(self, texts: Texts, found: list[KeptText]) -> None:
        """Put what was read before the texts of this session."""
        now, texts.entries = texts.entries, {}
        self._kept.load(texts, found)
        texts.entries |= now

    def keep(self, entry: Entry, *texts: WrittenText) -> None:
        """Keep texts as they are now."""
        records = [self._kept.record(entry, text) for text in texts]
        self._add([record for record in records if record is not None])

    def keep_choice(self, entry: Entry) -> None:
        """Keep which of its texts stands in an entry's place."""
        self._add(self._kept.choice(entry))

    def forget(self, entry: Entry) -> None:
        """Do not bring an entry's texts back at the next start."""
        self._add(self._kept.deleted(entry))

    def keep_prompt(self, prompt: str) -> None:
        """Keep a prompt that was sent."""
        if self._on:
            self._work(self._write(lambda: keep_prompt(self._home, prompt), "prompts"))

    def _add(self, records: list[KeptText]) -> None:
        if self._on and records:
            self._work(self._write(lambda: keep(self._home, records), "texts"))

    async def finish(self) -> None:
        """Wait until all is written."""
        while self._writing:
            await asyncio.wait(self._writing)

    def _work(self, writing: Coroutine[None, None, None]) -> None:
        # No worker of Textual's, which are all cancelled when the app ends.
        task = asyncio.get_running_loop().create_task(writing)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, write: Callable[[], None], what: str) -> None:
        try:
            async with self._lock:
                await asyncio.to_thread(write)
        except OSError as error:
            self._owner.app.notify(f"{what} cannot be kept: {error}", severity="error")
