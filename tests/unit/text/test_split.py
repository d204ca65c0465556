"""Where a text is split, and what is said when a part is too short."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuigpt.errors import Setting, UserError
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.split import check_split, train_characters, train_tokens


@given(st.integers(0, 300), st.text("aé👍 \n", min_size=1, max_size=80))
def test_a_border_never_cuts_a_character(border: int, text: str) -> None:
    tokenizer = BPETokenizer([])
    ids = tokenizer.encode(text)
    at = train_tokens(ids, tokenizer.token_characters, border)
    assert tokenizer.decode(ids[:at]) == text[:border]


def as_flag(setting: Setting) -> str:
    return f"--{setting.name} {setting.value}"


@pytest.mark.parametrize(
    ("length", "fraction", "block"),
    [(40, 0.1, 64), (1000, 0.1, 256), (1000, 0.9, 256), (2, 0.5, 1), (3, 0.1, 8), (513, 0.1, 256),
     (300, 0, 500), (2, 0, 2)],
)  # fmt: skip
def test_a_short_text_is_refused_with_choices_that_work(
    length: int, fraction: float, block: int
) -> None:
    def attempt(fraction: float, block: int) -> None:
        n_train = train_characters(length, fraction)
        check_split(n_train, length - n_train, block)

    with pytest.raises(UserError) as caught:
        attempt(fraction, block)
    said = caught.value.spelled(as_flag)
    n_train = train_characters(length, fraction)
    assert f"{n_train:,} characters to train on" in said
    assert not fraction or f"{length - n_train:,} for validation" in said
    _, _, advice = said.partition("; ")
    if length > 2:
        assert "--" in advice
    for way in advice.removeprefix("try ").split(", or "):
        new_fraction = re.search(r"--val_fraction ([\d.]+)", way)
        new_block = re.search(r"--block_size (\d+)", way)
        if new_fraction or new_block:
            attempt(
                float(new_fraction[1]) if new_fraction else fraction,
                int(new_block[1]) if new_block else block,
            )
