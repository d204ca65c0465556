"""Reading what may be anything, and all-or-nothing writing.

Every file that is read goes through here: it is opened without waiting, must be a regular file, has
at most the bytes that its kind can need, and is decoded into a type, with its limits. What a type
does not know is skipped, so files of a newer tuigpt open; what is missing has the type's default.

Every file that is replaced goes through `write_atomic`: a reader sees the old content or the new
content, never a part, and a kill at any instant leaves one of the two.
"""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import math
import os
import re
import shutil
import stat
import struct
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, cast

import msgspec

from tuigpt.errors import UserError

TEMPORARY_PREFIX = ".partial-"
"""Starts the name of a file or folder that is being written; readers skip such names."""

RECORD_LIMIT = 1 << 20
"""Most bytes of a JSON file; the largest that tuigpt writes has a few thousand."""

HEADER_LIMIT = 8 << 20
"""Most bytes of a safetensors header: room for a vocabulary of all of Unicode, and 5,000 layers."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
"""A number of things, or a step; exact as a float as well."""

Word = Annotated[str, msgspec.Meta(max_length=4096)]
"""A name, a path, or another short text."""

Decoded = TypeVar("Decoded")

_LONGEST_REASON = 300

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class UnreadableFile(UserError):
    """A file that cannot be read, or does not hold what it should.

    Attributes:
        path: of the file.
        reason: what is wrong with it, in one line that does not name the file.
        missing: whether there is no such file.
    """

    def __init__(self, path: Path, reason: str, missing: bool = False) -> None:
        self.path = path
        self.reason = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "…"
        super().__init__(f"cannot read {str(path)!r}: {self.reason}")
        self.missing = missing


# --- reading ---


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes, without waiting for anything.

    Raises:
        OSError: it cannot be opened, or is no regular file (a pipe would keep its reader waiting).
        ValueError: no file can be called so.
    """
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING | _BINARY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    raise OSError(errno.EINVAL, "it is no regular file", str(path))


@contextmanager
def _reading(path: Path) -> Iterator[io.BufferedReader]:
    """As `open_regular`; what fails in the block is an `UnreadableFile`."""
    try:
        with open_regular(path) as stream:
            yield stream
    except OSError as error:
        if isinstance(error, FileNotFoundError) and path.is_symlink():
            raise UnreadableFile(path, "it is a link that leads nowhere") from None
        missing = isinstance(error, FileNotFoundError)
        raise UnreadableFile(path, error.strerror or str(error), missing) from None
    except ValueError as error:
        raise UnreadableFile(path, str(error)) from None


def read_bytes(path: Path, limit: int) -> bytes:
    """All of a regular file.

    Args:
        limit: most bytes that it may have.

    Raises:
        UnreadableFile: it cannot be read, or is larger.
    """
    with _reading(path) as stream:
        if os.fstat(stream.fileno()).st_size <= limit:
            content = stream.read(limit + 1)
            if len(content) <= limit:
                return content
        raise ValueError(f"it is larger than the {limit:,} bytes that it may have")


def read_record(path: Path, kind: type[Decoded], limit: int = RECORD_LIMIT) -> Decoded:
    """Read a JSON file that holds one object of a type.

    Args:
        kind: a msgspec Struct or a dataclass.

    Raises:
        UnreadableFile: it cannot be read, or holds something else.
    """
    content = read_bytes(path, limit)
    try:
        return decode(content, kind)
    except ValueError as error:
        raise UnreadableFile(path, str(error)) from None


def decode(content: bytes, kind: type[Decoded] | UnionType) -> Decoded:
    """Read one JSON object; numbers that it names in a list `nonfinite` come back as NaN.

    Args:
        kind: a msgspec Struct, a union of them, or a dataclass.

    Raises:
        ValueError: the content is something else; the text says in one line what is wrong.
    """
    try:
        value: Decoded = _decoder(cast("Hashable", kind)).decode(content)
        if b'"nonfinite"' in content:
            value = _with_nan(value, _decoder(_Nonfinite).decode(content).nonfinite)
        return value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UserError as error:  # a value with which no configuration can be built
        raise ValueError(str(error)) from None
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        if b"\\ud" in content or b"\\uD" in content:
            return _decode_with_surrogates(content, kind)
        raise ValueError("it is not JSON, or cut short") from None


