"""Copying where the terminal alone does not: tmux keeps what is copied inside it to itself."""

from __future__ import annotations

import asyncio
import os

LONGEST = 70_000
"""Bytes that a terminal takes at least, of those that take any (xterm's limit is the lowest)."""

_PATIENCE = 5.0


def in_tmux() -> bool:
    return bool(os.environ.get("TMUX"))


async def copy_into_tmux(text: str) -> bool:
    """Put a text into tmux's buffer, and with it into the clipboard of the terminal around it.

    Returns:
        whether tmux took it.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", "-w", "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return False
    try:
        async with asyncio.timeout(_PATIENCE):
            await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        process.kill()
    return await process.wait() == 0
