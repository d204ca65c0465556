"""The runs and checkpoints under tuigpt's home: list them, name them, find them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from tuigpt.config import GPTConfig
from tuigpt.errors import UserError
from tuigpt.files import TEMPORARY_PREFIX, read_header, read_json
from tuigpt.paths import asset, runs_dir
from tuigpt.runs.metrics import METRICS_FILE
from tuigpt.runs.status import RunStatus, read_status

RUN_FILE = "run.json"
CHECKPOINTS = "checkpoints"
RESUME_FILE = "resume.safetensors"
TRAINER_LOG = "trainer.log"
LOCK_FILE = "trainer.lock"

POET = "poet"
"""Names the model that ships with tuigpt; no new run may be called so, in any letter case."""

_NAME = re.compile(r"[^\W_][\w .+-]{0,63}", re.UNICODE)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as its file's header tells, without its tensors.

    Attributes:
        run: name of the run folder it lies in, or "" elsewhere.
        train_loss: of the newest batch, in nats per character, or None.
        val_loss: mean loss over the evenly spread validation windows, in nats per character, or
            None.
        size: of the file, in bytes.
        modified: of the file, in seconds since the epoch.
        problem: why the file cannot be opened, or "".
        built_in: whether it is the poet, which ships with tuigpt.
    """

    path: Path
    run: str
    step: int
    train_loss: float | None
    val_loss: float | None
    vocab_size: int
    n_params: int
    corpus: str
    size: int
    modified: float
    problem: str = ""
    built_in: bool = False

    @property
    def label(self) -> str:
        """How people name it: `RUN@STEP`, or the file's name outside a run."""
        return f"{self.run}@{self.step}" if self.run else self.path.stem


@dataclass(frozen=True)
class Run:
    """A run folder.

    Attributes:
        record: the content of `run.json`.
        checkpoints: by step, ascending; unreadable ones have a `problem`.
        metrics: the log behind its curves.
        built_in: whether it is the poet. Its folder does not exist, so nothing can be asked of
            it, written to it or deleted from it.
    """

    folder: Path
    record: dict[str, Any]
    status: RunStatus
    checkpoints: tuple[Checkpoint, ...]
    built_in: bool = False

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def metrics(self) -> Path:
        return asset(f"{POET}-metrics.jsonl") if self.built_in else self.folder / METRICS_FILE

    def refreshed(self, checkpoints: tuple[Checkpoint, ...]) -> Run:
        """The same run with its status read again and these checkpoints."""
        return replace(self, status=read_status(self.folder), checkpoints=checkpoints)

    @property
    def last(self) -> Checkpoint | None:
        good = [c for c in self.checkpoints if not c.problem]
        return good[-1] if good else None

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint with the lowest validation loss, the earlier one of equals."""
        measured = [
            (c.val_loss, c.step, c)
            for c in self.checkpoints
            if not c.problem and c.val_loss is not None and math.isfinite(c.val_loss)
        ]
        return min(measured, key=itemgetter(0, 1))[2] if measured else None


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where a run keeps the checkpoint of a step."""
    return folder / CHECKPOINTS / f"step-{step:06d}.safetensors"


def read_checkpoint(path: Path, run: str = "") -> Checkpoint:
    """Describe a checkpoint from its header. Never raises for what the file holds.

    Raises:
        OSError: the file is gone.
    """
    stat = path.stat()
    step = int(digits.group()) if (digits := re.search(r"\d+", path.stem)) else 0
    blank = (None, None, 0, 0, "", stat.st_size, stat.st_mtime)
    try:
        header = read_header(path)
        config = GPTConfig(**header["model"])
        return Checkpoint(
            path=path,
            run=run,
            step=int(header["step"]),
            train_loss=_loss(header.get("train_loss"), _characters_per_token(header)),
            val_loss=_loss(header.get("val_loss_per_character", header.get("val_loss"))),
            vocab_size=config.vocab_size,
            n_params=config.n_params,
            corpus=str(header.get("corpus", {}).get("name", "")),
            size=stat.st_size,
            modified=stat.st_mtime,
        )
    except OSError as error:
        return Checkpoint(path, run, step, *blank, problem=error.strerror or str(error))
    except (ValueError, UserError) as error:
        return Checkpoint(path, run, step, *blank, problem=str(error))
    except (KeyError, TypeError, AttributeError):
        problem = "its header is not of this tuigpt's kind"
        return Checkpoint(path, run, step, *blank, problem=problem)


def _loss(value: object, characters_per_token: float = 1.0) -> float | None:
    return float(value) / characters_per_token if isinstance(value, int | float) else None


def _characters_per_token(header: dict[str, Any]) -> float:
    """How many characters a token of the training part has, where the header tells."""
    corpus = header.get("corpus", {})
    tokens, characters = corpus.get("train_tokens"), corpus.get("train_characters")
    return float(characters / tokens) if tokens and characters else 1.0


def list_checkpoints(folder: Path) -> tuple[Checkpoint, ...]:
    """A run's checkpoints by step; files deleted meanwhile are left out."""
    found = []
    for name in _names(folder / CHECKPOINTS):
        if name.endswith(".safetensors"):
            with suppress(OSError):
                found.append(read_checkpoint(folder / CHECKPOINTS / name, run=folder.name))
    return tuple(sorted(found, key=lambda c: c.step))


def open_run(folder: Path) -> Run:
    """Read a run folder.

    Raises:
        UserError: it is no run folder, or its run.json cannot be read.
    """
    try:
        record = read_json(folder / RUN_FILE)
    except (OSError, ValueError) as error:
        raise UserError(f"{str(folder)!r} is not a run folder: {error}") from None
    return Run(folder, record, read_status(folder), list_checkpoints(folder))


def run_folders(home: Path) -> Iterator[Path]:
    """The folders of all runs under a home, newest first."""
    dated = []
    for name in _names(runs_dir(home)):
        folder = runs_dir(home) / name
        with suppress(OSError):  # no run, or deleted meanwhile
            dated.append(((folder / RUN_FILE).stat().st_mtime, folder))
    yield from (folder for _, folder in sorted(dated, reverse=True))


def _names(folder: Path) -> list[str]:
    """What lies in a folder; nothing when there is none, and nothing that is half written."""
    try:
        return [n for n in os.listdir(folder) if not n.startswith(TEMPORARY_PREFIX)]
    except OSError:
        return []


def is_run(name: str, home: Path) -> bool:
    """Whether there is a run of that name."""
    return is_run_name(name) and os.path.isfile(runs_dir(home) / name / RUN_FILE)


def is_run_name(name: str) -> bool:
    """Whether a run may be called this: a plain folder name on every system, without `@`."""
    return bool(_NAME.fullmatch(name)) and not name.endswith((" ", "."))
