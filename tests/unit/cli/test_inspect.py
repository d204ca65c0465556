"""What `tuigpt inspect` tells of a text."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tuigpt.cli.main import main
from tuigpt.text.bpe import BPETokenizer

CHAT = "12/01/24, 09:14 - Ana: see you 😀❤️\u200d\n" * 500


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP)]
    monkeypatch.setenv("TUIGPT_HOME", str(tmp_path / "home"))
    yield
    for number, handler in handlers:
        signal.signal(number, handler)


def write(folder: Path, content: str | bytes, name: str = "a.txt") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """The words under each label."""
    assert main(["inspect", *arguments]) == 0
    found: dict[str, list[str]] = {}
    label = ""
    for line in capsys.readouterr().out.splitlines():
        label = line[:10].strip() or label
        found.setdefault(label, []).append(line[12:])
    return found


def records(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_built_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    words = told(capsys)
    assert words["text"] == ["4,784,884 characters on 173,198 lines, 65 symbols"]
    assert words["split"] == ["4,306,395 characters to train on, 478,489 for validation"]
    assert words["rarest"][0].startswith("$×1 3×7 &×77")
    assert words["counting"][0].startswith("guessing 4.17 · letters 3.32 · pairs 2.48")
    assert words["tokens"] == ["char suits a small text with a small alphabet"]
    assert words["begins"][0] == "THESEUS:" and len(words["begins"]) == 3
    assert "changed" not in words


def test_what_was_changed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = b"\xef\xbb\xbf" + CHAT.replace("\n", "\r\n").encode()
    words = told(capsys, write(tmp_path, raw))
    assert words["changed"] == ["byte order mark dropped; 500 CRLF became LF"]
    assert "500 lines" in words["text"][0]


def test_symbols_and_lines_are_shown_without_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\x1b[31mred\x1b[0m\tand \u202eback\u0301\n" + "plain words here\n" * 100
    assert main(["inspect", write(tmp_path, text), "--val-fraction", "0"]) in (0, 2)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    rarest = next(line for line in out.splitlines() if "rarest" in line)
    assert "U+202E" in rarest and "\u202e" not in rarest and "◌\u0301" in rarest


def test_letters_in_two_forms_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    composed, decomposed = "caf\u00e9 und \u00fc\n", "cafe\u0301 und \u00fc\n"
    told_of = told(capsys, write(tmp_path, (composed + decomposed) * 200))["letters"][0]
    assert told_of.endswith("the text has both: \u00e9 = e \u25cc\u0301")
    for text in (composed, decomposed):
        assert "letters" not in told(capsys, write(tmp_path, text * 400))


def test_a_large_alphabet_gets_a_warning_and_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(3000)) * 2
    words = told(capsys, write(tmp_path, text), "--preset=tiny")
    assert "most are too rare to be learned" in words["rarest"][0]
    assert words["tokens"] == ["bpe:2048 suits a large alphabet, but char is chosen"]
    assert "for the alphabet" in words["model"][0] and "of logits" not in words["model"][0]
    much = told(capsys, write(tmp_path, text * 3), "--max-steps=9", "--batch-size=128")
    assert "MB of logits" in much["model"][0]


def test_a_size_that_the_time_decides_is_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, CHAT)
    assert "model" not in told(capsys, path)
    assert "read" not in told(capsys, path, "--preset=small")["model"][0]
    assert "text read" in told(capsys, path, "--max-steps=100")["model"][0]


def test_pairs_are_counted_where_that_is_quick(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, CHAT)
    words = told(capsys, path, "--tokenizer=bpe:300", "--block-size=16")
    tokenizer = BPETokenizer.train([CHAT[: int(len(CHAT) * 0.9)]], 300)
    n_tokens = len(tokenizer.encode(CHAT))
    n_train, n_val = (int(part.split()[0].replace(",", "")) for part in
                      words["split"][0].split(";")[0].split(" to train on, "))  # fmt: skip
    assert n_train + n_val == n_tokens
    assert "a token is" in words["split"][0]


def test_too_short_is_told_with_everything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", write(tmp_path, "to be or not to be\n" * 20)]) == 2
    out, err = capsys.readouterr()
    assert "380 characters" in out
    assert err.startswith("tuigpt: the text is too short: it gives 342 characters to train on")
    assert err.count("\n") == 1


def test_several_files_and_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = write(tmp_path, CHAT, "1.txt"), write(tmp_path, CHAT, "2.txt")
    assert "in 2 files" in told(capsys, one, two)["text"][0]


def test_no_validation_part_leaves_guessing_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = told(capsys, write(tmp_path, CHAT), "--val-fraction=0")
    assert words["split"][0].endswith("to train on, no validation")
    assert words["counting"][0].startswith("guessing") and "·" not in words["counting"][0]


def test_the_app_gets_lines_it_can_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--json", write(tmp_path, CHAT)]) == 0
    *progress, report = records(capsys)
    assert all(record["kind"] == "progress" for record in progress)
    assert report["kind"] == "report" and report["problem"] == ""
    facts = report["facts"]
    assert facts["characters"] == len(CHAT) == facts["train"] + facts["val"]
    assert facts["symbols"] == len(set(CHAT)) and facts["advised"] == "char"
    assert list(facts["baselines"]) == ["guessing", "letters", "pairs", "triples"]


def test_the_app_gets_offers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "naïve café “fine”\n".encode("cp1252") * 100)
    assert main(["inspect", "--json", path]) == 2
    (problem,) = records(capsys)
    assert problem["kind"] == "problem" and "is not UTF-8" in problem["message"]
    assert problem["offer"] == {"words": "read as cp1252", "encoding": "cp1252", "fetch": False}
    assert main(["inspect", "--json", "tinyshakespeare"]) == 2
    assert records(capsys)[0]["offer"] == {"words": "fetch it now", "encoding": "", "fetch": True}
    assert main(["inspect", "--json", str(tmp_path / "nothing")]) == 2
    assert records(capsys)[0]["offer"] is None


def test_the_cache_is_shown_and_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = tmp_path / "home" / "cache" / f"tokens-{0:032x}"
    entry.mkdir(parents=True)
    (entry / "tokens.bin").write_bytes(b"x" * 5000)
    about = {"text": "poems", "sha256": "", "characters": 9000, "tokens": 5000, "dtype": "|u1"}
    (entry / "about.json").write_text(json.dumps(about | {"vocab_size": 65}))
    fetched = entry.parent / "tinyshakespeare.txt"
    fetched.write_bytes(b"x" * 1000)
    (entry.parent / "letter.txt").write_text("mine")
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert "10.0 GB" in out and "poems: 5,000 tokens of 65 different ones" in out
    assert "tinyshakespeare.txt" in out and "letter.txt" not in out
    assert main(["cache", "clear"]) == 0
    assert "6.1 kB freed" in capsys.readouterr().out
    assert [path.name for path in entry.parent.iterdir()] == ["letter.txt"]
