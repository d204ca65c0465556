"""A command that tuigpt prints does what it says when it is pasted into a shell."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from system.conftest import TINY, TUIGPT, in_a_shell


@pytest.mark.parametrize("place", ['it\'s a "home" $HOME', "-home"])
def test_resume(env: dict[str, str], tmp_path: Path, verse_file: Path, place: str) -> None:
    """Where a run of the same name in the default home is another one."""
    del env["TUIGPT_HOME"]
    name = "spring + 1"
    arguments = [f"--name={name}", *TINY]
    line = shlex.join(["tuigpt", "train", "verse.txt", *arguments, "--max-steps=2"])
    assert in_a_shell(line, env, tmp_path).returncode == 0
    with subprocess.Popen(
        [*TUIGPT, "train", "verse.txt", *arguments, "--home", place, "--max-steps=100000"],
        env=env, cwd=tmp_path, stdout=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        next(line for line in process.stdout if line.startswith("step"))
        process.send_signal(signal.SIGTERM)
        printed = process.stdout.read().splitlines()[-1]
    assert process.returncode == 0
    said, _, command = printed.partition(": ")
    assert said == "resume with"
    (tmp_path / "elsewhere").mkdir()
    at = int((tmp_path / place / "runs" / name / "status.json").read_text().split('"step":')[1]
             .split(",")[0])  # fmt: skip
    result = in_a_shell(f"{command} --max-steps={at + 1}", env, tmp_path / "elsewhere")
    assert result.returncode == 0, result.stderr
    assert f"finished at step {at + 1:,}" in result.stdout
