"""What a text is understood as, told by `tuigpt inspect` in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from textual import work
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

SETTLED_AFTER = 0.3
"""Seconds without a change after which the text is read: a path is typed letter by letter."""

PROGRESS_AFTER = 0.5
"""Seconds of reading after which progress takes the place of what stood there."""

_LABEL_WIDTH = 9
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Offer:
    """How a text can be read after all, if the user agrees.

    Attributes:
        arguments: of the command line, which say so.
        words: what agreeing does.
    """

    arguments: tuple[str, ...]
    words: str


class TextPreview(VerticalScroll):
    """Shows what the newest arguments make of a text; older readings are ended.

    Attributes:
        offer: what the user may agree to, or None.
    """

    DEFAULT_CSS = """
    TextPreview > Static { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    TextPreview.-problem > Static { color: $text-error; text-wrap: wrap; }
    """

    class Read(Message):
        """A text was read, or could not be.

        Attributes:
            problem: why no run can start, or "".
            readable: whether the preview shows the text, not the problem.
        """

        def __init__(self, preview: TextPreview, problem: str, readable: bool) -> None:
            super().__init__()
            self.preview = preview
            self.problem = problem
            self.readable = readable

        @property
        def control(self) -> TextPreview:
            return self.preview

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.offer: Offer | None = None
        self._words = Static(markup=False)
        self._arguments: tuple[str, ...] = ()

    def compose(self) -> Any:
        yield self._words

    def look(self, arguments: Sequence[str]) -> None:
        """Read the text anew, if these arguments of `tuigpt inspect` are not the last ones."""
        if tuple(arguments) != self._arguments:
            self._arguments, self.offer = tuple(arguments), None
            self._read(self._arguments)

    def forget(self) -> None:
        """End the reading: with the settings as they are, there is nothing to read."""
        self._arguments, self.offer = (), None
        self.workers.cancel_node(self)

    @work(exclusive=True, group="inspect")
    async def _read(self, arguments: tuple[str, ...]) -> None:
        await asyncio.sleep(SETTLED_AFTER)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tuigpt", "inspect", "--json", *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            self._show_problem(f"cannot look at the text: {error}")
            return
        try:
            await self._follow(process)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None and process.stderr is not None
        clock = asyncio.get_running_loop()
        began = clock.time()
        while line := await process.stdout.readline():
            try:
                record = json.loads(line)
                kind = record["kind"]
            except (ValueError, KeyError, TypeError):
                continue
            if kind == "report":
                self._show_report(record)
                return
            if kind == "problem":
                self._show_problem(record["message"], record.get("offer"))
                return
            if clock.time() - began >= PROGRESS_AFTER:
                self._say(Content.styled(record["words"], "$foreground-muted"))
        errors = (await process.stderr.read()).decode("utf-8", "replace").strip().splitlines()
        self._show_problem(errors[-1].removeprefix("tuigpt: ") if errors else "it ended early")

    def _show_report(self, record: dict[str, Any]) -> None:
        self.offer = None
        lines = [
            Content.assemble((f"{label:>{_LABEL_WIDTH}}  ", "$foreground-muted"), words)
            for label, words in record["lines"]
        ]
        self._say(Content("\n").join(lines))
        self.post_message(self.Read(self, record["problem"], readable=True))

    def _show_problem(self, message: str, offer: dict[str, Any] | None = None) -> None:
        self.offer = Offer(tuple(offer["arguments"]), offer["words"]) if offer else None
        self._say(Content(message), problem=True)
        self.post_message(self.Read(self, message, readable=False))

    def _say(self, words: Content, problem: bool = False) -> None:
        self.set_class(problem, "-problem")
        self._words.update(words)
