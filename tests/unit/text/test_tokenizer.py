"""Both tokenizers give back every text that they take, whole and in pieces."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.tokenizer import (
    LONGEST_SEGMENT,
    CharTokenizer,
    Tokenizer,
    segments,
    tokenizer_from_dict,
)

SCRIPTS = {
    "tamil": "அகர முதல எழுத்தெல்லாம் ஆதி\nபகவன் முதற்றே உலகு.\n",
    "chinese": "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。\n",
    "arabic": "بِسْمِ ٱللَّٰهِ مَرْحَبًا بِالْعَالَمِ\nكيف حالك اليوم؟\n",
    "emoji": "Ana: 👨‍👩‍👧‍👦 ❤️ 🏳️‍🌈 👍🏽 🇮🇳\nBo: 😀\n",
    "decomposed": "cafe\u0301 caf\u00e9 A\u030a \u00c5\n",
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
BPE = BPETokenizer.train(["".join(SCRIPTS.values()) * 20], 600)


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest) -> str:
    return SCRIPTS[request.param] * 20


def both(text: str) -> list[Tokenizer]:
    return [CharTokenizer.from_text(text), BPETokenizer.train([text], 400)]


def test_each_script_comes_back(script: str) -> None:
    for tokenizer in both(script):
        assert tokenizer.decode(tokenizer.encode(script)) == script


@given(TEXTS.filter(bool))
def test_every_text_comes_back_by_characters(text: str) -> None:
    tokenizer = CharTokenizer.from_text(text)
    ids = tokenizer.encode(text)
    assert len(ids) == len(text) and tokenizer.decode(ids) == text


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_every_text_comes_back_by_pairs(text: str) -> None:
    ids = BPE.encode(text)
    assert BPE.decode(ids) == text
    assert int(BPE.token_characters[ids].sum()) == len(text)


@given(st.lists(st.integers(0, BPE.vocab_size - 1), max_size=60), st.integers(1, 5))
def test_a_stream_says_what_decode_says(ids: list[int], step: int) -> None:
    stream = BPE.stream()
    pieces = [stream.push(ids[at : at + step]) for at in range(0, len(ids), step)]
    assert "".join(pieces) + stream.flush() == BPE.decode(ids)


def test_half_a_character_waits_for_the_other_half() -> None:
    stream = BPE.stream()
    first, *rest = "தி".encode()
    assert stream.push([first]) == ""
    assert stream.push(rest) == "தி"
    assert stream.push([first]) == "" and stream.flush() == "\ufffd"


def test_pairs_join_letters_with_their_marks() -> None:
    text = SCRIPTS["tamil"] * 50
    tokenizer = BPETokenizer.train([text], 600)
    tokens = {tokenizer.decode([i]) for i in tokenizer.encode(text)}
    assert "எழுத்தெல்லாம்" in {token.strip() for token in tokens}


def test_the_same_text_teaches_the_same_pairs(script: str) -> None:
    assert BPETokenizer.train([script], 400).merges == BPETokenizer.train([script], 400).merges


def test_a_tokenizer_survives_json(script: str) -> None:
    for tokenizer in both(script):
        again = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict())))
        assert again.vocab_size == tokenizer.vocab_size
        assert again.encode(script).tolist() == tokenizer.encode(script).tolist()


def test_the_pieces_of_a_text_do_not_change_its_tokens() -> None:
    text = (SCRIPTS["tamil"] + "\n\n" + "x" * 300 + " ") * 900 + "y" * (2 * LONGEST_SEGMENT)
    whole = BPE.encode(text).tolist()
    for size in (1_000, 65_537, 100_003):
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        assert np.concatenate(list(BPE.encode_stream(chunks))).tolist() == whole


@given(st.text("ab \n", max_size=50))
def test_segments_lose_nothing(text: str) -> None:
    longer = text * (1 + 3 * LONGEST_SEGMENT // max(1, len(text)))
    cut = list(segments([longer[:77], longer[77:]]))
    assert "".join(cut) == longer
    assert all(0 < len(segment) <= LONGEST_SEGMENT for segment in cut)


def test_unknown_characters_are_named_once() -> None:
    tokenizer = CharTokenizer("abc")
    assert tokenizer.split_unknown("a?b🙂c?\ud800") == ("abc", "?🙂\ud800")
    with pytest.raises(ValueError, match="not in the vocabulary"):
        tokenizer.encode("abd")
    assert BPE.split_unknown("a🙂\ud800b\ud800") == ("a🙂b", "\ud800")
    with pytest.raises(ValueError):
        BPE.encode("\ud800")


def test_characters_are_numbered_in_code_point_order() -> None:
    tokenizer = CharTokenizer.from_text("hello world🙂")
    assert tokenizer.vocab == " dehlorw🙂"
    assert tokenizer.opening == " " and CharTokenizer("\nab").opening == "\n"


DOUBLING = [[256 + i, 256 + i] for i in range(40)]
"""Merges of which each doubles the longest token."""


def test_a_tokenizer_that_cannot_be_is_refused() -> None:
    records: list[Any] = [
        {}, {"type": "sentencepiece"}, {"type": "char"}, {"type": "bpe"},
        {"type": "char", "vocab": 5}, {"type": "char", "vocab": ""}, [], None, "char",
        {"type": "bpe", "words": 1, "merges": [[97, 98]] * 300_000},
        {"type": "bpe", "words": 1, "merges": [[97, 10**400]]},
        {"type": "bpe", "words": 1, "merges": [[97.5, 98]]},
        {"type": "bpe", "words": 1, "merges": [[0, 999]]},
        {"type": "bpe", "words": 3, "merges": []},
        {"type": "bpe", "words": 1, "merges": [], "special": ["<end>"]},
        {"type": "bpe", "words": 2, "merges": [], "special": ["a b"]},
        {"type": "bpe", "words": 2, "merges": [], "special": ["<end>", "<end>"]},
        {"type": "bpe", "words": 2, "merges": [], "special": ["<end>" * 100]},
        {"type": "bpe", "words": 1, "merges": [[97, 97], *DOUBLING]},
        {"type": "bpe", "words": 1, "merges": 5},
    ]  # fmt: skip
    for record in records:
        with pytest.raises(ValueError):
            tokenizer_from_dict(record)
    for vocab in ("", "aba"):
        with pytest.raises(ValueError):
            CharTokenizer(vocab)


def test_the_vocabulary_numbers_the_tokens() -> None:
    """Other programs number characters as they please."""
    tokenizer = CharTokenizer("bé\n朝a")
    assert tokenizer.encode("a朝b").tolist() == [4, 3, 0]
    assert tokenizer.decode([1, 2]) == "é\n" and tokenizer.split_unknown("xaé")[1] == "x"
