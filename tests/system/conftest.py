"""Real processes in a fresh home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from system.terminal import PATIENCE, Terminal

TUIGPT = [sys.executable, "-P", "-m", "tuigpt"]

TINY = [
    "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4",
    "--eval-tokens=64", "--sample-tokens=8", "--patience=0",
]  # fmt: skip
"""Flags of a model that trains in no time."""


@pytest.fixture
def env(home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has just installed tuigpt."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TUIGPT_HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }


Tuigpt = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tuigpt(env: dict[str, str], tmp_path: Path) -> Tuigpt:
    """Runs the command line to its end, without a terminal."""

    def run(*arguments: str | Path, **changed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TUIGPT, *map(str, arguments)],
            env=env | changed,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )

    return run


def in_a_shell(command: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `tuigpt` stands for the program."""
    tuigpt = " ".join(TUIGPT)
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; tuigpt() {{ {tuigpt} \"$@\"; }}; {command}"],
        env=env, cwd=cwd, capture_output=True, encoding="utf-8", timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def open_terminal(env: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts tuigpt in a new terminal, which is closed at the end of the test.

    `shell` is a line of shell to run instead, in which `{tuigpt}` is that command.
    """
    with ExitStack() as stack:

        def start(
            *arguments: str | Path, columns: int = 120, rows: int = 40, shell: str = ""
        ) -> Terminal:
            command = [*TUIGPT, *map(str, arguments)]
            if shell:
                command = ["bash", "-c", shell.format(tuigpt=" ".join(command))]
            terminal = Terminal(command, env, columns=columns, rows=rows, cwd=tmp_path)
            return stack.enter_context(terminal)

        yield start
