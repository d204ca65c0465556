"""How a training comes to be: a new run, one that goes on, or one that begins from a checkpoint."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from tuigpt.cli.progress import ProgressLine
from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.estimate import needed_bytes
from tuigpt.files import folder_in_the_making, write_json
from tuigpt.model.checkpoint import load_checkpoint, versions
from tuigpt.model.device import (
    allow_tf32,
    describe,
    faster_precision,
    memory_bytes,
    resolve_device,
)
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir
from tuigpt.runs.control import last_request
from tuigpt.runs.folder import CHECKPOINTS, RESUME_FILE, RUN_FILE, Checkpoint, Run, checkpoint_path
from tuigpt.runs.leftovers import remove_from_run
from tuigpt.runs.lock import being_trained, trainer_lock
from tuigpt.runs.names import find_checkpoint, find_run, free_name, new_run_folder
from tuigpt.runs.status import (
    RunStatus,
    read_status,
    status_of_this_process,
    utc_now,
    write_status,
)
from tuigpt.text.named import BUILT_IN
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.calibrate import calibrate
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.prepare import (
    corpus_facts,
    make_corpus,
    make_tokenizer,
    read,
    read_again,
    require_known,
    rulers,
    settings_and_device,
)
from tuigpt.training.process_group import Team
from tuigpt.training.trainer import Trainer
from tuigpt.wording import duration, file_size, short_count

CHANGEABLE = ("max_steps", "learning_rate", "patience")
"""Settings of a training that may be given anew when it goes on; dropout is one too."""

EXTRA = ("device", "checkpoint_interval")
"""Settings that may be given anew, for as long as this process lives."""


@dataclass(frozen=True)
class Prepared:
    """A training that is ready to begin or to go on.

    Attributes:
        folder: the run's; the processes of a team that do not lead write nothing there.
        record: the content of its `run.json`.
        status: the first one.
        notes: what to tell before the first step.
    """

    folder: Path
    trainer: Trainer
    tokenizer: Tokenizer
    record: dict[str, Any]
    status: RunStatus
    notes: tuple[str, ...] = ()


def begin(
    until_end: ExitStack,
    home: Path,
    team: Team,
    sources: list[str],
    name: str | None,
    origin: str | None,
    preset: str | None,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
) -> Prepared:
    """Make a new run.

    Args:
        until_end: holds the run's lock from then on.
        sources: the text; none is the origin's, or the built-in one.
        name: of the run; None makes one up.
        origin: the checkpoint whose weights it begins with; None for new ones.
        preset: the size; None is the default.

    Raises:
        UserError: something asked for cannot work. Nothing is left behind then.
    """
    config, device = settings_and_device(train_fields, team.local_rank)
    team.require_even(config.batch_size)
    parent = None if origin is None else _Parent.open(origin, home, device)
    if parent is None:
        shape = GPTConfig(**{**PRESETS[preset or DEFAULT_PRESET], **model_fields})
    else:
        config, shape = parent.settle(config, preset, model_fields, train_fields)
        sources = sources or parent.sources
    sources = sources or [BUILT_IN]
    cache = cache_dir(home)
    with ProgressLine(sys.stdout) as progress, team.leader_first():
        text = read(sources, config, cache, progress)
        folder = None
        if team.leads:  # refused before a long text is encoded
            title = parent.found.run if parent else f"{text.text.name}-{preset or DEFAULT_PRESET}"
            folder = new_run_folder(home, name or free_name(home, title))
        if parent is None:
            tokenizer = make_tokenizer(text, config, shape.block_size, progress)
        else:
            tokenizer = parent.tokenizer
            require_known(text, tokenizer, parent.found.label)
        corpus = make_corpus(text, tokenizer, config, shape.block_size, device, cache, progress)
    folder = team.agreed(folder)
    with ProgressLine(sys.stdout) as progress:
        shape = replace(shape, vocab_size=tokenizer.vocab_size)
        model = _new_model(shape, config, device) if parent is None else parent.model
        config = _settled(config, team, shape, device)
        if config.minutes:
            share = replace(config, batch_size=config.batch_size // team.size)
            found = calibrate(shape, share, tokenizer, corpus, device, progress)
            steps = found.steps_within(60 * config.minutes, config)
            config = replace(config, max_steps=team.agreed(steps))
    trainer = Trainer(model, tokenizer, corpus, config, team)
    if shape.dropout != model.config.dropout:
        model.set_dropout(shape.dropout)
    torch.manual_seed(config.seed + team.rank)  # each process drops activations of its own

    record = {
        "format": 1,
        "name": folder.name,
        "created": utc_now(),
        "preset": preset or (None if parent else DEFAULT_PRESET),
        "model": asdict(shape),
        "train": asdict(config),
        "tokenizer": {"type": config.tokenizer, "vocab_size": tokenizer.vocab_size},
        "corpus": corpus_facts(text, corpus, config),
        "baselines": rulers(text, config),
        "versions": versions(),
        "parent": None if parent is None else parent.facts(),
    }
    status = _first_status(trainer, device, team)
    if team.leads:
        with _taken_name_is_the_users_error(folder), folder_in_the_making(folder) as draft:
            write_json(draft / RUN_FILE, record)
            (draft / CHECKPOINTS).mkdir()
            write_status(draft, status)
        # Not before: some systems rename no folder with an open file. Its status tells meanwhile.
        until_end.enter_context(trainer_lock(folder))
    notes = []
    if config.minutes:
        notes.append(f"{duration(60 * config.minutes)} are {config.max_steps:,} steps here")
    if parent is not None:
        notes.append(
            f"begins with the weights of {parent.found.label} and a schedule of its own:"
            f" {config.max_steps:,} steps from step 0 on"
        )
    return Prepared(folder, trainer, tokenizer, record, status, tuple(notes))


def go_on(
    until_end: ExitStack,
    home: Path,
    team: Team,
    name: str,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
) -> Prepared:
    """Go on with a run where its `resume.safetensors` was written.

    Args:
        until_end: holds the run's lock from then on.
        model_fields, train_fields: settings given anew. Those that a run keeps may only repeat
            what it has.

    Raises:
        UserError: the run cannot go on, or not with these settings; the text names the difference.
    """
    run = find_run(name, home)
    if team.leads:
        _take_over(until_end, run)
    last_state = read_status(run.folder).state
    try:
        config = TrainConfig(**run.record["train"])
        shape = GPTConfig(**run.record["model"])
        vocab_size = run.record["tokenizer"]["vocab_size"]
        state = load_file(run.folder / RESUME_FILE)
        step = int(state["step"])
    except (KeyError, TypeError, ConfigError):
        raise _no_resume(name, f"its {RUN_FILE} is not of this tuigpt's kind") from None
    except (OSError, SafetensorError):
        raise _no_resume(name, f"it has no readable {RESUME_FILE}") from None
    changes = {n: train_fields[n] for n in CHANGEABLE if n in train_fields}
    if "dropout" in model_fields:
        changes["dropout"] = model_fields["dropout"]
    kept = {n: v for n, v in train_fields.items() if n not in (*CHANGEABLE, *EXTRA)}
    _require_same(run, asdict(config) | asdict(shape), {**kept, **model_fields})
    config = replace(config, **{n: train_fields[n] for n in EXTRA if n in train_fields})
    device = resolve_device(config.device, team.local_rank)
    allow_tf32(device)

    model, tokenizer, _ = load_checkpoint(checkpoint_path(run.folder, step), device)
    there = asdict(replace(model.config, dropout=shape.dropout))
    there["vocab_size"] = tokenizer.vocab_size
    for field, recorded in (asdict(shape) | {"vocab_size": vocab_size}).items():
        if there[field] != recorded:
            raise _no_resume(
                name, f"its {RUN_FILE} tells {field} {recorded}, its checkpoint has {there[field]}"
            )
    cache = cache_dir(home)
    with ProgressLine(sys.stdout) as progress, team.leader_first():
        text = read_again(name, run.record["corpus"], cache, progress)
        corpus = make_corpus(text, tokenizer, config, shape.block_size, device, cache, progress)
    trainer = Trainer(model, tokenizer, corpus, config, team)
    try:
        trainer.restore(state)
    except (KeyError, ValueError, RuntimeError):
        raise _no_resume(name, f"its {RESUME_FILE} does not fit its model") from None
    if not team.leads:  # each process drops activations of its own
        torch.manual_seed(config.seed + team.rank + step)
    before = trainer.config
    trainer.change(**changes)
    if trainer.config.max_steps < step:
        raise UserError(
            f"run {name!r} has done {step:,} steps already: --max-steps"
            f" {trainer.config.max_steps:,} is too few"
        )
    # At the last step the last evaluation may still be due.
    if last_state == "finished" and trainer.config == before:
        raise UserError(
            f"run {name!r} is finished, at step {step:,} of {before.max_steps:,}; to go on, give a"
            " higher --max-steps" + (", or another --patience" if before.patience else "")
        )
    notes = [f"resumed at step {step:,}"]
    if trainer.config.max_steps != before.max_steps:
        notes.append(
            f"its schedule now ends at step {trainer.config.max_steps:,}, not {before.max_steps:,}:"
            f" the learning rate goes on from {trainer.learning_rate():.3g}"
        )
    status = _first_status(trainer, device, team)
    status = replace(status, answered=last_request(run.folder))
    return Prepared(run.folder, trainer, tokenizer, run.record, status, tuple(notes))


def _take_over(until_end: ExitStack, run: Run) -> None:
    """Be the only trainer of a run, and remove what one that was killed left half-written.

    Raises:
        UserError: another is at work.
    """
    locked = until_end.enter_context(trainer_lock(run.folder))
    status = read_status(run.folder)
    # A lock of this machine knows better than the status, whose process number may be another's.
    if status.alive and not (locked and status.host == socket.gethostname()):
        raise being_trained(run.name, status.pid, status.host)
    if locked:
        remove_from_run(run.folder)


@dataclass(frozen=True)
class _Parent:
    """The checkpoint that a new run begins with."""

    found: Checkpoint
    model: GPT
    tokenizer: Tokenizer
    header: dict[str, Any]

    @classmethod
    def open(cls, spec: str, home: Path, device: torch.device) -> _Parent:
        found = find_checkpoint(spec, home)
        return cls(found, *load_checkpoint(found.path, device))

    @property
    def sources(self) -> list[str]:
        corpus = self.header.get("corpus", {})
        return list(corpus.get("sources") or [corpus.get("path") or BUILT_IN])

    def settle(
        self,
        config: TrainConfig,
        preset: str | None,
        model_fields: Mapping[str, Any],
        train_fields: Mapping[str, Any],
    ) -> tuple[TrainConfig, GPTConfig]:
        """The settings of the new run, of which size and tokenizer are the checkpoint's.

        Raises:
            UserError: they were asked to be others.
        """
        shape = self.model.config
        wanted = {**(PRESETS[preset] if preset else {}), **model_fields}
        wanted.pop("dropout", None)
        for field, value in wanted.items():
            if value != getattr(shape, field):
                flag = field.replace("_", "-")
                raise UserError(
                    f"--{flag} {value} does not fit --from {self.found.label}: its model has"
                    f" {getattr(shape, field)}, and its weights are taken as they are"
                )
        kind = self.header.get("train", {}).get("tokenizer", "char")
        if train_fields.get("tokenizer", kind) != kind:
            raise UserError(
                f"--tokenizer {train_fields['tokenizer']} does not fit --from {self.found.label}:"
                f" its model reads {kind}"
            )
        dropout = model_fields.get("dropout", 0.0)
        return replace(config, tokenizer=kind), replace(shape, dropout=dropout)

    def facts(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.found.path.read_bytes()).hexdigest()
        return {"run": self.found.run, "step": self.found.step, "sha256": digest}


def _new_model(config: GPTConfig, train_config: TrainConfig, device: torch.device) -> GPT:
    """A new model, if there is memory to train it."""
    count = config.n_params
    need = needed_bytes(config, train_config, device.type)
    have = memory_bytes(device)
    try:
        if need <= have:
            torch.manual_seed(train_config.seed)
            model = GPT(config)
            set_first_weights(model, train_config)
            return model.to(device)
    except (RuntimeError, MemoryError):
        pass
    raise UserError(
        f"a model of {short_count(count)} parameters needs {file_size(need)} of memory and more:"
        f" {device} has {file_size(have)}; try --micro-batch-size 1, or a smaller one"
    )


def _settled(
    config: TrainConfig, team: Team, shape: GPTConfig, device: torch.device
) -> TrainConfig:
    """The settings with `auto` decided once, so that resuming computes as before."""
    if config.precision != "auto":
        return config
    return replace(config, precision=team.agreed(faster_precision(shape, device)))


def _first_status(trainer: Trainer, device: torch.device, team: Team) -> RunStatus:
    shown = describe(device)
    if trainer.config.precision != "float32":
        shown += f", {trainer.config.precision}"
    if team.size > 1:
        shown = f"{team.size} × {shown}"
    return status_of_this_process(max_steps=trainer.config.max_steps, device=shown)


def _require_same(run: Run, has: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    for field, value in given.items():
        if field != "dropout" and value != has[field]:
            flag = field.replace("_", "-")
            raise UserError(
                f"run {run.name!r} has --{flag} {has[field]}, and keeps it: for {value} begin a new"
                f" run, from its weights with --from {run.name} if they fit"
            )


def _no_resume(name: str, reason: str) -> UserError:
    return UserError(f"run {name!r} cannot be resumed: {reason}")


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
