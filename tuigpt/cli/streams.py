"""Standard input, output and error as a program needs them: there, in UTF-8, and honest."""

from __future__ import annotations

import io
import os
import sys


class OutputError(OSError):
    """Standard output cannot be written: it is closed, full, or nobody reads it any more."""


class _Output(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


class _Complaints(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except OSError:  # nobody is left who could be told
            return len(data)  # type: ignore[arg-type]


def open_standard_streams() -> None:
    """Make the standard streams of this process usable; call it before any file is opened.

    A stream that is closed stays unusable, but its number cannot become that of another file.
    Writing to standard output raises `OutputError` where it fails; to standard error never.
    """
    for number, opposite in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, opposite)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = _text(_Output, 1), _text(_Complaints, 2)


def give_up_output() -> None:
    """Write nothing more to standard output, not even what is still on its way there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _text(kind: type[io.FileIO], number: int) -> io.TextIOWrapper:
    raw = kind(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8",  # a generated text may hold any character
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )
