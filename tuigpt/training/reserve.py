"""Room on the disk for a training's last save, held by a file in its run folder."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import memory

RESERVE_FILE = ".reserve"

SMALL_FILES = 128 << 10
"""Bytes for what is written beside the weights: status, log, requests, headers."""


_TOKEN = 64
"""Bytes for a token of the vocabulary, which both files hold."""


def save_bytes(config: GPTConfig, train_config: TrainConfig) -> int:
    """What one save takes: a checkpoint, and a resume file beside the one that it replaces.

    Small files count twice: once while a full disk is waited for, once with the last save.
    """
    need = memory(config, train_config)
    return 2 * (need.weights + _TOKEN * config.vocab_size) + need.optimizer + 2 * SMALL_FILES


class Reserve:
    """A file that takes as much room as the last save needs, so that it can be given to it.

    Where a file system cannot promise room, it is empty, and saving is tried without.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self._size = size

    @property
    def _path(self) -> Path:
        return self.folder / RESERVE_FILE

    def hold(self) -> None:
        """Take the room, or take it again.

        Raises:
            OSError: there is too little.
        """
        if not hasattr(os, "posix_fallocate"):
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            held = os.fstat(descriptor).st_size
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            except OSError:
                os.ftruncate(descriptor, held)  # what was taken in part would be lost to others
                raise
        finally:
            os.close(descriptor)

    def holds(self) -> bool:
        """Whether all of the room is held, which is tried anew."""
        try:
            self.hold()
        except OSError:
            return False
        return True

    def yield_small(self) -> None:
        """Give back what small files need, so that status and requests can still be written."""
        with suppress(OSError):
            os.truncate(self._path, self._size - SMALL_FILES)

    def release(self) -> None:
        """Give all of it back."""
        with suppress(OSError):
            self._path.unlink()

    def free(self) -> int:
        """How many bytes the disk has beside what is held."""
        try:
            return shutil.disk_usage(self.folder).free
        except OSError:
            return 0
