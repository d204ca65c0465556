"""The script that makes the built-in model from a run, and what it made for this tree."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import struct
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import ModuleType
from typing import Any

import pytest
import torch
from json_files import read_json

from tuigpt import paths
from tuigpt.cli.main import main
from tuigpt.config import SampleConfig
from tuigpt.files import read_safetensors_metadata
from tuigpt.generation.decode import plain, read_prompt
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.runs import folder as folder_module
from tuigpt.runs import poet as poet_module
from tuigpt.runs.follow import Follower
from tuigpt.runs.header import read_header
from tuigpt.runs.names import find_checkpoint
from tuigpt.runs.poet import open_poet
from tuigpt.text import named
from tuigpt.text.read import scan

ASSETS = Path(__file__).resolve().parents[2] / "assets"


def strings(value: Any) -> list[str]:
    """All strings in a JSON value, but for the tokenizer's."""
    if isinstance(value, dict):
        return [s for key, v in value.items() if key != "tokenizer" for s in strings(v)]
    if isinstance(value, list):
        return [s for v in value for s in strings(v)]
    return [value] if isinstance(value, str) else []


def assert_tells_of_no_machine(record: dict[str, Any]) -> None:
    found = strings(record)
    assert [s for s in found if PurePosixPath(s).is_absolute()] == []
    assert [s for s in found if PureWindowsPath(s).is_absolute()] == []
    assert {"host", "hostname", "pid", "user"}.isdisjoint(record)


def types_of_weights(path: Path) -> set[str]:
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
    return {tensor["dtype"] for name, tensor in header.items() if name != "__metadata__"}


def header_of(path: Path) -> dict[str, Any]:
    """A checkpoint's header as it stands in the file."""
    header: dict[str, Any] = json.loads(read_safetensors_metadata(path)["tuigpt"])
    return header


