"""From a trainer's events to its run folder: which checkpoints stay, and a disk that is full."""

from __future__ import annotations

import errno
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.runs.folder import list_checkpoints
from tuigpt.runs.metrics import METRICS_FILE, EventLine, MetricsTail
from tuigpt.runs.record import CorpusFacts
from tuigpt.runs.status import read_status, status_of_this_process
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training import recorder as recorder_module
from tuigpt.training.batches import Corpus
from tuigpt.training.recorder import Recorder
from tuigpt.training.trainer import CheckpointDue, Evaluated, Event, Progress, Stepped, Trainer

TEXT = "the quick brown fox jumps over the lazy dog\n" * 20


@pytest.fixture
def trainer() -> Trainer:
    tokenizer = CharTokenizer.from_text(TEXT)
    torch.manual_seed(0)
    model = GPT(GPTConfig(tokenizer.vocab_size, 8, 1, 1, 8))
    corpus = Corpus.from_text(TEXT, tokenizer, 0.1, 8, torch.device("cpu"))
    config = TrainConfig(
        max_steps=40, batch_size=2, eval_interval=5, eval_tokens=64, sample_tokens=0,
        checkpoint_interval=20, learning_rate=1e-2, warmup_steps=0,
    )  # fmt: skip
    return Trainer(model, tokenizer, corpus, config)


@pytest.fixture
def recorder(trainer: Trainer, tmp_path: Path) -> Recorder:
    (tmp_path / "checkpoints").mkdir()
    status = status_of_this_process(max_steps=40)
    return Recorder(tmp_path, trainer, trainer._tokenizer, CorpusFacts(), status, 16)


def record_all(trainer: Trainer, recorder: Recorder) -> list[Event]:
    events = []
    for event in trainer.run():
        recorder.record(event)
        events.append(event)
    return events


def steps(folder: Path) -> list[int]:
    return [c.step for c in list_checkpoints(folder) if not c.problem]


def test_kept_ones_stay_and_the_best_so_far_makes_room_for_a_better(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    events = record_all(trainer, recorder)
    best = [e.step for e in events if isinstance(e, CheckpointDue) and not e.keep]
    assert len(best) > 2  # so that there was something to make room
    assert steps(tmp_path) == sorted({20, 40, best[-1]})
    recorder.close("finished", "")
    status = read_status(tmp_path)
    assert (status.state, status.best_step) == ("finished", best[-1])
    assert status.best_val_loss == trainer.best_val_loss


def test_a_best_that_is_asked_to_be_kept_is(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    """Saved by the trainer as the best so far, then by the user: a better one leaves it alone."""
    asked = None
    for event in trainer.run():
        recorder.record(event)
        if isinstance(event, CheckpointDue) and not event.keep and asked is None:
            asked = event.step
            recorder.save(keep=True)
    assert asked is not None and asked in steps(tmp_path)


class TestAFullDisk:
    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """A disk that is full while `full` says so; the clock stands still until told."""
        disk: dict[str, Any] = {"full": True, "now": 1000.0}
        really = recorder_module.save_checkpoint

        def save(*arguments: Any) -> None:
            if disk["full"]:
                raise OSError(errno.ENOSPC, "No space left on device")
            really(*arguments)

        monkeypatch.setattr(recorder_module, "save_checkpoint", save)
        monkeypatch.setattr(recorder_module.time, "monotonic", lambda: disk["now"])
        return disk

    def test_training_goes_on_and_it_is_told(
        self, trainer: Trainer, recorder: Recorder, tmp_path: Path, disk: dict[str, Any]
    ) -> None:
        events = record_all(trainer, recorder)
        assert sum(isinstance(e, Stepped) for e in events) == 40
        message = read_status(tmp_path).message
        assert "cannot save step" in message and "No space left on device" in message
        assert "tried again" in message and steps(tmp_path) == []
        lines, _ = MetricsTail(tmp_path / METRICS_FILE).read_new()
        told = [line for line in lines if isinstance(line, EventLine)]
        assert told and all("No space left" in line.message for line in told)

    def test_it_is_tried_again_and_the_message_goes(
        self, trainer: Trainer, recorder: Recorder, tmp_path: Path, disk: dict[str, Any]
    ) -> None:
        for event in trainer.run():
            if isinstance(event, Stepped) and event.step == 22:
                disk["full"] = False
                disk["now"] += recorder_module.RETRY_SAVE_AFTER + 1
            recorder.record(event)
        assert 22 in steps(tmp_path)
        assert read_status(tmp_path).message == ""

    def test_not_at_every_step(
        self, trainer: Trainer, recorder: Recorder, disk: dict[str, Any]
    ) -> None:
        """A save takes long; one that fails must not be tried all the time."""
        tried = 0
        really = recorder_module.save_checkpoint

        def counting(*arguments: Any) -> None:
            nonlocal tried
            tried += 1
            really(*arguments)

        recorder_module.save_checkpoint = counting  # type: ignore[assignment]
        try:
            events = record_all(trainer, recorder)
        finally:
            recorder_module.save_checkpoint = really
        assert tried == sum(isinstance(e, CheckpointDue) for e in events)

    def test_a_status_that_cannot_be_written_ends_nothing(
        self, trainer: Trainer, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*arguments: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(recorder_module, "write_status", full)
        events = record_all(trainer, recorder)
        assert sum(isinstance(e, Stepped) for e in events) == 40


def test_a_validation_loss_that_is_no_number_is_written_all_the_same(
    recorder: Recorder, trainer: Trainer, tmp_path: Path
) -> None:
    trainer.val_loss = trainer.val_loss_per_character = math.nan
    recorder.record(Evaluated(0, math.nan, math.nan, 64, whole=False))
    assert recorder.save(keep=True) is not None
    assert math.isnan(list_checkpoints(tmp_path)[0].val_loss or 0.0)
    recorder.close("failed", "diverged")
    assert math.isnan(read_status(tmp_path).val_loss or 0.0)


def test_the_heartbeat_undoes_nothing(recorder: Recorder, tmp_path: Path) -> None:
    """It writes what was told last, never what it remembers."""
    recorder.record(Progress(0, "evaluation", 1, 4))
    recorder.close("stopped", "by hand")
    recorder._write()
    assert read_status(tmp_path).state == "stopped"
