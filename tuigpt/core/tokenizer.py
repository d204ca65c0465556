"""Text to token ids and back. Needs numpy, not torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def _code_points(text: str) -> NDArray[np.uint32]:
    # A command line can hold lone surrogates; they pass here and are then simply unknown.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


class CharTokenizer:
    """One token for each different character, numbered in code-point order.

    Attributes:
        vocab: the characters; `vocab[i]` is token i.
    """

    def __init__(self, vocab: str) -> None:
        """Raises ValueError when the vocabulary is empty or not strictly ascending."""
        self.vocab = vocab
        self._known = _code_points(vocab)
        if not vocab or (np.diff(self._known.astype(np.int64)) <= 0).any():
            raise ValueError("a character vocabulary must be ascending, each character once")

    @classmethod
    def from_text(cls, text: str) -> CharTokenizer:
        """The tokenizer whose vocabulary is the sorted set of the text's characters."""
        return cls("".join(sorted(set(text))))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CharTokenizer:
        """Read what `to_dict` gave.

        Raises:
            ValueError: the record describes no character tokenizer.
        """
        vocab = record.get("vocab")
        if record.get("type") != "char" or not isinstance(vocab, str):
            raise ValueError(f"unknown tokenizer type {record.get('type')!r}")
        return cls(vocab)

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make this tokenizer again, as JSON can hold it."""
        return {"type": "char", "vocab": self.vocab}

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    def split_unknown(self, text: str) -> tuple[str, str]:
        """The text without the characters that have no token, and those characters, each once."""
        known = set(self.vocab)
        kept = "".join(c for c in text if c in known)
        return kept, "".join(dict.fromkeys(c for c in text if c not in known))

    def encode(self, text: str) -> Ids:
        """Token ids of the text, (len(text),).

        Raises:
            ValueError: the text holds a character outside the vocabulary.
        """
        points = _code_points(text)
        ids = np.searchsorted(self._known, points)
        ids[ids == len(self._known)] = 0
        if (self._known[ids] != points).any():
            raise ValueError(f"not in the vocabulary: {self.split_unknown(text)[1]!r}")
        return ids.astype(np.int64, copy=False)

    def decode(self, ids: Ids | list[int]) -> str:
        """The text of the token ids."""
        return "".join(self.vocab[i] for i in ids)
