"""`tuigpt train` as a shell runs it: into a pipe, interrupted, killed, resumed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import VERSE
from json_files import read_json
from system.conftest import TINY, TUIGPT, Tuigpt
from system.terminal import PATIENCE, Terminal

from tuigpt.files import write_json
from tuigpt.runs.control import request
from tuigpt.runs.folder import open_run
from tuigpt.runs.record import read_run_record
from tuigpt.runs.status import RunStatus, read_status

OpenTerminal = Callable[..., Terminal]

FOREVER = [*TINY, "--max-steps=1000000"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def lines_of_whole(path: Path) -> list[dict[str, Any]]:
    """The lines of a log whose last one may be torn."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def losses(folder: Path) -> dict[int, float]:
    """The loss of each update, the newest where one was done twice."""
    records = lines_of(folder / "metrics.jsonl")
    return {r["step"]: r["loss"] for r in records if r["kind"] == "step"}


@pytest.fixture
def trainer(
    env: dict[str, str], tmp_path: Path, verse_file: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `tuigpt train` with its output in a pipe, and ends it with the test."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TUIGPT, "train", *arguments],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until_told(
    folder: Path, wanted: Callable[[RunStatus], bool], of: subprocess.Popen[str] | None = None
) -> RunStatus:
    """Wait until a run's status says something.

    Args:
        of: its trainer, where the folder need not be there yet.
    """
    deadline = time.monotonic() + PATIENCE
    while not wanted(status := read_status(folder)):
        running = status.alive if of is None else of.poll() is None
        assert running and time.monotonic() < deadline, status
        time.sleep(0.01)
    return status


def until_printed(process: subprocess.Popen[str], pattern: str) -> str:
    """Wait for a line of a trainer's output that prints on and on."""
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE
    for line in process.stdout:
        if re.search(pattern, line):
            return line
        assert time.monotonic() < deadline, f"it has not printed {pattern!r}, but {line!r}"
    raise AssertionError(f"it ended without printing {pattern!r}")


