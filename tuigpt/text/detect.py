"""Bytes that are not the text they were taken for: what they may be instead.

A guess is never acted on: it is offered, and the user confirms it by naming the encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tuigpt.errors import Setting, UserError
from tuigpt.files import open_regular
from tuigpt.wording import one_line

CANDIDATES = (
    "cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp850", "mac_roman",
)  # fmt: skip
"""Encodings that texts are found in; each is a superset of its ISO or national standard."""

_LATIN = ("cp1250", "cp1252", "cp1254", "cp1257")
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüÿœß¡¿«»‹›„“”‚‘’–—…€°ºª\xa0")

SAMPLE_BEFORE, SAMPLE_AFTER = 16 << 10, 48 << 10
"""Bytes looked at on both sides of the first that does not fit."""


class OfferError(UserError):
    """A text that can be read after all, if the user agrees.

    Attributes:
        offer: the encoding to name in order to agree, or "".
    """

    def __init__(self, *parts: str | Setting, offer: str) -> None:
        super().__init__(*parts)
        self.offer = offer


def not_encoded(path: Path, spec: str, encoding: str, offset: int, line: int) -> OfferError:
    """What to say of a file that is not in the encoding it was read in.

    Args:
        spec: the encoding as asked for; "auto" lets us look for another one.
        encoding: the one that was tried.
        offset: of the first byte that does not fit, from the beginning of the file.
        line: number of its line, from 1.
    """
    start = max(0, offset - SAMPLE_BEFORE)
    with open_regular(path) as stream:
        stream.seek(start)
        sample = stream.read(SAMPLE_BEFORE + SAMPLE_AFTER)
    bad = sample[offset - start : offset - start + 1]
    where = (
        f"{str(path)!r} is not {encoding.upper()}: byte {bad[0] if bad else 0:#04x}"
        f" at offset {offset:,}, line {line:,}"
    )
    unmarked = spec == "auto" and encoding == "utf-8"
    if unmarked and _looks_binary(sample):
        return OfferError(f"{str(path)!r} is no text: it looks like a binary file", offer="")
    guess = _guess(sample) if unmarked else ""
    if not guess:
        replace = f"{encoding}:replace"
        return OfferError(
            f"{where}; name its encoding with ", Setting("encoding"), ", or read each such byte as"
            " \ufffd with ", Setting("encoding", replace), offer=replace,
        )  # fmt: skip
    around = sample[max(0, offset - start - 24) : offset - start + 24].decode(guess, "replace")
    return _looks_like(guess, f"{where}; it looks like {guess}", around)


def many_nuls(paths: Sequence[Path]) -> OfferError:
    """What to say of a text with many NUL characters: UTF-16 without its mark, or no text."""
    for path in paths:
        with open_regular(path) as stream:
            sample = stream.read(SAMPLE_AFTER)
        if b"\0" in sample:
            break
    half = max(1, len(sample) // 2)
    for guess, zero, letter in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        if sample[zero::2].count(0) > 0.4 * half and sample[letter::2].count(0) < 0.1 * half:
            return _looks_like(
                guess,
                f"{str(path)!r} looks like {guess} without a byte order mark",
                sample[:48].decode(guess, "replace"),
            )
    return OfferError(
        f"{str(path)!r} looks like no text: it holds many NUL characters; if it is one, name its"
        " encoding, such as ", Setting("encoding", "utf-8"), offer="",
    )  # fmt: skip


def _looks_like(guess: str, what: str, around: str) -> OfferError:
    return OfferError(
        f"{what} ({one_line(around.strip())!r}): if that reads right, say ",
        Setting("encoding", guess), offer=guess,
    )  # fmt: skip


def _looks_binary(sample: bytes) -> bool:
    controls = sum(map(sample.count, (bytes([b]) for b in range(32) if b not in b"\t\n\r\f\b\x1b")))
    return b"\0" in sample or controls > 0.02 * len(sample)


def _guess(sample: bytes) -> str:
    """The likeliest encoding of bytes that are not UTF-8, or "" for UTF-8 with a few bad bytes."""
    read = sample.decode("utf-8", "replace")
    if sum(c > "\x7f" and c != "\ufffd" for c in read) >= read.count("\ufffd"):
        return ""
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=list(CANDIDATES))
    best = matches.best()
    if best is None:
        return ""
    equals = {e for m in matches if (m.chaos, m.coherence) == (best.chaos, best.coherence)
              for e in m.could_be_from_charset}  # fmt: skip
    # Most texts with Latin letters are in this one, and the library cannot tell it from others.
    if "cp1252" in equals or best.encoding in _LATIN and _reads_as_western(sample):
        return "cp1252"
    return best.encoding


def _reads_as_western(sample: bytes) -> bool:
    """Whether bytes read as cp1252 give letters of the languages that it is made for."""
    others = [c for c in sample.decode("cp1252", "replace") if c > "\x7f"]
    return sum(c.lower() not in _WESTERN for c in others) <= 0.05 * len(others)