class _Nonfinite(msgspec.Struct):
    nonfinite: list[str] = []


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _with_nan(value: Decoded, names: list[str]) -> Decoded:
    """A record with NaN in those of these fields that are empty."""
    nan = {name: math.nan for name in names if getattr(value, name, 0) is None}
    if not nan:
        return value
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **nan)
    return dataclasses.replace(value, **nan)  # type: ignore[type-var]


def _decode_with_surrogates(content: bytes, kind: type[Decoded] | UnionType) -> Decoded:
    """As `decode`, for text with halves of surrogate pairs, which stand for bytes of paths."""
    try:
        record = json.loads(content)
        value: Decoded = msgspec.convert(record, kind)
        return _with_nan(value, msgspec.convert(record, _Nonfinite).nonfinite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(error)) from None
    except UserError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("it is not JSON, or cut short") from None


def _in_words(error: msgspec.ValidationError) -> str:
    """What msgspec found, such as: model.n_embd should be int, not str."""
    text, _, field = str(error).partition(" - at `$")
    field = field.strip("`.")
    for pattern, words in (
        (r"Expected (.*), got (.*)", r"should be \1, not \2"),
        (r"Expected (.*)", r"should be \1"),
        (r"Object missing required field (.*)", r"has no \1"),
        (r"Number out of range", r"is out of range"),
    ):
        text, count = re.subn(f"^{pattern}$", words, text.replace("`", ""))
        if count:
            return f"{field or 'it'} {text}"
    return f"{field}: {text}" if field else text


def refuse_newer(found: int, known: int) -> None:
    """Refuse a file's format above the newest that this tuigpt knows.

    Raises:
        ValueError: tells both numbers.
    """
    if found > known:
        raise ValueError(
            f"it was written by a newer tuigpt: its format is {found}, and this one reads up to"
            f" {known}"
        )


# --- what a JSON file holds ---


def to_json(record: object) -> str:
    """One line of JSON. Non-finite numbers become null, named in a list `nonfinite`.

    Args:
        record: a mapping, a msgspec Struct or a dataclass.
    """
    fields: dict[str, Any] = msgspec.to_builtins(record)
    bad = [k for k, v in fields.items() if isinstance(v, float) and not math.isfinite(v)]
    if bad:
        fields = {k: None if k in bad else v for k, v in fields.items()} | {"nonfinite": bad}
    line = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a path may hold bytes that are no UTF-8
        line = json.dumps(fields, allow_nan=False)
    return line


def write_json(path: Path, record: object) -> None:
    """Replace a JSON file all at once.

    Args:
        record: a mapping, a msgspec Struct or a dataclass.

    Raises:
        OSError: it could not be written; the old file is untouched.
    """
    write_atomic(path, (to_json(record) + "\n").encode())


# --- safetensors ---


class _Metadata(msgspec.Struct):
    texts: dict[str, str] = msgspec.field(name="__metadata__", default_factory=dict)


class _Extent(msgspec.Struct):
    data_offsets: tuple[Count, Count] = (0, 0)


def read_safetensors_metadata(path: Path) -> dict[str, str]:
    """The text metadata at the front of a safetensors file, without reading its tensors.

    Also checks that the file is as long as its header says, so that a truncated copy is caught.
    (`safetensors.safe_open` would import numpy, wait for the other end of a pipe, and take 760 MB
    for a header of 60 MB.)

    Raises:
        UnreadableFile: it cannot be read, or is not a whole safetensors file.
    """
    with _reading(path) as stream:
        return _metadata(stream)


