"""The app's end of the generator: starts the process when needed, and again when it died."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.generator.protocol import (
    Cancel,
    Command,
    Done,
    Failed,
    Generate,
    Hello,
    Report,
    decode_report,
    encode,
)

_LINE_LIMIT = 16 * 1024 * 1024


class GeneratorClient:
    """Talks to one generator process, which it owns.

    The process is started with the first request and ends with `close`, or with the app. One that
    dies in between fails the requests at hand in words; the next request starts another.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Queue[Report]] = {}
        self._starting = asyncio.Lock()

    async def warm_up(self) -> None:
        """Start the process ahead of the first request, so that torch is imported by then."""
        with suppress(OSError):
            await self._running_process()

    async def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig
    ) -> AsyncIterator[Report]:
        """Yield the reports on one text, `Done` or `Failed` last.

        Closing the iterator early cancels the text.
        """
        number = next(self._numbers)
        command = Generate(
            id=number,
            checkpoint=str(checkpoint),
            prompt=prompt,
            max_new_tokens=config.max_new_tokens,
            temperature=config.temperature,
            top_k=config.top_k,
            seed=config.seed,
        )
        answers = self._answers[number] = asyncio.Queue()
        finished = False
        try:
            try:
                await self._send(command)
            except OSError as error:
                answers.put_nowait(Failed(number, f"the generator cannot be started: {error}"))
            while not finished:
                report = await answers.get()
                finished = isinstance(report, Done | Failed)
                yield report
        finally:
            del self._answers[number]
            if not finished:
                await self.cancel(number)

    async def cancel(self, number: int) -> None:
        """Ask for the end of the text with this number; its `Done` tells when it came."""
        if self._process is not None and self._process.returncode is None:
            with suppress(OSError):
                await self._send(Cancel(number))

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader

    async def _send(self, command: Command) -> None:
        process = await self._running_process()
        assert process.stdin is not None
        process.stdin.write(encode(command))
        await process.stdin.drain()

    async def _running_process(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "tuigpt.generator.server",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=_LINE_LIMIT,
                    start_new_session=os.name == "posix",
                )
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(ValueError):
                report = decode_report(line)
                if not isinstance(report, Hello) and report.id in self._answers:
                    self._answers[report.id].put_nowait(report)
        status = await process.wait()
        for number, answers in self._answers.items():
            answers.put_nowait(
                Failed(number, f"the generator process ended (status {status}); press enter again")
            )
