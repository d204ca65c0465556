"""status.json: what is told, and what a reader concludes when nothing more is told."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tuigpt.files import read_json
from tuigpt.runs.status import (
    ALIVE,
    STATUS_FILE,
    RunStatus,
    is_process_alive,
    read_status,
    status_of_this_process,
    utc_now,
    write_status,
)

HERE = RunStatus(state="training", step=7, pid=4711, host=socket.gethostname(), heartbeat=utc_now())


def test_it_comes_back_as_it_was_written(tmp_path: Path) -> None:
    status = replace(
        HERE, state="stopped", message="stopped at step 7", train_loss=1.5, best_step=5
    )
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status


def test_a_loss_that_is_no_number(tmp_path: Path) -> None:
    write_status(tmp_path, replace(HERE, state="failed", train_loss=math.nan))
    assert "NaN" not in (tmp_path / STATUS_FILE).read_text()
    assert math.isnan(read_status(tmp_path).train_loss or 0.0)


@pytest.mark.parametrize("state", sorted(ALIVE))
def test_a_trainer_whose_process_is_gone_is_lost(tmp_path: Path, state: str) -> None:
    write_status(tmp_path, replace(HERE, state=state))
    assert read_status(tmp_path, process_alive=lambda pid: True).state == state
    lost = read_status(tmp_path, process_alive=lambda pid: False)
    assert lost.state == "lost" and not lost.alive
    assert lost.step == 7 and "4711" in lost.message and HERE.host in lost.message


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_a_trainer_that_said_goodbye_is_not_lost(tmp_path: Path, state: str) -> None:
    write_status(tmp_path, replace(HERE, state=state))
    assert read_status(tmp_path, process_alive=lambda pid: False).state == state


@pytest.mark.parametrize(("seconds", "state"), [(5, "training"), (600, "lost")])
def test_on_another_machine_the_heartbeat_decides(tmp_path: Path, seconds: int, state: str) -> None:
    beat = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")
    write_status(tmp_path, replace(HERE, host="elsewhere", heartbeat=beat))
    assert read_status(tmp_path, process_alive=lambda pid: pytest.fail("asked")).state == state


@pytest.mark.parametrize("beat", ["", "yesterday", "2026-01-01T00:00:00"])
def test_a_heartbeat_that_is_none_is_old(tmp_path: Path, beat: str) -> None:
    write_status(tmp_path, replace(HERE, host="elsewhere", heartbeat=beat))
    assert read_status(tmp_path).state == "lost"


@pytest.mark.parametrize("content", [None, "", "{", "[]", "\0", "null"])
def test_without_a_readable_status_it_is_lost(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / STATUS_FILE).write_text(content)
    assert read_status(tmp_path).state == "lost"


def test_facts_of_a_newer_tuigpt_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / STATUS_FILE).write_text('{"state": "finished", "step": 3, "mood": "fine"}')
    assert read_status(tmp_path) == RunStatus(state="finished", step=3)


def test_the_status_of_this_process_is_alive_at_once(tmp_path: Path) -> None:
    """From the first instant of its folder a run is shown as preparing, never as lost."""
    write_status(tmp_path, status_of_this_process(max_steps=10))
    status = read_status(tmp_path)
    assert (status.state, status.pid, status.max_steps) == ("preparing", os.getpid(), 10)
    assert datetime.fromisoformat(status.start).tzinfo is not None
    assert read_json(tmp_path / STATUS_FILE)["host"] == socket.gethostname()


def test_processes(tmp_path: Path) -> None:
    assert is_process_alive(os.getpid())
    assert not is_process_alive(0) and not is_process_alive(-1)
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert is_process_alive(process.pid)
    assert process.stdin and process.stdout
    process.stdin.close()
    process.stdout.read()  # to its end: the process has ended, but nobody has asked for its status
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_process_alive(process.pid)  # a zombie trains nothing
    process.wait()
    assert not is_process_alive(process.pid)
