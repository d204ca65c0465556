"""How a new run comes to be, from a text or from a checkpoint."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.files import folder_in_the_making
from tuigpt.model.checkpoint import load_checkpoint, versions
from tuigpt.model.device import describe
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir
from tuigpt.plan.law import TextSize
from tuigpt.runs.folder import CHECKPOINTS, Checkpoint
from tuigpt.runs.header import Header
from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.names import default_name, find_checkpoint, free_name, new_run_folder
from tuigpt.runs.record import (
    ParentFacts,
    RunRecord,
    TokenizerFacts,
    find_corpus,
    write_run_record,
)
from tuigpt.runs.status import RunStatus, status_of_this_process, utc_now, write_status
from tuigpt.text.baselines import baselines
from tuigpt.text.named import BUILT_IN
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.command import Reporter, TrainCommand
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.prepare import (
    corpus_facts,
    make_corpus,
    make_tokenizer,
    read,
    require_known,
    settings_and_device,
)
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.reserve import Reserve, save_bytes
from tuigpt.training.state import TrainingFacts
from tuigpt.training.trainer import Trainer
from tuigpt.training.trials import Trials, plan_facts, require_memory, too_large
from tuigpt.wording import duration, file_size


@dataclass(frozen=True)
class Prepared:
    """A training that is ready to begin or to be resumed.

    Attributes:
        folder: the run's; only rank 0 writes there.
        record: the content of its `run.json`.
        status: the first one.
        resumed: what the resume file says; None for a new run.
        notes: what to say before the first step.
        learn_speed: is told in the end how many seconds a step took, for the next plan.
    """

    folder: Path
    trainer: Trainer
    tokenizer: Tokenizer
    record: RunRecord
    status: RunStatus
    resumed: TrainingFacts | None = None
    notes: tuple[str, ...] = ()
    learn_speed: Callable[[float], None] = lambda seconds: None


def begin(
    command: TrainCommand, group: ProcessGroup, reporter: Reporter, until_end: ExitStack
) -> Prepared:
    """Make a new run.

    The order matters. What can be refused is refused before the long reading of a text, and that
    comes before anything is written. Rank 0 reads first, so that the others find what it cached.
    Trials run before the seed is set, so that they decide nothing but the settings. The
    folder appears all at once, with a status that says there is a trainer; only then is it locked,
    because some systems rename no folder with an open file.

    Args:
        until_end: holds the run's lock from then on.

    Raises:
        UserError: something asked for cannot work. Nothing is left behind then.
    """
    asked = command.asked
    config, device = settings_and_device(asked, group.local_rank)
    group.require_even(config.batch_size)
    cache = cache_dir(command.home)
    sources = command.sources
    parent = None
    sizes = asked.sizes
    if command.origin is not None:
        parent = _Parent.open(command.origin, command.home, device)
        config, sizes = parent.settle(command, config)
        sources = sources or parent.sources

    with reporter.preparing() as progress, group.rank_0_first():
        sources = sources or [BUILT_IN]
        text = read(sources, config, cache, progress)
        folder = _new_folder(command, sources, parent) if group.is_rank_0 else None
        if parent is None:
            tokenizer = make_tokenizer(text, config, sizes.block_size, progress)
        else:
            tokenizer = parent.tokenizer
            require_known(text, tokenizer, parent.found.label)
        corpus = make_corpus(text, tokenizer, config, sizes.block_size, device, cache, progress)
    folder = group.from_rank_0(folder)
    assert folder is not None

    notes = list(text.text.notes)
    sizes = replace(sizes, vocab_size=tokenizer.vocab_size)
    counted = baselines(text.scan, config.val_fraction)
    plan = None
    with reporter.preparing() as progress:
        trials = Trials(tokenizer, corpus, device, command.home, group, progress)
        if asked.planned:
            known = TextSize(tokenizer.vocab_size, corpus.n_train, corpus.n_val, counted.triples)
            order = trials.best(asked, known)
            sizes, config, plan = order[0].model, order[0].train, plan_facts(asked, order)
            corpus = corpus.with_block_size(sizes.block_size)
            notes.append(order[0].words)
        elif config.minutes:
            steps = trials.time(sizes, config).steps_within(60 * config.minutes, config)
            config = replace(config, max_steps=group.from_rank_0(steps))
            notes.append(f"{duration(60 * config.minutes)} are {config.max_steps:,} steps here")
        learn_speed = trials.corrector(sizes, config)
        config = trials.settle(sizes, config)
    notes += trials.notes
    model = _new_model(sizes, config, device) if parent is None else parent.model
    if parent is not None:
        notes.append(
            f"begins with the weights of {parent.found.label} and a schedule of its own:"
            f" {config.max_steps:,} steps from step 0 on"
        )
    trainer = Trainer(model, tokenizer, corpus, config, group)
    model.set_dropout(sizes.dropout)
    torch.manual_seed(config.seed + group.rank)  # each process drops activations of its own

    record = RunRecord(
        name=folder.name,
        created=utc_now(),
        preset=command.preset or (None if parent or asked.size_is_open else DEFAULT_PRESET),
        model=sizes,
        train=config,
        tokenizer=TokenizerFacts(config.tokenizer, tokenizer.vocab_size),
        corpus=corpus_facts(text, corpus, config),
        baselines_by_name=dict(counted.items()),
        versions=versions(),
        parent=None if parent is None else parent.facts(),
        plan=plan,
    )
    status = first_status(trainer, device, group)
    if group.is_rank_0:
        size = save_bytes(sizes, config)
        with _refusing_to_write(folder, size), folder_in_the_making(folder) as draft:
            write_run_record(draft, record)
            (draft / CHECKPOINTS).mkdir()
            write_status(draft, status)
            Reserve(draft, size).hold()
        until_end.enter_context(trainer_lock(folder))
    return Prepared(folder, trainer, tokenizer, record, status, None, tuple(notes), learn_speed)


def _new_folder(command: TrainCommand, sources: list[str], parent: _Parent | None) -> Path:
    name = command.name
    if name is None and parent is not None:
        name = free_name(command.home, parent.found.run)
    elif name is None:
        name = default_name(command.home, sources, command.asked.label)
    return new_run_folder(command.home, name)


@dataclass(frozen=True)
class _Parent:
    """The checkpoint that a new run begins with."""

    found: Checkpoint
    model: GPT
    tokenizer: Tokenizer
    header: Header

    @classmethod
    def open(cls, spec: str, home: Path, device: torch.device) -> _Parent:
        found = find_checkpoint(spec, home)
        return cls(found, *load_checkpoint(found.path, device))

    @property
    def sources(self) -> list[str]:
        corpus = find_corpus(self.found.path, self.header.corpus)
        known = corpus.sources or ([corpus.path] if corpus.path else [])
        if not known and corpus.name != BUILT_IN:
            raise UserError(
                f"{self.found.label} learned from {corpus.name!r}, and does not tell where that is:"
                " give a text"
            )
        return known or [BUILT_IN]

    def settle(self, command: TrainCommand, config: TrainConfig) -> tuple[TrainConfig, GPTConfig]:
        """The settings of the new run, of which size and tokenizer are the checkpoint's.

        Raises:
            UserError: they were asked to be others.
        """
        sizes = self.model.config
        label = self.found.label
        preset: Mapping[str, Any] = PRESETS[command.preset] if command.preset else {}
        for name, value in {**preset, **command.model_fields}.items():
            if name != "dropout" and value != getattr(sizes, name):
                raise UserError(
                    Setting(name, value), " does not fit ", Setting("from", label),
                    f": its model has {getattr(sizes, name)}, and its weights are taken as they"
                    " are",
                )  # fmt: skip
        kind = str(self.header.train.get("tokenizer", "char"))
        wanted = command.train_fields.get("tokenizer", kind)
        if wanted != kind:
            raise UserError(
                Setting("tokenizer", wanted), " does not fit ", Setting("from", label),
                f": its model reads {kind}",
            )  # fmt: skip
        dropout = command.model_fields.get("dropout", 0.0)
        return replace(config, tokenizer=kind), replace(sizes, dropout=dropout)

    def facts(self) -> ParentFacts:
        digest = hashlib.sha256(self.found.path.read_bytes()).hexdigest()
        return ParentFacts(self.found.run, self.found.step, digest)


def _new_model(config: GPTConfig, train_config: TrainConfig, device: torch.device) -> GPT:
    """A new model, if there is memory to train it."""
    require_memory(config, train_config, device)
    try:
        torch.manual_seed(train_config.seed)
        model = GPT(config)
        set_first_weights(model, train_config)
        return model.to(device)
    except (RuntimeError, MemoryError):
        raise too_large(config, train_config, device) from None


def first_status(trainer: Trainer, device: torch.device, group: ProcessGroup) -> RunStatus:
    """The status of a training before its first step."""
    shown = describe(device)
    if trainer.config.precision != "float32":
        shown += f", {trainer.config.precision}"
    if group.size > 1:
        shown = f"{group.size} × {shown}"
    return status_of_this_process(max_steps=trainer.config.max_steps, device=shown)


@contextmanager
def _refusing_to_write(folder: Path, size: int) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise UserError(f"a run {folder.name!r} has been started meanwhile") from None
    except OSError as error:
        raise cannot_write(folder, size, error) from None


def cannot_write(folder: Path, size: int, error: OSError) -> UserError:
    """The refusal of a run folder in which a training could not save.

    Args:
        size: what a save takes, in bytes.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"the disk of {str(folder.parent)!r} is full: this training needs {file_size(size)} to"
            " save itself; free some, or keep runs elsewhere with another ", Setting("home"),
        )  # fmt: skip
    return UserError(f"cannot write {str(error.filename or folder)!r}: {error.strerror}")
