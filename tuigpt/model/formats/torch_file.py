"""Reads a file of `torch.save` without torch's loader: a zip of a pickle and rows of numbers."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tuigpt.files import open_regular
from tuigpt.model.formats.pickles import MOST_BYTES, StoredTensor, read_pickle

_MOST_DIRECTORY_BYTES = 8 << 20
"""Of a zip's directory: room for some hundred thousand tensors."""

_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
"""How `torch.save` began its files before version 1.6."""

_DAMAGES = (
    zipfile.BadZipFile, struct.error, EOFError, KeyError, NotImplementedError, OSError,
    OverflowError, RuntimeError, UnicodeError,
)  # fmt: skip
"""What `zipfile` raises for a zip that is damaged, encrypted or of another kind."""


@contextmanager
def open_torch_file(path: Path) -> Iterator[TorchFile]:
    """Open a file of `torch.save` to read its tensors within the block.

    Raises:
        ValueError: it cannot be opened, or as `TorchFile` says.
    """
    try:
        stream = open_regular(path)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    with stream:
        yield TorchFile(stream)


class TorchFile:
    """A file of `torch.save`, whose tensors stay in it until they are read.

    Nothing in it is run or unpacked, and no more is read than the file has bytes.

    Attributes:
        content: what was saved, as `read_pickle` describes it.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        """
        Args:
            stream: stays open for as long as tensors are read.

        Raises:
            ValueError: it is something else, damaged, or holds what no model's file does.
        """
        _refuse_other_kinds(stream)
        self._room = os.fstat(stream.fileno()).st_size
        limited = _Limited(stream, _MOST_DIRECTORY_BYTES)
        with _damages_named():
            self._zip = zipfile.ZipFile(limited)
        limited.budget = None
        names = [name for name in self._zip.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1 or names[0].count("/") != 1:
            raise ValueError("it is a zip file, but not one of torch.save")
        self._folder = names[0].removesuffix("data.pkl")
        if f"{self._folder}constants.pkl" in self._zip.namelist():
            raise ValueError("it is a TorchScript program, not a checkpoint")
        if f"{self._folder}byteorder" in self._zip.namelist():
            if self._entry("byteorder", 16) != b"little":
                raise ValueError("its numbers have their bytes in the order of another machine")
        self.content: Any = read_pickle(self._entry("data.pkl", MOST_BYTES))

    def tensor(self, stored: StoredTensor) -> Tensor:
        """Read one tensor, with its own type, on the CPU and in memory of its own.

        Raises:
            ValueError: it does not lie within its storage, the storage is damaged, or more is read
                than the file has bytes.
        """
        storage = stored.storage
        kind: torch.dtype = getattr(torch, storage.kind)
        if (
            len(stored.shape) != len(stored.stride)
            or min((storage.numbers, stored.offset, *stored.shape, *stored.stride), default=0) < 0
        ):
            raise ValueError("one of its tensors has a size that cannot be")
        count = math.prod(stored.shape)
        last = stored.offset + sum(
            (size - 1) * step for size, step in zip(stored.shape, stored.stride, strict=True)
        )
        if count and last >= storage.numbers or count > storage.numbers:
            raise ValueError("one of its tensors reaches beyond its numbers")
        n_bytes = storage.numbers * kind.itemsize
        self._room -= n_bytes
        if self._room < 0:
            raise ValueError("its tensors are larger than the file")
        content = self._entry(f"data/{storage.key}", n_bytes)
        if len(content) != n_bytes:
            raise ValueError(f"it tells of {n_bytes:,} bytes of numbers, but has {len(content):,}")
        if not count:
            return torch.empty(stored.shape, dtype=kind)
        row = torch.frombuffer(bytearray(content), dtype=kind)
        return row.as_strided(stored.shape, stored.stride, stored.offset).contiguous()

    def _entry(self, name: str, limit: int) -> bytes:
        with _damages_named():
            info = self._zip.getinfo(self._folder + name)
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("parts of it are compressed, which torch.save never does")
            if info.file_size > limit:
                raise ValueError(f"its part {name} is larger than the {limit:,} bytes it may have")
            return self._zip.read(info)


def is_scalar(value: Any) -> bool:
    """Whether this stands for a single number that lies beside the pickle."""
    return isinstance(value, StoredTensor) and math.prod(value.shape) == 1


def _refuse_other_kinds(stream: io.BufferedReader) -> None:
    front = stream.read(64) or b""
    stream.seek(0)
    if front.startswith(b"PK\x03\x04"):
        return
    if not front:
        raise ValueError("it is empty")
    if front.startswith(_LEGACY):
        raise ValueError(
            "it was saved in the format of PyTorch before 1.6; load and save it once with a newer"
            " PyTorch"
        )
    if front.startswith(b"version https://git-lfs"):
        raise ValueError("it is Git LFS's pointer to a file, not the file: run git lfs pull")
    if front.lstrip()[:1] == b"<":
        raise ValueError("it is a web page, not a checkpoint: the download went wrong")
    raise ValueError("it is not a file of torch.save")


@contextmanager
def _damages_named() -> Iterator[None]:
    try:
        yield
    except _DAMAGES:
        raise ValueError("it is damaged or cut short") from None


class _Limited(io.RawIOBase):
    """A file of which only so many bytes are read while `budget` is a number."""

    def __init__(self, stream: io.BufferedReader, budget: int) -> None:
        self._stream = stream
        self.budget: int | None = budget

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None:
            size = -1
        if self.budget is None:
            return self._stream.read(size) or b""
        content = self._stream.read(min(size, self.budget + 1) if size >= 0 else self.budget + 1)
        self.budget -= len(content or b"")
        if self.budget < 0:
            raise zipfile.BadZipFile
        return content or b""
