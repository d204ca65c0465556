"""A checkpoint of tuigpt becomes files of another program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from tuigpt.errors import UserError
from tuigpt.files import folder_in_the_making, to_json, write_atomic
from tuigpt.model.checkpoint import LoadedCheckpoint, load_checkpoint
from tuigpt.model.formats.huggingface import to_huggingface
from tuigpt.model.formats.nanogpt import META, to_nanogpt
from tuigpt.model.formats.workshop import to_workshop
from tuigpt.runs.folder import CHECKPOINTS, Checkpoint
from tuigpt.runs.header import Header
from tuigpt.runs.loss_log import LOSS_LOG, LossLog, loss_log
from tuigpt.runs.metrics import METRICS_FILE, EvalLine, MetricsTail, StepLine
from tuigpt.text.tokenizer import CharTokenizer

Files = dict[str, bytes]


@dataclass(frozen=True)
class Program:
    """A program that models are exported to.

    Attributes:
        title: what people call it.
        files: makes its files, by name.
        only_characters: whether it knows no tokenizer but that of characters.
        gelu: the only way in which it computes GELU, or "" where it knows both.
        advice: what to do with the files, in words.
    """

    title: str
    files: Callable[[LoadedCheckpoint, str], Files]
    only_characters: bool
    gelu: str
    advice: str


def _workshop(loaded: LoadedCheckpoint, name: str) -> Files:
    assert isinstance(loaded.tokenizer, CharTokenizer)
    step = loaded.header.step
    content = to_workshop(loaded.model, loaded.tokenizer, step)
    return {f"checkpoint_{step}.pt": content}


def _nanogpt(loaded: LoadedCheckpoint, name: str) -> Files:
    assert isinstance(loaded.tokenizer, CharTokenizer)
    return to_nanogpt(loaded.model, loaded.tokenizer, loaded.header.step, name)


def _huggingface(loaded: LoadedCheckpoint, name: str) -> Files:
    return to_huggingface(loaded.model, loaded.tokenizer)


PROGRAMS = {
    "workshop": Program(
        "the workshop", _workshop, only_characters=True, gelu="tanh",
        advice="write with it: python generate.py {folder}/checkpoint_{step}.pt",
    ),
    "nanogpt": Program(
        "nanoGPT", _nanogpt, only_characters=True, gelu="exact",
        advice=f"put {META} into nanoGPT's data/{{name}}/, then: python sample.py"
        " --out_dir={folder}",
    ),
    "huggingface": Program(
        "Hugging Face", _huggingface, only_characters=False, gelu="",
        advice="open it with transformers.AutoModelForCausalLM.from_pretrained: {folder}",
    ),
}  # fmt: skip
"""What can be exported to, by the name that a user gives."""


@dataclass(frozen=True)
class Exported:
    """What an export has made.

    Attributes:
        files: the new files, in the new folder.
        notes: what is worth telling, in words.
    """

    folder: Path
    files: tuple[str, ...]
    notes: tuple[str, ...]


def export_checkpoint(checkpoint: Checkpoint, to: str, folder: Path) -> Exported:
    """Write a checkpoint as another program's, into a new folder, all at once.

    Args:
        to: a name of `PROGRAMS`.

    Raises:
        UserError: the checkpoint cannot be opened, is of a kind that the program does not know, or
            the folder is there already or cannot be written.
    """
    program = PROGRAMS[to]
    loaded = load_checkpoint(checkpoint.path, torch.device("cpu"))
    if program.only_characters and not isinstance(loaded.tokenizer, CharTokenizer):
        raise UserError(
            f"cannot export {checkpoint.label!r}: {program.title} knows only tokens that are"
            " characters, but its tokens are pairs of bytes; huggingface knows them"
        )
    name = re.sub(r"[^\w.+-]+", "-", folder.name)
    files = program.files(loaded, name)
    if to == "workshop" and (log := _loss_log(checkpoint, loaded.header)):
        files[LOSS_LOG] = to_json(log).encode()
    notes = []
    if program.gelu and program.gelu != loaded.model.config.gelu:
        notes.append(
            f"{program.title} computes GELU in another way ({program.gelu}) than this model"
            f" ({loaded.model.config.gelu}): its probabilities will differ a little"
        )
    try:
        with folder_in_the_making(folder) as draft:
            for file, content in files.items():
                write_atomic(draft / file, content)
    except FileExistsError:
        raise UserError(f"{str(folder)!r} is there already; choose another folder") from None
    except OSError as error:
        raise UserError(f"cannot write {str(folder)!r}: {error.strerror or error}") from None
    quoted = shlex.quote(str(folder))
    notes.append(program.advice.format(folder=quoted, name=name, step=loaded.header.step))
    return Exported(folder, tuple(files), tuple(notes))


def _loss_log(checkpoint: Checkpoint, header: Header) -> LossLog | None:
    """The losses up to a checkpoint, if it lies in a run that has some."""
    if checkpoint.path.parent.name != CHECKPOINTS:
        return None
    train: dict[int, float | None] = {}
    val: dict[int, float | None] = {}
    tail = MetricsTail(checkpoint.path.parent.parent / METRICS_FILE)
    while True:
        for line in tail.read_new()[0]:
            if line.step <= header.step:
                match line:
                    case StepLine():
                        train[line.step] = line.loss
                    case EvalLine(whole=False, early=False):
                        val[line.step] = line.val_loss
        if not tail.more:
            break
    every = header.train.get("eval_interval")
    return loss_log(train, val, every if isinstance(every, int) else 1) if train else None
