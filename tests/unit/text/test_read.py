"""Any file is read right, or refused in one clear line."""

from __future__ import annotations

import codecs
import hashlib
import os
from pathlib import Path

import pytest

from tuigpt.config import TrainConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.text import read as text_module
from tuigpt.text.detect import OfferError
from tuigpt.text.named import open_text
from tuigpt.text.read import SEPARATOR, Scan, scan

PROSE = "the cat sat on a mat,\nnaïve café “fine” – €5\n" * 300


def read(*paths: Path | str, encoding: str = "auto") -> Scan:
    return scan(open_text([str(p) for p in paths], encoding, cache=Path("/nowhere")))


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(*paths: Path | str, encoding: str = "auto") -> UserError:
    with pytest.raises(UserError) as caught:
        read(*paths, encoding=encoding)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_utf_8_whatever_the_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    found = read(write(tmp_path, "a.txt", PROSE))
    assert found.text == PROSE and found.changes == ()
    assert found.sha256 == hashlib.sha256(PROSE.encode()).hexdigest()
    assert (found.characters, found.lines) == (len(PROSE), 600)
    assert found.symbols == "".join(sorted(set(PROSE)))
    assert found.counts.tolist() == [PROSE.count(c) for c in found.symbols]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (codecs.BOM_UTF8 + PROSE.encode(), ["byte order mark dropped"]),
        (PROSE.replace("\n", "\r\n").encode(), ["600 CRLF became LF"]),
        (PROSE.replace("\n", "\r").encode(), ["600 lone CR became LF"]),
        (PROSE.encode("utf-16"), ["read as utf-16", "byte order mark dropped"]),
        (codecs.BOM_UTF16_BE + PROSE.encode("utf-16-be"),
         ["read as utf-16", "byte order mark dropped"]),
        (PROSE.encode("utf-32"), ["read as utf-32", "byte order mark dropped"]),
    ],
    ids=["mark", "crlf", "cr", "utf-16", "utf-16-be", "utf-32"],
)  # fmt: skip
def test_marks_and_line_ends_leave_no_trace_but_in_words(
    tmp_path: Path, raw: bytes, words: list[str]
) -> None:
    found = read(write(tmp_path, "a.txt", raw))
    assert found.text == PROSE
    assert list(found.changes) == words


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_where_a_read_ends_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(text_module, "CHUNK_BYTES", size)
    wanted = "é\n\n🙂x\ny\n\nz\n"
    path = write(tmp_path, "a.txt", codecs.BOM_UTF8 + "é\r\n\r\n🙂x\ry\r\r\nz\r".encode())
    assert read(path).text == wanted
    assert read(write(tmp_path, "b.txt", wanted.encode("utf-16"))).text == wanted


def test_another_encoding_is_guessed_but_only_read_when_confirmed(tmp_path: Path) -> None:
    path = write(tmp_path, "old.txt", PROSE.encode("cp1252"))
    error = refusal(path)
    assert isinstance(error, OfferError) and error.offer == "cp1252"
    assert "offset 24, line 2" in str(error) and "encoding cp1252" in str(error)
    assert "naïve café" in str(error)  # what it would read like
    found = read(path, encoding="cp1252")
    assert found.text == PROSE and found.changes == ("read as cp1252",)


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("cp1251", "Привет, как дела? Сегодня хорошая погода.\n"),
        ("cp932", "これは日本語のテキストです。\n"),
        ("gb18030", "今天天气很好，我们去公园玩吧。\n"),
        ("cp1252", "Déjà vu : la forêt était silencieuse, où l'été dernier ça rêvait de Noël.\n"),
        ("cp1252", "Déjà vu\n"),
        ("cp1252", "Grüße aus München! Die Straße ist schön, die Häuser sind größer.\n"),
        ("cp1250", "Zażółć gęślą jaźń. Święty Mikołaj przyniósł dzieciom piękne prezenty.\n"),
        ("cp1257", "Žalias ąžuolas šlama prie kelio, o mergaitė ėjo į mokyklą ir dainavo.\n"),
    ],
)
def test_common_encodings_are_recognised(tmp_path: Path, encoding: str, line: str) -> None:
    error = refusal(write(tmp_path, "a.txt", (line * 50).encode(encoding)))
    assert isinstance(error, OfferError) and error.offer == encoding


def test_mixed_bytes_are_placed_and_read_as_replacements_on_request(tmp_path: Path) -> None:
    raw = PROSE.encode() + "caf\u00e9\n".encode("latin-1") + "café\n".encode()
    path = write(tmp_path, "mixed.txt", raw)
    error = refusal(path)
    assert f"offset {len(PROSE.encode()) + 3:,}, line 601" in str(error)
    assert isinstance(error, OfferError) and error.offer == "utf-8:replace"
    found = read(path, encoding="utf-8:replace")
    assert found.text == PROSE + "caf\ufffd\ncafé\n"
    assert found.changes == ("1 byte sequence that did not fit became \ufffd",)


