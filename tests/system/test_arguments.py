"""What a user types reaches the program as it was typed, whatever the locale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from system.conftest import TINY, Tuigpt, in_a_shell

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale in which Python knows no letter but those of ASCII."""


def test_names_texts_and_prompts_without_utf_8(tuigpt: Tuigpt, home: Path, tmp_path: Path) -> None:
    (tmp_path / "été.txt").write_text("Après moi, le déluge. Été.\n" * 80, "utf-8")
    result = tuigpt(
        "train", "été.txt", "--name=Noël", *TINY, "--max-steps=2", "--eval-interval=1",
        "--sample-prompt=déluge", **ASCII,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "sample: déluge" in result.stdout
    record = json.loads((home / "runs" / "Noël" / "run.json").read_text("utf-8"))
    assert record["corpus"]["name"] == "été"
    result = tuigpt("train", "--resume", "Noël", "--max-steps=3", **ASCII)
    assert result.returncode == 0, result.stderr
    assert "finished at step 3" in result.stdout
    assert tuigpt("list", "Noël", **ASCII).stdout.startswith("Noël  finished")
    assert "'Noël' is not running" in tuigpt("stop", "Noël", **ASCII).stderr
    text = tuigpt("generate", "Noël", "--prompt=déluge", "--max-new-tokens=0", **ASCII)
    assert text.stdout == "déluge\n"
    assert tuigpt("next", "Noël", "--prompt=é", **ASCII).returncode == 0


@pytest.mark.parametrize("prompt", ["--", "--my_lord and"])
def test_prompts_that_look_like_flags(tuigpt: Tuigpt, verse_file: Path, prompt: str) -> None:
    verse_file.write_text("--my_lord and --verify -x\n" * 200, "utf-8")
    result = tuigpt(
        "train", "verse.txt", "--name=run", *TINY, "--max-steps=1", "--eval-interval=1",
        "--sample-prompt", prompt,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert f"sample: {prompt}" in result.stdout
    text = tuigpt("generate", "run", "--prompt", prompt, "--max-new-tokens=0")
    assert text.stdout == prompt + "\n"


@pytest.mark.parametrize("command", ["train", "list", "generate", "train --from"])
def test_a_variable_that_is_not_set(
    env: dict[str, str], home: Path, tmp_path: Path, command: str
) -> None:
    """It would stand for the current folder, or for any run."""
    result = in_a_shell(f'tuigpt {command} "$unset"', env, tmp_path)
    assert result.returncode == 2
    assert "it is empty; is a variable of the shell not set?" in result.stderr
    assert not home.exists()
