"""Several texts beside a training text, in one reading."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.generation.copies import compare
from tuigpt.generation.protocol import TextFacts
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
