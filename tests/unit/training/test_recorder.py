"""From a trainer's events to its run folder: which checkpoints stay, and a disk that is full."""

from __future__ import annotations

import errno
import math
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from json_files import read_json

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.runs.folder import checkpoint_path, list_checkpoints
from tuigpt.runs.header import read_header
from tuigpt.runs.marks import star
from tuigpt.runs.metrics import METRICS_FILE, MetricsLog, MetricsTail, StepLine
from tuigpt.runs.record import CorpusFacts
from tuigpt.runs.status import read_status, status_of_this_process, write_status
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training import recorder as recorder_module
from tuigpt.training.batches import Corpus
from tuigpt.training.events import CheckpointDue, Evaluated, Event, PartDone, Stepped
from tuigpt.training.recorder import FolderGone, Recorder
from tuigpt.training.reserve import RESERVE_FILE, Reserve
from tuigpt.training.state import Losses, read_state
from tuigpt.training.trainer import Trainer

TEXT = "the quick brown fox jumps over the lazy dog\n" * 20


TOKENIZER = CharTokenizer.from_text(TEXT)


WIDE = 128
"""Width of a model whose checkpoint takes 0.8 MB."""


def new_trainer(evolution_mb: int = 0) -> Trainer:
    torch.manual_seed(0)
    model = GPT(GPTConfig(TOKENIZER.vocab_size, 8, 1, 1, WIDE if evolution_mb else 8))
    corpus = Corpus.from_text(TEXT, TOKENIZER, 0.1, 8, torch.device("cpu"))
    config = TrainConfig(
        max_steps=40, batch_size=2, eval_interval=5, eval_tokens=64, sample_tokens=0,
        checkpoint_interval=20, learning_rate=1e-2, warmup_steps=0, evolution_mb=evolution_mb,
    )  # fmt: skip
    return Trainer(model, TOKENIZER, corpus, config)


def new_recorder(
    folder: Path, trainer: Trainer, wait: Callable[[], bool] = lambda: False
) -> Recorder:
    status = status_of_this_process(max_steps=40)
    (folder / "run.json").touch()
    return Recorder(folder, trainer, TOKENIZER, CorpusFacts(), status, 16, wait)


@pytest.fixture
def trainer() -> Trainer:
    return new_trainer()


@pytest.fixture
def recorder(trainer: Trainer, tmp_path: Path) -> Recorder:
    (tmp_path / "checkpoints").mkdir()
    return new_recorder(tmp_path, trainer)


def until_step(trainer: Trainer, step: int) -> None:
    for event in trainer.run():
        if isinstance(event, Stepped) and event.step == step:
            return


def record_all(trainer: Trainer, recorder: Recorder) -> list[Event]:
    events = []
    for event in trainer.run():
        recorder.record(event)
        events.append(event)
    return events


def step_lines(folder: Path) -> list[StepLine]:
    lines, _ = MetricsTail(folder / METRICS_FILE).read_new()
    return [line for line in lines if isinstance(line, StepLine)]


def steps(folder: Path) -> list[int]:
    return [c.step for c in list_checkpoints(folder) if not c.problem]


