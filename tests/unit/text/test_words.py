"""Real words: found wherever the pieces of a text are cut."""

from __future__ import annotations

import pytest

from tuigpt.text.words import WordSearch, share_of_words, words_of


def test_what_a_word_is() -> None:
    assert words_of("ROMEO: I'll be 'there' — à 3pm, l’été") == [
        "romeo", "i'll", "be", "there", "à", "pm", "l’été",
    ]  # fmt: skip


def test_the_share_of_words_that_are_known() -> None:
    known = {"the", "other", "king"}
    assert share_of_words("Bring the oth", "er king, the kingg and thx k", known) == 3 / 6
    assert share_of_words("", "the king", known) is None  # of which the last may be cut


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_words_are_found_across_pieces(size: int) -> None:
    text = "To be, or not to be:\nthat is the Question"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    search = WordSearch(["to", "question", "quest", "tobe", "that"])
    assert list(search.through(pieces)) == pieces
    assert search.found == {"to", "question", "that"}