class TestTheScript:
    @pytest.fixture
    def script(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("make_poet", ASSETS / "make_poet.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @pytest.fixture
    def run_folder(
        self, home: Path, verse_file: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> Path:  # fmt: skip
        """A run on the text that stands for the built-in one here, called by its path."""
        monkeypatch.setenv("TUIGPT_HOME", str(home))
        monkeypatch.setattr(named, "asset", lambda name: verse_file)
        flags = [
            "--name=bard", "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16",
            "--batch-size=8", "--eval-tokens=64", "--sample-tokens=8", "--max-steps=30",
            "--eval-interval=20", "--checkpoint-interval=15",
        ]  # fmt: skip
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        assert main(["train", str(verse_file), *flags]) == 0
        for number, handler in handlers.items():
            signal.signal(number, handler)
        capsys.readouterr()
        return home / "runs" / "bard"

    def test_what_it_makes_is_the_run_in_half_the_size(
        self, script: ModuleType, run_folder: Path, poet_assets: Path, home: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        poet_assets.mkdir()
        assert script.main([str(run_folder), "30", "--to", str(poet_assets)]) == 0
        source = run_folder / "checkpoints" / "step-000030.safetensors"
        made = poet_assets / "poet.safetensors"
        assert types_of_weights(source) == {"F32"} and types_of_weights(made) == {"BF16"}
        assert made.stat().st_size < 0.7 * source.stat().st_size

        said = capsys.readouterr().out
        losses = re.search(r"float32 ([\d.]+), bfloat16 ([\d.]+) \(([+-][\d.]+)\)", said)
        assert losses
        before, after, lost = map(float, losses.groups())
        was, now = header_of(source), header_of(made)
        assert before == pytest.approx(was["whole_val_loss_per_character"], abs=1e-4)
        assert 0 < abs(after - before) < 0.05 and lost == pytest.approx(after - before, abs=2e-5)

        by_name = {"name": "shakespeare", "path": "shakespeare", "sources": ["shakespeare"]}
        assert now == was | {"run": "poet", "corpus": was["corpus"] | by_name}
        record = read_json(run_folder / "run.json")
        shipped = read_json(poet_assets / "poet-run.json")
        assert shipped == record | {"name": "poet", "corpus": record["corpus"] | by_name}
        assert_tells_of_no_machine(now)
        assert_tells_of_no_machine(shipped)
        log = (run_folder / "metrics.jsonl").read_bytes()
        assert (poet_assets / "poet-metrics.jsonl").read_bytes() == log

        assert find_checkpoint("poet@best", home).label == "poet@30"
        assert len(Follower(home).look("poet").history.train) == 30

    def test_what_tells_of_a_machine_goes_and_nothing_else(self, script: ModuleType) -> None:
        record = {
            "host": "box", "preset": "tiny", "corpus": {"path": "/home/me/x.txt", "pid": 7},
            "tokenizer": {"vocab": ["/", "/a"]}, "train": {"sample_prompt": "/To"},
            "files": ["/a/b.txt", "C:\\me\\c.txt", "and/or"], "parent": None, "loss": 1.5,
        }  # fmt: skip
        text = {"name": "shakespeare", "path": "shakespeare", "sources": ["shakespeare"]}
        assert script.portable(record) == {
            "preset": "tiny", "corpus": text, "tokenizer": record["tokenizer"],
            "train": record["train"], "files": ["b.txt", "c.txt", "and/or"], "parent": None,
            "loss": 1.5,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("step", "words"),
        [(30, "at most 99 B may ship"), (15, "step 15 was not measured"), (7, "step-000007")],
    )
    def test_what_may_not_ship_is_refused(
        self, script: ModuleType, run_folder: Path, tmp_path: Path, step: int, words: str,
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        monkeypatch.setattr(script, "LARGEST", 99)
        to = tmp_path / "made"
        to.mkdir()
        assert script.main([str(run_folder), str(step), "--to", str(to)]) == 2
        assert words in capsys.readouterr().err
        assert list(to.iterdir()) == []

    def test_another_text_is_refused(
        self, script: ModuleType, run_folder: Path, verse_file: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        verse_file.write_text("All the world's a stage\n" * 20)
        to = tmp_path / "made"
        to.mkdir()
        assert script.main([str(run_folder), "30", "--to", str(to)]) == 2
        assert "learned from another text than 'shakespeare'" in capsys.readouterr().err
        assert list(to.iterdir()) == []


@pytest.mark.skipif(
    not paths.asset("poet.safetensors").exists(), reason="this tree is without the built-in model"
)
class TestTheShippedOne:
    @pytest.fixture(autouse=True)
    def real(self, poet_assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (folder_module, poet_module):
            monkeypatch.setattr(module, "asset", paths.asset)

    def test_it_is_a_small_whole_checkpoint_of_its_name(self) -> None:
        poet = open_poet()
        assert poet.best and poet.best.size <= 16_000_000
        header = read_header(poet.best.path)
        assert poet.record is not None and poet.problem == ""
        assert header.run == poet.record.name == "poet"
        assert header.model == poet.record.model
        assert types_of_weights(poet.best.path) == {"BF16"}

    def test_it_tells_of_no_machine(self) -> None:
        poet = open_poet()
        assert poet.best
        assert_tells_of_no_machine(header_of(poet.best.path))
        assert_tells_of_no_machine(read_json(paths.asset("poet-run.json")))
        for line in poet.metrics.read_text("utf-8").splitlines():
            assert_tells_of_no_machine(json.loads(line))

    def test_its_text_is_the_built_in_one(self, tmp_path: Path) -> None:
        poet = open_poet()
        assert poet.best
        facts = read_header(poet.best.path).corpus
        assert facts.sources == ["shakespeare"] and facts.path == "shakespeare"
        assert scan(named.reopen(facts, cache=tmp_path)).sha256 == facts.sha256
        assert poet.record and poet.record.corpus.sha256 == facts.sha256

    def test_its_curve_is_there(self, home: Path) -> None:
        snapshot = Follower(home).look("poet")
        assert snapshot.watched and snapshot.watched.best
        steps = [step for step, _ in snapshot.history.val]
        assert snapshot.watched.best.step in steps and snapshot.history.train

    def test_it_writes(self) -> None:
        poet = open_poet()
        assert poet.best
        model, tokenizer, _ = load_checkpoint(poet.best.path, torch.device("cpu"))
        prompt = read_prompt("ROMEO:", tokenizer)
        ids = list(plain(model, prompt.ids, SampleConfig(max_new_tokens=20, temperature=0.0)))
        assert tokenizer.decode(ids).startswith("\n")
