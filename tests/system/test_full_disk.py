"""A training on a disk that fills up: it waits, says so, and loses nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import VERSE
from system.conftest import Tuigpt
from system.terminal import PATIENCE
from system.test_train import losses, trainer, until_told

from tuigpt.runs.folder import open_run

__all__ = ["trainer"]  # a fixture

SMALL = [
    "--n-layer=1", "--n-head=2", "--n-embd=64", "--block-size=16", "--batch-size=4",
    "--eval-tokens=64", "--sample-tokens=0", "--max-steps=100000", "--patience=0",
    "--eval-interval=1000", "--checkpoint-interval=20",
]  # fmt: skip


@pytest.fixture
def disk(tmp_path: Path, env: dict[str, str]) -> Iterator[Path]:
    """A home with room for about ten checkpoints of that model."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs to be allowed to mount")
    env["TUIGPT_HOME"] = str(disk)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_it_waits_and_goes_on_when_there_is_room_and_saves_when_it_is_stopped(
    trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "verse.txt").write_text(VERSE * 40)
    process = trainer("verse.txt", "--name=run", *SMALL)
    folder = disk / "runs/run"

    def is_full() -> int:
        full = until_told(folder, lambda s: "the disk is full" in s.message, of=process)
        assert full.state == "paused" and re.search(r"until \d+ kB are free", full.message)
        return full.step

    waiting_at = is_full()
    refused = tuigpt("ask", "run", "sample")
    assert "not now: the disk is full" in refused.stdout
    first, *_, last = open_run(folder).checkpoints
    for checkpoint in open_run(folder).checkpoints[:-1]:
        checkpoint.path.unlink()
    until_told(folder, lambda status: status.step > waiting_at, of=process)

    stopped_at = is_full()
    assert stopped_at > waiting_at
    assert tuigpt("stop", "run").returncode == 0
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and err == ""
    assert f"stopped at step {stopped_at:,}; saved run@{stopped_at}" in out
    run = open_run(folder)
    assert run.status.state == "stopped" and run.last is not None
    assert run.last.step == stopped_at and not any(c.problem for c in run.checkpoints)
    assert sorted(losses(folder)) == list(range(1, stopped_at + 1))
    assert not (folder / ".reserve").exists()

    for checkpoint in run.checkpoints[:-1]:
        checkpoint.path.unlink()
    resumed = tuigpt("train", "--resume=run", f"--max-steps={stopped_at + 5}")
    assert resumed.returncode == 0, resumed.stderr


def test_without_room_for_a_save_it_does_not_begin(
    tuigpt: Tuigpt, disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "verse.txt").write_text(VERSE * 40)
    (disk / "other").write_bytes(b"x" * (2500 << 10))
    refused = tuigpt("train", "verse.txt", "--name=run", *SMALL)
    assert refused.returncode == 2
    assert re.fullmatch(
        r"tuigpt: the disk of '.*/runs' is full: this training needs [\d.]+ [kM]B to save itself;"
        r" free some, or keep runs elsewhere with another --home\n",
        refused.stderr,
    )
    assert list((disk / "runs").iterdir()) == []