class TestIntoAPipe:
    @pytest.fixture
    def result(self, tuigpt: Tuigpt, verse_file: Path) -> subprocess.CompletedProcess[str]:
        return tuigpt(
            "train", "verse.txt", "--name=verse", "--max-steps=12", *TINY,
            "--eval-interval=5", "--checkpoint-interval=4",
        )  # fmt: skip

    def test_it_prints_plain_lines_and_leaves_a_whole_run_folder(
        self, result: subprocess.CompletedProcess[str], home: Path, verse_file: Path
    ) -> None:
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert not re.search(r"[^\n -~⏎]", result.stdout), "control codes in a pipe"
        assert re.search(r"^step 12  val \d\.\d+ nats = .* \(the whole val", result.stdout, re.M)
        *_, ended, best, write, resume = result.stdout.splitlines()
        assert ended.startswith("finished at step 12; saved verse@12: ")
        assert re.match(r"best: val \d\.\d{4} nats per character, at step \d+$", best)
        assert re.match(r"write with: tuigpt generate verse@best .*'--prompt=To be or not'$", write)
        assert re.match(r"resume with: tuigpt train --resume=verse .*--max-steps=24$", resume)

        folder = home / "runs" / "verse"
        names = {p.name for p in folder.iterdir()}
        assert names == {
            "run.json", "status.json", "metrics.jsonl", "checkpoints", "resume.safetensors",
            "trainer.lock",
        }  # fmt: skip
        run = open_run(folder)
        assert run.status.state == "finished" and run.status.step == 12
        assert run.record is not None and run.problem == ""
        assert run.record.corpus.name == "verse" and run.record.corpus.characters == 5360
        assert run.record.train.max_steps == 12 and run.record.model.n_embd == 16
        assert {"tuigpt", "torch", "python"} <= set(run.record.versions)

        records = lines_of(folder / "metrics.jsonl")
        assert {r["kind"] for r in records} == {"step", "eval", "sample", "checkpoint", "event"}
        assert [r["step"] for r in records if r["kind"] == "step"] == list(range(1, 13))
        assert [r["step"] for r in records if r["kind"] == "eval"] == [0, 5, 10, 12, 12]
        assert [r["step"] for r in records if r["kind"] == "sample"] == [5, 10, 12]
        steps = [c.step for c in run.checkpoints]
        assert {4, 8, 12} <= set(steps) and not any(c.problem for c in run.checkpoints)
        assert run.best is not None and run.best.step == run.status.best_step

    def test_programs_get_one_json_object_a_line(self, tuigpt: Tuigpt, verse_file: Path) -> None:
        result = tuigpt(
            "train", "verse.txt", "--name=verse", "--max-steps=6", *TINY, "--eval-interval=3",
            "--json",
        )  # fmt: skip
        assert (result.returncode, result.stderr) == (0, "")
        begin, *told, end = map(json.loads, result.stdout.splitlines())
        assert (begin["kind"], begin["run"], begin["max_steps"]) == ("begin", "verse", 6)
        assert {line["kind"] for line in told} >= {"step", "eval", "sample"}
        assert [line["step"] for line in told if line["kind"] == "eval"] == [0, 3, 6, 6]
        assert (end["kind"], end["how"], end["step"]) == ("end", "finished", 6)
        assert Path(end["checkpoint"]).exists() and end["best_step"] in (0, 3, 6)

    def test_its_checkpoint_opens_by_path_alone_anywhere(
        self, result: subprocess.CompletedProcess[str], home: Path, tuigpt: Tuigpt, tmp_path: Path
    ) -> None:
        """A checkpoint sent to a friend opens there."""
        path = home / "runs" / "verse" / "checkpoints" / "step-000012.safetensors"
        friend = tmp_path / "gift.safetensors"
        friend.write_bytes(path.read_bytes())
        flags = ["--prompt=But", "--max-new-tokens=5", "--seed=7"]
        here = tuigpt("generate", "verse@12", *flags)
        there = tuigpt("generate", friend, *flags, TUIGPT_HOME=str(tmp_path / "elsewhere"))
        assert here.returncode == there.returncode == 0
        assert here.stdout == there.stdout and here.stdout.startswith("But")

    def test_a_reader_that_goes_away_is_no_trouble(
        self, env: dict[str, str], tmp_path: Path, verse_file: Path, home: Path
    ) -> None:
        """`tuigpt train | head -1` prints one line and nothing on stderr, and the work is saved."""
        train = subprocess.list2cmdline([*TUIGPT, "train", "verse.txt", "--name=cut", *FOREVER])
        shell = f"{train} --eval-interval=1 | head -1"
        result = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {shell}"],
            env=env, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=PATIENCE,
        )  # fmt: skip
        assert result.stderr == ""
        assert result.stdout.count("\n") == 1 and result.stdout.startswith("cut: ")
        run = open_run(home / "runs" / "cut")
        assert run.status.state == "stopped"
        assert run.last is not None and run.last.step == run.status.step


