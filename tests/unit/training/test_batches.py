"""Splits, windows, token files: the same data in memory and on disk, for every tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tuigpt.text import read as text_module
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import open_text
from tuigpt.text.read import Scan, Text, scan
from tuigpt.text.split import train_characters
from tuigpt.text.token_file import TokenFile, encode, learn_tokenizer
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer
from tuigpt.training.batches import Corpus

CPU = torch.device("cpu")
VERSE = "அகர முதல எழுத்தெல்லாம்\nto be or not to be,\nthat is the question 👍🏽\n" * 200
PAIRS = BPETokenizer.train([VERSE], 400)


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Text, Scan]:
    """A text that counts as too large for memory."""
    monkeypatch.setattr(text_module, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(text_module, "WHOLE_BYTES", 4000)
    path = tmp_path / "large.txt"
    path.write_text(VERSE, "utf-8")
    text = open_text([str(path)], cache=tmp_path)
    found = scan(text)
    assert not found.complete
    return text, found


@pytest.mark.parametrize("spec", ["char", "bpe:300"])
def test_a_token_file_gives_the_batches_of_memory(
    tmp_path: Path, large: tuple[Text, Scan], spec: str
) -> None:
    text, found = large
    n_train = train_characters(found.characters, 0.1)
    tokenizer = learn_tokenizer(spec, found, n_train)
    ids = encode(text, found, tokenizer, Cache(tmp_path / "cache"))
    assert isinstance(ids, TokenFile)
    on_disk = Corpus(ids, tokenizer, n_train, 16, CPU, resident_bytes=0)
    loaded = Corpus(ids, tokenizer, n_train, 16, CPU)
    in_memory = Corpus.from_text(VERSE, tokenizer, 0.1, 16, CPU)
    generators = [torch.Generator().manual_seed(7) for _ in range(3)]
    for corpus, generator in zip((on_disk, loaded), generators[:2], strict=True):
        assert (corpus.n_train, corpus.n_val) == (in_memory.n_train, in_memory.n_val)
        for (a, b), (c, d) in zip(corpus.val_batches(4), in_memory.val_batches(4), strict=True):
            assert torch.equal(a, c) and torch.equal(b, d)
        generators[2].manual_seed(7)
        for _ in range(3):
            a, b = corpus.batch(5, generator)
            c, d = in_memory.batch(5, generators[2])
            assert a.dtype == torch.int64 and torch.equal(a, c) and torch.equal(b, d)


@pytest.mark.parametrize("tokenizer", [CharTokenizer.from_text(VERSE), PAIRS])
@pytest.mark.parametrize("fraction", [0, 0.1, 0.5, 0.97])
def test_every_tokenizer_is_measured_on_the_same_text(
    tokenizer: Tokenizer, fraction: float
) -> None:
    corpus = Corpus.from_text(VERSE, tokenizer, fraction, 8, CPU)
    ids = tokenizer.encode(VERSE)
    border = train_characters(len(VERSE), fraction)
    before, after = tokenizer.decode(ids[: corpus.n_train]), tokenizer.decode(ids[corpus.n_train :])
    assert before + after == VERSE
    assert 0 <= len(before) - border <= tokenizer.token_characters.max()


@pytest.mark.parametrize("tokenizer", [CharTokenizer.from_text(VERSE), PAIRS])
def test_validation_covers_each_token_once(tokenizer: Tokenizer) -> None:
    corpus = Corpus.from_text(VERSE, tokenizer, 0.1, 32, CPU)
    val = torch.from_numpy(tokenizer.encode(VERSE))[corpus.n_train :]
    batches = list(corpus.val_batches(3))
    assert torch.equal(torch.cat([t.flatten() for _, t in batches]), val[1:])
    assert len(batches) == corpus.n_val_batches(3)
    some = list(corpus.val_batches(3, max_tokens=100))
    assert sum(t.numel() for _, t in some) <= 100
    assert len(some) == corpus.n_val_batches(3, max_tokens=100)


def test_the_smallest_legal_sizes_work() -> None:
    tokenizer = CharTokenizer("ab")
    corpus = Corpus.from_text("abba", tokenizer, 0.5, 1, CPU)
    inputs, targets = corpus.batch(3, torch.Generator())
    assert inputs.tolist() == [[0]] * 3 and targets.tolist() == [[1]] * 3
    assert [(i.tolist(), t.tolist()) for i, t in corpus.val_batches(2)] == [([[1]], [[0]])]
    exact = Corpus.from_text("ab" * 33, tokenizer, 0.5, 32, CPU)
    assert exact.batch(2, torch.Generator())[0].shape == (2, 32)
    assert exact.n_val_batches(9) == 1
    without = Corpus.from_text("ab", tokenizer, 0, 1, CPU)
    assert without.n_val == 0 and list(without.val_batches(1)) == []
