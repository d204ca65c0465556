"""Texts from disk: any encoding, any line ends, one file or many, read as a stream.

What a text becomes: decoded, a byte order mark at the front of a file dropped, CRLF and lone CR
turned into LF. Nothing else; letters are not composed or decomposed. Several files are joined by
`SEPARATOR`. Nothing here holds more than a piece of a text.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuigpt.errors import UserError
from tuigpt.files import open_regular
from tuigpt.text.detect import many_nuls, not_encoded
from tuigpt.text.tokenizer import code_points
from tuigpt.wording import one_line, with_line_feeds

SEPARATOR = "\n\n"
"""Stands between two files of one text."""

SUFFIXES = (".txt", ".text", ".md")
"""What a folder's files must end in to be part of its text."""

CHUNK_BYTES = 1 << 20

WHOLE_BYTES = 16 << 20
"""Largest text that is held in memory whole; of a larger one evenly spread pieces, as much."""

ProgressCallback = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes of it are done, and how many there are."""


def silent(what: str, done: int, total: int) -> None:
    """A `ProgressCallback` that shows nothing."""


@dataclass
class Changes:
    """What was changed while reading, to be told to the user.

    Attributes:
        encodings: how many files were read in each encoding.
    """

    byte_order_marks: int = 0
    crlf: int = 0
    lone_cr: int = 0
    replaced: int = 0
    encodings: Counter[str] = field(default_factory=Counter)

    def in_words(self) -> list[str]:
        """One phrase for each kind of change."""
        words = [f"read as {name}" for name in self.encodings if name != "utf-8"]
        if self.byte_order_marks:
            words.append("byte order mark dropped")
        if self.crlf:
            words.append(f"{self.crlf:,} CRLF became LF")
        if self.lone_cr:
            words.append(f"{self.lone_cr:,} lone CR became LF")
        if self.replaced:
            what = "byte sequences" if self.replaced > 1 else "byte sequence"
            words.append(f"{self.replaced:,} {what} that did not fit became \ufffd")
        return words


@dataclass(frozen=True)
class Text:
    """A text that can be read, as often as needed.

    Attributes:
        name: short name for people.
        sources: what it was asked for by: paths, absolute, or names; `open_text` takes them.
        files: its files in the order in which they are joined.
        encoding: "auto" or the name of an encoding, with ":replace" behind it to read bytes that
            do not fit as U+FFFD.
        size: bytes of all files.
        notes: what the user may not expect, in words.
    """

    name: str
    sources: tuple[str, ...]
    files: tuple[Path, ...]
    encoding: str
    size: int
    notes: tuple[str, ...] = ()

    def chunks(
        self,
        changes: Changes | None = None,
        progress: ProgressCallback = silent,
        doing: str = "reading the text",
    ) -> Iterator[str]:
        """The text from its beginning, in pieces of about a megabyte.

        Raises:
            UserError: a file is gone, unreadable, or not in the encoding.
        """
        changes = changes or Changes()
        done = 0
        for number, path in enumerate(self.files):
            if number:
                yield SEPARATOR
            for piece, n_bytes in _read_file(path, self.encoding, changes):
                done += n_bytes
                progress(doing, min(done, self.size), self.size)
                if piece:
                    yield piece


def open_files(name: str, sources: Sequence[str], encoding: str = "auto") -> Text:
    """Find the files of a text: each source is a file or a folder.

    A folder gives the files in it and below it whose names end in one of `SUFFIXES`, ordered by
    path, hidden ones left out. Files and folders are joined in the order given.

    Raises:
        UserError: something is missing, unreadable, no regular file, or a folder without texts.
    """
    files = [file for source in sources for file in _files_of(source)]
    size = sum(_checked_size(file) for file in files)
    return Text(name, tuple(_absolute(source) for source in sources), tuple(files), encoding, size)


def _absolute(source: str) -> str:
    return os.path.abspath(os.path.expanduser(source))


def _files_of(source: str) -> list[Path]:
    path = Path(_absolute(source))
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return [path]
        found = []
        for folder, below, names in os.walk(path, onerror=_raise):
            below[:] = sorted(n for n in below if not n.startswith("."))
            found += [
                Path(folder, name)
                for name in names
                if name.lower().endswith(SUFFIXES) and not name.startswith(".")
            ]
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not found:
        raise UserError(
            f"{str(path)!r} is a folder without a text: its files must end in"
            f" {', '.join(SUFFIXES)}; or give the paths of the files"
        )
    return sorted(found, key=lambda file: file.relative_to(path).parts)


def _raise(error: OSError) -> None:
    raise error


def _checked_size(path: Path) -> int:
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise UserError(f"{str(path)!r} is no regular file: copy its text into one first")
        with open_regular(path):
            return facts.st_size
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(
            f"no text at {str(path)!r}: give the path of a text file or folder,"
            " or 'shakespeare' for the built-in text"
        )
    reason = getattr(error, "strerror", None) or str(error)
    return UserError(f"cannot read {str(path)!r}: {reason}")


def _read_file(path: Path, spec: str, changes: Changes) -> Iterator[tuple[str, int]]:
    """The unified text of one file in pieces, each with the number of bytes read for it."""
    name, _, replace = spec.partition(":")
    try:
        with open_regular(path) as stream:
            if name == "auto":
                name = _encoding_by_mark(stream.peek(4)[:4])
            decoder = codecs.getincrementaldecoder(name)("replace" if replace else "strict")
            changes.encodings[codecs.lookup(name).name] += 1
            unify = _LineEnds(changes)
            offset, lines, first = 0, 0, True
            while True:
                raw = stream.read(CHUNK_BYTES)
                pending = decoder.getstate()[0]
                try:
                    piece = decoder.decode(raw, final=not raw)
                except UnicodeDecodeError as error:
                    at = offset - len(pending) + error.start
                    before = error.object[: error.start].decode(name, "replace")
                    line = lines + unify.pending + before.count("\n") + 1
                    raise not_encoded(path, spec, name, at, line) from None
                offset += len(raw)
                if first and piece:
                    first = False
                    if name in ("utf-16", "utf-32") or piece[0] == "\ufeff":
                        changes.byte_order_marks += 1
                        piece = piece.removeprefix("\ufeff")
                if replace:
                    changes.replaced += piece.count("\ufffd")
                piece = unify(piece, final=not raw)
                lines += piece.count("\n")
                yield piece, len(raw)
                if not raw:
                    return
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _encoding_by_mark(front: bytes) -> str:
    """The encoding that a byte order mark at the front names; without one, UTF-8."""
    if front.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if front.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8"


class _LineEnds:
    """Turns CRLF and lone CR into LF, across the pieces of a text.

    Attributes:
        pending: whether a CR at the end of the last piece waits for what follows it.
    """

    def __init__(self, changes: Changes) -> None:
        self.pending = False
        self._changes = changes

    def __call__(self, piece: str, final: bool) -> str:
        if self.pending:
            piece = "\r" + piece
        self.pending = piece.endswith("\r") and not final
        if self.pending:
            piece = piece[:-1]
        if "\r" in piece:
            crlf = piece.count("\r\n")
            self._changes.crlf += crlf
            self._changes.lone_cr += piece.count("\r") - crlf
            piece = with_line_feeds(piece)
        return piece


@dataclass(frozen=True)
class Scan:
    """What one pass over a text found.

    Attributes:
        characters: how many there are.
        lines: how many, a last one without a line end included.
        sha256: of the characters, encoded as UTF-8.
        symbols: the different characters in code-point order.
        counts: how often each symbol occurs, (len(symbols),) int64.
        pieces: (offset in characters, text): the whole text, or evenly spread parts of it.
        complete: whether `pieces` is the whole text.
        changes: what reading changed, in words.
    """

    characters: int
    lines: int
    sha256: str
    symbols: str
    counts: NDArray[np.int64]
    pieces: tuple[tuple[int, str], ...]
    complete: bool
    changes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text, where `pieces` holds all of it."""
        assert self.complete
        return "".join(piece for _, piece in self.pieces)


