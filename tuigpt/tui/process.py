"""Processes of tuigpt's own command line that a widget asks and never leaves behind."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from tuigpt.child import child_environment, last_line

_LONGEST_LINE = 1 << 20

_GRACE = 2.0
"""Seconds that a process has to clear up after itself; then it is killed."""


@asynccontextmanager
async def asked(command: Sequence[str]) -> AsyncIterator[Process]:
    """A process whose output is read here; it is ended with the block, if it has not ended.

    Raises:
        OSError, ValueError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=child_environment(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        limit=_LONGEST_LINE,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            if process.returncode is None:
                process.terminate()
        # To the end, so that no pipe is left to the garbage collector, when the loop may be gone.
        try:
            await asyncio.wait_for(process.communicate(), _GRACE)
        except (TimeoutError, asyncio.CancelledError):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def complaint(process: Process) -> str:
    """The last line that a process that failed wrote for the user."""
    assert process.stderr is not None
    return last_line((await process.stderr.read()).decode("utf-8", "replace")) or "it ended early"
