"""Runs that the first version wrote: they are listed, generate, and resume."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from system.conftest import Tuigpt

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(params=["run-v1-char", "run-v1-bpe"])
def old_run(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> str:
    """Name of such a run, put into a fresh home; its text lies in the current folder."""
    name = str(request.param)
    shutil.copytree(FIXTURES / name, home / "runs" / name)
    shutil.copy(FIXTURES / "verse.txt", tmp_path)
    return name


def test_it_is_listed_with_its_losses_per_character(old_run: str, tuigpt: Tuigpt) -> None:
    listed = tuigpt("list", old_run)
    assert listed.returncode == 0, listed.stderr
    lines = [line.split() for line in listed.stdout.splitlines()]
    assert lines[0][:4] == [old_run, "finished", "step", "6/6"]
    best = {"run-v1-char": "3.32", "run-v1-bpe": "3.97"}[old_run]
    assert lines[1][:2] == ["step", "val"]
    assert lines[2][1:3] == [best, "★"]


def test_it_generates(old_run: str, tuigpt: Tuigpt) -> None:
    written = tuigpt("generate", f"{old_run}@best", "--prompt=It is", "--max-new-tokens=8")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("It is")


def test_it_resumes(old_run: str, tuigpt: Tuigpt, home: Path) -> None:
    resumed = tuigpt("train", f"--resume={old_run}", "--max-steps=9")
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed at step 6" in resumed.stdout and "finished at step 9" in resumed.stdout
    steps = sorted(p.name for p in (home / "runs" / old_run / "checkpoints").iterdir())
    assert steps[:2] == ["step-000003.safetensors", "step-000006.safetensors"]
    assert "step-000009.safetensors" in steps
