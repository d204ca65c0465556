"""Byte-level byte-pair encoding, learned from the text that it is for.

Tokens 0 to 255 are the single bytes, so every text has tokens; each further token joins two
earlier ones. Pairs are joined only within a word, a number, a run of signs or a run of blanks,
with the blank before it. A combining mark belongs to its letter: without that, Tamil or Hindi
would fall into pieces. Pairs are learned and joined by the `tokenizers` library, imported on use;
decoding needs nothing but the table of bytes.

Tokenizers of GPT-2's kind, which are imported, cut words by GPT-2's own rule. It goes by classes of
Unicode, so the library cuts them as well.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tuigpt.text.tokenizer import (
    LONGEST_SEGMENT,
    MOST_SPECIAL,
    BPERecord,
    Ids,
    TextStream,
    Tokenizer,
    segments,
)

if TYPE_CHECKING:
    import tokenizers

_BLANKS = r" \t\r\x0b\x0c\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SIGNS = (
    r"!-/:-@\[-`{-~\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u05be\u060c\u061b\u061f\u06d4"
    r"\u0964\u0965\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3020\u3030\ufe10-\ufe1f"
    r"\ufe30-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
WORDS = re.compile(
    rf" ?[^{_BLANKS}{_SIGNS}0-9\n]{{1,64}}| ?[0-9]{{1,64}}| ?[{_SIGNS}]{{1,64}}|\n{{1,64}}"
    rf"|[{_BLANKS}]{{1,64}}(?![^{_BLANKS}\n])|[{_BLANKS}]{{1,64}}"
)
"""What pairs are joined within: GPT-2's rule, spelled out so that no version of Unicode changes
it. What is no blank, digit or sign counts as a letter: marks and emoji too. The bound keeps a text
without blanks from being one word of a million letters."""

LONGEST_TOKEN = 1 + 64 * 4
"""Bytes of the longest token there can be: a blank and 64 characters of four bytes. Merges of a
hostile file that double their length would fill the memory within forty lines."""

WORDS_RULE, GPT2_RULE = 1, 2
"""Numbers of the rule `WORDS` and of GPT-2's, kept with the pairs that were learned under it."""

_SAFE_CUT = re.compile(r"[^\W_](?:\n(?=[^\W_])|(?= [^\W_]))")
"""Where GPT-2's rule begins a new word whatever stands farther off."""

_KNOWN_WORDS = 200_000
"""Words whose tokens are remembered; memory stays constant, however long the text."""


