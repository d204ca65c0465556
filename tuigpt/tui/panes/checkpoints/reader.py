"""What checkpoints write and think, asked of a generator process of its own.

The one of the generate pane carries out its requests in order: many texts would hold up the one
that the user waits for there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.protocol import Copies, Failed, Report, Started, TextScore, Tokens, Unseen
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.growth import SHORTEST_COPY


class Generator(Protocol):
    """The generator's client, or a stand-in."""

    def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig
    ) -> AsyncGenerator[Report, None]: ...

    async def copies(self, checkpoint: Path, text: str, at_least: int = ...) -> Copies: ...

    async def score(self, checkpoint: Path, text: str) -> TextScore: ...

    async def unseen(self, checkpoint: Path) -> Unseen: ...

    async def close(self) -> None: ...


class Reader:
    """Lets checkpoints write, and remembers what they wrote and how it was judged."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._texts: dict[object, tuple[str, str]] = {}
        self._shares: dict[object, float | None] = {}
        self._scores: dict[object, TextScore] = {}

    def written(
        self, checkpoint: Checkpoint, prompt: str, config: SampleConfig
    ) -> tuple[str, str] | None:
        """The prompt as the model read it, and its text, if it has been written."""
        return self._texts.get((checkpoint.path, prompt, config))

    async def write(
        self, checkpoint: Checkpoint, prompt: str, config: SampleConfig
    ) -> AsyncIterator[tuple[str, str]]:
        """The prompt as the model reads it and its text, as it grows.

        Raises:
            UserError: it cannot be written.
        """
        key = (checkpoint.path, prompt, config)
        if key in self._texts:
            yield self._texts[key]
            return
        read, text = prompt, ""
        reports = self._generator.generate(checkpoint.path, prompt, config)
        async with aclosing(reports):
            async for report in reports:
                match report:
                    case Started():
                        read = report.prompt
                    case Tokens():
                        text += report.text
                        yield read, text
                    case Failed():
                        raise UserError(report.message)
        self._texts[key] = read, text
        yield read, text

    def share(self, checkpoint: Checkpoint, text: str) -> float | None:
        """The share of a text that is copied, if that is known by now."""
        return self._shares.get((checkpoint.path, text))

    async def find_share(self, checkpoint: Checkpoint, text: str) -> float | None:
        """The share of a text that is copied word for word from the model's training text.

        None where that text is not at hand.
        """
        key = (checkpoint.path, text)
        if key not in self._shares:
            try:
                found = await self._generator.copies(checkpoint.path, text, SHORTEST_COPY)
                self._shares[key] = found.share
            except UserError:
                self._shares[key] = None
        return self._shares[key]

    async def surprise(self, checkpoint: Checkpoint, text: str) -> TextScore:
        """How surprising a text is to a checkpoint's model.

        Raises:
            UserError: that cannot be measured.
        """
        key = (checkpoint.path, text)
        if key not in self._scores:
            self._scores[key] = await self._generator.score(checkpoint.path, text)
        return self._scores[key]

    async def unseen(self, checkpoint: Checkpoint) -> Unseen:
        """Text that a checkpoint's model did not learn from.

        Raises:
            UserError: there is none at hand.
        """
        return await self._generator.unseen(checkpoint.path)

    async def close(self) -> None:
        """End the process."""
        await self._generator.close()
