"""`tuigpt train`: the trainer process, whether a person or the app started it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from tuigpt.commands.console import Console
from tuigpt.commands.prepare import (
    corpus_facts,
    make_corpus,
    make_tokenizer,
    read,
    read_again,
    rulers,
)
from tuigpt.commands.progress import ProgressLine, end_cleanly_on_signals
from tuigpt.commands.recorder import Recorder
from tuigpt.config import (
    DEFAULT_PRESET,
    DEFAULT_RECIPE,
    PRESETS,
    ConfigError,
    GPTConfig,
    TrainConfig,
    UserError,
    train_defaults,
)
from tuigpt.core.checkpoint import load_checkpoint, versions
from tuigpt.core.device import describe, memory_bytes, resolve_device
from tuigpt.core.model import GPT
from tuigpt.core.named import BUILT_IN
from tuigpt.core.optim import set_first_weights
from tuigpt.core.tokenizer import Tokenizer
from tuigpt.core.trainer import Diverged, Trainer
from tuigpt.files import folder_in_the_making, to_json
from tuigpt.paths import cache_dir
from tuigpt.runs.control import Requests, last_request
from tuigpt.runs.status import RunStatus, status_of_this_process, utc_now, write_status
from tuigpt.runs.store import (
    CHECKPOINTS,
    RESUME_FILE,
    RUN_FILE,
    TRAINER_LOG,
    checkpoint_path,
    find_run,
    free_name,
    new_run_folder,
)
from tuigpt.wording import file_size, short_count

FAILED = 1
"""Exit status of a training that began and could not go on."""

PAUSE_POLL = 0.1
"""Seconds between two looks at the run folder while paused."""


def run(
    home: Path,
    sources: list[str],
    name: str | None,
    resume: str | None,
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
        model_fields: fields of GPTConfig that override the preset's.
        train_fields: fields of TrainConfig that override the defaults.
        log_file: where our stdout goes already; it moves into the run folder.

    Raises:
        UserError: something asked for cannot work. Nothing is left behind then.
    """
    end_cleanly_on_signals()
    if resume is not None:
        if sources or name or preset or model_fields or train_fields:
            raise UserError("--resume takes text and settings from the run: give nothing else")
        folder, trainer, recorder = _resume(home, resume)
    else:
        folder, trainer, recorder = _begin(
            home, sources or [BUILT_IN], name, preset or DEFAULT_PRESET, model_fields, train_fields
        )
    if log_file is not None:
        with suppress(FileNotFoundError):  # whoever started us has changed their mind
            os.replace(log_file, folder / TRAINER_LOG)
    return _train(folder, trainer, recorder)


