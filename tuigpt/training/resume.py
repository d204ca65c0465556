"""How a run is resumed where it was saved last."""

from __future__ import annotations

import errno
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import ConfigError, Setting, UserError
from tuigpt.estimate import memory
from tuigpt.files import TEMPORARY_PREFIX
from tuigpt.loss import per_character
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.device import allow_tf32, resolve_device
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir
from tuigpt.runs.control import CHANGEABLE, last_request
from tuigpt.runs.folder import CHECKPOINTS, RESUME_FILE, Run, checkpoint_path
from tuigpt.runs.leftovers import remove_from_run
from tuigpt.runs.lock import being_trained, trainer_lock
from tuigpt.runs.metrics import MetricsLog
from tuigpt.runs.names import find_run
from tuigpt.runs.record import RUN_FILE
from tuigpt.runs.status import STATUS_FILE, read_status
from tuigpt.text.tokenizer import Tokenizer, tokenizer_from_dict
from tuigpt.training.command import Reporter, TrainCommand
from tuigpt.training.prepare import make_corpus, read_again
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.reserve import Reserve, save_bytes
from tuigpt.training.start import Prepared, cannot_write, first_status
from tuigpt.training.state import WEIGHTS, TrainingState, read_state
from tuigpt.training.trainer import Trainer

OTHER_FILES = 64 << 20
"""Most bytes of a resume file beside its model's tensors: the tokenizer, mostly."""


def resume(
    command: TrainCommand, group: ProcessGroup, reporter: Reporter, until_end: ExitStack
) -> Prepared:
    """Resume a run where its `resume.safetensors` was written.

    The order matters. Rank 0 locks the run before anything of it is believed, then everything that
    can be refused is refused before the text is read. Changed settings come last, on top of those
    that the run had when it was saved.

    Args:
        until_end: holds the run's lock from then on.

    Raises:
        UserError: the run cannot be resumed, or not with these settings; the text says why, and
            what works instead.
    """
    assert command.resume is not None
    run = find_run(command.resume, command.home)
    if group.is_rank_0:
        _take_over(until_end, run)
    last_state = read_status(run.folder).state
    record = run.record
    if record is None:
        raise _cannot(run, f"it is damaged: {run.problem}")
    config = record.train
    sizes = replace(record.model, vocab_size=record.tokenizer.vocab_size)
    changes = _changes(run, command, asdict(config) | asdict(sizes))
    for_now = {name: changes.pop(name) for name in list(changes) if not CHANGEABLE[name].kept}
    config = replace(config, **for_now)
    device = resolve_device(config.device, group.local_rank)
    allow_tf32(device)

    need = memory(sizes, config)
    try:
        state = read_state(
            run.folder / RESUME_FILE, 2 * need.weights + need.optimizer + OTHER_FILES
        )
        model, tokenizer = _saved_model(run, state, sizes, device)
    except ValueError as error:
        raise _cannot(run, f"its {RESUME_FILE} cannot be used, {error}") from None
    with reporter.preparing() as progress, group.rank_0_first():
        text = read_again(
            run.name, record.corpus, command.sources, cache_dir(command.home), progress
        )
        corpus = make_corpus(
            text, tokenizer, config, sizes.block_size, device, cache_dir(command.home), progress
        )
    trainer = Trainer(model, tokenizer, corpus, config, group)
    try:
        trainer.restore(state)
    except (ValueError, ConfigError) as error:
        raise _cannot(run, f"its {RESUME_FILE} cannot be used, {error}") from None
    step = trainer.step
    if not group.is_rank_0:  # each process drops activations of its own
        torch.manual_seed(config.seed + group.rank + step)
    before = trainer.config
    trainer.change(**changes)
    _require_something_left(run, trainer, before, last_state)

    notes = [f"resumed at step {step:,}"]
    if trainer.config.max_steps != before.max_steps:
        notes.append(
            f"its schedule now ends at step {trainer.config.max_steps:,}, not {before.max_steps:,}:"
            f" the learning rate continues from {trainer.learning_rate():.3g}"
        )
    if group.is_rank_0:
        _require_writable(run.folder, save_bytes(sizes, config))
    status = replace(
        first_status(trainer, device, group),
        answered=last_request(run.folder),
        best_step=state.facts.best_step,
        best_val_loss=per_character(state.facts.best_val_loss, record.corpus.characters_per_token),
    )
    return Prepared(run.folder, trainer, tokenizer, record, status, state.facts, tuple(notes))


def _take_over(until_end: ExitStack, run: Run) -> None:
    """Be the only trainer of a run, and remove what one that was killed left half-written.

    Raises:
        UserError: another trainer is running.
    """
    locked = until_end.enter_context(trainer_lock(run.folder))
    status = read_status(run.folder)
    # A lock of this machine knows better than the status, whose process number may be another's.
    if status.alive and not (locked and status.host == socket.gethostname()):
        raise being_trained(run.name, status.pid, status.host)
    if locked:
        remove_from_run(run.folder)
        Reserve(run.folder, 0).release()


