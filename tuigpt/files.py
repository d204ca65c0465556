"""All-or-nothing writing, and the reading of what may be half there.

Every file that tuigpt replaces goes through `write_atomic`: a reader sees the old content or the
new content, never a part, and a kill at any instant leaves one of the two.
"""

import errno
import io
import json
import math
import os
import shutil
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

TEMPORARY_PREFIX = ".partial-"
"""Starts the name of a file or folder that is being written; readers skip such names."""

_MAX_HEADER_BYTES = 64 * 1024 * 1024

# Asked once at import, because asking means setting it for the whole process for an instant.
_UMASK = os.umask(0o022)
os.umask(_UMASK)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file's content all at once; file modes follow the umask.

    Raises:
        OSError: the content could not be written; the old file is untouched.
    """
    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_UMASK)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(path.parent)


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
    draft = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=final.parent))
    try:
        yield draft
        os.chmod(draft, 0o777 & ~_UMASK)
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


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes, without waiting for anything.

    Raises:
        OSError: it cannot be opened, or is no regular file (a pipe would block).
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return open(descriptor, "rb")


def sync_folder(folder: Path) -> None:
    """Make a rename inside the folder survive a power cut, where the platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(record: dict[str, Any]) -> str:
    """One line of JSON. Non-finite numbers become null, named in a list `nonfinite`."""
    bad = [k for k, v in record.items() if isinstance(v, float) and not math.isfinite(v)]
    if bad:
        record = {k: None if k in bad else v for k, v in record.items()} | {"nonfinite": bad}
    line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a path may hold bytes that are no UTF-8
        line = json.dumps(record, allow_nan=False)
    return line


def from_json(line: str | bytes) -> dict[str, Any]:
    """Read what `to_json` wrote; numbers named in `nonfinite` come back as NaN.

    Raises:
        ValueError: the line is not a JSON object.
    """
    try:
        record = json.loads(line)
    except RecursionError:
        raise ValueError("too deeply nested") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    for name in record.pop("nonfinite", ()):
        record[name] = math.nan
    return record


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Replace a JSON file all at once."""
    write_atomic(path, (to_json(record) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a JSON object.
    """
    return from_json(path.read_bytes())


def read_safetensors_metadata(path: Path) -> dict[str, str]:
    """The text metadata at the front of a safetensors file, without reading its tensors.

    Also checks that the file is as long as its header says, so that a truncated copy is caught.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a whole safetensors file; the text says what is wrong.
    """
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        front = stream.read(8)
        if len(front) < 8:
            raise ValueError("the file is empty" if not front else "the file is cut short")
        if front.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x04")):
            raise ValueError(
                "a PyTorch .pt file, not a safetensors file: tuigpt opens only its own"
            )
        (length,) = struct.unpack("<Q", front)
        if length > min(size - 8, _MAX_HEADER_BYTES):
            raise ValueError("not a safetensors file, or cut short")
        try:
            header = json.loads(stream.read(length))
            metadata = dict(header.pop("__metadata__", {}))
            tensors_end = max((t["data_offsets"][1] for t in header.values()), default=0)
        except (ValueError, AttributeError, KeyError, TypeError, IndexError, RecursionError):
            raise ValueError("not a safetensors file") from None
    if size != 8 + length + tensors_end:
        raise ValueError("the file is cut short")
    return {str(k): str(v) for k, v in metadata.items()}


def read_header(path: Path) -> dict[str, Any]:
    """What a checkpoint of tuigpt tells of itself, without its tensors.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a whole checkpoint of tuigpt; the text says what is wrong.
    """
    text = read_safetensors_metadata(path).get("tuigpt")
    if text is None:
        raise ValueError("it is a safetensors file, but not one of tuigpt's checkpoints")
    try:
        return from_json(text)
    except ValueError:
        raise ValueError("its header cannot be read") from None
