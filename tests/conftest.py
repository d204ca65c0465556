"""What tests of every kind share: homes, texts, and run folders made by hand."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuigpt.files import to_json, write_json
from tuigpt.paths import runs_dir
from tuigpt.runs import folder as folder_module
from tuigpt.runs import poet as poet_module
from tuigpt.runs.folder import Run, checkpoint_path, open_run
from tuigpt.runs.status import utc_now

sys.path.insert(0, str(Path(__file__).parent))  # for helpers such as system.terminal

# Models this small are slower on two threads than on one, and much slower on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell lets its background jobs ignore ctrl+c, and what they start would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHAPE = {"vocab_size": 11, "block_size": 16, "n_layer": 1, "n_head": 2, "n_embd": 8, "dropout": 0.0}
"""The model of the runs made by hand."""

VERSE = (
    "But soft, what light through yonder window breaks?\n"
    "It is the east, and Juliet is the sun.\n"
    "Arise, fair sun, and kill the envious moon.\n"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--events", type=int, default=150, help="how many random events the app gets")
    parser.addoption("--kills", type=int, default=100, help="how often to kill a saving trainer")
    parser.addoption("--mutations", type=int, default=40, help="how many files to damage")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def settings_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings of whoever runs it."""
    monkeypatch.setenv("TUIGPT_CONFIG", str(tmp_path / "settings.toml"))


@pytest.fixture(autouse=True)
def poet_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process looks for the built-in model: an empty folder, so that there is none."""
    folder = tmp_path / "poet-assets"
    for module in (folder_module, poet_module):
        monkeypatch.setattr(module, "asset", lambda name: folder / name)
    return folder


@pytest.fixture
def poet(poet_assets: Path) -> Run:
    """A stand-in for the built-in model, without weights."""
    header = checkpoint_header(5000, run="poet", train_loss=1.05, val_loss=1.2)
    write_header_only(poet_assets / "poet.safetensors", header)
    facts = {"name": "shakespeare", "path": "shakespeare", "sources": ["shakespeare"]}
    write_json(poet_assets / "poet-run.json", run_record("poet", facts))
    lines = [
        {"kind": "step", "step": 5000, "loss": 1.05},
        {"kind": "eval", "step": 5000, "val_loss": 1.2, "whole": False},
    ]
    log = "".join(to_json(line) + "\n" for line in lines)
    (poet_assets / "poet-metrics.jsonl").write_text(log, encoding="utf-8")
    return poet_module.open_poet()


@pytest.fixture
def verse_file(tmp_path: Path) -> Path:
    """A text of 5,360 characters, enough for blocks up to 535."""
    path = tmp_path / "verse.txt"
    path.write_text(VERSE * 40, encoding="utf-8")
    return path


def write_header_only(path: Path, metadata: dict[str, str] | None) -> None:
    """A safetensors file without tensors."""
    header = json.dumps({"__metadata__": metadata} if metadata is not None else {}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def checkpoint_header(step: int, **facts: Any) -> dict[str, str]:
    """The metadata of a checkpoint of the model `SHAPE`."""
    header = {
        "format": 1,
        "run": "hand-made",
        "step": step,
        "train_loss": None,
        "val_loss": None,
        "model": SHAPE,
        "tokenizer": {"type": "char", "vocab": "\n abcdefghi"},
        "corpus": {"name": "verse"},
    }
    return {"tuigpt": json.dumps(header | facts)}


def run_record(name: str, corpus: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """The content of a run.json of the model `SHAPE`."""
    tokenizer = {"type": "char", "vocab_size": SHAPE["vocab_size"]}
    return {
        "format": 1, "name": name, "model": SHAPE, "train": {}, "tokenizer": tokenizer,
        "corpus": corpus,
    } | facts  # fmt: skip


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(home: Path) -> MakeRun:
    """Makes a run folder by hand, whose checkpoints have headers but no weights.

    Each checkpoint is a step and its val loss; `records` are lines of metrics.jsonl; what else is
    given goes into status.json.
    """

    def make(
        name: str,
        checkpoints: dict[int, float | None] | None = None,
        records: list[dict[str, Any]] | None = None,
        created: float | None = None,
        **status: Any,
    ) -> Run:
        folder = runs_dir(home) / name
        folder.mkdir(parents=True)
        corpus = {"name": "verse", "path": "verse.txt", "sha256": "0" * 64, "characters": 5360}
        write_json(folder / "run.json", run_record(name, corpus))
        finished = {"state": "finished", "step": 100, "max_steps": 100, "heartbeat": utc_now()}
        write_json(folder / "status.json", finished | status)
        (folder / "checkpoints").mkdir()
        for step, val_loss in (checkpoints or {}).items():
            path = checkpoint_path(folder, step)
            header = checkpoint_header(step, run=name, train_loss=val_loss, val_loss=val_loss)
            write_header_only(path, header)
            if created is not None:
                os.utime(path, (created, created))
        lines = [to_json(record) + "\n" for record in records or ()]
        (folder / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
        if created is not None:
            os.utime(folder / "run.json", (created, created))
        return open_run(folder)

    return make
