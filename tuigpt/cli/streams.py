"""Standard input, output and error as a program needs them: there, in UTF-8, and honest."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OutputError(OSError):
    """Standard output cannot be written: it is closed, full, or nobody reads it any more."""


class InputError(OSError):
    """Standard input cannot be read: it is closed, or a folder."""


class _Input(io.FileIO):
    def readinto(self, buffer: Any) -> int | None:
        with _as_ours(InputError):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with _as_ours(InputError):
            return super().readall()


class _Output(io.FileIO):
    def write(self, data: Any) -> int:
        with _as_ours(OutputError):
            return super().write(data)


class _Complaints(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:  # nobody is left who could be told
            return len(data)


def open_standard_streams() -> None:
    """Make the standard streams of this process usable; call it before any file is opened.

    A stream that is closed stays unusable, but its number cannot become that of another file.
    Reading and writing raise `InputError` and `OutputError` where they fail; writing to standard
    error never does.
    """
    for number, opposite in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, opposite)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Input(0, closefd=False)), encoding="utf-8")
    sys.stdout, sys.stderr = _text(_Output, 1), _text(_Complaints, 2)


def give_up_output() -> None:
    """Write nothing more to standard output, not even what is still on its way there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def _as_ours(kind: type[InputError | OutputError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise kind(error.errno, error.strerror) from None


def _text(kind: type[io.FileIO], number: int) -> io.TextIOWrapper:
    raw = kind(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8",  # a generated text may hold any character
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )
