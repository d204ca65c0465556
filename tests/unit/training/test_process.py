"""A trainer's process: what signals and requests make of a training."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuigpt.estimate import Calibration
from tuigpt.runs.control import request
from tuigpt.runs.folder import open_run
from tuigpt.runs.metrics import METRICS_FILE, EventLine, MetricsTail
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.signals import ENDING
from tuigpt.training import trials
from tuigpt.training.command import Silent, TrainCommand
from tuigpt.training.process import run
from tuigpt.training.state import read_state


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Interrupted(Silent):
    """A person ends the training just while it asks whether anybody still reads."""

    @property
    def unread(self) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return False


TrainThis = Callable[..., TrainCommand]


@pytest.fixture
def train_this(home: Path, tmp_path: Path) -> TrainThis:
    def command(**fields: Any) -> TrainCommand:
        (tmp_path / "verse.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20)
        return TrainCommand(
            home,
            [str(tmp_path / "verse.txt")],
            name="run",
            model_fields={"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 8},
            train_fields={"sample_tokens": 0, "eval_tokens": 16, "device": "cpu", **fields},
        )

    return command


def test_a_signal_at_any_moment_stops_the_training(home: Path, train_this: TrainThis) -> None:
    assert run(train_this(max_steps=40), Interrupted()) == 0
    status = open_run(home / "runs/run").status
    assert (status.state, status.step) == ("stopped", 0)


class TestMinutes:
    """The trial met a busy moment: it said that a step takes half of the time."""

    @pytest.fixture(autouse=True)
    def busy_trial(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = Calibration(0.6, 0.0, 0.0, 0.0)
        monkeypatch.setattr(trials, "calibrate", lambda *_: trial)

    def test_the_steps_follow_the_real_speed(self, home: Path, train_this: TrainThis) -> None:
        assert run(train_this(minutes=0.02), Silent()) == 0
        found = open_run(home / "runs/run")
        assert found.record is not None and found.record.train.max_steps == 2
        assert found.status.step == found.status.max_steps > 2
        lines, _ = MetricsTail(found.folder / METRICS_FILE).read_new()
        told = [line.message for line in lines if isinstance(line, EventLine)]
        assert any(message.endswith(" steps fit into 1 s") for message in told)

    def test_not_where_a_person_said_how_many(self, home: Path, train_this: TrainThis) -> None:
        class Asking(Silent):
            def begin(self, run_name: str, record: RunRecord, status: RunStatus) -> None:
                request(home / "runs/run", "max_steps", 3)

        assert run(train_this(minutes=0.02), Asking()) == 0
        assert open_run(home / "runs/run").status.step == 3
        state = read_state(home / "runs/run/resume.safetensors", 1 << 20)
        assert (state.facts.max_steps, state.facts.minutes) == (3, 0)