MOST_NULS = 1000
"""A text may hold one NUL character in so many. With more it is taken for something else, unless
its encoding was named."""


def scan(text: Text, progress: ProgressCallback = silent) -> Scan:
    """Read a text once, and refuse what cannot be learned from.

    Raises:
        UserError: a file cannot be read or decoded; the text is empty, blank, one symbol only, or
            no text.
    """
    changes = Changes()
    digest = hashlib.sha256()
    counts = np.zeros(0x110000, dtype=np.int64)
    keep_every = -(-text.size // WHOLE_BYTES)
    pieces: list[tuple[int, str]] = []
    characters, allowed = 0, False
    for number, chunk in enumerate(text.chunks(changes, progress)):
        encoded = chunk.encode()
        digest.update(encoded)
        found = np.bincount(code_points(chunk))
        counts[: len(found)] += found
        if keep_every <= 1 or number % keep_every == 0:
            pieces.append((characters, chunk))
        characters += len(chunk)
        if counts[0] * MOST_NULS > characters and not allowed:
            refusal = many_nuls(text.files)
            allowed = text.encoding != "auto" and not refusal.offer
            if not allowed:
                raise refusal
    symbols = np.flatnonzero(counts)
    where = repr(text.sources[0] if len(text.sources) == 1 else text.name)
    alphabet = "".join(map(chr, symbols))
    if not alphabet.strip():
        raise UserError(f"{where} is {'blank' if alphabet else 'empty'}: nothing to learn from")
    if len(alphabet) == 1:
        raise UserError(f"{where} holds one symbol only, {one_line(alphabet)!r}: nothing to learn")
    tail = pieces[-1][1] if keep_every <= 1 else chunk
    return Scan(
        characters=characters,
        lines=int(counts[10]) + (not tail.endswith("\n")),
        sha256=digest.hexdigest(),
        symbols=alphabet,
        counts=counts[symbols],
        pieces=tuple(pieces),
        complete=keep_every <= 1,
        changes=tuple(changes.in_words()),
    )