def _begin(
    home: Path,
    sources: list[str],
    name: str | None,
    preset: str,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
) -> tuple[Path, Trainer, Recorder]:
    recipe = train_fields.get("recipe", DEFAULT_RECIPE)
    train_config = TrainConfig(**{**train_defaults(recipe), **train_fields})
    device = resolve_device(train_config.device)
    shape = GPTConfig(**{**PRESETS[preset], **model_fields})  # refused before a long text is read
    cache = cache_dir(home)
    with ProgressLine(sys.stdout) as progress:
        text = read(sources, train_config, cache, progress)
        folder = new_run_folder(home, name or free_name(home, f"{text.text.name}-{preset}"))
        tokenizer = make_tokenizer(text, train_config, shape.block_size, progress)
        corpus = make_corpus(
            text, tokenizer, train_config, shape.block_size, device, cache, progress
        )
    config = replace(shape, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(train_config.seed)
    model = _build(config, train_config, device)
    trainer = Trainer(model, tokenizer, corpus, train_config)

    record = {
        "format": 1,
        "name": folder.name,
        "created": utc_now(),
        "preset": preset,
        "model": asdict(config),
        "train": asdict(train_config),
        "tokenizer": {"type": train_config.tokenizer, "vocab_size": tokenizer.vocab_size},
        "corpus": corpus_facts(text, corpus, train_config),
        "baselines": rulers(text, train_config),
        "versions": versions(),
        "parent": None,
    }
    status = status_of_this_process(max_steps=train_config.max_steps, device=describe(device))
    with _taken_name_is_the_users_error(folder), folder_in_the_making(folder) as draft:
        (draft / RUN_FILE).write_text(to_json(record) + "\n", "utf-8")
        (draft / CHECKPOINTS).mkdir()
        write_status(draft, status)
    return folder, trainer, _recorder(folder, trainer, tokenizer, record, status)


def _build(config: GPTConfig, train_config: TrainConfig, device: torch.device) -> GPT:
    """A new model, if there is memory to train it."""
    count = config.n_params
    need = 16 * count  # weights, gradients and AdamW's two moments, in float32
    have = memory_bytes(device)
    try:
        if need <= have:
            model = GPT(config)
            set_first_weights(model, train_config)
            return model.to(device)
    except (RuntimeError, MemoryError):
        pass
    raise UserError(
        f"a model of {short_count(count)} parameters needs {file_size(need)} of memory and more:"
        f" {device} has {file_size(have)}; try a smaller one"
    )


def _resume(home: Path, name: str) -> tuple[Path, Trainer, Recorder]:
    run = find_run(name, home)
    if run.status.alive:
        raise UserError(f"run {name!r} is {run.status.state} already (process {run.status.pid})")
    try:
        train_config = TrainConfig(**run.record["train"])
    except (KeyError, TypeError, ConfigError):
        raise UserError(
            f"run {name!r} cannot be resumed: its {RUN_FILE} is not of this tuigpt's kind"
        ) from None
    device = resolve_device(train_config.device)
    try:
        state = load_file(run.folder / RESUME_FILE)
        step = int(state["step"])
    except (OSError, KeyError, SafetensorError):
        raise UserError(
            f"run {name!r} cannot be resumed: it has no readable {RESUME_FILE}"
        ) from None
    # At the last step the last evaluation may still be due.
    if step >= train_config.max_steps and run.status.state == "finished":
        raise UserError(f"run {name!r} is finished: {step:,} of {train_config.max_steps:,} steps")
    model, tokenizer, _ = load_checkpoint(checkpoint_path(run.folder, step), device)
    cache = cache_dir(home)
    with ProgressLine(sys.stdout) as progress:
        text = read_again(name, run.record["corpus"], cache, progress)
        corpus = make_corpus(
            text, tokenizer, train_config, model.config.block_size, device, cache, progress
        )
    trainer = Trainer(model, tokenizer, corpus, train_config)
    trainer.restore(state)
    status = status_of_this_process(
        max_steps=train_config.max_steps,
        device=describe(device),
        answered=last_request(run.folder),
    )
    recorder = _recorder(run.folder, trainer, tokenizer, run.record, status)
    recorder.note(f"resumed at step {step:,}")
    return run.folder, trainer, recorder


def _recorder(
    folder: Path,
    trainer: Trainer,
    tokenizer: Tokenizer,
    record: dict[str, Any],
    status: RunStatus,
) -> Recorder:
    facts = {"run": folder.name, "corpus": record["corpus"], "train": record["train"]}
    tokens_per_step = record["train"]["batch_size"] * record["model"]["block_size"]
    return Recorder(folder, trainer, tokenizer, facts, status, tokens_per_step)


@contextmanager
def _taken_name_is_the_users_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise UserError(f"a run {folder.name!r} has been started meanwhile") from None
    except OSError as error:
        raise UserError(
            f"cannot write {str(error.filename or folder)!r}: {error.strerror}"
        ) from None


class _Stop:
    """Set by a signal or a request; asked after each event."""

    def __init__(self) -> None:
        self.asked = False
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.asked = True


def _train(folder: Path, trainer: Trainer, recorder: Recorder) -> int:
    stop = _Stop()
    requests = Requests(folder, recorder.status.answered)
    facts = recorder.facts
    characters = facts["train"].get("tokenizer", "char") == "char"
    symbols = None if characters else int(facts["corpus"]["symbols"])
    console = Console(sys.stdout, folder.name, trainer.model.config, symbols)
    console.begin(recorder.status)
    try:
        for event in trainer.run():
            if recorder.folder_is_gone():
                recorder.abandon()
                console.end(f"the run folder {str(folder)!r} is gone: training ended")
                return FAILED
            recorder.record(event)
            console.show(event, recorder.status)
            _carry_out(requests, stop, trainer, recorder, console)
            stop.asked |= console.unread
            if stop.asked:
                break
    except Diverged as error:
        recorder.close("failed", str(error))
        console.end(str(error))
        return FAILED
    except Exception as error:
        with suppress(OSError), open(folder / TRAINER_LOG, "a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        message = _why(error, trainer.step)
        recorder.close("failed", message)
        console.end(f"{message}\ndetails: {folder / TRAINER_LOG}")
        return FAILED
    return _end(trainer, recorder, console)


def _why(error: Exception, step: int) -> str:
    """What went wrong, in one line."""
    reason = (str(error).splitlines() or [""])[0]
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in reason:
        return (
            f"out of memory at step {step:,}: try a smaller --batch-size or --block-size,"
            " or a smaller model"
        )
    return f"{type(error).__name__} at step {step:,}: {reason}"


def _carry_out(
    requests: Requests, stop: _Stop, trainer: Trainer, recorder: Recorder, console: Console
) -> None:
    paused = False
    while True:
        for action in requests.new():
            match action:
                case "stop":
                    stop.asked = True
                case "pause":
                    paused = True
                case "resume":
                    paused = False
                case "checkpoint":
                    recorder.save(keep=True)
                case "sample":
                    for event in trainer.sample():
                        recorder.record(event)
                        console.show(event, recorder.status)
                        if stop.asked:
                            break
            recorder.answered(requests.answered)
        if stop.asked or not paused or recorder.folder_is_gone():
            return
        recorder.pause()
        time.sleep(PAUSE_POLL)


def _end(trainer: Trainer, recorder: Recorder, console: Console) -> int:
    """Have the newest weights on disk, and say where; the run is finished or merely stopped."""
    if recorder.saved_step != trainer.step and recorder.save(keep=True) is None:
        message = recorder.status.message
        recorder.close("failed", message)
        console.end(message)
        return FAILED
    if trainer.step >= recorder.status.max_steps:
        recorder.close("finished", "")
        console.end(_where(recorder.folder, trainer, "finished"))
    else:
        recorder.close("stopped", f"stopped at step {trainer.step:,}")
        console.end(
            _where(recorder.folder, trainer, "stopped")
            + f"\ngo on with: tuigpt train --resume {shlex.quote(recorder.folder.name)}"
        )
    return 0


def _where(folder: Path, trainer: Trainer, how: str) -> str:
    path = checkpoint_path(folder, trainer.step)
    return f"{how} at step {trainer.step:,}; saved {folder.name}@{trainer.step}: {path}"
