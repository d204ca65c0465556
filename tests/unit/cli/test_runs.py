"""`tuigpt ask` and `tuigpt stop` end with a line also when nobody is left who could answer."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import MakeRun

from tuigpt.cli.main import main
from tuigpt.runs.status import utc_now

TRAINER = """
import pathlib, sys
from tuigpt.runs.lock import trainer_lock
with trainer_lock(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""
"""A trainer that holds its run's lock and answers nothing."""


@pytest.fixture
def silent_trainer(
    monkeypatch: pytest.MonkeyPatch, make_run: MakeRun, home: Path
) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Makes the run `run`, whose trainer had its last heartbeat at a given time."""
    monkeypatch.setenv("TUIGPT_HOME", str(home))
    folder = home / "runs" / "run"
    folder.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as trainer:  # fmt: skip
        assert trainer.stdout is not None and trainer.stdout.readline() == "locked\n"
        (folder / "trainer.lock").rename(folder.parent / "lock")
        folder.rmdir()

        def make(heartbeat: str) -> subprocess.Popen[str]:
            make_run(
                "run", state="training", step=7, pid=trainer.pid, host=socket.gethostname(),
                heartbeat=heartbeat,
            )  # fmt: skip
            (folder.parent / "lock").rename(folder / "trainer.lock")
            return trainer

        yield make
        trainer.kill()


REQUESTS = [["ask", "run", "pause"], ["ask", "run", "sample"], ["stop", "run"],
            ["ask", "run", "discard"]]  # fmt: skip


@pytest.mark.parametrize("arguments", REQUESTS)
def test_a_trainer_that_is_killed_before_it_answers(
    capsys: pytest.CaptureFixture[str],
    silent_trainer: Callable[[str], subprocess.Popen[str]],
    home: Path,
    arguments: list[str],
) -> None:
    trainer = silent_trainer(utc_now())

    def kill_once_asked() -> None:
        while not (home / "runs/run/control.json").exists():
            time.sleep(0.01)
        trainer.kill()

    threading.Thread(target=kill_once_asked).start()
    began = time.monotonic()
    assert main(arguments) == 1
    assert time.monotonic() - began < 5
    assert "run: " in (out := capsys.readouterr().out) and "lost" in out


@pytest.mark.parametrize("arguments", REQUESTS)
def test_a_trainer_that_is_suspended(
    capsys: pytest.CaptureFixture[str],
    silent_trainer: Callable[[str], subprocess.Popen[str]],
    arguments: list[str],
) -> None:
    silent_trainer("2020-01-01T00:00:00+00:00")
    began = time.monotonic()
    assert main(arguments) == 1
    assert time.monotonic() - began < 5
    out = capsys.readouterr().out
    assert "nobody answers: its trainer (process" in out and "no sign of life for" in out