def _changes(run: Run, command: TrainCommand, has: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that may become others; what the run keeps may only be repeated.

    Raises:
        UserError: something that the run keeps was asked to be another.
    """
    changes = {}
    for name, value in {**command.train_fields, **command.model_fields}.items():
        if name in CHANGEABLE:
            changes[name] = value
        elif value != has[name]:
            raise UserError(
                f"run {run.name!r} has ", Setting(name, has[name]), f", and keeps it: for {value}"
                " begin a new run, from its weights with ", Setting("from", run.name),
                " if they fit",
            )  # fmt: skip
    return changes


def _saved_model(
    run: Run, state: TrainingState, sizes: GPTConfig, device: torch.device
) -> tuple[GPT, Tokenizer]:
    """The model that `Trainer.restore` takes, and its tokenizer.

    Raises:
        ValueError: the state has no tokenizer that is one.
        UserError: the checkpoint that an older state belongs to is not of this run.
    """
    if state.facts.tokenizer is not None:
        try:
            tokenizer = tokenizer_from_dict(state.facts.tokenizer)
        except (UserError, KeyError, TypeError, AttributeError):
            raise ValueError("its tokenizer cannot be read") from None
        found = {"vocab_size": tokenizer.vocab_size}
        model = None
        where = RESUME_FILE
    else:
        path = checkpoint_path(run.folder, state.facts.step)
        try:
            model, tokenizer, header = load_checkpoint(path, device)
        except UserError as error:
            raise _cannot(run, str(error)) from None
        if header.step != state.facts.step:
            raise ValueError(f"it is of step {state.facts.step}, {path.name} of {header.step}")
        found = asdict(replace(model.config, dropout=sizes.dropout))
        found["vocab_size"] = tokenizer.vocab_size
        where = "checkpoint"
    for name, recorded in asdict(sizes).items():
        if found.get(name, recorded) != recorded:
            raise _cannot(run, f"its {RUN_FILE} says {name} {recorded}, its {where} {found[name]}")
    if model is None:
        saved = sum(tensor.numel() for tensor in state.of_kind(WEIGHTS).values())
        if saved != sizes.n_params:  # known before anything of that size is built
            raise ValueError(f"it holds {saved:,} parameters, its run has {sizes.n_params:,}")
        model = GPT(sizes).to(device)
    return model, tokenizer


def _require_something_left(
    run: Run, trainer: Trainer, before: TrainConfig, last_state: str
) -> None:
    """Refuse what would end at once.

    Raises:
        UserError: says which settings give the run more to do.
    """
    step, config = trainer.step, trainer.config
    if config.max_steps < step:
        raise UserError(
            f"run {run.name!r} has done {step:,} steps already: ",
            Setting("max_steps", f"{config.max_steps:,}"), " is too few",
        )  # fmt: skip
    if last_state != "finished":
        return  # also at the last step, whose last evaluation may still be due
    if trainer.out_of_patience:
        raise UserError(
            f"run {run.name!r} is finished: {trainer.not_better} evaluations in a row were no"
            " better; to resume, give ", Setting("patience", trainer.not_better + 1),
            " or more, or ", Setting("patience", 0), " for any number",
        )  # fmt: skip
    if step >= config.max_steps:
        raise UserError(
            f"run {run.name!r} is finished, at step {step:,} of {before.max_steps:,}; to resume,"
            " give a higher ", Setting("max_steps"),
        )  # fmt: skip


def _require_writable(folder: Path, size: int) -> None:
    """See that a training can save itself here, before it does a step.

    Raises:
        UserError: it cannot.
    """
    try:
        for place in (folder, folder / CHECKPOINTS):
            with tempfile.NamedTemporaryFile(prefix=TEMPORARY_PREFIX, dir=place):
                pass
        for name in (STATUS_FILE, RESUME_FILE):
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder", str(folder / name))
        MetricsLog(folder).close()
        Reserve(folder, size).hold()
    except OSError as error:
        raise cannot_write(folder, size, error) from None


def _cannot(run: Run, reason: str) -> UserError:
    """The refusal to resume, with what can be done with what is left."""
    for checkpoint in reversed(run.checkpoints):
        if not checkpoint.problem and _opens(checkpoint.path):
            return UserError(
                f"run {run.name!r} cannot be resumed: {reason}; its checkpoint"
                f" {checkpoint.label} is whole: a new run begins with its weights by ",
                Setting("from", checkpoint.label),
            )  # fmt: skip
    return UserError(
        f"run {run.name!r} cannot be resumed: {reason}; it has no checkpoint to begin with either"
    )


def _opens(path: Path) -> bool:
    try:
        load_checkpoint(path, torch.device("cpu"))
    except UserError:
        return False
    return True
