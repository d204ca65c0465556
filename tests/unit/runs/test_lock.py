"""One trainer for each run folder, and a lock that ends with its process however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.runs.lock import LOCK_FILE, being_trained, is_locked, trainer_lock

HOLDER = """
import os, pathlib, subprocess, sys
from tuigpt.runs.lock import trainer_lock
with trainer_lock(pathlib.Path(sys.argv[1])) as locked:
    assert locked
    if sys.argv[2:] == ["fork"] and os.fork() == 0:
        print(os.getpid(), flush=True)
        sys.stdin.read()
        os._exit(0)
    if sys.argv[2:] == ["start"]:
        subprocess.Popen(["sh", "-c", "echo $$; read line"])
    if not sys.argv[2:]:
        print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


Hold = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def hold(folder: Path) -> Iterator[Hold]:
    """Starts a process that holds the lock, and waits until it does."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refusal(folder: Path) -> str:
    with pytest.raises(UserError) as refused, trainer_lock(folder):
        pass
    return str(refused.value)


def test_a_second_one_is_told_who_has_it(folder: Path, hold: Hold) -> None:
    holder = hold()
    assert first_line(holder) == "locked"
    words = f"run 'run' is being trained already (process {holder.pid})"
    assert refusal(folder) == words == refusal(folder)


def test_a_kill_releases_it(folder: Path, hold: Hold) -> None:
    holder = hold()
    first_line(holder)
    holder.kill()
    holder.wait()
    with trainer_lock(folder) as locked:
        assert locked


def test_the_end_of_the_block_releases_it(folder: Path) -> None:
    for _ in range(3):
        with trainer_lock(folder) as locked:
            assert locked
            assert f"(process {os.getpid()})" in refusal(folder)
    assert [p.name for p in folder.iterdir()] == [LOCK_FILE]


@pytest.mark.parametrize("how", ["fork", "start"])
def test_a_child_does_not_keep_it(folder: Path, hold: Hold, how: str) -> None:
    holder = hold(how)
    child = int(first_line(holder))
    try:
        assert f"(process {holder.pid})" in refusal(folder)
        holder.kill()
        holder.wait()
        os.kill(child, 0)  # it lives
        with trainer_lock(folder) as locked:
            assert locked
    finally:
        os.kill(child, signal.SIGKILL)


def test_it_is_the_folders_wherever_that_moves(folder: Path, tmp_path: Path) -> None:
    """And a folder that takes its name has a lock of its own."""
    with trainer_lock(folder):
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        assert "'moved' is being trained" in refusal(tmp_path / "moved")
        with trainer_lock(folder) as locked:
            assert locked


def test_it_is_one_through_a_symlink(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with trainer_lock(tmp_path / "link"):
        assert "being trained" in refusal(folder)
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": 1', b"[]", b"\xff\0"])
def test_whatever_the_file_holds(folder: Path, content: bytes) -> None:
    (folder / LOCK_FILE).write_bytes(content)
    with trainer_lock(folder) as locked:
        assert locked
        (folder / LOCK_FILE).write_bytes(content)  # as it may be found while it is written
        assert refusal(folder) == "run 'run' is being trained already"


def test_where_there_are_no_locks_one_trains_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*arguments: object, **options: object) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("filelock.lock_descriptor", no_locks)
    with trainer_lock(folder) as locked:
        assert not locked


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*arguments: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    assert refusal(folder) == f"cannot write '{folder}/trainer.lock': Read-only file system"


def test_a_process_on_another_machine_is_named_with_it() -> None:
    said = str(being_trained("run", 7, "elsewhere"))
    assert said == "run 'run' is being trained already (process 7 on elsewhere)"


class TestAskingWhoLives:
    def test_only_while_it_is_held(self, folder: Path, hold: Hold) -> None:
        assert is_locked(folder) is None  # nobody has ever trained here
        holder = hold()
        first_line(holder)
        assert is_locked(folder) is True and is_locked(folder) is True
        holder.kill()
        holder.wait()
        assert is_locked(folder) is False

    def test_those_who_ask_do_not_take_each_other_for_a_trainer(self, folder: Path) -> None:
        with trainer_lock(folder):
            pass
        with open(folder / LOCK_FILE, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_SH)  # somebody else who asks, and is slow
            assert is_locked(folder) is False

    def test_one_who_asks_does_not_keep_a_trainer_out(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with trainer_lock(folder):
            pass
        with open(folder / LOCK_FILE, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_SH)
            monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(other, fcntl.LOCK_UN))
            with trainer_lock(folder) as locked:
                assert locked

    @pytest.mark.parametrize("what", ["folder", "fifo", "dangling"])
    def test_something_else_in_its_place_tells_nothing(self, folder: Path, what: str) -> None:
        path = folder / LOCK_FILE
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to(folder / "nowhere")
        assert is_locked(folder) is None
        assert refusal(folder).startswith(f"cannot write '{path}'")


def test_a_link_in_its_place_is_never_followed(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (folder / LOCK_FILE).symlink_to(precious)
    assert refusal(folder).startswith("cannot write")
    assert precious.read_text() == "precious"
