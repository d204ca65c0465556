"""The app's end of the generator: starts the process when needed, and again when it died."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuigpt.child import child_command, child_environment, last_line
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.protocol import (
    LONGEST_COMMAND,
    LONGEST_REPORT,
    Cancel,
    Command,
    Compare,
    Compared,
    Copies,
    CopiesFound,
    Failed,
    FindCopies,
    Generate,
    Last,
    NextToken,
    NextTokenFound,
    ReadUnseen,
    Report,
    Score,
    Scored,
    SetConfig,
    SetPace,
    TextFacts,
    TextScore,
    TimeWindows,
    Unseen,
    UnseenRead,
    Verified,
    Verify,
    Window,
    WindowSpeeds,
    WindowsTimed,
    Work,
    decode_report,
    encode,
)
from tuigpt.wording import file_size

LOG_FILE = "generator.log"
"""In the home: what the process printed, such as warnings of libraries."""

LOG_BYTES = 256 * 1024
"""Size of the log at which its older half is dropped."""

_ATTEMPTS = 2
"""Processes that may die before a request's first report, until it fails."""


@dataclass
class _Request:
    """A command that was sent.

    Attributes:
        process: that it was last sent to.
        begun: whether that process reported on it.
    """

    command: Work
    reports: asyncio.Queue[Report]
    process: asyncio.subprocess.Process | None = None
    attempts: int = 0
    begun: bool = False


