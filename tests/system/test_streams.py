"""Standard streams that are closed or full end in a line, never in a traceback or a lost run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from system.conftest import TINY, in_a_shell
from system.terminal import Terminal

LIGHT = ["--help", "--version", "train --help", "list", "list run", "cache", "inspect verse.txt"]
"""Commands that print something, and load no torch."""

HEAVY = [
    "estimate verse.txt --n-layer=1 --n-embd=16 --n-head=2 --block-size=16 --batch-size=4",
    "generate run --max-new-tokens=4",
    "next run",
    "score run verse.txt",
    "recite run verse.txt",
]

CLOSED = "Bad file descriptor"
FULL = "No space left on device"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `home` has one small run."""
    folder = tmp_path_factory.mktemp("streams")
    verse = "But soft, what light through yonder window breaks?\nIt is the east.\n"
    (folder / "verse.txt").write_text(verse * 60, "utf-8")
    return folder


@pytest.fixture
def here(env: dict[str, str], trained: Path) -> Path:
    """That folder, with the run in it."""
    env["TUIGPT_HOME"] = str(trained / "home")
    if not (trained / "home").exists():
        line = f"tuigpt train verse.txt --name=run {' '.join(TINY)} --max-steps=2"
        assert in_a_shell(line, env, trained).returncode == 0
    return trained


@pytest.mark.parametrize("command", [*LIGHT, *HEAVY])
def test_output_that_cannot_be_written(env: dict[str, str], here: Path, command: str) -> None:
    result = in_a_shell(f"tuigpt {command} >/dev/full", env, here)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == f"tuigpt: cannot write to standard output: {FULL}"
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", LIGHT)
@pytest.mark.parametrize(
    ("streams", "status", "words"),
    [
        (">&-", 1, f"tuigpt: cannot write to standard output: {CLOSED}\n"),
        (">&- 2>&-", 1, ""),
        ("<&-", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
    ],
)
def test_closed_streams(
    env: dict[str, str], here: Path, command: str, streams: str, status: int, words: str
) -> None:
    result = in_a_shell(f"tuigpt {command} {streams}", env, here)
    assert result.returncode == status and "Traceback" not in result.stderr
    assert result.stderr.endswith(words)  # behind progress, where reading takes long


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "command", ["list gone", "ask run pause", "stop run", "train gone.txt", "no-such", ""]
)
def test_a_refusal_that_nobody_can_read(
    env: dict[str, str], here: Path, command: str, streams: str
) -> None:
    result = in_a_shell(f"tuigpt {command} {streams}", env, here)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "")


@pytest.mark.parametrize("command", HEAVY)
def test_all_closed_and_torch(env: dict[str, str], here: Path, command: str) -> None:
    result = in_a_shell(f"tuigpt {command} <&- >&- 2>&-", env, here)
    assert result.returncode == 1


@pytest.mark.parametrize("command", ["score run -", "recite run -"])
def test_no_standard_input_to_read(env: dict[str, str], here: Path, command: str) -> None:
    result = in_a_shell(f"tuigpt {command} <&-", env, here)
    assert result.returncode == 2
    assert result.stderr == f"tuigpt: cannot read standard input: {CLOSED}\n"


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_training_goes_on_without_them(
    env: dict[str, str], home: Path, tmp_path: Path, verse_file: Path, streams: str
) -> None:
    line = f"tuigpt train verse.txt --name=run {' '.join(TINY)} --max-steps=3 {streams}"
    assert in_a_shell(line, env, tmp_path).returncode == 0
    listed = in_a_shell("tuigpt list run", env, tmp_path).stdout
    assert listed.startswith("run  finished  step 3/3")


def test_an_app_whose_drawing_nobody_would_see(open_terminal: Callable[..., Terminal]) -> None:
    """It draws on standard error, so that has to be the terminal too."""
    terminal = open_terminal(shell="{tuigpt} 2>log; cat log")
    terminal.until("the app needs a terminal")