def test_utf_16_without_a_mark_is_offered(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", ("plain words\n" * 50).encode("utf-16-le"))
    error = refusal(path)
    assert isinstance(error, OfferError) and error.offer == "utf-16-le"
    assert read(path, encoding="utf-16-le").text == "plain words\n" * 50


def test_marked_utf_16_with_an_odd_byte_has_a_way_out(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", PROSE.encode("utf-16") + b"x")
    error = refusal(path)
    assert isinstance(error, OfferError) and error.offer == "utf-16:replace"
    found = read(path, encoding=error.offer)
    assert found.text == PROSE + "\ufffd"
    assert "1 byte sequence that did not fit became \ufffd" in found.changes


def test_a_text_with_nuls_is_read_if_its_encoding_is_named(tmp_path: Path) -> None:
    text = ("a" * 98 + "\0\n") * 500
    path = write(tmp_path, "a.txt", text)
    error = refusal(path)
    assert error.spelled(lambda s: f"--{s.name} {s.value}").endswith("such as --encoding utf-8")
    assert read(path, encoding="utf-8").text == text
    path = write(tmp_path, "b.txt", ("plain words\n" * 500).encode("utf-16-le"))
    assert "utf-16-le" in str(refusal(path, encoding="utf-8"))
    assert "b.txt" in str(refusal(write(tmp_path, "0.txt", PROSE), path))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n" * 5000, "is blank"),
        (b"a" * 5000, "one symbol only, 'a'"),
        (b"\0" * 5000, "many NUL characters"),
        (bytes(range(256)) * 50, "binary file"),
        (b"text\xff\xfe\x00\x01" * 50, "binary file"),
        (codecs.BOM_UTF8, "is empty"),
        (b"good\n\xe4\xb8", "offset 5, line 2"),  # ends in the middle of a character
    ],
    ids=["empty", "blank", "one", "nul", "binary", "binary-2", "mark-only", "cut"],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in str(refusal(write(tmp_path, "a.txt", content)))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "no text at" in str(refusal(tmp_path / "nothing.txt"))
    assert "folder without a text" in str(refusal(tmp_path / "."))
    (tmp_path / "link.txt").symlink_to(tmp_path / "nothing.txt")
    assert "no text at" in str(refusal(tmp_path / "link.txt"))
    assert "no regular file" in str(refusal("/dev/zero"))
    assert "null byte" in str(refusal("a\0b"))
    assert "cannot read" in str(refusal("x" * 5000))
    os.mkfifo(tmp_path / "pipe.txt")
    assert "no regular file" in str(refusal(tmp_path / "pipe.txt"))
    (tmp_path / "link.txt").unlink()
    assert "no regular file" in str(refusal(tmp_path))
    assert "path is empty" in str(refusal(""))
    if os.geteuid():
        path = write(tmp_path, "locked.txt", PROSE)
        path.chmod(0)
        assert "Permission denied" in str(refusal(path))


def test_a_file_deleted_in_between_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", PROSE)
    text = open_text([str(path)], cache=tmp_path)
    path.unlink()
    with pytest.raises(UserError, match="no text at"):
        scan(text)


@pytest.mark.parametrize("name", ["a b.txt", "[red] a[0].txt", "🙂 தமிழ்.txt", "-x.txt", "'\".txt"])
def test_any_file_name_works(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, name, PROSE)
    monkeypatch.setenv("HOME", str(tmp_path))
    text = open_text([f"~/{name}"], cache=tmp_path)
    assert text.sources == (str(tmp_path / name),) and text.name == Path(name).stem
    assert scan(text).text == PROSE


def test_a_folder_joins_its_texts_by_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("z.txt", "b/2.md", "b/10.TXT", "a.csv", ".hidden.txt", ".git/x.txt"):
        write(tmp_path, name, f"this is {name}\n")
    found = read(tmp_path)
    wanted = SEPARATOR.join(f"this is {name}\n" for name in ("b/10.TXT", "b/2.md", "z.txt"))
    assert found.text == wanted


def test_files_join_in_the_order_given(tmp_path: Path) -> None:
    one = write(tmp_path, "one.txt", codecs.BOM_UTF8 + b"one\r\n")
    two = write(tmp_path, "two.txt", "two\n".encode("utf-16"))
    text = open_text([str(two), str(one)], cache=tmp_path)
    assert text.name == "two+1"
    assert scan(text).text == f"two\n{SEPARATOR}one\n"


def test_a_large_text_is_held_in_spread_pieces_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_module, "CHUNK_BYTES", 100)
    monkeypatch.setattr(text_module, "WHOLE_BYTES", 1000)
    plain = "".join(f"line {n:>6}\n" for n in range(1000))
    found = read(write(tmp_path, "a.txt", plain))
    assert not found.complete and found.characters == len(plain) and found.lines == 1000
    assert sum(len(piece) for _, piece in found.pieces) <= 1100
    assert all(plain[at : at + len(piece)] == piece for at, piece in found.pieces)
    assert found.pieces[-1][0] > 0.8 * len(plain)


def test_progress_reaches_the_size_of_all_files(tmp_path: Path) -> None:
    one, two = write(tmp_path, "1.txt", PROSE), write(tmp_path, "2.txt", PROSE)
    told: list[tuple[str, int, int]] = []
    scan(open_text([str(one), str(two)], cache=tmp_path), lambda *step: told.append(step))
    total = 2 * len(PROSE.encode())
    assert told[-1][1:] == (total, total)


@pytest.mark.parametrize("spec", ["klingon", "", "rot13", "hex", "utf-7", "cp1252:drop", "é"])
def test_an_encoding_that_is_none_is_refused_at_once(spec: str) -> None:
    with pytest.raises(ConfigError, match="encoding is"):
        TrainConfig(encoding=spec)


@pytest.mark.parametrize("spec", ["char", "bpe:257", "bpe:65536"])
def test_tokenizers_that_can_be(spec: str) -> None:
    assert TrainConfig(tokenizer=spec).tokenizer == spec


@pytest.mark.parametrize("spec", ["", "bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:-5", "bpe:1.5"])
def test_tokenizers_that_cannot(spec: str) -> None:
    with pytest.raises(ConfigError, match="tokenizer is"):
        TrainConfig(tokenizer=spec)
