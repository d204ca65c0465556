"""What the pane asks of the generator process, so that a stand-in can take its place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Protocol

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import (
    Copies,
    NextTokenFound,
    Report,
    TextFacts,
    TextScore,
    Verified,
    Window,
    WindowSpeeds,
)


class Writer(Protocol):
    """What writes texts and judges them; `GeneratorClient` says what each method does."""

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def generate(
        self,
        checkpoint: Path,
        prompt: str,
        config: SampleConfig,
        *,
        samples: int = 1,
        window: Window = "sliding",
        forced_ids: Sequence[int] = (),
        top_logprobs: int | None = None,
        pace: float = 0.0,
    ) -> AsyncGenerator[Report, None]: ...

    async def set_config(self, number: int, config: SampleConfig) -> None: ...

    async def set_pace(self, number: int, pace: float) -> None: ...

    async def next_token(
        self,
        checkpoint: Path,
        prompt: str,
        config: SampleConfig,
        *,
        forced_ids: Sequence[int] = (),
        top_logprobs: int = 100,
    ) -> NextTokenFound: ...

    async def score(self, checkpoint: Path, text: str) -> TextScore: ...

    async def copies(self, checkpoint: Path, text: str) -> Copies: ...

    async def compare(self, checkpoint: Path, texts: Sequence[str]) -> list[TextFacts]: ...

    async def window_speeds(self, checkpoint: Path) -> WindowSpeeds: ...

    async def verify(
        self, checkpoint: Path, prompt: str, config: SampleConfig, ids: Sequence[int]
    ) -> Verified: ...
