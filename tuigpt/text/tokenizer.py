"""Text to token ids and back. Needs numpy, not torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class TextStream(ABC):
    """Turns tokens that come one after another into text that can be shown at once.

    The pieces, joined, are what `Tokenizer.decode` gives for all the tokens together.
    """

    @abstractmethod
    def push(self, ids: Iterable[int]) -> str:
        """The text that these tokens complete; the start of a character waits for its rest."""

    @abstractmethod
    def flush(self) -> str:
        """What is left at the end: U+FFFD for a character that was never completed, or nothing."""


class Tokenizer(ABC):
    """What every tokenizer can do.

    For each text `t` without unknown characters, `decode(encode(t)) == t`. Nothing is normalised:
    composed and decomposed letters stay what they are.
    """

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of different tokens."""

    @property
    @abstractmethod
    def opening(self) -> str:
        """One known character, to begin from where there is no prompt: a newline if it can be."""

    @property
    @abstractmethod
    def token_characters(self) -> Ids:
        """How many characters begin in each token, (vocab_size,): nats per token become nats per
        character with it."""

    @abstractmethod
    def split_unknown(self, text: str) -> tuple[str, str]:
        """The text without the characters that have no token, and those characters, each once."""

    @abstractmethod
    def encode(self, text: str) -> Ids:
        """Token ids of the text, (n,).

        Raises:
            ValueError: the text holds a character that has no token.
        """

    def encode_stream(self, chunks: Iterable[str]) -> Iterator[Ids]:
        """Token ids of a text that comes in pieces: joined, those of the text encoded whole.

        Raises:
            ValueError: as `encode` does.
        """
        return map(self.encode, chunks)

    @abstractmethod
    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of the token ids; bytes that make no character become U+FFFD."""

    @abstractmethod
    def stream(self) -> TextStream:
        """A decoder for tokens that come one after another."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make this tokenizer again, as JSON can hold it."""


MOST_MERGES = 1 << 18
"""Four for each token that byte-pair encoding can have here: several pairs may make one token."""


MOST_SPECIAL = 1000
"""Tokens of byte-pair encoding that stand for a text of their own, such as <|endoftext|>."""


class CharRecord(msgspec.Struct, frozen=True, tag_field="type", tag="char"):
    """A `CharTokenizer` in a checkpoint."""

    vocab: Annotated[str, msgspec.Meta(min_length=1, max_length=0x110000)]


class BPERecord(msgspec.Struct, frozen=True, tag_field="type", tag="bpe", omit_defaults=True):
    """A `BPETokenizer` in a checkpoint.

    Attributes:
        words: number of the rule that a text was cut into words by.
        special: texts that are a token each.
    """

    merges: Annotated[list[tuple[int, int]], msgspec.Meta(max_length=MOST_MERGES)]
    words: int
    special: Annotated[list[str], msgspec.Meta(max_length=MOST_SPECIAL)] = []


def tokenizer_from_dict(record: object) -> Tokenizer:
    """Make the tokenizer that some tokenizer's `to_dict` describes.

    Raises:
        ValueError: it describes none that this tuigpt knows.
    """
    try:
        found = msgspec.convert(record, CharRecord | BPERecord)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"its tokenizer cannot be read: {error}") from None
    if isinstance(found, CharRecord):
        return CharTokenizer(found.vocab)
    from tuigpt.text.bpe import GPT2_RULE, WORDS_RULE, BPETokenizer

    if found.words not in (WORDS_RULE, GPT2_RULE):
        raise ValueError("its tokenizer was made by a newer tuigpt")
    return BPETokenizer(found.merges, found.words, found.special)


def code_points(text: str) -> NDArray[np.uint32] | NDArray[np.uint8]:
    """The text's code points, (len(text),)."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    # A command line can hold lone surrogates; they pass here and are then simply unknown.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


class CharTokenizer(Tokenizer):
    """One token for each different character.

    Attributes:
        vocab: the characters; `vocab[i]` is token i.
    """

    def __init__(self, vocab: str) -> None:
        """Raises ValueError when the vocabulary is empty or has a character twice."""
        self.vocab = vocab
        known = code_points(vocab)
        if not vocab or len(set(vocab)) < len(vocab):
            raise ValueError("a character vocabulary must have each character once")
        # One entry more than there are known points: whatever lies above them lands there.
        self._id_of = np.full(max(int(known.max()), 0x7F) + 2, -1, dtype=np.int64)
        self._id_of[known] = np.arange(len(known))

    @classmethod
    def from_text(cls, text: str) -> CharTokenizer:
        """The tokenizer whose vocabulary is the sorted set of the text's characters."""
        return cls("".join(sorted(set(text))))

    def to_dict(self) -> dict[str, Any]:
        return dict(msgspec.to_builtins(CharRecord(self.vocab)))

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    @property
    def opening(self) -> str:
        return "\n" if "\n" in self.vocab else self.vocab[0]

    @property
    def token_characters(self) -> Ids:
        return np.ones(self.vocab_size, dtype=np.int64)

    def split_unknown(self, text: str) -> tuple[str, str]:
        known = set(self.vocab)
        kept = "".join(c for c in text if c in known)
        return kept, "".join(dict.fromkeys(c for c in text if c not in known))

    def encode(self, text: str) -> Ids:
        points = code_points(text)
        if points.dtype != np.uint8:
            points = np.minimum(points, len(self._id_of) - 1)
        ids: Ids = self._id_of[points]
        if len(ids) and ids.min() < 0:
            raise ValueError(f"not in the vocabulary: {self.split_unknown(text)[1]!r}")
        return ids

    def decode(self, ids: Ids | Sequence[int]) -> str:
        return "".join(self.vocab[i] for i in ids)

    def stream(self) -> TextStream:
        return _CharStream(self)


class _CharStream(TextStream):
    def __init__(self, tokenizer: CharTokenizer) -> None:
        self._vocab = tokenizer.vocab

    def push(self, ids: Iterable[int]) -> str:
        return "".join(self._vocab[i] for i in ids)

    def flush(self) -> str:
        return ""


LONGEST_SEGMENT = 1 << 16
"""Most characters that are cut into tokens at a time."""


def segments(chunks: Iterable[str]) -> Iterator[str]:
    """Cut a text into segments of at most `LONGEST_SEGMENT` characters.

    Where it cuts depends on the text alone, not on the chunks it comes in: behind the last line
    end that fits, else before the last space, else anywhere.
    """
    rest = ""
    for chunk in chunks:
        rest, at = rest + chunk, 0
        while len(rest) - at > LONGEST_SEGMENT:
            cut = _cut(rest[at : at + LONGEST_SEGMENT + 1])
            yield rest[at : at + cut]
            at += cut
        rest = rest[at:]
    if rest:
        yield rest


def _cut(window: str) -> int:
    """Where to end a segment in a window that is one character longer than a segment may be."""
    at = window.rfind("\n", 0, LONGEST_SEGMENT)
    # Within a run of line ends a cut would split a token; the run before it is as good.
    while at >= 0 and window[at + 1] == "\n":
        at = window.rfind("\n", 0, at)
    if at >= 0:
        return at + 1
    at = window.rfind(" ", 1)
    while at > 0 and window[at - 1].isspace():
        at = window.rfind(" ", 1, at)
    return at if at > 0 else LONGEST_SEGMENT
