"""Several texts beside a training text, in one reading."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.generation.copies import UNSEEN_CHARACTERS, compare, unseen
from tuigpt.generation.protocol import TextFacts, Unseen
from tuigpt.runs.record import CorpusFacts

TEXT = "one two three\nfour five six\n"


def test_each_text_has_its_own_share(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    sha256 = hashlib.sha256(TEXT.encode()).hexdigest()
    facts = CorpusFacts(path=str(path), sources=[str(path)], sha256=sha256)
    texts = ["one two three", "xx ONE seven five", "", "four five six\0four", "12 12"]
    found = compare(facts, texts, 6, tmp_path)
    assert found[0] == TextFacts(1.0, 1.0)
    assert found[1] == TextFacts(0.0, 0.5)
    assert found[2] == TextFacts(0.0, None) == found[4]
    assert found[3].copied == pytest.approx(13 / 18) and found[3].real_words == 1.0
    path.write_text("another")
    with pytest.raises(UserError, match="has changed"):
        compare(facts, texts, 6, tmp_path)


@pytest.mark.parametrize(
    ("learned", "begins"), [(10, "four five"), (14, "four five"), (15, "b" * 9), (31, "b" * 9)]
)
def test_what_was_not_learned_from_begins_with_a_whole_line(
    tmp_path: Path, learned: int, begins: str
) -> None:
    text = TEXT + "b" * 600 + "\n"
    path = tmp_path / "a.txt"
    path.write_text(text)
    facts = CorpusFacts(
        name="verse", path=str(path), sources=[str(path)],
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        train_characters=learned, val_characters=len(text) - learned,
    )  # fmt: skip
    found = unseen(facts, tmp_path)
    assert isinstance(found, Unseen) and found.corpus == "verse"
    assert found.text.startswith(begins) and len(found.text) <= UNSEEN_CHARACTERS
    assert found.text in text[learned:]
    with pytest.raises(UserError, match="where its validation text begins"):
        unseen(CorpusFacts(name="verse"), tmp_path)
