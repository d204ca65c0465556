"""A text as token ids: in memory when it is small, in a file of the cache when it is large.

The file's name is made from the text's and the tokenizer's content, and its own content is compared
with the sha256 that was written down beside it: a damaged one is made anew. It comes into being all
at once: two processes may encode the same text at the same time, and one may be killed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuigpt.config import bpe_size
from tuigpt.errors import UserError
from tuigpt.files import (
    UnreadableFile,
    folder_in_the_making,
    open_regular,
    read_record,
    write_json,
)
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.disk_cache import ABOUT, TOKENS, Cache
from tuigpt.text.read import ProgressCallback, Scan, Text, silent
from tuigpt.text.split import TokenIds
from tuigpt.text.tokenizer import CharTokenizer, Ids, Tokenizer


class About(msgspec.Struct, frozen=True):
    """What is written down beside the tokens of a text.

    Attributes:
        text: its name.
        sha256: of its characters, encoded as UTF-8.
        characters: how many it has.
        tokens: how many it became.
        dtype: of each token's number, by numpy's name.
        vocab_size: number of different tokens.
        tokens_sha256: of the file with the tokens; "" in entries of the first version.
    """

    text: str
    sha256: str
    characters: int
    tokens: int
    dtype: Literal["|u1", "<u2", "<u4"]
    vocab_size: int
    tokens_sha256: str = ""


def read_about(folder: Path) -> About:
    """What an entry of the cache tells of itself.

    Raises:
        UnreadableFile: it cannot be read.
    """
    return read_record(folder / ABOUT, About)


class TokenFile:
    """Token ids on disk, read where they are needed.

    The file is mapped anew for each reading: so the pages that were read do not add up in memory,
    however long a training draws windows from it. It stays open, so deleting it does no harm.
    """

    def __init__(self, folder: Path, scan: Scan, tokenizer: Tokenizer) -> None:
        """Open an entry of the cache, and read it once to be sure of it (1 GB in about a second).

        Raises:
            OSError, ValueError, UnreadableFile: it is not there, or is not what was written of
                this text.
        """
        about = read_about(folder)
        self.dtype = _dtype(tokenizer.vocab_size)
        self._length = about.tokens
        asked = (scan.sha256, scan.characters, tokenizer.vocab_size, self.dtype.str)
        if (about.sha256, about.characters, about.vocab_size, about.dtype) != asked:
            raise ValueError("the entry is of another text")
        self._stream = open_regular(folder / TOKENS)
        if os.fstat(self._stream.fileno()).st_size != self._length * self.dtype.itemsize:
            raise ValueError("the token file has another length")
        if hashlib.file_digest(self._stream, "sha256").hexdigest() != about.tokens_sha256:
            raise ValueError("the token file has changed")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice | NDArray[np.int64]) -> Ids:
        mapped = np.memmap(self._stream, self.dtype, "r", shape=(self._length,))
        return np.asarray(mapped[part]).astype(np.int64)


def learn_tokenizer(
    spec: str, scan: Scan, n_train: int, progress: ProgressCallback = silent
) -> Tokenizer:
    """Make the tokenizer of a text.

    Args:
        spec: "char", or "bpe:N". Characters are those of the whole text; pairs are learned from
            the training part, of a large text from the pieces of it that `scan` kept.
        n_train: number of characters of the training part.
    """
    size = bpe_size(spec)
    if size is None:
        return CharTokenizer(scan.symbols)
    progress(f"learning {size:,} tokens", 0, 1)
    texts = (piece[: max(0, n_train - start)] for start, piece in scan.pieces)
    return BPETokenizer.train(texts, size)


def encode(
    text: Text, scan: Scan, tokenizer: Tokenizer, cache: Cache, progress: ProgressCallback = silent
) -> TokenIds:
    """The token ids of a text.

    Raises:
        UserError: the text has changed since it was scanned, is gone, or there is no room.
    """
    if scan.complete:
        return tokenizer.encode(scan.text)
    folder = cache.folder / f"tokens-{_key(scan, tokenizer)}"
    opened = _open(folder, scan, tokenizer, cache)
    if opened is not None:
        return opened
    cache.remove(folder)  # there may be a damaged one
    dtype = _dtype(tokenizer.vocab_size)
    one_each = isinstance(tokenizer, CharTokenizer)
    # A token of several characters is rarely worth less than two.
    expected = scan.characters * dtype.itemsize // (1 if one_each else 2)
    try:
        cache.make_room(expected)
        with folder_in_the_making(folder) as draft:
            about = _write(text, scan, tokenizer, draft / TOKENS, dtype, progress)
            write_json(draft / ABOUT, about)
    except FileExistsError:
        pass  # somebody else was faster, with the same content
    except OSError as error:
        where = error.filename or str(cache.folder)
        raise UserError(f"cannot write {str(where)!r}: {error.strerror or error}") from None
    opened = _open(folder, scan, tokenizer, cache)
    if opened is None:
        raise UserError(
            f"{str(folder)!r} vanished while it was being used, or something else is in its place:"
            " delete it and try again"
        )
    return opened


def _key(scan: Scan, tokenizer: Tokenizer) -> str:
    made_of = json.dumps([scan.sha256, tokenizer.to_dict()], sort_keys=True)
    return hashlib.sha256(made_of.encode("utf-8")).hexdigest()[:32]


def _dtype(vocab_size: int) -> np.dtype[Any]:
    return np.dtype("u1" if vocab_size <= 1 << 8 else "<u2" if vocab_size <= 1 << 16 else "<u4")


def _open(folder: Path, scan: Scan, tokenizer: Tokenizer, cache: Cache) -> TokenFile | None:
    try:
        opened = TokenFile(folder, scan, tokenizer)
    except (OSError, ValueError, UnreadableFile):
        return None
    cache.touch(folder)
    return opened


def _write(
    text: Text,
    scan: Scan,
    tokenizer: Tokenizer,
    path: Path,
    dtype: np.dtype[Any],
    progress: ProgressCallback,
) -> About:
    digest, tokens_digest = hashlib.sha256(), hashlib.sha256()

    def hashed() -> Iterator[str]:
        for chunk in text.chunks(progress=progress, doing="encoding the text"):
            digest.update(chunk.encode())
            yield chunk

    changed = UserError(f"{text.name!r} has changed while it was being read; try again")
    n_tokens = 0
    with open(path, "wb") as out:
        try:
            for ids in tokenizer.encode_stream(hashed()):
                content = ids.astype(dtype).tobytes()
                out.write(content)
                tokens_digest.update(content)
                n_tokens += len(ids)
        except ValueError:  # a character that the scan did not see
            raise changed from None
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != scan.sha256:
        raise changed
    return About(
        text=text.name,
        sha256=scan.sha256,
        characters=scan.characters,
        tokens=n_tokens,
        dtype=dtype.str,  # type: ignore[arg-type]  # one of the three
        vocab_size=tokenizer.vocab_size,
        tokens_sha256=tokens_digest.hexdigest(),
    )