def _metadata(stream: io.BufferedReader) -> dict[str, str]:
    size = os.fstat(stream.fileno()).st_size
    front = stream.read(8)
    if len(front) < 8:
        raise ValueError("the file is empty" if not front else "the file is cut short")
    if front.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x04")):
        raise ValueError("a PyTorch .pt file, not a safetensors file: tuigpt opens only its own")
    (length,) = struct.unpack("<Q", front)
    if length > size - 8:
        raise ValueError("not a safetensors file, or cut short")
    if length > HEADER_LIMIT:
        raise ValueError(f"its header is larger than the {HEADER_LIMIT:,} bytes that it may have")
    header = stream.read(length)
    try:
        metadata = decode(header, _Metadata).texts
        extents = decode(header, dict[str, _Extent]).values()
    except ValueError:
        raise ValueError("not a safetensors file") from None
    if size != 8 + length + max((extent.data_offsets[1] for extent in extents), default=0):
        raise ValueError("the file is cut short")
    return metadata


# --- writing ---


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file of our own all at once; its mode follows the umask.

    A symbolic link of that name is replaced as well: what it points to is never written.

    Raises:
        OSError: the content could not be written; the old file is untouched.
    """
    with _replacing(path) as stream:
        stream.write(content)


@contextmanager
def _replacing(path: Path) -> Iterator[io.BufferedWriter]:
    """Yield a hidden file that takes this place at the end of the block, or vanishes."""
    descriptor, draft = _draft_file(path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    sync_folder(path.parent)


def write_output(path: Path, content: bytes) -> None:
    """Write a file where the user said: through symbolic links, and into what is no regular file.

    A regular file is replaced all at once; anything else, such as /dev/null or a pipe, stays what
    it is and is written into.

    Raises:
        OSError: the content could not be written.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():
        real.write_bytes(content)
    else:
        write_atomic(real, content)


def open_to_append(path: Path) -> int:
    """A descriptor of a regular file of our own, for reading and appending; made when missing.

    A file with a second name elsewhere (a hard link) is copied first, so that what goes by that
    name stays as it is.

    Raises:
        OSError: it cannot be had, or is a symbolic link or no regular file.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _WITHOUT_WAITING | _NO_LINK | _BINARY
    descriptor = os.open(path, flags, 0o666)
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    with open_regular(path) as stream, _replacing(path) as copy:
        shutil.copyfileobj(stream, copy)
    return os.open(path, flags, 0o666)


@contextmanager
def folder_in_the_making(final: Path) -> Iterator[Path]:
    """Yield a hidden folder that becomes `final` at the end of the block, or vanishes.

    Raises:
        FileExistsError: `final` was there already.
        OSError: it could not be made.
    """
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(
            errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(final.parent)
        ) from None
    draft = _draft_folder(final.parent)
    try:
        yield draft
        if final.exists():
            raise FileExistsError(final)
        try:
            os.rename(draft, final)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # made in this very moment
                raise FileExistsError(final) from None
            raise
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(final.parent)


def _draft_file(folder: Path) -> tuple[int, Path]:
    # Not by `tempfile`, whose files nobody else may read whatever the umask says.
    while True:
        path = _draft_name(folder)
        with suppress(FileExistsError):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | _BINARY
            return os.open(path, flags, 0o666), path


def _draft_folder(folder: Path) -> Path:
    while True:
        path = _draft_name(folder)
        with suppress(FileExistsError):
            path.mkdir()
            return path


def _draft_name(folder: Path) -> Path:
    return folder / f"{TEMPORARY_PREFIX}{os.urandom(6).hex()}"


def remove_unfinished(folder: Path, before: float = math.inf) -> None:
    """Remove the files and folders that killed writers left half-written in a folder.

    Args:
        before: seconds since the epoch; what was written later is spared.
    """
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(OSError):
            if path.lstat().st_mtime >= before:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename inside the folder survive a power cut, where the platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