class GeneratorClient:
    """Talks to one generator process, which it owns.

    The process is started with the first request and ends with `close`, or with the app. When it
    dies in between, the request it was at fails in words; those that were waiting are carried out
    by another process.
    """

    def __init__(self, home: Path, waiting_reports: int = 100) -> None:
        """
        Args:
            home: where caches and the log are kept.
            waiting_reports: how many of a request may wait to be read before the process is made
                to wait as well.
        """
        self._home = home
        self._waiting_reports = waiting_reports
        self._process: asyncio.subprocess.Process | None = None
        self._readers: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Number of the process, or None where none runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def warm_up(self) -> None:
        """Start the process ahead of the first request, so that torch is imported by then."""
        with suppress(OSError):
            await self._running_process()

    async def generate(
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
    ) -> AsyncGenerator[Report, None]:
        """Yield the reports on one text, `Done` or `Failed` last.

        Closing the iterator early cancels the text. What the arguments mean, and what is reported,
        stands with `Generate` and the reports in `protocol.py`. An iterator that is neither read
        nor closed makes the process wait, and with it all other requests.
        """
        command = Generate(
            next(self._numbers),
            os.fsencode(checkpoint),
            prompt,
            config,
            samples=samples,
            window=window,
            forced_ids=list(forced_ids),
            top_logprobs=top_logprobs,
            pace=pace,
        )
        reports = self._carry_out(command)
        try:
            async for report in reports:
                yield report
        finally:
            await reports.aclose()

    async def set_config(self, number: int, config: SampleConfig) -> None:
        """Let the text with this number (each report's `id`) be drawn with another config.

        It takes effect at the next token, which `ConfigChanged` then names; the length and the seed
        stay as they were.
        """
        await self._send(SetConfig(number, config))

    async def set_pace(self, number: int, pace: float) -> None:
        """Let the text with this number go on with at most `pace` tokens a second, 0 = at once."""
        await self._send(SetPace(number, pace))

    async def cancel(self, number: int) -> None:
        """Ask for the end of the text with this number; its `Done` comes then."""
        await self._send(Cancel(number))

    async def next_token(
        self,
        checkpoint: Path,
        prompt: str,
        config: SampleConfig,
        *,
        forced_ids: Sequence[int] = (),
        top_logprobs: int = 100,
    ) -> NextTokenFound:
        """The distribution after a prompt. Raises UserError when there is none."""
        command = NextToken(
            next(self._numbers),
            os.fsencode(checkpoint),
            prompt,
            config,
            forced_ids=list(forced_ids),
            top_logprobs=top_logprobs,
        )
        report = await self._answer(command)
        assert isinstance(report, NextTokenFound)
        return report

    async def score(self, checkpoint: Path, text: str) -> TextScore:
        """How surprising a text is to the model. Raises UserError when that cannot be measured."""
        report = await self._answer(Score(next(self._numbers), os.fsencode(checkpoint), text))
        assert isinstance(report, Scored)
        return report.score

    async def copies(self, checkpoint: Path, text: str, at_least: int = 20) -> Copies:
        """Which parts of a text stand in the corpus. Raises UserError when that is unknown."""
        command = FindCopies(next(self._numbers), os.fsencode(checkpoint), text, at_least)
        report = await self._answer(command)
        assert isinstance(report, CopiesFound)
        return report.found

    async def compare(self, checkpoint: Path, texts: Sequence[str]) -> list[TextFacts]:
        """What of each text stands in the corpus. Raises UserError when that is unknown."""
        command = Compare(next(self._numbers), os.fsencode(checkpoint), list(texts))
        report = await self._answer(command)
        assert isinstance(report, Compared)
        return report.found

    async def unseen(self, checkpoint: Path) -> Unseen:
        """Text that the model did not learn from. Raises UserError when there is none at hand."""
        report = await self._answer(ReadUnseen(next(self._numbers), os.fsencode(checkpoint)))
        assert isinstance(report, UnseenRead)
        return report.found

    async def window_speeds(self, checkpoint: Path) -> WindowSpeeds:
        """How quickly a model writes past its context. Raises UserError when it cannot."""
        report = await self._answer(TimeWindows(next(self._numbers), os.fsencode(checkpoint)))
        assert isinstance(report, WindowsTimed)
        return report.speeds

    async def verify(
        self, checkpoint: Path, prompt: str, config: SampleConfig, ids: Sequence[int]
    ) -> Verified:
        """Compare a text with the plain loop's. Raises UserError when that cannot be done."""
        number = next(self._numbers)
        command = Verify(number, os.fsencode(checkpoint), prompt, config, list(ids))
        report = await self._answer(command)
        assert isinstance(report, Verified)
        return report

    async def close(self) -> None:
        """End the process; requests that are not answered yet fail."""
        self._closed = True
        process, self._process = self._process, None
        for request in list(self._requests.values()):
            self._fail(request, "the generator was closed")
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._readers:
            await asyncio.wait(self._readers)

    async def _answer(self, command: Work) -> Last:
        reports = self._carry_out(command)
        try:
            async for report in reports:
                if isinstance(report, Failed):
                    raise UserError(report.message)
                if isinstance(report, Last):
                    return report
        finally:
            await reports.aclose()
        raise AssertionError("every request ends with a last report")

    async def _carry_out(self, command: Work) -> AsyncGenerator[Report, None]:
        request = self._requests[command.id] = _Request(
            command, asyncio.Queue(self._waiting_reports)
        )
        finished = False
        try:
            await self._start(request)
            while not finished:
                report = await request.reports.get()
                finished = isinstance(report, Last)
                yield report
        finally:
            self._requests.pop(command.id, None)
            while not request.reports.empty():  # the reader may wait for room
                request.reports.get_nowait()
            if not finished:
                await self.cancel(command.id)

    async def _start(self, request: _Request) -> None:
        """Send a request to a living process; its failure is a report."""
        if len(encode(request.command)) > LONGEST_COMMAND:
            limit = file_size(LONGEST_COMMAND)
            self._fail(request, f"a text of more than {limit} is too long for the generator")
            return
        try:
            request.process = await self._running_process()
        except OSError as error:
            self._fail(request, f"the generator cannot be started: {error}")
            return
        request.attempts += 1
        await _write(request.process, request.command)

    async def _send(self, message: Command) -> None:
        if self._process is not None and self._process.returncode is None:
            await _write(self._process, message)

    async def _running_process(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._closed:
                raise OSError("it was closed")
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *child_command("tuigpt.generation.server", "--home", str(self._home)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    limit=LONGEST_REPORT,
                    env=child_environment(),
                    start_new_session=os.name == "posix",
                )
                reader = asyncio.create_task(self._read(self._process))
                self._readers.add(reader)
                reader.add_done_callback(self._readers.discard)
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand on one process's reports until it ends, then see to what it left undone."""
        assert process.stdout is not None
        ending = asyncio.create_task(self._last_line(process))
        try:
            async for line in process.stdout:
                report = decode_report(line)
                if (request := self._requests.get(report.id)) is not None:
                    request.begun = True
                    await request.reports.put(report)
        except ValueError:
            process.kill()  # it does not speak the protocol, so nothing of it can be trusted
        status = await process.wait()
        end = f"the generator process {_end(status)}{await ending}"
        left = [r for r in self._requests.values() if r.process is process]
        for request in left:
            # What was waiting did no harm and suffers none; what had begun is lost.
            if request.begun or request.attempts >= _ATTEMPTS:
                self._fail(request, f"{end}; try again")
            else:
                await self._start(request)

    async def _last_line(self, process: asyncio.subprocess.Process) -> str:
        """Keep what the process prints in the log; the last line is for an error message."""
        assert process.stderr is not None
        tail = b""
        while chunk := await process.stderr.read(4096):
            tail = (tail + chunk)[-4096:]
            with suppress(OSError):
                _append(self._home / LOG_FILE, chunk)
        said = last_line(tail.decode(errors="replace"))
        return f" ({said})" if said else ""

    def _fail(self, request: _Request, message: str) -> None:
        self._requests.pop(request.command.id, None)
        if request.reports.full():
            request.reports.get_nowait()
        request.reports.put_nowait(Failed(request.command.id, message))


def _append(log: Path, text: bytes) -> None:
    """Add to a log of bounded size.

    Raises:
        OSError: it cannot be written.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(log, flags, 0o666), "r+b") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > LOG_BYTES:
            stream.seek(size - LOG_BYTES // 2)
            text = stream.read(LOG_BYTES // 2) + text
            stream.truncate(0)
        stream.write(text)


async def _write(process: asyncio.subprocess.Process, command: Command) -> None:
    assert process.stdin is not None
    # A process that just died breaks the pipe; its reader then sees to the request.
    with suppress(OSError):
        process.stdin.write(encode(command))
        await process.stdin.drain()


def _end(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
