"""Models of other programs by the command line: in, out, and compared."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from system.conftest import TINY, TUIGPT, Tuigpt
from unit.model.formats.their_code import (
    CHARACTERS,
    nanogpt_content,
    save_nanogpt,
    save_workshop,
    trained,
)

TEXT = "the quick brown fox, he jumps over a lazy dog.\nßé\n" * 40


@pytest.fixture
def poems(tmp_path: Path) -> Path:
    """A folder as the workshop's training loop leaves it."""
    folder = tmp_path / "my poems"
    for step in (100, 200):
        save_workshop(folder / f"checkpoint_{step}.pt", trained(seed=step), step)
    log = {"steps": [*range(201)], "train": [3.0] * 201, "val": [3.5, 3.1, 3.3]}
    (folder / "loss_log.json").write_text(json.dumps(log))
    return folder


def test_a_learner_sees_their_own_training(tuigpt: Tuigpt, poems: Path) -> None:
    done = tuigpt("import", poems, "--name", "mine")
    assert done.returncode == 0, done.stderr
    assert "mine: 2 checkpoints of the workshop (steps 100 to 200)" in done.stdout
    command = done.stdout.splitlines()[1].partition(": ")[2].split()
    assert command == ["tuigpt", "generate", "mine"]
    listed = tuigpt("list").stdout
    assert "mine  finished" in listed and "3.10 ★" in listed
    written = tuigpt(*command[1:], "--prompt", "the", "--max-new-tokens", "20")
    assert written.returncode == 0 and len(written.stdout) >= 23
    again = tuigpt("import", poems, "--name", "mine")
    assert again.returncode == 2 and again.stderr.startswith("tuigpt: there is a run 'mine'")


def test_out_and_in_again_is_the_same(tuigpt: Tuigpt, poems: Path, tmp_path: Path) -> None:
    tuigpt("import", poems, "--name", "mine")
    text = tuigpt("generate", "mine@100", "--prompt", "the", "--seed", "3").stdout
    for to, specs, folder in (
        ("workshop", ["mine@100"], "mine-100-workshop"),
        ("huggingface", ["mine@100", "mine@200", "--output", "out"], "out/mine-100-huggingface"),
    ):
        done = tuigpt("export", *specs, "--to", to)
        assert done.returncode == 0, done.stderr
        files = [Path(line) for line in done.stdout.splitlines()]
        assert files and all(file.is_file() for file in files)
        assert files[0].parent == tmp_path / folder
        tuigpt("import", files[0].parent, "--name", to)
        assert tuigpt("generate", to, "--prompt", "the", "--seed", "3").stdout == text


def test_what_must_be_given_is_called_by_its_flag(tuigpt: Tuigpt, tmp_path: Path) -> None:
    path = save_nanogpt(tmp_path / "ckpt.pt", nanogpt_content(trained(exact=True)), meta=False)
    refused = tuigpt("import", path)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "(--text)" in refused.stderr and "(--meta)" in refused.stderr
    (tmp_path / "all.txt").write_text("".join(CHARACTERS) * 20, encoding="utf-8")
    assert tuigpt("import", path, "--text", "all.txt").returncode == 0


def test_a_folder_of_hostile_files_runs_nothing(tuigpt: Tuigpt, tmp_path: Path) -> None:
    class Boom:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "PWNED"),)

    content = nanogpt_content(trained(exact=True))
    (tmp_path / "model.py").write_text("open('PWNED', 'w')")
    refused = tuigpt("import", save_nanogpt(tmp_path / "c.pt", {**content, "note": Boom()}))
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "contains posix.mkdir" in refused.stderr
    assert not (tmp_path / "PWNED").exists()
    assert "No runs yet" in tuigpt("list").stdout
    os.mkfifo(tmp_path / "pipe.pt")
    assert "regular file" in tuigpt("import", tmp_path / "pipe.pt").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["import"], "PATH"),
        (["import", "gone.pt"], "No such file"),
        (["export", "gone", "--to", "workshop"], "no run 'gone'"),
        (["export", "gone"], "--to"),
        (["export", "gone", "--to", "gguf"], "invalid choice"),
        (["eval", "gone"], "no run 'gone'"),
    ],
)
def test_what_cannot_be_done_is_one_line(tuigpt: Tuigpt, arguments: list[str], words: str) -> None:
    refused = tuigpt(*arguments)
    assert refused.returncode == 2 and not refused.stdout
    last = refused.stderr.splitlines()[-1]  # before it, a busy machine may tell of its progress
    assert last.startswith("tuigpt: ") and words in last


class TestEval:
    def test_checkpoints_of_other_tokenizers_compare(
        self, tuigpt: Tuigpt, poems: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
        tuigpt("import", poems, "--name", "mine")
        for name, kind in (("chars", "char"), ("pairs", "bpe:270")):
            done = tuigpt(
                "train", "text.txt", "--name", name, "--tokenizer", kind, "--max-steps=3",
                "--device=cpu", *TINY,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        done = tuigpt("eval", "chars", "pairs", "mine@200", "text.txt", "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        rows = {row["checkpoint"]: row for row in report["rows"]}
        assert list(rows) == ["chars@3", "pairs@3", "mine@200"]
        assert report["characters"] == len(TEXT)
        unknown = sum(c not in CHARACTERS for c in TEXT)
        assert [row["skipped"] for row in rows.values()] == [0, 0, unknown]
        assert rows["chars@3"]["characters"] == len(TEXT) - 1
        assert rows["pairs@3"]["tokens"] < rows["chars@3"]["tokens"]
        for row in rows.values():
            assert row["bits_per_character"] == pytest.approx(
                row["nats_per_character"] / torch.log(torch.tensor(2.0)).item(), rel=1e-5
            )
        table = tuigpt("eval", "chars", "pairs", "mine@200", "text.txt")
        assert table.returncode == 0 and table.stdout.count("★") == 1
        assert all(f"{row['nats_per_character']:.4f}" in table.stdout for row in rows.values())
        assert max(map(len, table.stdout.splitlines())) <= 100
        assert "predicted once" in table.stdout

    def test_without_a_text_it_is_the_validation_part(self, tuigpt: Tuigpt, tmp_path: Path) -> None:
        (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
        tuigpt("train", "text.txt", "--name=a", "--max-steps=2", "--device=cpu", *TINY)
        done = tuigpt("eval", "a")
        assert done.returncode == 0, done.stderr
        n_val = len(TEXT) - int(len(TEXT) * 0.9)
        assert f"the validation part of text: {n_val} characters" in done.stdout
        (tmp_path / "text.txt").write_text(TEXT + "more", encoding="utf-8")
        changed = tuigpt("eval", "a")
        assert changed.returncode == 2 and "has changed" in changed.stderr

    def test_a_text_on_standard_input(
        self, tuigpt: Tuigpt, poems: Path, env: dict[str, str], tmp_path: Path
    ) -> None:
        tuigpt("import", poems, "--name", "mine")
        done = subprocess.run(
            [*TUIGPT, "eval", "mine@100", "mine@200", "-"],
            input="the quick brown fox", env=env, cwd=tmp_path, capture_output=True,
            encoding="utf-8", timeout=60,
        )  # fmt: skip
        assert done.returncode == 0 and "-: 19 characters" in done.stdout
