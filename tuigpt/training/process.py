"""`tuigpt train`: the trainer process, whether a person or the app started it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.console import Console
from tuigpt.errors import ConfigError, UserError
from tuigpt.estimate import needed_bytes
from tuigpt.runs.control import Requests
from tuigpt.runs.folder import TRAINER_LOG, checkpoint_path
from tuigpt.runs.leftovers import remove_from_home
from tuigpt.shell import tuigpt_line
from tuigpt.signals import end_cleanly_on_signals
from tuigpt.training.process_group import Team
from tuigpt.training.recorder import Recorder
from tuigpt.training.start import Prepared, begin, go_on
from tuigpt.training.trainer import Diverged, Stepped, Trainer
from tuigpt.wording import file_size

FAILED = 1
"""Exit status of a training that began and could not go on."""

PAUSE_POLL = 0.1
"""Seconds between two looks at the run folder while paused."""


def run(
    home: Path,
    sources: list[str],
    name: str | None,
    resume: str | None,
    origin: str | None,
    preset: str | None,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    log_file: str | None,
) -> int:
    """Train a new run, or go on with one.

    Args:
        sources: the text: paths and names, joined in this order; none is the built-in.
        name: of the new run; None makes one from text and preset.
        resume: name of the run to go on with, instead of a new one.
        origin: checkpoint whose weights the new run begins with.
        model_fields: fields of GPTConfig that override the preset's.
        train_fields: fields of TrainConfig that override the defaults.
        log_file: where our stdout goes already; it moves into the run folder.

    Raises:
        UserError: something asked for cannot work. Nothing is left behind then.
    """
    end_cleanly_on_signals()
    if resume is not None and (sources or name or preset or origin):
        raise UserError("--resume takes the text, the name and the size from the run: leave them")
    team = Team.join()
    if not team.leads:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # the leader tells, also what is wrong
    with ExitStack() as until_end:
        until_end.callback(team.leave)
        if team.leads:
            remove_from_home(home)
        try:
            if resume is not None:
                prepared = go_on(until_end, home, team, resume, model_fields, train_fields)
            else:
                prepared = begin(
                    until_end, home, team, sources, name, origin, preset, model_fields, train_fields
                )
        except UserError:
            if not team.leads and team.leader_goes_on():
                sys.stderr = sys.__stderr__  # it has not met what is wrong here
            raise
        if not team.leads:
            return _follow(prepared.trainer)
        if log_file is not None:
            with suppress(FileNotFoundError):  # whoever started us has changed their mind
                os.replace(log_file, prepared.folder / TRAINER_LOG)
        return _train(prepared)


def _follow(trainer: Trainer) -> int:
    for name in _POLITE_SIGNALS:  # they are for the leader, which ends us
        signal.signal(name, signal.SIG_IGN)
    trainer.follow()
    return 0


_POLITE_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class _Stop:
    """Set by a signal or a request; asked after each event.

    Attributes:
        asked: the training shall save and end.
        discard: its run folder shall be deleted instead.
    """

    def __init__(self) -> None:
        self.asked = False
        self.discard = False
        for name in _POLITE_SIGNALS:
            signal.signal(name, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.asked = True


def _train(prepared: Prepared) -> int:
    trainer, folder, record = prepared.trainer, prepared.folder, prepared.record
    stop = _Stop()
    tokens_per_step = record.train.batch_size * record.model.block_size
    recorder = Recorder(
        folder, trainer, prepared.tokenizer, record.corpus, prepared.status, tokens_per_step
    )
    requests = Requests(folder, recorder.status.answered)
    console = Console(sys.stdout, folder.name, record)
    console.begin(recorder.status)
    for note in prepared.notes:
        _note(note, recorder, console)
    try:
        if trainer.config.compile:
            _compile(trainer, recorder, console)
        for event in trainer.run():
            if recorder.folder_is_gone():
                recorder.abandon()
                console.end(f"the run folder {str(folder)!r} is gone: training ended")
                return FAILED
            recorder.record(event)
            console.show(event, recorder.status)
            if isinstance(event, Stepped) and event.step < trainer.step:
                continue  # updates that are told together
            _carry_out(requests, stop, trainer, recorder, console)
            stop.asked |= console.unread
            if stop.asked:
                break
        trainer.end()
    except Diverged as error:
        recorder.close("failed", str(error))
        console.end(str(error))
        return FAILED
    except Exception as error:
        with suppress(OSError), open(folder / TRAINER_LOG, "a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        message = _why(error, trainer)
        recorder.close("failed", message)
        console.end(f"{message}\ndetails: {folder / TRAINER_LOG}")
        return FAILED
    if stop.discard:
        recorder.abandon()
        shutil.rmtree(folder, ignore_errors=True)
        console.end(f"discarded {folder.name}: its folder is deleted")
        return 0
    return _end(trainer, recorder, console)


def _note(message: str, recorder: Recorder, console: Console) -> None:
    recorder.note(message)
    console.note(message)


def _compile(trainer: Trainer, recorder: Recorder, console: Console) -> None:
    _note("compiling the model: this can take minutes …", recorder, console)
    try:
        trainer.compile()
    except RuntimeError as error:
        _note(f"torch.compile does not work here, training without: {error}", recorder, console)
    else:
        _note("the model is compiled", recorder, console)


def _why(error: Exception, trainer: Trainer) -> str:
    """What went wrong, in one line."""
    step = trainer.step
    reason = (str(error).splitlines() or [""])[0]
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in reason:
        shape = trainer.model.config
        need = needed_bytes(shape, trainer.config, trainer.model.lm_head.weight.device.type)
        return (
            f"out of memory at step {step:,} with --batch-size {trainer.config.batch_size},"
            f" --block-size {shape.block_size} and --n-embd {shape.n_embd}, which need"
            f" {file_size(need)} and more: try a smaller one, or --micro-batch-size 1 for the same"
            " steps in less memory"
        )
    if "Connection closed by peer" in reason or "Connection reset" in reason:
        return (
            f"another process of this training ended at step {step:,}: go on with"
            f" tuigpt train --resume"
        )
    return f"{type(error).__name__} at step {step:,}: {reason}"


def _carry_out(
    requests: Requests, stop: _Stop, trainer: Trainer, recorder: Recorder, console: Console
) -> None:
    paused = False
    while True:
        for wanted in requests.new():
            step = trainer.step
            match wanted.action.name:
                case "stop":
                    stop.asked = True
                case "discard":
                    stop.asked = stop.discard = True
                case "pause":
                    paused = True
                case "resume":
                    paused = False
                case "checkpoint":
                    if recorder.save(keep=True) is not None:
                        _note(wanted.action.done.format(step=step), recorder, console)
                case "sample" | "evaluate":
                    work = trainer.sample if wanted.action.name == "sample" else trainer.evaluate
                    for event in work():
                        recorder.record(event)
                        console.show(event, recorder.status)
                        if stop.asked:
                            break
                case setting:
                    _change(setting, wanted.value, trainer, recorder, console)
            recorder.answered(requests.answered)
        if stop.asked or not paused or recorder.folder_is_gone():
            return
        recorder.pause()
        time.sleep(PAUSE_POLL)


def _change(
    setting: str, value: float | None, trainer: Trainer, recorder: Recorder, console: Console
) -> None:
    before = {
        "learning_rate": trainer.config.learning_rate,
        "dropout": trainer.model.config.dropout,
    }[setting]
    change: dict[str, Any] = {setting: value}
    try:
        trainer.change(**change)
    except ConfigError as error:
        _note(f"not changed: {error}", recorder, console)
    else:
        message = f"{setting.replace('_', ' ')} changed from {before:g} to {value:g}"
        recorder.changed(message)
        console.note(message)


def _end(trainer: Trainer, recorder: Recorder, console: Console) -> int:
    """Have the newest weights on disk, and say where; the run is finished or merely stopped."""
    if recorder.saved_step != trainer.step and recorder.save(keep=True) is None:
        message = recorder.status.message
        recorder.close("failed", message)
        console.end(message)
        return FAILED
    if trainer.finished:
        early = ""
        if trainer.out_of_patience:
            early = f"no better val loss since step {trainer.best_step:,}"
        recorder.close("finished", early)
        console.end(_where(recorder.folder, trainer, "finished") + (early and f"\n{early}"))
    else:
        recorder.close("stopped", f"stopped at step {trainer.step:,}")
        console.end(
            _where(recorder.folder, trainer, "stopped")
            + f"\nresume with: {_resume(recorder.folder)}"
        )
    return 0


def _resume(folder: Path) -> str:
    return tuigpt_line("train", f"--resume={folder.name}", home=folder.parent.parent)


def _where(folder: Path, trainer: Trainer, how: str) -> str:
    path = checkpoint_path(folder, trainer.step)
    return f"{how} at step {trainer.step:,}; saved {folder.name}@{trainer.step}: {path}"
