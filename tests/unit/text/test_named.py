"""Texts by name: fetched once, checked, kept; and what is said when they cannot be."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.named import (
    BUILT_IN,
    TINY_SHAKESPEARE,
    NotFetched,
    Remote,
    open_text,
    reopen,
)
from tuigpt.text.read import Text, scan

CONTENT = b"First Citizen:\nBefore we proceed any further, hear me speak.\n" * 5000


class Shelf:
    """A web server on this machine, with one text."""

    def __init__(self) -> None:
        self.asked = 0
        self.content = CONTENT
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shelf.asked += 1
                if self.path != "/input.txt":
                    self.send_error(404)
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(shelf.content)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def remote(self, path: str = "/input.txt") -> Remote:
        url = f"http://127.0.0.1:{self._server.server_port}{path}"
        return Remote("tinybard", url, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()
    yield shelf
    shelf.close()


def opened(remote: Remote, cache: Path, fetch: bool = True) -> Text:
    return open_text([remote.name], cache=cache, fetch=fetch, remotes={remote.name: remote})


def test_a_text_is_fetched_once_with_progress(tmp_path: Path, shelf: Shelf) -> None:
    told: list[tuple[str, int, int]] = []
    remote = shelf.remote()
    text = open_text(
        [remote.name], cache=tmp_path / "cache", remotes={remote.name: remote},
        progress=lambda *step: told.append(step),
    )  # fmt: skip
    assert told[-1] == ("fetching tinybard", len(CONTENT), len(CONTENT))
    assert scan(text).text == CONTENT.decode()
    assert (text.name, text.sources) == ("tinybard", ("tinybard",))
    opened(remote, tmp_path / "cache", fetch=False)
    assert shelf.asked == 1


def test_a_pipe_in_the_place_of_a_fetched_text_is_not_waited_for(
    tmp_path: Path, shelf: Shelf
) -> None:
    os.mkfifo(tmp_path / "tinybard.txt")
    assert scan(opened(shelf.remote(), tmp_path)).text == CONTENT.decode()


def test_nothing_is_fetched_unasked(tmp_path: Path, shelf: Shelf) -> None:
    with pytest.raises(NotFetched, match="would come from 127.0.0.1"):
        opened(shelf.remote(), tmp_path, fetch=False)
    assert shelf.asked == 0


@pytest.mark.parametrize("content", [CONTENT[:-9], CONTENT + b"x" * 999_999, b"<html>"])
def test_another_content_is_refused(tmp_path: Path, shelf: Shelf, content: bytes) -> None:
    shelf.content = content
    with pytest.raises(UserError, match="is not the tinybard that was pinned"):
        opened(shelf.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_a_copy_does(tmp_path: Path) -> None:
    nowhere = Remote("tinybard", "http://127.0.0.1:1/input.txt",
                     hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))  # fmt: skip
    with pytest.raises(UserError) as caught:
        opened(nowhere, tmp_path)
    said = str(caught.value)
    assert "cannot fetch tinybard from http://127.0.0.1:1" in said and "refused" in said
    assert str(tmp_path / "tinybard.txt") in said
    (tmp_path / "tinybard.txt").write_bytes(CONTENT)
    assert scan(opened(nowhere, tmp_path)).characters == len(CONTENT)


def test_a_page_that_is_gone_is_said_in_one_line(tmp_path: Path, shelf: Shelf) -> None:
    with pytest.raises(UserError, match="Not Found"):
        opened(shelf.remote("/gone.txt"), tmp_path)


def test_tiny_shakespeare_is_pinned() -> None:
    assert TINY_SHAKESPEARE.url.startswith("https://")
    assert TINY_SHAKESPEARE.size == 1_115_394 and len(TINY_SHAKESPEARE.sha256) == 64


def test_names_and_files_join(tmp_path: Path) -> None:
    (tmp_path / "end.txt").write_text("The end.\n", encoding="utf-8")
    text = open_text([BUILT_IN, str(tmp_path / "end.txt")], cache=tmp_path)
    assert text.name == "shakespeare+1"
    assert text.sources == (BUILT_IN, str(tmp_path / "end.txt"))
    assert "".join(text.chunks()).endswith("\n\n\nThe end.\n")


def test_an_own_file_that_a_name_hides_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_text([BUILT_IN], cache=tmp_path).notes == ()
    (tmp_path / BUILT_IN).write_text("mine, all mine\n", encoding="utf-8")
    text = open_text([BUILT_IN], cache=tmp_path)
    assert text.sources == (BUILT_IN,)
    assert text.notes == (
        "shakespeare is the text that goes by this name; your own is ./shakespeare",
    )
    mine = open_text([f"./{BUILT_IN}"], cache=tmp_path)
    assert "".join(mine.chunks()) == "mine, all mine\n" and mine.notes == ()


def test_a_text_that_was_moved_is_read_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    path.write_bytes("naïve café".encode("cp1252"))
    facts = CorpusFacts(sources=[str(tmp_path / "old.txt")], encoding="cp1252")
    moved = reopen(facts, cache=tmp_path, moved_to=[str(path)])
    assert "".join(moved.chunks()) == "naïve café"


def test_a_run_finds_its_text_again(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes("naïve café".encode("cp1252"))
    facts = CorpusFacts(sources=[str(path)], encoding="cp1252", path=str(path))
    assert "".join(reopen(facts, cache=tmp_path).chunks()) == "naïve café"
    assert reopen(CorpusFacts(path=BUILT_IN), cache=tmp_path).sources == (BUILT_IN,)
    assert reopen(CorpusFacts(name=BUILT_IN), cache=tmp_path).sources == (BUILT_IN,)
    with pytest.raises(UserError, match="does not say where its text 'poems' is"):
        reopen(CorpusFacts(name="poems"), cache=tmp_path)
