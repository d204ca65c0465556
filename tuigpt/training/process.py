"""The trainer's process: signals, requests, pauses, and the loop that ties them to a trainer."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tuigpt.errors import ConfigError, Setting, UserError
from tuigpt.estimate import LONGEST_WHOLE_PASS, needed_bytes
from tuigpt.paths import cache_dir
from tuigpt.runs.control import Request, Requests
from tuigpt.runs.folder import TRAINER_LOG
from tuigpt.runs.leftovers import remove_from_home
from tuigpt.signals import end_cleanly_on_signals, on_ending
from tuigpt.story import Evaluation, Milestones
from tuigpt.training.budget import Budget
from tuigpt.training.command import Ended, Reporter, Silent, TrainCommand
from tuigpt.training.events import Evaluated, Event, Stepped
from tuigpt.training.optimizers import have_compiler_cache
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.recorder import FolderGone, Recorder
from tuigpt.training.resume import resume
from tuigpt.training.start import Prepared, begin
from tuigpt.training.trainer import Diverged, Trainer
from tuigpt.wording import duration, file_size

FAILED = 1
"""Exit status of a training that began and failed."""

PAUSE_POLL = 0.1
"""Seconds between two looks at the run folder while paused."""

RETRY_EVERY = 1.0
"""Seconds between two attempts to write where the disk is full."""


def run(command: TrainCommand, reporter: Reporter) -> int:
    """Train a new run, or resume one, until it ends or is stopped.

    Raises:
        UserError: something asked for cannot work. Nothing is left behind then.
    """
    end_cleanly_on_signals()
    if command.resume is not None and (command.name or command.preset or command.origin):
        raise UserError(
            Setting("resume"), " takes the name and the size from the run: leave them out"
        )
    have_compiler_cache(cache_dir(command.home))
    group = ProcessGroup.join()
    if not group.is_rank_0:
        reporter = Silent()
        sys.stdout = sys.stderr = open(os.devnull, "w")  # rank 0 says what is wrong
    try:
        return _run(command, reporter, group)
    finally:
        on_ending(signal.SIG_IGN)  # it ends anyway, and a handler would keep the training alive
        group.leave()


def _run(command: TrainCommand, reporter: Reporter, group: ProcessGroup) -> int:
    with ExitStack() as until_end:
        if group.is_rank_0:
            remove_from_home(command.home)
        prepare = begin if command.resume is None else resume
        try:
            prepared = prepare(command, group, reporter, until_end)
        except UserError:
            if not group.is_rank_0 and not group.rank_0_ended():
                sys.stderr = sys.__stderr__  # rank 0 has not met what is wrong here
            raise
        if not group.is_rank_0:
            on_ending(signal.SIG_IGN)  # signals are for rank 0, which ends us
            prepared.trainer.follow()
            return 0
        if command.log_file is not None:
            with suppress(FileNotFoundError):  # whoever started us has changed their mind
                os.replace(command.log_file, prepared.folder / TRAINER_LOG)
        return _Training(prepared, reporter).run()


class _Discarded(Exception):
    """The run is to be deleted."""


class _Training:
    """A trainer, its recorder, and what signals and requests want of them."""

    def __init__(self, prepared: Prepared, reporter: Reporter) -> None:
        record = prepared.record
        self._trainer: Trainer = prepared.trainer
        self._reporter = reporter
        self._notes = prepared.notes
        self._learn_speed = prepared.learn_speed
        self._stopping = False
        self._paused = False
        self._waiting_for = ""
        on_ending(self._on_signal)
        self._recorder = Recorder(
            prepared.folder,
            self._trainer,
            prepared.tokenizer,
            record.corpus,
            prepared.status,
            record.train.batch_size * record.model.block_size,
            wait=self._wait_for_the_disk,
        )
        if prepared.resumed is not None:
            self._recorder.resumed(prepared.resumed)
        self._requests = Requests(prepared.folder, self._recorder.status.answered)
        self._record = record
        self._milestones = Milestones(record.baselines, prepared.status.best_val_loss)
        n_val = record.corpus.val_tokens
        self._budget = Budget(
            self._trainer.config, self._trainer.step, n_val if n_val <= LONGEST_WHOLE_PASS else 0
        )

    def _on_signal(self, number: int, frame: object) -> None:
        self._stopping = True

    def run(self) -> int:
        """Train to the end, and give the process's exit status."""
        try:
            return self._run()
        except FolderGone:
            self._recorder.abandon()
            self._end("gone")
            return FAILED
        except _Discarded:
            self._trainer.end()
            self._recorder.abandon()
            shutil.rmtree(self._recorder.folder, ignore_errors=True)
            self._end("discarded")
            return 0

    def _run(self) -> int:
        trainer, recorder = self._trainer, self._recorder
        try:
            self._reporter.begin(recorder.folder.name, self._record, recorder.status)
            for note in self._notes:
                self._note(note)
            if trainer.config.compile:
                self._compile()
            began = time.monotonic()
            for event in trainer.run():
                self._take(event)
                self._budget.spend(event, time.monotonic() - began)
                began = time.monotonic()
                if isinstance(event, Stepped) and event.step < trainer.step:
                    continue  # updates that are reported together
                self._carry_out()
                if self._stopping:
                    break
                if isinstance(event, Stepped):
                    self._keep_to_its_minutes()
                began = time.monotonic()
            trainer.end()
            checkpoint = recorder.save(keep=True)
            if (seconds := self._budget.step_seconds) is not None:
                self._learn_speed(seconds)
        except (FolderGone, _Discarded):
            raise
        except Exception as error:
            return self._fail(error)
        finished = trainer.finished
        message = ""
        if finished and trainer.out_of_patience:
            message = f"no better val loss since step {trainer.best_step:,}"
        elif not finished:
            message = f"stopped at step {trainer.step:,}"
        state = "finished" if finished else "stopped"
        recorder.close(state, message)
        self._end(state, message if finished else "", checkpoint)
        return 0

    def _take(self, event: Event) -> None:
        self._recorder.record(event)
        self._reporter.show(event, self._recorder.status)
        if isinstance(event, Evaluated) and not event.whole:
            measured = Evaluation(event.step, event.val_loss_per_character, early=event.early)
            if passed := self._milestones.passed(measured):
                self._note(passed)

    def _keep_to_its_minutes(self) -> None:
        trainer, config = self._trainer, self._trainer.config
        steps = self._budget.fitting_steps(trainer.step, config) if config.minutes else None
        if steps is not None:
            trainer.change(max_steps=steps, minutes=config.minutes)
            self._recorder.changed("", f"{steps:,} steps fit into {duration(60 * config.minutes)}")

    def _note(self, message: str) -> None:
        self._recorder.note(message)
        self._reporter.note(message)

    def _end(self, how: str, message: str | UserError = "", checkpoint: Path | None = None) -> None:
        folder, step = self._recorder.folder, self._trainer.step
        self._reporter.end(Ended(how, folder, step, message, checkpoint))

    def _fail(self, error: Exception) -> int:
        if not isinstance(error, Diverged):
            log_path = self._recorder.folder / TRAINER_LOG
            with suppress(OSError), open(log_path, "a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
        reason = _why(error, self._trainer)
        self._recorder.close("failed", str(reason))
        self._end("failed", reason)
        return FAILED

    def _compile(self) -> None:
        self._note("compiling the model: this can take minutes …")
        try:
            self._trainer.compile()
        except RuntimeError as error:
            self._note(f"torch.compile does not work here, training without: {error}")
        else:
            self._note("the model is compiled")

    def _carry_out(self) -> None:
        """Do what was asked since the last call; while paused, wait for what is asked next."""
        while True:
            self._requests.folder = self._recorder.folder
            for request in self._requests.new():
                answer = self._do(request)
                if answer and answer != self._recorder.status.message:
                    self._reporter.note(answer)
                self._recorder.answered(self._requests.answered, answer)
            if self._reporter.unread:
                self._stopping = True  # never `|=`: a signal in between would be forgotten
            if self._stopping or not self._paused:
                return
            self._recorder.follow_folder()
            self._recorder.pause()
            time.sleep(PAUSE_POLL)

    def _do(self, request: Request) -> str:
        """Carry out one request, and say what came of it.

        Raises:
            _Discarded: the run is to be deleted.
        """
        trainer, recorder, action = self._trainer, self._recorder, request.action
        if action.setting is not None:
            return self._change(request)
        match action.name:
            case "stop":
                self._stopping = True
                return ""  # the end of the run says it
            case "discard":
                raise _Discarded
            case "pause":
                self._paused = True
            case "resume":
                self._paused = False
            case "checkpoint":
                recorder.save(keep=True)
            case "sample":
                self._take_all(trainer.sample())
            case "evaluate":
                self._take_all(trainer.evaluate())
        return action.done.format(step=trainer.step)

    def _take_all(self, events: Iterator[Event]) -> None:
        for event in events:
            self._take(event)
            if self._stopping:
                break

    def _change(self, request: Request) -> str:
        setting = request.action.setting
        assert setting is not None and request.value is not None
        name, trainer = setting.name, self._trainer
        before = {**asdict(trainer.config), **asdict(trainer.model.config)}[name]
        try:
            change: dict[str, Any] = {name: setting.parse(f"{request.value:.17g}")}
            if change.get("max_steps", trainer.step) < trainer.step:
                raise ConfigError(name, change[name], "at least the steps that are done")
            trainer.change(**change)
        except ConfigError as error:
            return f"not changed: {error}"
        answer = request.action.done.format(before=before, value=request.value)
        self._recorder.changed(name, answer)
        self._reporter.note(answer)
        return answer

    def _wait_for_the_disk(self) -> bool:
        """Wait a while for the disk, and say whether the training is to stop.

        Raises:
            _Discarded: the run is to be deleted.
        """
        reason = self._recorder.status.message
        if reason != self._waiting_for:
            self._waiting_for = reason
            self._reporter.note(reason)
        asked_before = self._stopping
        until = time.monotonic() + RETRY_EVERY
        while time.monotonic() < until and self._stopping == asked_before:
            for request in self._requests.new():
                if request.action.name == "discard":
                    raise _Discarded
                answer = f"not now: {reason}"
                if request.action.name == "stop":
                    self._stopping, answer = True, ""
                self._recorder.answered(self._requests.answered, answer)
            time.sleep(PAUSE_POLL)
        return self._stopping


def _why(error: Exception, trainer: Trainer) -> str | UserError:
    """What went wrong, in one line."""
    if isinstance(error, Diverged):
        return error
    step = trainer.step
    reason = (str(error).splitlines() or [""])[0]
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in reason:
        sizes, config = trainer.model.config, trainer.config
        need = needed_bytes(sizes, config, trainer.model.lm_head.weight.device.type)
        return UserError(
            f"out of memory at step {step:,} with ", Setting("batch_size", config.batch_size),
            ", ", Setting("block_size", sizes.block_size), " and ",
            Setting("n_embd", sizes.n_embd), f", which need {file_size(need)} and more: try a"
            " smaller one, or ", Setting("micro_batch_size", 1),
            " for the same steps in less memory",
        )  # fmt: skip
    if "Connection closed by peer" in reason or "Connection reset" in reason:
        return f"another process of this training ended at step {step:,}; the run can be resumed"
    return f"{type(error).__name__} at step {step:,}: {reason}"