def test_kept_ones_stay_and_the_best_so_far_makes_room_for_a_better(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    events = record_all(trainer, recorder)
    best = [e.step for e in events if isinstance(e, CheckpointDue) and not e.keep]
    assert len(best) > 2  # so that there was something to make room
    assert trainer.best_step is not None
    assert steps(tmp_path) == sorted({20, 40, trainer.best_step})
    recorder.close("finished", "")
    status = read_status(tmp_path)
    assert (status.state, status.best_step) == ("finished", trainer.best_step)
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


def test_what_is_there_is_never_written_again(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    record_all(trainer, recorder)
    recorder.close("finished", "")
    files = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    again = new_trainer()
    again.restore(read_state(tmp_path / "resume.safetensors", 10**6))
    second = new_recorder(tmp_path, again)
    second.save(keep=True)  # stopped before the first step
    second.close("stopped", "")
    third = new_recorder(tmp_path, again)
    record_all(again, third)
    third.close("finished", "")
    assert {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()} == files


def test_a_checkpoint_with_other_weights_is_not_written_over(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    """Such as after a resume file whose weights are no longer those that were saved with it."""
    until_step(trainer, 7)
    path = recorder.save(keep=True)
    content = path.read_bytes()
    recorder.close("stopped", "")
    with torch.no_grad():
        trainer.model.lm_head.weight += 1
    second = new_recorder(tmp_path, trainer)
    second.save(keep=True)
    second.close("stopped", "")
    assert path.read_bytes() == content


def test_a_stop_does_not_wait_for_what_cannot_become_possible(
    trainer: Trainer, tmp_path: Path
) -> None:
    checkpoint_path(tmp_path, 7).mkdir(parents=True)
    recorder = new_recorder(tmp_path, trainer, wait=lambda: True)
    until_step(trainer, 7)
    with pytest.raises(IsADirectoryError):
        recorder.save(keep=True)
    recorder.close("failed", "")
    assert read_state(tmp_path / "resume.safetensors", 10**6).facts.step == 7


@pytest.mark.parametrize("evolution_mb", [0, 2])
def test_after_a_kill_the_same_checkpoints_stay(evolution_mb: int, tmp_path: Path) -> None:
    (tmp_path / "whole" / "checkpoints").mkdir(parents=True)
    never_killed = new_trainer(evolution_mb)
    recorder = new_recorder(tmp_path / "whole", never_killed)
    record_all(never_killed, recorder)
    recorder.close("finished", "")

    (tmp_path / "checkpoints").mkdir()
    trainer = new_trainer(evolution_mb)
    recorder = new_recorder(tmp_path, trainer)
    saved = 0
    for event in trainer.run():
        recorder.record(event)
        saved += isinstance(event, CheckpointDue) and not event.keep
        if saved == 3:
            break
    recorder.abandon()
    state = read_state(tmp_path / "resume.safetensors", 10**7)
    again = new_trainer(evolution_mb)
    again.restore(state)
    resumed = new_recorder(tmp_path, again)
    resumed.resumed(state.facts)
    record_all(again, resumed)
    resumed.close("finished", "")
    assert again.best_step is not None
    assert steps(tmp_path) == steps(tmp_path / "whole")
    if not evolution_mb:
        assert steps(tmp_path) == sorted({20, 40, again.best_step})


def test_those_that_tell_of_growing_up_keep_to_their_budget_and_spare_what_is_marked(
    tmp_path: Path,
) -> None:
    (tmp_path / "checkpoints").mkdir()
    trainer = new_trainer(evolution_mb=2)
    recorder = new_recorder(tmp_path, trainer)
    for event in trainer.run():
        recorder.record(event)
        if isinstance(event, CheckpointDue) and event.step == 10:
            star(tmp_path, [10], True)
    recorder.close("finished", "")
    kept = {20, 40, trainer.best_step}  # at their intervals, and the best
    telling = [c for c in list_checkpoints(tmp_path) if c.step not in kept]
    assert [c.step for c in telling] == [5, 10, 35]
    assert sum(c.size for c in telling if c.step != 10) <= 2_000_000


def test_a_header_is_whole_when_it_is_first_written(
    trainer: Trainer, recorder: Recorder, tmp_path: Path
) -> None:
    record_all(trainer, recorder)
    recorder.close("finished", "")
    header = read_header(checkpoint_path(tmp_path, 40))
    assert header.run == tmp_path.name and header.step == 40
    for name in ("train_loss", "val_loss", "whole_val_loss", "whole_val_loss_per_character"):
        assert isinstance(getattr(header, name), float)


class Disk:
    """A disk that has room for everything, for small files only, or for nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.refused = 0
        self.waits = 0
        self.stop_at = math.inf
        for module, name in (
            (recorder_module, "save_checkpoint"), (recorder_module, "write_state"),
            (recorder_module, "write_status"), (MetricsLog, "append"),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, self._refusing(getattr(module, name)))
        monkeypatch.setattr(Reserve, "holds", lambda reserve: not self.full)
        monkeypatch.setattr(Reserve, "release", lambda reserve: setattr(self, "full", False))

    def _refusing(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **values: Any) -> Any:
            if self.full:
                self.refused += 1
                raise OSError(errno.ENOSPC, "No space left on device")
            return really(*arguments, **values)

        return write

    def wait(self) -> bool:
        self.waits += 1
        assert self.waits < 1000
        if self.waits % 3 == 0:
            self.full = False
        return self.waits >= self.stop_at


class TestAFullDisk:
    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch) -> Disk:
        return Disk(monkeypatch)

    def test_it_is_waited_out_and_nothing_is_missing(
        self, trainer: Trainer, tmp_path: Path, disk: Disk
    ) -> None:
        """Whatever is written when it gets full."""
        (tmp_path / "checkpoints").mkdir()
        recorder = new_recorder(tmp_path, trainer, disk.wait)
        expected = [e for e in new_trainer().run() if isinstance(e, Stepped)]
        for event in trainer.run():
            disk.full = True
            recorder.record(event)
        recorder.close("finished", "")
        assert disk.waits > 40 and disk.refused >= disk.waits // 3
        found = [(line.step, line.loss) for line in step_lines(tmp_path)]
        assert found == [(e.step, e.loss) for e in expected]
        assert {20, 40} <= set(steps(tmp_path))
        assert read_status(tmp_path).state == "finished"

    def test_the_reserved_room_is_for_the_last_save(
        self, trainer: Trainer, tmp_path: Path, disk: Disk
    ) -> None:
        (tmp_path / "checkpoints").mkdir()
        recorder = new_recorder(tmp_path, trainer, disk.wait)
        until_step(trainer, 7)
        disk.full, disk.stop_at = True, 1
        recorder.save(keep=True)
        recorder.close("stopped", "")
        assert disk.waits == 1 and steps(tmp_path) == [7]

    def test_while_it_waits_it_says_so(self, trainer: Trainer, tmp_path: Path, disk: Disk) -> None:
        (tmp_path / "checkpoints").mkdir()
        said = []

        def wait() -> bool:
            said.append((waiting.status.state, waiting.status.message))
            disk.full = False
            return False

        waiting = new_recorder(tmp_path, trainer, wait)
        until_step(trainer, 7)
        disk.full = True
        waiting.save(keep=True)
        ((state, message),) = said
        assert state == "paused"
        assert message.startswith("the disk is full: the training waits until ")
        assert "nothing is missing" in read_status(tmp_path).message
        waiting.close("stopped", "")


class TestTheReserve:
    def test_it_takes_room_and_gives_it_back(self, tmp_path: Path) -> None:
        reserve = Reserve(tmp_path, 1 << 20)
        reserve.hold()
        assert (tmp_path / RESERVE_FILE).stat().st_blocks * 512 >= 1 << 20
        reserve.yield_small()
        assert (tmp_path / RESERVE_FILE).stat().st_size < 1 << 20
        assert reserve.holds()
        reserve.release()
        assert list(tmp_path.iterdir()) == []

    def test_it_is_not_made_of_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("precious")
        (tmp_path / RESERVE_FILE).symlink_to(tmp_path / "precious")
        with pytest.raises(OSError):
            Reserve(tmp_path, 100).hold()
        assert (tmp_path / "precious").read_text() == "precious"


def test_a_renamed_folder_is_followed(trainer: Trainer, tmp_path: Path) -> None:
    folder = tmp_path / "former"
    (folder / "checkpoints").mkdir(parents=True)
    recorder = new_recorder(folder, trainer)
    moved = tmp_path / "moved"
    for event in trainer.run():
        recorder.record(event)
        if isinstance(event, Stepped) and event.step == 7:
            folder.rename(moved)
            folder.mkdir()  # another has taken its name
    recorder.close("finished", "")
    assert recorder.folder == moved and list(folder.iterdir()) == []
    assert read_status(moved).state == "finished" and 40 in steps(moved)
    assert read_header(checkpoint_path(moved, 40)).run == "moved"
    assert [line.step for line in step_lines(moved)] == list(range(1, 41))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_folder_that_is_renamed_while_its_status_is_written_gets_it(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not another folder that has taken its name."""
    folder, moved = tmp_path / "former", tmp_path / "moved"
    folder.mkdir()
    recorder = new_recorder(folder, trainer)

    def write_late(*arguments: Any) -> None:
        if not moved.exists():
            folder.rename(moved)
            folder.mkdir()
        write_status(*arguments)

    monkeypatch.setattr(recorder_module, "write_status", write_late)
    recorder.note("after the rename")
    assert read_status(moved).message == "after the rename"
    assert list(folder.iterdir()) == []
    recorder.close("stopped", "by hand")


def test_a_deleted_folder_is_gone(trainer: Trainer, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    recorder = new_recorder(folder, trainer)
    shutil.rmtree(folder)
    with pytest.raises(FolderGone):
        for event in trainer.run():
            recorder.record(event)
    recorder.abandon()
    assert not folder.exists()


def test_a_validation_loss_that_is_no_number_is_written_all_the_same(
    recorder: Recorder, trainer: Trainer, tmp_path: Path
) -> None:
    trainer.losses = Losses(val_loss=math.nan, val_loss_per_character=math.nan)
    recorder.record(Evaluated(0, math.nan, math.nan, 64, whole=False))
    recorder.save(keep=True)
    assert math.isnan(list_checkpoints(tmp_path)[0].val_loss or 0.0)
    recorder.close("failed", "diverged")
    assert math.isnan(read_status(tmp_path).val_loss or 0.0)


@pytest.fixture
def quick_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "HEARTBEAT_EVERY", 0.01)


def test_the_heartbeat_undoes_nothing(
    quick_heart: None, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes what was told last, never what it remembers."""
    recorder.record(PartDone(0, "evaluation", 1, 4))
    monkeypatch.setattr(recorder_module, "utc_now", lambda: "later")
    deadline = time.monotonic() + 10
    while (status := read_json(tmp_path / "status.json"))["heartbeat"] != "later":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (status["state"], status["progress"]) == ("evaluating", 0.25)
    recorder.close("stopped", "by hand")
    assert read_status(tmp_path).state == "stopped"


def test_an_answer_stays_readable_behind_newer_events(recorder: Recorder, tmp_path: Path) -> None:
    recorder.answered(3, "learning rate changed from 0.1 to 0.2")
    recorder.note("passed letters at step 25")
    status = read_status(tmp_path)
    assert (status.answered, status.answer) == (3, "learning rate changed from 0.1 to 0.2")
    assert status.message == "passed letters at step 25"
