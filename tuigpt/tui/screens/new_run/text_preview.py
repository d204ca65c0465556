"""What a text is understood as, told by `tuigpt inspect` in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual import work
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuigpt.child import child_command
from tuigpt.reports import (
    Offer,
    TextFacts,
    TextProblem,
    TextProgress,
    TextReport,
    read_text_line,
)
from tuigpt.tui.process import asked, complaint

SETTLED_AFTER = 0.3
"""Seconds without a change after which the text is read: a path is typed letter by letter."""

PROGRESS_AFTER = 0.5
"""Seconds of reading after which progress takes the place of what stood there."""

LABEL_WIDTH = 9

IN_SHORT = ("note", "changed")
"""Labels of the lines that are shown in any case."""


class TextPreview(Static):
    """Tells in a line what the newest arguments make of a text; older readings are ended.

    Attributes:
        offer: what the user may agree to, or None.
    """

    DEFAULT_CSS = """
    TextPreview { height: auto; min-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    class Read(Message):
        """A text was read, or could not be.

        Attributes:
            problem: why no run can start, or "".
            facts: what the text is in numbers, where the preview shows it and not the problem.
        """

        def __init__(self, preview: TextPreview, problem: str, facts: TextFacts | None) -> None:
            super().__init__()
            self.preview = preview
            self.problem = problem
            self.facts = facts

        @property
        def control(self) -> TextPreview:
            return self.preview

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self.offer: Offer | None = None
        self._report: TextReport | None = None
        self._arguments: tuple[str, ...] = ()

    def look(self, arguments: Sequence[str]) -> bool:
        """Read the text anew, if these arguments of `tuigpt inspect` are not the last ones.

        Returns:
            whether it is read anew.
        """
        if tuple(arguments) == self._arguments:
            return False
        self._arguments, self.offer = tuple(arguments), None
        self._read(self._arguments)
        return True

    def forget(self) -> None:
        """End the reading: with the settings as they are, there is nothing to read."""
        self._arguments, self.offer = (), None
        self.workers.cancel_node(self)

    @work(exclusive=True, group="inspect")
    async def _read(self, arguments: tuple[str, ...]) -> None:
        await asyncio.sleep(SETTLED_AFTER)
        command = child_command("tuigpt", "inspect", "--json", *arguments)
        try:
            async with asked(command) as process:
                await self._follow(process)
        except (OSError, ValueError) as error:
            self._show_problem(f"cannot look at the text: {error}")

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        clock = asyncio.get_running_loop()
        began = clock.time()
        while line := await process.stdout.readline():
            try:
                told = read_text_line(line)
            except ValueError:
                continue
            match told:
                case TextReport() as report:
                    self._show_report(report)
                    return
                case TextProblem() as problem:
                    self._show_problem(problem.message, problem.offer)
                    return
                case TextProgress() as progress if clock.time() - began >= PROGRESS_AFTER:
                    self.update(Content.styled(progress.words, "$foreground-muted"))
        self._show_problem(await complaint(process))

    def _show_report(self, report: TextReport) -> None:
        self.offer = None
        self._report = report
        self._show_lines(report)
        self.post_message(self.Read(self, report.problem, report.facts))

    @property
    def whole(self) -> Content:
        """All that is known of the text, in lines."""
        lines = self._report.lines if self._report else []
        return Content("\n").join(
            Content.assemble((f"{label:>{LABEL_WIDTH}}  ", "$foreground-muted"), words)
            for label, words in lines
        )

    def _show_lines(self, report: TextReport) -> None:
        labels = [label for label, _ in report.lines]
        at = labels.index("begins") if "begins" in labels else len(labels)
        begins = " ⏎ ".join(words for _, words in report.lines[at:])
        facts = report.facts
        size = f"{facts.characters:,} characters, {facts.symbols:,} symbols"
        first = Content.assemble(size, (f"   “{begins} …”" if begins else "", "italic"))
        notes = [text for label, text in report.lines if label in IN_SHORT]
        self.update(
            Content("\n").join([first, *(Content.styled(n, "$text-warning") for n in notes)])
        )

    def _show_problem(self, message: str, offer: Offer | None = None) -> None:
        self.offer = offer
        self._report = None
        self.update(Content("no text yet"))
        self.post_message(self.Read(self, message, None))
