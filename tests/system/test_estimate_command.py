"""What a training would cost, as a shell asks for it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

from system.conftest import TINY, TUIGPT, Tuigpt

ESTIMATE = [*TINY, "--eval-interval=2"]


def test_every_figure_is_told(tuigpt: Tuigpt, home: Path, verse_file: Path) -> None:
    done = tuigpt("estimate", verse_file, *ESTIMATE, "--max-steps=500")
    assert done.returncode == 0, done.stderr
    labels = [line[:10].strip() for line in done.stdout.splitlines()]
    assert [label for label in labels if label] == [
        "parameters", "memory", "a step", "time", "reads", "size"
    ]  # fmt: skip
    assert re.search(r"time  .+ in all on cpu: .+ a step, .+ FLOP/s", done.stdout)
    assert not (home / "runs").exists()


def test_a_plan_is_told_first(tuigpt: Tuigpt, home: Path, verse_file: Path) -> None:
    done = tuigpt("estimate", verse_file, "--minutes=0.05", "--preset=tiny")
    assert done.returncode == 0, done.stderr
    told, *costs = done.stdout.splitlines()
    assert re.match(
        r" +plan  for 3 s: 2 layers, 128 wide, context \d+, [\d,]+ steps of \d+ w", told
    )
    assert "val" in told and "expected" in told and "parameters" in costs[0]
    assert (home / "cache" / "speeds.json").exists()  # the next plan has it at once


def test_programs_get_one_object(tuigpt: Tuigpt, verse_file: Path) -> None:
    done = tuigpt("estimate", "--json", verse_file, *ESTIMATE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parts = found["parameters"]
    assert sum(parts.values()) == 2 * parts["total"]
    timing, steps = found["calibration"], found["max_steps"]
    assert found["seconds"] > steps * timing["step_seconds"] > 0
    assert found["tokens"] == steps * found["step_tokens"]
    assert found["epochs"] == found["tokens"] / found["train_tokens"]


def test_a_length_in_minutes_becomes_steps(tuigpt: Tuigpt, verse_file: Path) -> None:
    arguments = [flag for flag in ESTIMATE if not flag.startswith("--max-steps")]
    done = tuigpt("estimate", "--json", verse_file, *arguments, "--minutes=1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["max_steps"] > 1 and found["seconds"] <= 60


def test_too_much_memory_is_said_before_trying(tuigpt: Tuigpt, verse_file: Path) -> None:
    huge = [verse_file, "--block-size=64", "--n-embd=65536", "--n-head=1", "--n-layer=100"]
    done = tuigpt("estimate", *huge)
    assert done.returncode == 2 and "parameters" in done.stdout and " in all" not in done.stdout
    assert re.fullmatch(r"tuigpt: this needs at least .+ of memory, but cpu has .+\n", done.stderr)
    told = tuigpt("estimate", "--json", *huge)
    assert told.returncode == 2
    found = json.loads(told.stdout)
    assert "memory" in found["problem"] and found["calibration"] is None


def test_what_cannot_be_trained_is_one_line(tuigpt: Tuigpt, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("to be or not to be\n", encoding="utf-8")
    for arguments in ([short], ["--minutes=1", "--max-steps=5"]):
        done = tuigpt("estimate", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_ctrl_c_ends_it_without_a_word(env: dict[str, str], tmp_path: Path) -> None:
    command = [*TUIGPT, "estimate", "--max-steps=9", "--batch-size=4096"]  # a step takes long
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        while not process.stdout.readline().startswith("    a step"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert "Traceback" not in process.stderr.read()
