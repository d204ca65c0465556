"""What lies in the current folder is data: no process of tuigpt ever imports from it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from system.conftest import TINY, Tuigpt, in_a_shell
from system.terminal import Terminal

HOSTILE = (
    "random", "json", "numpy", "torch", "signal", "tempfile", "socket", "textual", "msgspec",
    "platformdirs", "runpy", "site", "argparse", "hashlib", "sitecustomize",
)  # fmt: skip
"""Modules that some process of tuigpt imports."""


@pytest.fixture
def hostile(tmp_path: Path, verse_file: Path) -> Path:
    """A folder whose modules leave a mark when they are imported."""
    mark = "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()\n"
    for name in HOSTILE:
        (tmp_path / f"{name}.py").write_text(mark)
    (tmp_path / "tuigpt").mkdir()
    (tmp_path / "tuigpt" / "__init__.py").write_text(mark)
    return tmp_path


def ran(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*.ran")]


SMALL = [*TINY, "--max-steps=2", "--name=run"]


@pytest.mark.parametrize("nproc", ["1", "2"])
def test_train_and_generate(tuigpt: Tuigpt, hostile: Path, nproc: str) -> None:
    result = tuigpt("train", "verse.txt", *SMALL, f"--nproc={nproc}")
    assert result.returncode == 0, result.stderr
    result = tuigpt("generate", "run", "--max-new-tokens=4")
    assert result.returncode == 0, result.stderr
    assert ran(hostile) == []


def test_as_a_module_and_under_torchrun(
    env: dict[str, str], hostile: Path, home: Path, tmp_path: Path
) -> None:
    """Both put the current folder first on the path; it is off it before anything is imported.

    What Python itself imports to start a module comes before us, and so does a folder `tuigpt`.
    """
    for early in ("tuigpt/__init__", "runpy", "site", "signal", "random", "tempfile", "socket",
                  "argparse", "hashlib", "torch", "numpy", "json"):  # fmt: skip
        if early.startswith("tuigpt"):
            (hostile / f"{early}.py").unlink()
            (hostile / "tuigpt").rmdir()
    line = f"{sys.executable} -m tuigpt train verse.txt {' '.join(SMALL)}"
    result = in_a_shell(line, env, tmp_path)
    assert result.returncode == 0, result.stderr
    assert ran(hostile) == []
    line = (
        f"{sys.executable} -P -m torch.distributed.run --standalone --nproc-per-node=2"
        f" -m tuigpt train verse.txt {' '.join(SMALL)} --name=two"
    )
    result = in_a_shell(line, env, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (home / "runs" / "two" / "run.json").exists()
    assert ran(hostile) == []


def test_the_app(open_terminal: Callable[..., Terminal], hostile: Path, home: Path) -> None:
    """Its generator, its look at a text, its trial and the trainer that it starts."""
    terminal = open_terminal()
    terminal.until("new run")
    terminal.press("ctrl+n")
    terminal.until("characters, ")
    terminal.until("s each on")
    assert ran(hostile) == []
