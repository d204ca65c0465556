"""The runs and checkpoints under tuigpt's home: list them and open them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import TEMPORARY_PREFIX, UnreadableFile
from tuigpt.loss import can_be_best, is_measured
from tuigpt.paths import asset, names_of_runs, runs_dir
from tuigpt.runs.header import read_header
from tuigpt.runs.marks import Marks, read_marks
from tuigpt.runs.metrics import METRICS_FILE
from tuigpt.runs.record import RUN_FILE, RunRecord, read_run_record
from tuigpt.runs.status import RunStatus, read_status, status_and_problem
from tuigpt.wording import one_line

CHECKPOINTS = "checkpoints"
RESUME_FILE = "resume.safetensors"
TRAINER_LOG = "trainer.log"

FOREIGN = (".pt", ".pth", ".bin", ".ckpt")
"""Endings of other programs' files, which are listed as well, though they cannot be opened."""

POET = "poet"
"""Names the model that ships with tuigpt; no new run may be called so, in any letter case."""

_LONGEST_FILE_NAME = 255
"""Bytes, on every common file system."""

_NAME = re.compile(r"[^\W_][\w .+-]{0,63}", re.UNICODE)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as its file's header tells, without its tensors.

    Attributes:
        run: name of the run folder it lies in, or "" elsewhere.
        train_loss: of the newest batch, in nats per character, or None.
        val_loss: mean loss over the evenly spread validation windows, in nats per character, or
            None.
        early_val_loss: the estimate of an early evaluation, in nats per character, or None.
        size: of the file, in bytes.
        modified: of the file, in seconds since the epoch.
        problem: why the file cannot be opened, or "".
        built_in: whether it is the poet, which ships with tuigpt.
        block_size: the model's context in tokens; 0 where the file cannot be opened.
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
    block_size: int = 0
    early_val_loss: float | None = None

    @property
    def label(self) -> str:
        """How people name it: `RUN@STEP`, or the file's name outside a run."""
        return f"{self.run}@{self.step}" if self.run else self.path.stem


