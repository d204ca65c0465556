"""What comes next, kept up with the text as it stands and with the settings as they are."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from textual import work

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.protocol import Logprobs
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.panes.generate.writer import Writer
from tuigpt.tui.panes.generate.writing import TOP
from tuigpt.tui.widgets.next_line import NextLine

MOST = 1000
"""Candidates that are asked for: a vocabulary of characters comes whole."""

PAUSE = 0.15
"""Seconds without a change before the model is asked."""


class Ahead(NextLine):
    """Asks the writer what could stand in a place, and shows it at the end of a text."""

    def __init__(self, writer: Writer, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._writer = writer

    @work(group="next", exclusive=True)
    async def look(self, text: WrittenText | None, config: SampleConfig) -> None:
        """Show the distribution of a text's next token, in a moment; None shows none."""
        if text is None:
            self.show([])
            return
        await asyncio.sleep(PAUSE)
        try:
            found = await self.at(text, text.count, config, TOP)
        except UserError:  # whoever sends the prompt is told
            self.show([])
        else:
            self.show(found.top_logprobs)

    async def at(
        self, text: WrittenText, at: int, config: SampleConfig, top: int = MOST
    ) -> Logprobs:
        """The distribution of a text's token number `at`, drawn with a config and the text's seed.

        Raises:
            UserError: there is none.
        """
        prompt, ids = text.prompt, text.ids[:at]
        # Of what lies before the context nothing is seen, but the draws go by the token's number.
        keep = 2 * (text.checkpoint.block_size or len(ids))
        if len(ids) > max(keep, 10_000):
            prompt, ids = "", ids[-keep:]
        config = replace(config, max_new_tokens=1, seed=text.config.seed)
        found = await self._writer.next_token(
            text.checkpoint.path, prompt, config, forced_ids=ids, top_logprobs=top
        )
        return found.logprobs
