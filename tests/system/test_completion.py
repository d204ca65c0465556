"""Real shells complete commands, flags, values and names of runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import MakeRun
from system.conftest import Tuigpt, in_a_shell

ODD = "it's $(touch pwned) a run"
"""A name that a careless script would run."""


@pytest.fixture(autouse=True)
def runs(make_run: MakeRun) -> None:
    make_run("verse")
    make_run("verse-1")
    make_run(ODD)


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        (["tuigpt", "in"], ["inspect"]),
        (["tuigpt", "--v"], ["--version"]),
        (["tuigpt", "train", "--max"], ["--max-steps"]),
        (["tuigpt", "train", "--preset", "m"], ["medium"]),
        (["tuigpt", "train", "--preset", "=", "m"], ["medium"]),
        (["tuigpt", "train", "--resume", "ver"], ["verse", "verse-1"]),
        (["tuigpt", "generate", "po"], ["poet"]),
        (["tuigpt", "generate", "ver"], ["verse", "verse-1"]),
        (["tuigpt", "ask", "verse", "pau"], ["pause"]),
        (["tuigpt", "completion", "z"], ["zsh"]),
        (["tuigpt", "list", "it"], ["it\\'s\\ \\$\\(touch\\ pwned\\)\\ a\\ run"]),
        (["tuigpt", "generate", "zz"], []),
    ],
)
def test_bash(env: dict[str, str], tmp_path: Path, line: list[str], completed: list[str]) -> None:
    assert completed_by_bash(line, env, tmp_path) == (completed or [""])
    assert not (tmp_path / "pwned").exists()


def test_the_home_of_the_settings(env: dict[str, str], home: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"home = '{home}'\n")
    settings = {"TUIGPT_HOME": "", "TUIGPT_CONFIG": str(tmp_path / "settings.toml")}
    line = ["tuigpt", "generate", "ver"]
    assert completed_by_bash(line, env | settings, tmp_path) == ["verse", "verse-1"]


def completed_by_bash(line: list[str], env: dict[str, str], folder: Path) -> list[str]:
    """What bash offers for the last word of a line."""
    words = " ".join(f"'{word}'" for word in line)
    script = (
        'eval "$(tuigpt completion bash)"; complete -p tuigpt >/dev/null || exit 9;'
        f" COMP_WORDS=({words}); COMP_CWORD={len(line) - 1};"
        ' _tuigpt; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    result = in_a_shell(script, env, folder)
    assert (result.returncode, result.stderr) == (0, "")
    return sorted(result.stdout.split("\n")[:-1])


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(env: dict[str, str], tuigpt: Tuigpt, tmp_path: Path) -> None:
    script = tmp_path / "tuigpt.fish"
    script.write_text(tuigpt("completion", "fish").stdout)

    def complete(line: str) -> list[str]:
        result = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            env=env, capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=60,
        )  # fmt: skip
        assert (result.returncode, result.stderr) == (0, "")
        return [row.partition("\t")[0] for row in result.stdout.splitlines()]

    assert complete("tuigpt insp") == ["inspect"]
    assert complete("tuigpt train --max") == ["--max-steps"]
    assert complete("tuigpt train --preset m") == ["medium"]
    assert complete("tuigpt generate ver") == ["verse", "verse-1"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(env: dict[str, str], tuigpt: Tuigpt, tmp_path: Path) -> None:
    (tmp_path / "_tuigpt").write_text(tuigpt("completion", "zsh").stdout)
    result = subprocess.run(
        ["zsh", "-f", "-c", "autoload -U compinit; compinit -u -D; source ./_tuigpt;"
         " print $_comps[tuigpt]"],
        env=env, capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("_tuigpt\n", "")
