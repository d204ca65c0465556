"""A trainer's process: what signals and requests make of a training."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuigpt.runs.folder import open_run
from tuigpt.signals import ENDING
from tuigpt.training.command import Silent, TrainCommand
from tuigpt.training.process import run


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


def test_a_signal_at_any_moment_stops_the_training(home: Path, tmp_path: Path) -> None:
    (tmp_path / "verse.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20)
    command = TrainCommand(
        home,
        [str(tmp_path / "verse.txt")],
        name="run",
        model_fields={"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 8},
        train_fields={"max_steps": 40, "sample_tokens": 0, "eval_tokens": 16, "device": "cpu"},
    )
    assert run(command, Interrupted()) == 0
    status = open_run(home / "runs/run").status
    assert (status.state, status.step) == ("stopped", 0)
