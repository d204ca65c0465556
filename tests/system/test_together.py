"""`tuigpt train --nproc 2` and PyTorch's own launcher: one training in two processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from json_files import read_json
from safetensors.torch import load_file
from system.conftest import TINY, TUIGPT, Tuigpt
from system.terminal import PATIENCE
from system.test_train import losses, until_printed

from tuigpt.runs.folder import open_run

FLAGS = ["verse.txt", *TINY, "--eval-interval=10"]


@pytest.fixture
def together(env: dict[str, str], tmp_path: Path, verse_file: Path) -> Iterator[Together]:
    with Together(env, tmp_path) as started:
        yield started


class Together:
    """Starts `tuigpt train --nproc 2`, and ends it with the test."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self._env = env
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._started:
            process.terminate()
            process.communicate()

    def __call__(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TUIGPT, "train", "--nproc=2", *arguments],
            env=self._env, cwd=self._folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip
        self._started.append(process)
        return process


def processes_of(launcher: subprocess.Popen[str], home: Path, name: str) -> tuple[int, int]:
    """The process that leads, and the other."""
    leader = int(read_json(home / f"runs/{name}/status.json")["pid"])
    found = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    (other,) = {int(pid) for pid in found} - {leader}
    return leader, other


def test_the_result_is_that_of_one_process(together: Together, tuigpt: Tuigpt, home: Path) -> None:
    """With the same batch in all, stopped once in between."""
    length = ["--max-steps=40", "--dropout=0", "--micro-batch-size=1"]
    alone = tuigpt("train", "--name=alone", *FLAGS, *length)
    assert alone.returncode == 0, alone.stderr
    first = together("--name=both", *FLAGS, *length)
    until_printed(first, "step 10  val")
    first.send_signal(signal.SIGTERM)  # to the launcher, as `kill` or a closed terminal does
    out, err = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0 and err == "", err
    assert "stopped at step" in out and open_run(home / "runs/both").status.state == "stopped"

    second = together("--resume=both")
    out, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0 and err == "", err
    assert "finished at step 40" in out
    one, two = losses(home / "runs/alone"), losses(home / "runs/both")
    assert one.keys() == two.keys() and one == pytest.approx(two, abs=1e-5)
    weights = [load_file(home / f"runs/{name}/checkpoints/step-000040.safetensors")
               for name in ("alone", "both")]  # fmt: skip
    for name, tensor in weights[0].items():
        if name.endswith(".bias"):  # those of keys have no effect, and so no exact value
            continue
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")
@pytest.mark.parametrize("leads", [True, False])
def test_a_killed_process_ends_the_others_and_the_run_goes_on_alone(
    together: Together, tuigpt: Tuigpt, home: Path, leads: bool
) -> None:
    launcher = together("--name=run", *FLAGS, "--max-steps=100000", "--checkpoint-interval=10")
    until_printed(launcher, "step 10  sample")  # after the best of then was saved
    leader, other = processes_of(launcher, home, "run")
    os.kill(leader if leads else other, signal.SIGKILL)
    _, err = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 1
    assert f"process {1 if leads else 2} of 2 was killed by signal 9" in err
    assert "Traceback" not in err
    for pid in (leader, other):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    run = open_run(home / "runs/run")
    if leads:
        assert run.status.state == "lost"
    else:
        assert run.status.state == "failed" and "another process" in run.status.message
    step = run.status.step // 10 * 10 + 20
    resumed = tuigpt("train", "--resume=run", f"--max-steps={step}")
    assert resumed.returncode == 0, resumed.stderr
    assert f"finished at step {step}" in resumed.stdout


def test_what_cannot_work_is_said_once(together: Together) -> None:
    process = together("--name=run", *FLAGS, "--batch-size=5")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert err == (
        "tuigpt: --batch-size is 5, but it must be a multiple of the 2 processes that share it;"
        " try --batch-size 4 or 6\n"
    )


NOTE_THREADS = """
import atexit, os, pathlib
def note():
    names = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    pathlib.Path("threads-" + os.environ.get("RANK", "of-launcher")).write_text("".join(names))
atexit.register(note)
"""


def test_pytorchs_own_launcher_does_as_well(
    env: dict[str, str], tmp_path: Path, verse_file: Path, home: Path
) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/sitecustomize.py").write_text(NOTE_THREADS)
    env = {**env, "PYTHONPATH": str(tmp_path / "hooks")}
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
        "-m", "tuigpt", "train", "--name=run", *FLAGS, "--max-steps=10",
    ]  # fmt: skip
    result = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=PATIENCE
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("finished at step 10") == 1
    assert open_run(home / "runs/run").status.device == "2 × cpu"
    if sys.platform.startswith("linux"):
        for rank in (0, 1):  # a thread of a connection could abort a process that ends
            assert "gloo" not in (tmp_path / f"threads-{rank}").read_text()
