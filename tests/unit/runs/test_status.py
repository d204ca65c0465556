"""status.json: what is told, and what a reader concludes when nothing more is told."""

from __future__ import annotations

import json
import math
import os
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from json_files import read_json

from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.status import (
    ALIVE,
    STATUS_FILE,
    RunStatus,
    read_status,
    status_and_problem,
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
def test_a_trainer_lives_as_long_as_it_holds_the_lock(tmp_path: Path, state: str) -> None:
    write_status(tmp_path, replace(HERE, state=state))
    with trainer_lock(tmp_path):
        assert read_status(tmp_path).state == state
    lost = read_status(tmp_path)
    assert lost.state == "lost" and not lost.alive
    assert lost.step == 7 and "4711" in lost.message and HERE.host in lost.message


def test_a_process_number_that_was_given_out_anew_tells_nothing(tmp_path: Path) -> None:
    with trainer_lock(tmp_path):
        pass
    write_status(tmp_path, replace(HERE, pid=os.getpid()))
    assert read_status(tmp_path).state == "lost"


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_a_trainer_that_said_goodbye_is_not_lost(tmp_path: Path, state: str) -> None:
    write_status(tmp_path, replace(HERE, state=state))
    assert read_status(tmp_path).state == state


@pytest.mark.parametrize(("seconds", "state"), [(5, "training"), (600, "lost")])
@pytest.mark.parametrize("where", ["elsewhere", "no locks", "not locked yet"])
def test_where_locks_tell_nothing_the_heartbeat_decides(
    tmp_path: Path, seconds: int, state: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")
    host = "elsewhere" if where == "elsewhere" else HERE.host
    write_status(tmp_path, replace(HERE, host=host, heartbeat=beat))
    if where != "not locked yet":
        with trainer_lock(tmp_path):
            pass
    if where == "no locks":
        monkeypatch.setattr("tuigpt.runs.status.is_locked", lambda folder: None)
    assert read_status(tmp_path).state == state


def test_a_trainer_elsewhere_whose_lock_is_seen_lives(tmp_path: Path) -> None:
    old = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")
    write_status(tmp_path, replace(HERE, host="elsewhere", heartbeat=old))
    with trainer_lock(tmp_path):
        assert read_status(tmp_path).alive


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


def test_losses_are_shown_per_character_and_written_per_token(tmp_path: Path) -> None:
    told = replace(
        HERE, state="stopped", train_loss=1.5, val_loss=2.0, best_val_loss=1.75,
        characters_per_token=2.0, train_characters_per_token=4.0,
    )  # fmt: skip
    write_status(tmp_path, told)
    written = json.loads((tmp_path / STATUS_FILE).read_text())
    assert [written[n] for n in ("train_loss", "val_loss", "best_val_loss")] == [6.0, 4.0, 3.5]
    assert read_status(tmp_path) == told


def test_a_file_without_the_factor_of_the_training_part(tmp_path: Path) -> None:
    """The caller's is taken, else that of the newest evaluation."""
    (tmp_path / STATUS_FILE).write_text(
        '{"state": "stopped", "train_loss": 6.0, "val_loss": 4.0, "characters_per_token": 2.0}'
    )
    status = read_status(tmp_path)
    assert (status.train_loss, status.val_loss) == (3.0, 2.0)
    assert read_status(tmp_path, 4.0).train_loss == 1.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"state": "finished", "step": null}', "status.json: step should be int, not null"),
        ('{"step": -1}', "status.json: step should be int >= 0"),
        ('{"step": %s}' % ("9" * 401), "status.json: step should be int <="),
        ('{"val_loss": %s}' % ("9" * 401), "status.json: val_loss is out of range"),
        ('{"seconds_left": 1e300}', "status.json: seconds_left should be float <="),
        ('{"nonfinite": "x", "step": 1}', "status.json: nonfinite should be array, not str"),
        ('{"state": {"a": 1}}', "status.json: state should be str, not object"),
        ("[" * 100_000, "status.json: it "),
        ("", "status.json: it is not JSON, or cut short"),
        (None, "status.json: it is missing"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_told_in_a_line(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / STATUS_FILE).write_text(content)
    status, problem = status_and_problem(tmp_path)
    assert status.state == "lost" and problem.startswith(words) and "\n" not in problem


def test_texts_are_safe_to_show(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\u202etxt\n"
    write_status(tmp_path, replace(HERE, state="failed", device=evil, message=evil))
    status = read_status(tmp_path)
    for text in (status.device, status.message):
        assert not set(text) & set("\x1b\x07\u202e\n") and "owned" in text


def test_a_pipe_in_its_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / STATUS_FILE)
    assert status_and_problem(tmp_path)[1] == "status.json: it is no regular file"