@dataclass(frozen=True)
class Run:
    """A run folder.

    Attributes:
        record: the content of `run.json`, or None where that is damaged.
        checkpoints: by step, ascending; unreadable ones have a `problem`.
        problem: what is damaged in the folder, in one line that is safe to show, or "".
        metrics: the log behind its curves.
        built_in: whether it is the poet. Its folder does not exist, so nothing can be asked of
            it, written to it or deleted from it.
        marks: the user's stars and notes.
    """

    folder: Path
    record: RunRecord | None
    status: RunStatus
    checkpoints: tuple[Checkpoint, ...]
    problem: str = ""
    built_in: bool = False
    marks: Marks = Marks()

    @property
    def name(self) -> str:
        """The folder's name, safe to show; it differs from the folder's only for names that no run
        of tuigpt can have."""
        return one_line(self.folder.name)

    @property
    def metrics(self) -> Path:
        return asset(f"{POET}-metrics.jsonl") if self.built_in else self.folder / METRICS_FILE

    @property
    def train_characters_per_token(self) -> float | None:
        """Of the training part, or None where `run.json` does not tell."""
        return self.record.corpus.characters_per_token if self.record else None

    @cached_property
    def last(self) -> Checkpoint | None:
        good = [c for c in self.checkpoints if not c.problem]
        return good[-1] if good else None

    @cached_property
    def best(self) -> Checkpoint | None:
        """The checkpoint with the lowest validation loss, the earlier one of equals."""
        measured = [
            (c.val_loss, c.step, c)
            for c in self.checkpoints
            if not c.problem and is_measured(c.val_loss) and can_be_best(c.step)
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
    digits = re.search(r"[0-9]{1,15}", path.stem)
    step = int(digits.group()) if digits else 0
    blank = (None, None, 0, 0, "", stat.st_size, stat.st_mtime)
    try:
        header = read_header(path)
    except UnreadableFile as error:
        return Checkpoint(path, run, step, *blank, problem=one_line(error.reason))
    return Checkpoint(
        path=path,
        run=run,
        step=header.step,
        train_loss=header.train_nats_per_character,
        val_loss=header.val_nats_per_character,
        early_val_loss=header.early_val_nats_per_character,
        vocab_size=header.model.vocab_size,
        block_size=header.model.block_size,
        n_params=header.model.n_params,
        corpus=one_line(header.corpus.name),
        size=stat.st_size,
        modified=stat.st_mtime,
    )


CheckpointMark = tuple[int, int, int]
"""Of a file: when it changed, its size and its number."""


class CheckpointList:
    """The checkpoints of a run, of which only new files are read at each look."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the run's.
        """
        self._folder = folder
        self._known: Mapping[str, tuple[CheckpointMark, Checkpoint]] = {}

    def look(self) -> tuple[Checkpoint, ...]:
        """All checkpoints by step; files deleted meanwhile are left out."""
        found = {}
        run = one_line(self._folder.name)
        for name in _names(self._folder / CHECKPOINTS):
            if not name.endswith((".safetensors", *FOREIGN)):
                continue
            path = self._folder / CHECKPOINTS / name
            with suppress(OSError):
                stat = path.stat()
                mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                known = self._known.get(name)
                if known is not None and known[0] == mark:
                    found[name] = known
                else:
                    checkpoint = read_checkpoint(path, run)
                    if checkpoint.problem and name.endswith(FOREIGN):
                        checkpoint = replace(checkpoint, problem="another program's: import it")
                    found[name] = mark, checkpoint
        self._known = found
        return tuple(sorted((c for _, c in found.values()), key=attrgetter("step")))


def list_checkpoints(folder: Path) -> tuple[Checkpoint, ...]:
    """A run's checkpoints by step; files deleted meanwhile are left out."""
    return CheckpointList(folder).look()


def open_run(folder: Path) -> Run:
    """Read a run folder; one that is damaged says so in its `problem`.

    Raises:
        UserError: it is no run folder.
    """
    return read_run(folder, list_checkpoints(folder))


def read_run(folder: Path, checkpoints: tuple[Checkpoint, ...]) -> Run:
    """As `open_run`, with checkpoints that were listed already."""
    record, problem = None, ""
    try:
        record = read_run_record(folder)
    except UnreadableFile as error:
        if error.missing:
            raise UserError(f"{str(folder)!r} is not a run folder") from None
        problem = f"{RUN_FILE}: {error.reason}"
    factor = record.corpus.characters_per_token if record else None
    status, trouble = status_and_problem(folder, factor)
    return Run(
        folder, record, status, checkpoints, one_line(problem or trouble),
        marks=read_marks(folder),
    )  # fmt: skip


def with_status(run: Run) -> Run:
    """The same run with its status read again."""
    if run.record is None:
        return replace(run, status=read_status(run.folder))
    status, problem = status_and_problem(run.folder, run.train_characters_per_token)
    return replace(run, status=status, problem=one_line(problem))


def run_folders(home: Path) -> Iterator[Path]:
    """The folders of all runs under a home, newest first.

    Raises:
        UserError: the home cannot be read.
    """
    folder = runs_dir(home)
    dated = []
    for name in names_of_runs(home):
        if not name.startswith(TEMPORARY_PREFIX):
            with suppress(OSError):  # no run, or deleted meanwhile
                dated.append(((folder / name / RUN_FILE).lstat().st_mtime, folder / name))
    yield from (folder for _, folder in sorted(dated, reverse=True))


def _names(folder: Path) -> list[str]:
    """What lies in a folder; nothing when there is none, and nothing that is half written."""
    try:
        return [n for n in os.listdir(folder) if not n.startswith(TEMPORARY_PREFIX)]
    except OSError:
        return []


def is_run(name: str, home: Path) -> bool:
    """Whether there is a run of that name, be it damaged."""
    return is_run_name(name) and os.path.lexists(runs_dir(home) / name / RUN_FILE)


def is_run_name(name: str) -> bool:
    """Whether a run may be called this: a plain folder name on every system, without `@`."""
    return (
        bool(_NAME.fullmatch(name))
        and not name.endswith((" ", "."))
        and len(name.encode()) <= _LONGEST_FILE_NAME
    )
