"""Starting a trainer that outlives whoever started it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuigpt.child import child_command, child_environment, last_line
from tuigpt.runs.folder import TRAINER_LOG

_LOG_NAME = ("starting-", f"-{TRAINER_LOG}")

STARTING_LOGS = "*".join(_LOG_NAME)
"""Pattern of the logs of trainers that have no run folder yet, in the home."""

_ROOM_FOR_WORDS = 1 << 16
"""Bytes; a trainer on a disk with less may not have been able to say why it ended."""


@dataclass(frozen=True)
class Launch:
    """A trainer that was started.

    Attributes:
        process: the trainer; it is not ended with us.
        log: its stdout and stderr, until it has a run folder to move them to.
    """

    process: subprocess.Popen[bytes]
    log: Path

    def refusal(self) -> str | None:
        """Why the trainer ended before it had a run folder, or None while it has not.

        The log of a refused start is removed with the first answer.
        """
        if self.process.poll() is None or not self.log.exists():
            return None
        said = last_line(self.log.read_text("utf-8", "replace"))
        self.log.unlink()
        if not said and shutil.disk_usage(self.log.parent).free < _ROOM_FOR_WORDS:
            return f"the disk is full: there is no room for a run in {str(self.log.parent)!r}"
        return said or f"it ended with status {self.process.returncode}"

    def cancel(self) -> None:
        """End a trainer that has no run folder yet, and remove its log."""
        self.process.terminate()
        with suppress(OSError):
            self.log.unlink()

    def last_words(self) -> str:
        """The newest line of what a trainer without a run folder has printed, or ""."""
        try:
            with open(self.log, "rb") as stream:
                stream.seek(-min(os.fstat(stream.fileno()).st_size, 4096), os.SEEK_END)
                lines = stream.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines[:-1]) if line.strip()), "")


def start(home: Path, arguments: Sequence[str]) -> Launch:
    """Start `tuigpt train` with these arguments, detached from the terminal.

    The trainer makes its run folder by itself, once it has found nothing wrong.

    Raises:
        OSError: the home cannot be written, or the process not started.
    """
    home.mkdir(parents=True, exist_ok=True)
    prefix, suffix = _LOG_NAME
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=home)
    os.close(descriptor)
    command = child_command("tuigpt", "train", "--home", str(home), "--log-file", name, *arguments)
    try:
        # Appending, because the trainer writes a traceback into its log by itself.
        with open(name, "ab") as log:
            process = subprocess.Popen(
                command,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                creationflags=0 if os.name == "posix" else 0x00000008,  # DETACHED_PROCESS
            )
    except OSError:
        os.unlink(name)
        raise
    return Launch(process, Path(name))