class TestStopping:
    def test_ctrl_c_saves_says_where_and_resuming_equals_never_having_stopped(
        self, open_terminal: OpenTerminal, tuigpt: Tuigpt, home: Path, verse_file: Path
    ) -> None:
        flags = [*TINY, "--max-steps=700", "--eval-interval=200"]
        terminal = open_terminal("train", "verse.txt", "--name=broken", *flags)
        terminal.until(r"step [1-9]\d*/700  train")
        terminal.press("ctrl+c")
        assert terminal.until_ended() == 0
        said = terminal.until(r"stopped at step ([\d,]+); saved broken@(\d+): ")
        assert said and "resume with: tuigpt train --resume=broken" in terminal.text
        step = int(said[2])
        assert 0 < step < 700
        assert (home / f"runs/broken/checkpoints/step-{step:06d}.safetensors").exists()
        assert read_json(home / "runs/broken/status.json")["state"] == "stopped"

        resumed = tuigpt("train", "--resume", "broken")
        assert resumed.returncode == 0, resumed.stderr
        assert "finished at step 700" in resumed.stdout
        whole = tuigpt("train", "verse.txt", "--name=whole", *flags)
        assert whole.returncode == 0
        assert losses(home / "runs/broken") == losses(home / "runs/whole")
        tensors = [tensor_bytes(home / f"runs/{n}/checkpoints/step-000700.safetensors")
                   for n in ("broken", "whole")]  # fmt: skip
        assert tensors[0] == tensors[1]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_each_polite_signal_saves(
        self, trainer: Callable[..., subprocess.Popen[str]], home: Path, number: signal.Signals
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=100")
        until_printed(process, "step 100  val")
        process.send_signal(number)
        process.send_signal(number)  # an impatient second one spoils nothing
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and err == ""
        said = re.search(r"stopped at step [\d,]+; saved run@(\d+)", out)
        assert said
        run = open_run(home / "runs/run")
        assert run.status.state == "stopped" and run.status.step == int(said[1]) >= 100
        assert run.last is not None and run.last.step == int(said[1]) and not run.last.problem

    def test_signals_while_it_saves_spoil_nothing(
        self, trainer: Callable[..., subprocess.Popen[str]], home: Path
    ) -> None:
        """Ctrl-C again and again until it has ended."""
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=100")
        until_printed(process, "step 100  val")
        while process.poll() is None and read_json(home / "runs/run/status.json")["state"] in (
            "training", "evaluating", "sampling"
        ):  # fmt: skip
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        run = open_run(home / "runs/run")
        assert run.status.state == "stopped"
        assert run.last is not None and run.last.step == run.status.step
        assert (run.folder / "resume.safetensors").exists()
        assert not list(run.folder.rglob(".partial-*"))

    def test_closing_the_terminal_saves(
        self, open_terminal: OpenTerminal, home: Path, verse_file: Path
    ) -> None:
        terminal = open_terminal("train", "verse.txt", "--name=run", *FOREVER)
        terminal.until(r"step [1-9][\d,]*/1,000,000  train")
        terminal.hang_up()
        terminal.process.wait(PATIENCE)
        run = open_run(home / "runs/run")
        assert run.status.state == "stopped", run.status
        assert run.last is not None and run.last.step == run.status.step > 0

    def test_stop_from_another_terminal(
        self, trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=100")
        until_printed(process, "step 100  val")
        answer = tuigpt("stop", "run")
        assert answer.returncode == 0
        assert re.search(r"^run: stopped at step [\d,]+$", answer.stdout, re.MULTILINE)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        again = tuigpt("stop", "run")
        assert again.returncode == 2
        assert again.stderr == "tuigpt: run 'run' is not running: it is stopped\n"


class TestAsked:
    """What the app's keys ask of a trainer, through its run folder."""

    def test_pause_sample_checkpoint_and_go_on(
        self, trainer: Callable[..., subprocess.Popen[str]], home: Path
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=1000")
        until_printed(process, "step 0  val")
        folder = home / "runs/run"

        def ask(action: str) -> RunStatus:
            number = request(folder, action)
            return until_told(folder, lambda status: status.answered >= number)

        ask("pause")
        paused = until_told(folder, lambda status: status.state == "paused")
        ask("sample")
        ask("checkpoint")
        status = until_told(folder, lambda status: status.state == "paused")
        assert status.step == paused.step  # a sample and a checkpoint, and no step
        kinds = [(r["kind"], r["step"]) for r in lines_of(folder / "metrics.jsonl")]
        assert ("sample", paused.step) in kinds and ("checkpoint", paused.step) in kinds

        ask("resume")
        until_told(folder, lambda status: status.step > paused.step)
        ask("stop")
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        run = open_run(folder)
        assert run.status.state == "stopped"
        assert {paused.step, run.status.step} <= {c.step for c in run.checkpoints}

    def test_a_paused_trainer_can_be_stopped(
        self, trainer: Callable[..., subprocess.Popen[str]], home: Path
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER)
        until_printed(process, "step 0  val")
        request(home / "runs/run", "pause")
        until_told(home / "runs/run", lambda status: status.state == "paused")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert open_run(home / "runs/run").status.state == "stopped"

    def test_rate_and_dropout_change_while_it_runs_and_stay_changed(
        self, trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=1000")
        until_printed(process, "step 0  val")
        answer = tuigpt("ask", "run", "learning-rate", "0.005")
        assert answer.returncode == 0
        assert answer.stdout.startswith("run: learning rate changed from 0.02 to 0.005 at step ")
        assert tuigpt("ask", "run", "dropout", "0.1").returncode == 0
        assert "not changed: max steps is 1" in tuigpt("ask", "run", "max-steps", "1").stdout
        refused = tuigpt("ask", "run", "dropout", "1.5")
        assert refused.returncode == 2 and "--dropout is 1.5, but" in refused.stderr
        assert tuigpt("ask", "run", "stop").returncode == 0
        process.communicate(timeout=PATIENCE)
        folder = home / "runs/run"
        changes = [r for r in lines_of(folder / "metrics.jsonl") if "setting" in r]
        assert [(r["setting"], r["message"]) for r in changes] == [
            ("learning_rate", "learning rate changed from 0.02 to 0.005"),
            ("dropout", "dropout changed from 0 to 0.1"),
        ]
        status = read_status(folder)
        assert (status.learning_rate, status.dropout) == (0.005, 0.1)

        resumed = trainer("--resume", "run")
        until_printed(resumed, "resumed at step")
        until_told(folder, lambda now: now.step > status.step)
        now = read_status(folder)
        assert (now.learning_rate, now.dropout) == (0.005, 0.1)
        newest = lines_of_whole(folder / "metrics.jsonl")[-1]
        assert newest.get("learning_rate", 0) <= 0.005
        resumed.send_signal(signal.SIGINT)
        resumed.communicate(timeout=PATIENCE)

    def test_discarded_nothing_is_left(
        self, trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path
    ) -> None:
        process = trainer("verse.txt", "--name=run", *FOREVER, "--eval-interval=100")
        until_printed(process, "step 100  val")
        answer = tuigpt("ask", "run", "discard")
        assert answer.returncode == 0 and answer.stdout.endswith("run: deleted\n")
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and err == ""
        assert out.splitlines()[-1] == "discarded run: its folder is deleted"
        assert list((home / "runs").iterdir()) == []

    def test_what_cannot_be_asked_for(self, tuigpt: Tuigpt) -> None:
        for words, said in (
            (["dance"], "cannot ask a trainer to 'dance': it knows checkpoint, discard, dropout"),
            (["dropout"], "dropout needs a value, such as 0.01"),
            (["pause", "5"], "pause takes no value"),
            (["dropout", "much"], "dropout is 'much', but it must be a number"),
            (["pause"], "no run 'run'"),
        ):
            result = tuigpt("ask", "run", *words)
            assert result.returncode == 2 and said in result.stderr


class TestKilled:
    def test_killed_in_the_last_evaluation_it_is_measured_by_resuming(
        self, tuigpt: Tuigpt, home: Path, verse_file: Path
    ) -> None:
        flags = [*TINY, "--max-steps=5", "--checkpoint-interval=5"]
        assert tuigpt("train", "verse.txt", "--name=run", *flags).returncode == 0
        folder = home / "runs/run"
        before = losses(folder)
        # As a kill would leave it: every step done, the end never told.
        status = read_json(folder / "status.json")
        write_json(folder / "status.json", status | {"state": "evaluating", "pid": 2**22 + 1})
        assert open_run(folder).status.state == "lost"
        resumed = tuigpt("train", "--resume", "run")
        assert resumed.returncode == 0, resumed.stderr
        assert "(the whole validation part)" in resumed.stdout
        assert "finished at step 5" in resumed.stdout and losses(folder) == before
        assert open_run(folder).status.state == "finished"

    def test_a_killed_run_is_lost_and_can_be_resumed(
        self, trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path
    ) -> None:
        flags = [*TINY, "--max-steps=100000", "--checkpoint-interval=50", "--eval-interval=100"]
        process = trainer("verse.txt", "--name=run", *flags)
        until_printed(process, "step 100  val")
        process.kill()
        process.communicate()
        listed = tuigpt("list")
        assert re.search(r"^run  lost  step \d+/100,000  its trainer .* is gone$",
                         listed.stdout, re.MULTILINE)  # fmt: skip
        run = open_run(home / "runs/run")
        assert run.last is not None and run.last.step >= 50
        assert not any(c.problem for c in run.checkpoints)

        resumed = trainer("--resume", "run")
        until_printed(resumed, r"step [\d,]+  val")
        resumed.send_signal(signal.SIGINT)
        out, _ = resumed.communicate(timeout=PATIENCE)
        assert resumed.returncode == 0
        assert open_run(home / "runs/run").status.step > run.last.step - 1
        assert "stopped at step" in out


class TestTwoTrainers:
    def test_the_second_is_refused_until_the_first_has_ended_whatever_the_status_says(
        self, trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path
    ) -> None:
        flags = [*FOREVER, "--checkpoint-interval=50", "--eval-interval=100"]
        first = trainer("verse.txt", "--name=run", *flags)
        until_printed(first, "step 100  val")
        words = f"tuigpt: run 'run' is being trained already (process {first.pid})\n"
        refused = tuigpt("train", "--resume", "run")
        assert (refused.returncode, refused.stderr) == (2, words)

        first.send_signal(signal.SIGSTOP)
        os.waitpid(first.pid, os.WUNTRACED)
        folder = home / "runs/run"
        status = read_json(folder / "status.json")
        silent = {"host": "elsewhere", "heartbeat": "2020-01-01T00:00:00+00:00"}
        write_json(folder / "status.json", status | silent)
        assert open_run(folder).status.alive  # it holds the lock
        before = {p: p.stat() for p in folder.rglob("*")}
        refused = tuigpt("train", "--resume", "run")
        assert (refused.returncode, refused.stderr) == (2, words)
        assert {p: p.stat() for p in folder.rglob("*")} == before

        first.kill()
        first.communicate()
        # Another process has its number now.
        write_json(folder / "status.json", status | {"pid": os.getpid()})
        assert open_run(folder).status.state == "lost"
        second = trainer("--resume", "run")
        until_printed(second, r"step [\d,]+  val")
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=PATIENCE)
        assert second.returncode == 0 and open_run(folder).status.state == "stopped"


class TestTheRunFolder:
    def test_on_other_disks_it_is_resumed_there_and_swept(
        self, tuigpt: Tuigpt, home: Path, tmp_path: Path, verse_file: Path
    ) -> None:
        """The runs on one, a run on another, each behind a symlink."""
        disk, other = tmp_path / "disk", tmp_path / "other"
        disk.mkdir()
        home.mkdir()
        (home / "runs").symlink_to(disk)
        flags = [*TINY, "--max-steps=5", "--checkpoint-interval=5"]
        assert tuigpt("train", "verse.txt", "--name=run", *flags).returncode == 0
        (disk / "run").rename(other)
        (disk / "run").symlink_to(other)
        # As a kill would leave it.
        status = read_json(other / "status.json")
        write_json(other / "status.json", status | {"state": "evaluating", "pid": 2**22 + 1})
        (other / ".partial-resume").write_bytes(b"half")
        (other / "checkpoints" / ".partial-step").write_bytes(b"half")
        (disk / ".partial-draft").mkdir()
        os.utime(disk / ".partial-draft", (0, 0))

        resumed = tuigpt("train", "--resume", "run")
        assert resumed.returncode == 0, resumed.stderr
        assert (home / "runs").is_symlink() and (disk / "run").is_symlink()
        assert not (other / "status.json").is_symlink()
        assert read_json(other / "status.json")["state"] == "finished"
        assert [p for p in tmp_path.rglob("*") if p.name.startswith(".partial-")] == []
        assert [p.name for p in disk.iterdir()] == ["run"]

    def test_its_modes_follow_the_umask(
        self, env: dict[str, str], home: Path, tmp_path: Path, verse_file: Path
    ) -> None:
        command = [*TUIGPT, "train", "verse.txt", "--name=run", *TINY, "--max-steps=2"]
        subprocess.run(command, env=env, cwd=tmp_path, umask=0o027, check=True, timeout=PATIENCE)
        modes = {p: stat.S_IMODE(p.stat().st_mode) for p in [home, *home.rglob("*")]}
        assert {p: 0o750 if p.is_dir() else 0o640 for p in modes} == modes


def tensor_bytes(path: Path) -> bytes:
    """The weights of a checkpoint, without its header."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    offsets = {k: v["data_offsets"] for k, v in header.items() if k != "__metadata__"}
    data = raw[8 + length :]
    return b"".join(data[a:b] for _, (a, b) in sorted(offsets.items()))


def test_it_learns_whatever_the_locale(tuigpt: Tuigpt, tmp_path: Path) -> None:
    """Text, run name and output keep their characters under LC_ALL=C."""
    (tmp_path / "größe.txt").write_text("Ich weiß, größer ist’s nicht. 日本語\n" * 40, "utf-8")
    trained = tuigpt("train", "größe.txt", "--name=weiß", *TINY, "--max-steps=2", LC_ALL="C")
    assert trained.returncode == 0, trained.stderr
    written = tuigpt("generate", "weiß@2", "--prompt=größer 日", "--max-new-tokens=2", LC_ALL="C")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("größer 日")
    assert "weiß  finished" in tuigpt("list", LC_ALL="C").stdout


def test_a_file_name_that_is_no_utf_8(tuigpt: Tuigpt, tmp_path: Path, home: Path) -> None:
    name = os.fsdecode(b"gr\xf6\xdfe.txt")
    (tmp_path / name).write_text(VERSE * 40, "utf-8")
    trained = tuigpt("train", name, "--name=run", *TINY, "--max-steps=2")
    assert trained.returncode == 0, trained.stderr
    assert read_run_record(home / "runs/run").corpus.path == str(tmp_path / name)
    assert tuigpt("generate", "run@2", "--max-new-tokens=2").returncode == 0


def test_a_trainer_follows_its_folder_to_another_name(
    trainer: Callable[..., subprocess.Popen[str]], tuigpt: Tuigpt, home: Path, verse_file: Path
) -> None:
    """Even when another folder has taken its name."""
    process = trainer(str(verse_file), "--name=former", *FOREVER)
    until_printed(process, r"step \d+")
    os.rename(home / "runs/former", home / "runs/moved")
    (home / "runs/former").mkdir()
    until_told(home / "runs/moved", lambda status: "is now" in status.message)
    answer = tuigpt("stop", "moved")
    assert answer.returncode == 0, answer.stderr
    out, _ = process.communicate(timeout=PATIENCE)
    run = open_run(home / "runs/moved")
    assert process.returncode == 0 and f"saved moved@{run.status.step}" in out
    assert run.last is not None and run.last.step == run.status.step
    assert list((home / "runs/former").iterdir()) == []


def test_a_trainer_whose_folder_is_deleted_ends_and_leaves_its_name_to_others(
    trainer: Callable[..., subprocess.Popen[str]], home: Path, verse_file: Path
) -> None:
    """Even when another folder has taken the name in the meantime."""
    process = trainer(str(verse_file), "--name=same", *FOREVER)
    folder = home / "runs" / "same"
    until_printed(process, r"step \d+")
    os.rename(folder, home / "gone")
    shutil.rmtree(home / "gone", ignore_errors=True)
    folder.mkdir()
    assert process.wait(PATIENCE) == 1
    assert "is gone" in process.stdout.read()  # type: ignore[union-attr]
    assert list(folder.iterdir()) == []


def test_what_cannot_be_compiled_trains_without(
    tuigpt: Tuigpt, home: Path, verse_file: Path
) -> None:
    """Where there is no C++ compiler."""
    result = tuigpt("train", "--name=run", "verse.txt", *TINY, "--max-steps=2", "--compile",
                    CXX="/nowhere/c++", TORCHINDUCTOR_CACHE_DIR=str(home / "inductor"))  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "torch.compile does not work here, training without: " in result.stdout
    assert "finished at step 2" in result.stdout


def test_nothing_is_compiled_and_no_folder_for_it_is_needed(
    tuigpt: Tuigpt, verse_file: Path
) -> None:
    """As in a container whose root cannot be written."""
    result = tuigpt("train", "verse.txt", *TINY, "--max-steps=1",
                    TORCHINDUCTOR_CACHE_DIR="/proc/nowhere")  # fmt: skip
    assert result.returncode == 0, result.stderr


SHORT_OF_MEMORY = """
import resource, sys
import tuigpt.training.process  # so that all libraries have what they need
from tuigpt.cli.main import main
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (300 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[1:]))
"""
"""`tuigpt` in a process that gets no more than 300 MiB beside what it has."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_too_little_memory_is_told_with_what_would_do(
    env: dict[str, str], tmp_path: Path, home: Path, verse_file: Path
) -> None:
    wide = ["--n-embd=256", "--n-layer=4", "--block-size=64", "--batch-size=512", "--max-steps=5"]
    command = [sys.executable, "-c", SHORT_OF_MEMORY, "train", str(verse_file), "--name=wide"]
    at_once = [*wide, "--micro-batch-size=512"]
    done = subprocess.run(
        [*command, *at_once], env=env, cwd=tmp_path, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    told = re.search(r"out of memory at step 0 with (.+), which need (.+) GB and more", done.stdout)
    assert told is not None, done.stdout
    assert told[1] == "--batch-size 512, --block-size 64 and --n-embd 256"
    assert float(told[2]) > 0.3
    assert "--micro-batch-size 1" in done.stdout
    status = read_status(home / "runs" / "wide")
    assert status.state == "failed" and "out of memory" in status.message
