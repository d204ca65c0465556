"""Real words: which words of a text occur in another one, wherever their case differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


FEWEST = 3
"""Words of which a share says something."""


def words_of(text: str) -> list[str]:
    """The words of a text, in order, in lower case: letters, and apostrophes between them."""
    return _WORD.findall(text.lower())


def share_of_words(prompt: str, text: str, known: Set[str]) -> float | None:
    """The share of the words written after a prompt that are known, from 0 to 1.

    A word that the prompt began counts; the last one, which may be cut, does not.

    Returns:
        None where there are fewer than `FEWEST`.
    """
    whole = prompt + text
    matches = [m for m in _WORD.finditer(whole) if len(prompt) < m.end() < len(whole)]
    if len(matches) < FEWEST:
        return None
    return sum(match.group().lower() in known for match in matches) / len(matches)


class WordSearch:
    """Looks for words in a text that streams by.

    Attributes:
        found: those that occurred.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.found: set[str] = set()
        self._missing = set(words)

    def through(self, chunks: Iterable[str]) -> Iterator[str]:
        """Pass the text on, in the same pieces, and look at each."""
        rest = ""
        for chunk in chunks:
            if self._missing:
                piece = rest + chunk
                # The last word may go on in the next piece; nothing is as long as a line of words.
                end = max(piece.rfind(" "), piece.rfind("\n")) + 1
                if not end and len(piece) > 10_000:
                    end = len(piece)
                rest = piece[end:]
                self._look(piece[:end])
            yield chunk
        self._look(rest)

    def _look(self, text: str) -> None:
        new = self._missing.intersection(words_of(text))
        self.found |= new
        self._missing -= new
