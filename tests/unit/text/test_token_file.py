"""Encoded texts on disk: found again, made anew when damaged, never half there."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tuigpt.errors import UserError
from tuigpt.text import read as text_module
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import open_text
from tuigpt.text.read import Scan, Text, scan
from tuigpt.text.token_file import encode
from tuigpt.text.tokenizer import CharTokenizer

VERSE = "அகர முதல எழுத்தெல்லாம்\nto be or not to be,\nthat is the question 👍🏽\n" * 200


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


def change_about(entry: Path, **values: object) -> None:
    path = entry / "about.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | values), "utf-8")


def swap_two_tokens(entry: Path) -> None:
    path = entry / "tokens.bin"
    tokens = bytearray(path.read_bytes())
    tokens[10], tokens[11] = tokens[11], tokens[10]
    assert tokens != path.read_bytes()
    path.write_bytes(tokens)


def put_a_pipe(entry: Path) -> None:
    (entry / "about.json").unlink()
    os.mkfifo(entry / "about.json")


def put_a_folder(entry: Path) -> None:
    (entry / "tokens.bin").unlink()
    (entry / "tokens.bin").mkdir()


def put_a_link(entry: Path) -> None:
    moved = entry.parent / "elsewhere"
    entry.rename(moved)
    (moved / "tokens.bin").write_bytes(b"foreign")
    entry.symlink_to(moved)


DAMAGES: list[Callable[[Path], object]] = [
    lambda entry: (entry / "tokens.bin").write_bytes(b"short"),
    lambda entry: (entry / "tokens.bin").unlink(),
    lambda entry: (entry / "about.json").unlink(),
    lambda entry: (entry / "about.json").write_bytes(b"{"),
    lambda entry: (entry / "about.json").write_bytes(b"[" * 100_000),
    lambda entry: (entry / "about.json").write_bytes(b"\xff"),
    lambda entry: change_about(entry, tokens="many"),
    lambda entry: change_about(entry, tokens=-5),
    lambda entry: change_about(entry, dtype="O"),
    lambda entry: change_about(entry, sha256="0" * 64),
    lambda entry: change_about(entry, tokens_sha256=""),
    swap_two_tokens,
    put_a_pipe,
    put_a_folder,
    put_a_link,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_token_file_is_made_again(
    tmp_path: Path, large: tuple[Text, Scan], damage: Callable[[Path], object]
) -> None:
    text, found = large
    cache, tokenizer = Cache(tmp_path / "cache"), CharTokenizer(found.symbols)
    wanted = encode(text, found, tokenizer, cache)[:]
    (entry,) = cache.entries()
    damage(entry.path)
    assert np.array_equal(encode(text, found, tokenizer, cache)[:], wanted)
    told: list[str] = []
    encode(text, found, tokenizer, cache, lambda what, done, total: told.append(what))
    assert not told  # it is whole again


def test_what_others_put_in_the_place_of_an_entry_stays(
    tmp_path: Path, large: tuple[Text, Scan]
) -> None:
    text, found = large
    cache, tokenizer = Cache(tmp_path / "cache"), CharTokenizer(found.symbols)
    encode(text, found, tokenizer, cache)
    (entry,) = cache.entries()
    (entry.path / "diary.txt").write_text("mine")
    (entry.path / "about.json").unlink()
    with pytest.raises(UserError, match="something else is in its place"):
        encode(text, found, tokenizer, cache)
    assert (entry.path / "diary.txt").read_text() == "mine"


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
