"""Splits, windows, token files: the same data in memory and on disk, for every tokenizer."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tuigpt.errors import UserError
from tuigpt.text import disk_cache as cache_module
from tuigpt.text import read as text_module
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import open_text
from tuigpt.text.read import Scan, Text, scan
from tuigpt.text.split import check_split, train_characters, train_tokens
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
    assert not found.whole
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


@given(st.integers(0, 300), st.text("aé👍 \n", min_size=1, max_size=80))
def test_a_border_never_cuts_a_character(border: int, text: str) -> None:
    tokenizer = BPETokenizer([])
    ids = tokenizer.encode(text)
    at = train_tokens(ids, tokenizer.token_characters, border)
    assert tokenizer.decode(ids[:at]) == text[:border]


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
    said = str(caught.value)
    n_train = train_characters(length, fraction)
    assert f"{n_train:,} characters to train on" in said
    assert not fraction or f"{length - n_train:,} for validation" in said
    _, _, advice = said.partition("; ")
    if length > 2:
        assert "--" in advice
    for way in advice.removeprefix("try ").split(", or "):
        new_fraction = re.search(r"--val-fraction ([\d.]+)", way)
        new_block = re.search(r"--block-size (\d+)", way)
        if new_fraction or new_block:
            attempt(
                float(new_fraction[1]) if new_fraction else fraction,
                int(new_block[1]) if new_block else block,
            )


def test_an_encoded_text_is_found_again(tmp_path: Path, large: tuple[Text, Scan]) -> None:
    text, found = large
    cache = Cache(tmp_path / "cache")
    told: list[str] = []
    tokenizer = CharTokenizer(found.symbols)
    first = encode(text, found, tokenizer, cache, lambda what, done, total: told.append(what))
    assert set(told) == {"encoding the text"}
    told.clear()
    again = encode(text, found, tokenizer, cache, lambda what, done, total: told.append(what))
    assert not told and np.array_equal(first[:], again[:])
    assert len(cache.entries()) == 1
    cache.clear()
    assert cache.entries() == [] and again[:5].tolist() == first[:5].tolist()


def test_writers_at_the_same_time_agree(tmp_path: Path, large: tuple[Text, Scan]) -> None:
    text, found = large
    cache, tokenizer = Cache(tmp_path / "cache"), CharTokenizer(found.symbols)
    together = threading.Barrier(4)
    results = []

    def work() -> None:
        together.wait()
        results.append(encode(text, found, tokenizer, cache)[:])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(ids, tokenizer.encode(VERSE)) for ids in results)
    assert [path.name[:7] for path in cache.folder.iterdir()] == ["tokens-"]


def test_a_damaged_token_file_is_made_again(tmp_path: Path, large: tuple[Text, Scan]) -> None:
    text, found = large
    cache, tokenizer = Cache(tmp_path / "cache"), CharTokenizer(found.symbols)
    wanted = encode(text, found, tokenizer, cache)[:]
    (entry,) = cache.entries()
    (entry.path / "tokens.bin").write_bytes(b"short")
    assert np.array_equal(encode(text, found, tokenizer, cache)[:], wanted)


def test_an_interrupted_encoding_leaves_nothing(tmp_path: Path, large: tuple[Text, Scan]) -> None:
    text, found = large
    cache = Cache(tmp_path / "cache")

    def interrupt(what: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(text, found, CharTokenizer(found.symbols), cache, interrupt)
    assert list(cache.folder.iterdir()) == []


def test_a_text_that_changes_meanwhile_is_noticed(tmp_path: Path, large: tuple[Text, Scan]) -> None:
    text, found = large
    for changed in (VERSE.replace("be", "eb"), VERSE + "\u0e01"):
        text.files[0].write_text(changed, "utf-8")
        with pytest.raises(UserError, match="has changed while"):
            encode(text, found, CharTokenizer(found.symbols), Cache(tmp_path / "cache"))
        assert list((tmp_path / "cache").iterdir()) == []


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=250)
    for number, name in enumerate(("old", "used", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens.bin").write_bytes(b"x" * 100)
        for path in (tmp_path / name / "tokens.bin", tmp_path / name):
            os.utime(path, (1000 + number, 1000 + number))
    os.utime(tmp_path / "old", (2000, 2000))
    assert [entry.path.name for entry in cache.entries()] == ["old", "new", "used"]
    cache.make_room(50)
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}
    with pytest.raises(UserError, match="no room"):
        cache.make_room(1 << 60)


def test_what_a_killed_writer_left_is_swept_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".partial-dead", ".partial-live"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens.bin").write_bytes(b"x")
    for path in (tmp_path / ".partial-dead" / "tokens.bin", tmp_path / ".partial-dead"):
        os.utime(path, (1000, 1000))
    Cache(tmp_path).make_room(1)
    assert [path.name for path in tmp_path.iterdir()] == [".partial-live"]
    monkeypatch.setattr(cache_module, "ABANDONED_AFTER", -1.0)
    assert Cache(tmp_path).clear() == 0
    assert list(tmp_path.iterdir()) == []
