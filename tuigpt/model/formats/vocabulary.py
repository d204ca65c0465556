"""From the tables of characters that other programs keep to our tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tuigpt.files import read_bytes
from tuigpt.model.formats.pickles import MOST_BYTES, read_pickle
from tuigpt.text.tokenizer import CharTokenizer


def from_tables(stoi: Any, itos: Any) -> CharTokenizer:
    """The tokenizer of two tables: from character to id, and from id to character.

    Raises:
        ValueError: they are no tables of characters, or contradict each other.
    """
    if not isinstance(stoi, dict) or not isinstance(itos, dict | list | tuple):
        raise ValueError("its vocabulary is not two tables, stoi and itos")
    if not isinstance(itos, dict):
        itos = dict(enumerate(itos))
    if len(stoi) != len(itos):
        raise ValueError(
            f"its vocabulary contradicts itself: stoi has {len(stoi):,} characters, itos"
            f" {len(itos):,}"
        )
    vocab = []
    for number in range(len(itos)):
        character = itos.get(number)
        if not isinstance(character, str):
            raise ValueError(f"its vocabulary has no token {number}")
        if len(character) != 1:
            raise ValueError(
                f"its vocabulary is not of characters: token {number} is {character[:40]!r}"
            )
        if stoi.get(character) != number or isinstance(stoi[character], bool):
            raise ValueError(
                f"its vocabulary contradicts itself: token {number} is {character!r}, which stoi"
                f" calls {stoi.get(character)!r:.40}"
            )
        vocab.append(character)
    return CharTokenizer("".join(vocab))


def read_meta(path: Path) -> CharTokenizer:
    """The tokenizer of nanoGPT's meta.pkl.

    Raises:
        UnreadableFile: it cannot be read.
        ValueError: it holds no vocabulary of characters, or what no vocabulary does.
    """
    content = read_pickle(read_bytes(path, MOST_BYTES))
    if not isinstance(content, dict) or not {"stoi", "itos"} <= content.keys():
        raise ValueError("it holds no vocabulary (stoi and itos)")
    return from_tables(content["stoi"], content["itos"])