class BPETokenizer(Tokenizer):
    """Byte-level byte-pair encoding.

    Attributes:
        merges: the pairs of tokens that are joined, the first learned first.
        words: number of the rule by which words are cut.
        special: texts that are a token each, wherever they stand; the last tokens, in this order.
    """

    def __init__(
        self,
        merges: Sequence[tuple[int, int]],
        words: int = WORDS_RULE,
        special: Sequence[str] = (),
    ) -> None:
        """Raises ValueError when a merge names a token that is not there yet, when a token is
        longer than `LONGEST_TOKEN`, or when a special one is none."""
        self.merges = tuple((int(a), int(b)) for a, b in merges)
        self.words, self.special = words, tuple(special)
        self._tokens_of: dict[str, bytes] = {}  # of words seen before, as 4-byte numbers
        self._bytes = [bytes([b]) for b in range(256)]
        known = set(self._bytes)
        for a, b in self.merges:
            if not (0 <= a < len(self._bytes) and 0 <= b < len(self._bytes)):
                raise ValueError("a merge joins tokens that are not there yet")
            joined = self._bytes[a] + self._bytes[b]
            if len(joined) > LONGEST_TOKEN:
                raise ValueError(f"a merge makes a token of more than {LONGEST_TOKEN} bytes")
            if joined not in known:  # two pairs can make the same bytes: one token
                known.add(joined)
                self._bytes.append(joined)
        if len(self.special) > MOST_SPECIAL:
            raise ValueError(f"more than {MOST_SPECIAL:,} special tokens")
        for text in self.special:
            as_bytes = text.encode("utf-8", "replace")
            if not text or len(as_bytes) > LONGEST_TOKEN or set(text) & set(" \n\t\r"):
                raise ValueError(f"{text[:40]!r} is no special token")
            if as_bytes in known or words != GPT2_RULE:
                raise ValueError(f"{text[:40]!r} is a token already, or cannot be one here")
            known.add(as_bytes)
            self._bytes.append(as_bytes)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> BPETokenizer:
        """Learn from texts. The same texts always give the same tokenizer.

        Args:
            vocab_size: number of tokens wanted, 256 for the bytes included. There are fewer when
                no pair is left that occurs twice.
        """
        from tokenizers import models, trainers

        engine = _engine(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            show_progress=False,
            initial_alphabet=list(_SHOWN),
        )
        engine.train_from_iterator(map(WORDS.findall, segments(texts)), trainer)
        return cls.from_shown(json.loads(engine.to_str())["model"]["merges"])

    @classmethod
    def from_shown(
        cls,
        merges: Iterable[Sequence[str]],
        words: int = WORDS_RULE,
        special: Sequence[str] = (),
    ) -> BPETokenizer:
        """Read merges as the `tokenizers` library writes them: see `shown_merges`.

        Raises:
            ValueError: a merge is no pair, or joins tokens that are not there yet.
        """
        id_of = {bytes([b]): b for b in range(256)}
        pairs = []
        try:
            for left, right in merges:
                a, b = _to_bytes(left), _to_bytes(right)
                pairs.append((id_of[a], id_of[b]))
                id_of.setdefault(a + b, len(id_of))
        except KeyError:
            raise ValueError("a merge joins tokens that are not there yet") from None
        return cls(pairs, words, special)

    def shown_tokens(self) -> list[str]:
        """All tokens as the `tokenizers` library writes them: one character for each byte, but
        special ones as they are."""
        count = len(self._bytes) - len(self.special)
        return [*map(_to_shown, self._bytes[:count]), *self.special]

    def shown_merges(self) -> list[tuple[str, str]]:
        """The merges as the `tokenizers` library writes them."""
        return [(_to_shown(self._bytes[a]), _to_shown(self._bytes[b])) for a, b in self.merges]

    def to_dict(self) -> dict[str, Any]:
        record = BPERecord(list(self.merges), self.words, list(self.special))
        return dict(msgspec.to_builtins(record))

    @property
    def vocab_size(self) -> int:
        return len(self._bytes)

    @property
    def opening(self) -> str:
        return "\n"

    @property
    def token_characters(self) -> Ids:
        # In UTF-8 each character has exactly one byte that is no continuation byte (10xxxxxx).
        return np.array([sum(b & 0xC0 != 0x80 for b in token) for token in self._bytes], np.int64)

    def split_unknown(self, text: str) -> tuple[str, str]:
        kept = text.encode("utf-8", "ignore").decode("utf-8")  # only lone surrogates have no bytes
        return kept, "".join(dict.fromkeys(c for c in text if "\ud800" <= c <= "\udfff"))

    def encode(self, text: str) -> Ids:
        return np.concatenate([np.empty(0, np.int64), *self.encode_stream([text])])

    def encode_stream(self, chunks: Iterable[str]) -> Iterator[Ids]:
        if self.words == GPT2_RULE:
            yield from map(self._encode_as_gpt2, _safe_pieces(chunks))
            return
        known = self._tokens_of
        for segment in segments(chunks):
            words = WORDS.findall(segment)
            new = [word for word in set(words) if word not in known]
            if new:
                if len(known) + len(new) > _KNOWN_WORDS:
                    known.clear()
                    new = list(set(words))
                self._look_up(new)
            tokens = np.frombuffer(b"".join(map(known.__getitem__, words)), np.uint32)
            yield tokens.astype(np.int64)

    def _encode_as_gpt2(self, text: str) -> Ids:
        text.encode("utf-8")  # a lone surrogate is our ValueError, not the library's
        return np.array(self._encoder.encode(text, add_special_tokens=False).ids, np.int64)

    def _look_up(self, words: list[str]) -> None:
        for word in words:
            word.encode("utf-8")  # a lone surrogate is our ValueError, not the library's
        for word, encoding in zip(words, self._encoder.encode_batch_fast(words), strict=True):
            self._tokens_of[word] = np.array(encoding.ids, np.uint32).tobytes()

    def decode(self, ids: Ids | Sequence[int]) -> str:
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", "replace")

    def stream(self) -> TextStream:
        return _ByteStream(self._bytes)

    @cached_property
    def _encoder(self) -> tokenizers.Tokenizer:
        from tokenizers import models

        vocab = {token: i for i, token in enumerate(self.shown_tokens())}
        engine = _engine(
            models.BPE(vocab=vocab, merges=self.shown_merges()), self.words == GPT2_RULE
        )
        engine.add_special_tokens(list(self.special))
        return engine


class _ByteStream(TextStream):
    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        return self._decoder.decode(b"".join(self._bytes[i] for i in ids))

    def flush(self) -> str:
        return self._decoder.decode(b"", final=True)


def _engine(model: Any, cuts_words: bool = False) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, pre_tokenizers

    engine = Tokenizer(model)
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cuts_words)
    return engine


def _safe_pieces(chunks: Iterable[str]) -> Iterator[str]:
    """A text in pieces that end where GPT-2's rule begins a new word; without such a place it is
    one piece."""
    rest = ""
    for chunk in chunks:
        rest += chunk
        if len(rest) > LONGEST_SEGMENT:
            ends = [found.end() for found in _SAFE_CUT.finditer(rest)]
            if ends:
                yield rest[: ends[-1]]
                rest = rest[ends[-1] :]
    if rest:
        yield rest


def _shown_bytes() -> str:
    """The character that stands for each byte inside the library, as GPT-2 chose them."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return "".join(chr(b if b in plain else next(others)) for b in range(256))


_SHOWN = _shown_bytes()
_BYTE_OF = {shown: byte for byte, shown in enumerate(_SHOWN)}


def _to_shown(token: bytes) -> str:
    return "".join(_SHOWN[byte] for byte in token)


def _to_bytes(shown: str) -> bytes:
    return bytes(_BYTE_OF[character] for character in shown)
