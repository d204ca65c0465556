"""Where there is no terminal, or a poor one, tuigpt says so in a line; pipes get plain text."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from system.conftest import TINY, Tuigpt, in_a_shell
from system.terminal import PATIENCE, Terminal

OpenTerminal = Callable[..., Terminal]

NEEDS = "tuigpt: the app needs a terminal; without one use `tuigpt train`"


@pytest.mark.parametrize("command", ["tuigpt", "tuigpt | cat", "tuigpt < /dev/null > log; exit $?"])
def test_the_app_without_a_terminal(env: dict[str, str], tmp_path: Path, command: str) -> None:
    result = in_a_shell(command, env, tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(NEEDS) and result.stderr.count("\n") == 1


def test_the_app_in_a_pipe_of_a_terminal(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(shell="{tuigpt} | cat")
    terminal.until("the app needs a terminal")
    assert terminal.until_ended() == 0  # of cat
    assert b"\x1b" not in terminal.output


def test_the_app_on_a_dumb_terminal(open_terminal: OpenTerminal, env: dict[str, str]) -> None:
    env["TERM"] = "dumb"
    terminal = open_terminal()
    terminal.until("the app needs a terminal")
    assert terminal.until_ended() == 2
    assert b"\x1b" not in terminal.output


@pytest.mark.parametrize("command", ["tuigpt list | true", "tuigpt --help | true"])
def test_a_reader_that_does_not_read(env: dict[str, str], tmp_path: Path, command: str) -> None:
    result = in_a_shell(f"{command}; echo ${{PIPESTATUS[0]}}", env, tmp_path)
    assert result.stderr == "" and result.stdout == "0\n"


def test_refusals_of_the_real_program(tuigpt: Tuigpt, home: Path, tmp_path: Path) -> None:
    """One line on stderr, status 2, nothing left behind; the rest of the table is a unit test."""
    (tmp_path / "short.txt").write_text("To be, or not to be.", "utf-8")
    for arguments in (
        ["train", "gone.txt"],
        ["train", "short.txt"],
        ["train", "short.txt", "--n-embd=30", "--n-head=4"],
        ["generate", "gone@best"],
    ):
        result = tuigpt(*arguments)
        assert result.returncode == 2 and result.stdout == ""
        assert result.stderr.startswith("tuigpt: ") and result.stderr.count("\n") == 1
    assert [p for p in home.rglob("*") if "cache" not in p.parts] == []


@pytest.mark.parametrize(("eval_interval", "val_fraction"), [(1, 0.1), (1, 0.0), (500, 0.1)])
def test_a_failed_training_says_so_and_exits_with_1(
    tuigpt: Tuigpt, home: Path, verse_file: Path, eval_interval: int, val_fraction: float
) -> None:
    """A learning rate far too high: it stops, names the remedy, and the run says failed."""
    result = tuigpt(
        "train", "verse.txt", "--name=wild", *TINY, "--max-steps=500",
        "--learning-rate=1e6", "--warmup-steps=0", f"--eval-interval={eval_interval}",
        f"--val-fraction={val_fraction}",
    )  # fmt: skip
    assert result.returncode == 1 and result.stderr == ""
    last = result.stdout.splitlines()[-1]
    assert re.search(r"no longer (a number|numbers) at step", last)
    assert "try a lower --learning-rate than 1e+06" in last
    listed = tuigpt("list").stdout
    assert re.search(r"^wild  failed  step \d+/500  the .* no longer", listed)


def test_no_color_codes_without_a_terminal_even_when_forced(
    tuigpt: Tuigpt, verse_file: Path
) -> None:
    result = tuigpt("train", "verse.txt", *TINY, "--max-steps=2", FORCE_COLOR="1", CLICOLOR="1")
    assert "\x1b" not in result.stdout + result.stderr


def test_training_in_a_terminal_has_a_live_line(
    open_terminal: OpenTerminal, verse_file: Path
) -> None:
    terminal = open_terminal("train", "verse.txt", *TINY, "--max-steps=400", columns=60)
    terminal.until(r"step [\d,]+/400  train \d\.\d\d")
    terminal.until("finished at step 400")
    assert terminal.until_ended() == 0
    # The live line is wiped: only lines of their own are left.
    assert not re.search(r"/400  train", terminal.text)
    assert max(map(len, terminal.text.splitlines())) <= 60


def test_a_terminal_that_hangs_up_ends_the_app(open_terminal: OpenTerminal) -> None:
    """Linux sends SIGCONT behind SIGHUP; whenever it comes, nothing goes on reading."""
    terminal = open_terminal()
    terminal.until("new run")
    terminal.hang_up()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        terminal.process.send_signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            terminal.process.wait(0.005)
            return
    raise AssertionError("it goes on without a terminal")
