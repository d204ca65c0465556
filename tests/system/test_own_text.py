"""Training on one's own text, as a shell runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from json_files import read_json
from system.conftest import TINY, Tuigpt

from tuigpt.files import read_safetensors_metadata

TAMIL = "அகர முதல எழுத்தெல்லாம் ஆதி\nபகவன் முதற்றே உலகு.\n" * 120
ARABIC = "بِسْمِ ٱللَّٰهِ مَرْحَبًا بِالْعَالَمِ\nكيف حالك اليوم؟\n" * 120
CHAT = "Ana: 👨‍👩‍👧‍👦 ❤️ 🏳️‍🌈 👍🏽\nBo: 😀 ok\n" * 200
SHORT = [*TINY, "--max-steps=4", "--eval-interval=2"]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "text", "prompt", "tokenizer"),
    [
        ("[குறள்] 1.txt", TAMIL, "அகர ", "bpe:400"),
        ("~x 🙂.txt", CHAT, "Ana: 👨‍👩‍👧‍👦", "char"),
    ],
    ids=["tamil", "emoji"],
)
def test_real_scripts_are_learned_and_written(
    tuigpt: Tuigpt, home: Path, tmp_path: Path, name: str, text: str, prompt: str, tokenizer: str
) -> None:
    path = write(tmp_path, name, text)
    done = tuigpt("train", path, *SHORT, "--name=own", f"--tokenizer={tokenizer}")
    assert done.returncode == 0, done.stderr
    record = read_json(home / "runs" / "own" / "run.json")
    corpus = record["corpus"]
    assert corpus["sources"] == [str(path)] and corpus["characters"] == len(text)
    assert corpus["train_characters"] + corpus["val_characters"] == len(text)
    assert corpus["symbols"] == len(set(text))
    assert list(record["baselines"]) == ["guessing", "letters", "pairs", "triples"]

    log = [json.loads(line) for line in (home / "runs/own/metrics.jsonl").read_bytes().splitlines()]
    whole = next(line for line in log if line["kind"] == "eval" and line.get("whole"))
    header = json.loads(
        read_safetensors_metadata(home / "runs/own/checkpoints/step-000004.safetensors")["tuigpt"]
    )
    assert header["whole_val_loss_per_character"] == whole["val_loss_per_character"]
    ratio = whole["val_loss"] / whole["val_loss_per_character"]
    wanted = corpus["val_characters"] / corpus["val_tokens"]
    assert ratio == 1 if tokenizer == "char" else abs(ratio / wanted - 1) < 0.05

    wrote = tuigpt("generate", "own", "--prompt", prompt, "--max-new-tokens=60")
    assert wrote.returncode == 0 and wrote.stdout.startswith(prompt)
    if tokenizer == "char":
        assert set(wrote.stdout) <= set(text)


def test_an_encoding_must_be_confirmed(tuigpt: Tuigpt, home: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "old.txt", ("It’s “fine” – naïve café €5\n" * 60).encode("cp1252"))
    refused = tuigpt("train", path, *SHORT)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "--encoding cp1252" in refused.stderr
    assert not (home / "runs").exists()
    done = tuigpt("train", path, *SHORT, "--encoding=cp1252", "--name=old")
    assert done.returncode == 0
    header = read_safetensors_metadata(home / "runs/old/checkpoints/step-000004.safetensors")
    assert "’“”–ïé€" not in header and set("’“”–ïé€") <= set(
        json.loads(header["tuigpt"])["tokenizer"]["vocab"]
    )


def test_no_validation_part_works_to_the_end(tuigpt: Tuigpt, home: Path, tmp_path: Path) -> None:
    done = tuigpt("train", write(tmp_path, "a.txt", ARABIC), *SHORT, "--val-fraction=0")
    assert done.returncode == 0 and "finished at step 4" in done.stdout
    assert re.search(r"^ +4 +– +\d", tuigpt("list").stdout, re.M)  # no val
    assert tuigpt("generate", "a-tiny-1", "--max-new-tokens=5").returncode == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"short text", "try --val-fraction 0 with --block-size 9"),
        (b"x\xff\n" * 50, "offset 1, line 1"),
    ],
    ids=["empty", "short", "bytes"],
)
def test_what_cannot_be_learned_is_refused_and_leaves_nothing(
    tuigpt: Tuigpt, home: Path, tmp_path: Path, content: bytes, words: str
) -> None:
    done = tuigpt("train", write(tmp_path, "a.txt", content), *SHORT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and words in done.stderr
    assert not home.exists()


ENCODE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tuigpt.text.disk_cache import Cache
from tuigpt.text import read as text
from tuigpt.text.token_file import encode, learn_tokenizer
from tuigpt.text.named import open_text

text.CHUNK_BYTES, text.WHOLE_BYTES = 1000, 4000
opened = open_text([sys.argv[1]], cache=Path(sys.argv[2]))
found = text.scan(opened)

def die_half_way(what, done, total):
    if done > total // 2:
        os.kill(os.getpid(), int(sys.argv[3]))

encode(opened, found, learn_tokenizer("char", found, 0), Cache(Path(sys.argv[2])), die_half_way)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_encoding_leaves_no_entry(tmp_path: Path, number: signal.Signals) -> None:
    path, cache = write(tmp_path, "a.txt", TAMIL), tmp_path / "cache"
    command = [sys.executable, "-c", ENCODE_AND_DIE, str(path), str(cache), str(int(number))]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == -number
    left = [entry.name for entry in cache.iterdir()]
    assert all(name.startswith(".partial-") for name in left)
    assert not left or number is signal.SIGKILL


def test_an_own_file_called_like_the_built_in_text_is_told(tuigpt: Tuigpt, tmp_path: Path) -> None:
    write(tmp_path, "shakespeare", "mine, all mine\n" * 100)
    done = tuigpt("train", "shakespeare", *SHORT, "--val-fraction=0", "--name=whose")
    assert done.returncode == 0, done.stderr
    assert (
        "shakespeare is the text that goes by this name; your own is ./shakespeare" in done.stdout
    )
    done = tuigpt("train", "./shakespeare", *SHORT, "--val-fraction=0", "--name=mine")
    assert done.returncode == 0 and "goes by this name" not in done.stdout
