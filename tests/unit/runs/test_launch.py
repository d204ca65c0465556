"""Starting a trainer: it is on its own, and why it would not start is told."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tuigpt.paths import runs_dir
from tuigpt.runs.launch import Launch, start


def until_ended(launched: Launch) -> str | None:
    launched.process.wait(60)
    return launched.refusal()


def test_a_refusal_is_told_in_one_line_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    launched = start(home, ["--max-steps=3", "--", str(tmp_path / "gone.txt")])
    assert launched.log.parent == home
    refusal = until_ended(launched)
    assert refusal and "gone.txt" in refusal
    assert "\n" not in refusal and not refusal.startswith("tuigpt:")
    assert list(home.rglob("*")) == [] or [p.name for p in home.iterdir()] == ["cache"]


@pytest.mark.parametrize(
    ("argument", "words"),
    [("--max-steps=0", "max steps is 0"), ("--steps=5", "there is no flag '--steps'")],
)
def test_a_bad_setting_is_told_as_the_app_does(home: Path, argument: str, words: str) -> None:
    refusal = until_ended(start(home, [argument]))
    assert refusal and refusal.startswith(words)


def test_a_full_disk_that_took_no_words_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = start(home, ["--max-steps=0"])
    launched.process.wait(60)
    launched.log.write_bytes(b"")
    usage = shutil.disk_usage(home)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    refusal = launched.refusal()
    assert refusal and refusal.startswith("the disk is full") and repr(str(home)) in refusal


def test_while_it_starts_there_is_no_refusal(home: Path, tmp_path: Path) -> None:
    """And the trainer outlives us: it has a session of its own and no terminal."""
    text = tmp_path / "pipe"
    os.mkfifo(text)  # reading it waits until somebody writes
    launched = start(home, [str(text)])
    try:
        assert launched.refusal() is None
        assert os.getsid(launched.process.pid) == launched.process.pid != os.getsid(0)
    finally:
        launched.process.kill()
        launched.process.wait()
    assert launched.refusal() == "it ended with status -9"
    assert not launched.log.exists()


def test_one_that_runs_takes_its_log_with_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "verse.txt").write_text("O for a muse of fire, that would ascend\n" * 30, "utf-8")
    small = ["--n-layer=1", "--n-head=1", "--n-embd=8", "--block-size=8", "--batch-size=2"]
    launched = start(home, [*small, "--max-steps=2", "--name=run", str(tmp_path / "verse.txt")])
    assert launched.process.wait(60) == 0
    assert launched.refusal() is None
    log = (runs_dir(home) / "run" / "trainer.log").read_text("utf-8")
    assert "finished at step 2" in log
    assert not list(home.glob("starting-*"))


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError):
        start(tmp_path / "file" / "home", [])


def test_a_start_that_fails_leaves_no_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(OSError):
        start(home, [])
    assert list(home.iterdir()) == []
