"""`run.json`: what a run is, written once when it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.files import Count, UnreadableFile, Word, read_record, refuse_newer, write_json
from tuigpt.loss import Baselines, characters_per_token

RUN_FILE = "run.json"

FORMAT = 1
"""Of run.json; one with a higher number was written by a newer tuigpt."""


class CorpusFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run and its checkpoints tell of the text they learned from.

    Attributes:
        name: what people call the text.
        path, sources: where it was found on the machine that trained; only `run.json` has them.
        sha256: of its characters.
        symbols: number of different characters.
        changes: what was changed when it was read, such as line ends.
        train_tokens, val_tokens, train_characters, val_characters: sizes of its two parts; 0 where
            a file does not tell.
    """

    name: Word = ""
    path: Word = ""
    sources: Annotated[list[Word], msgspec.Meta(max_length=10_000)] = []
    encoding: Word = "auto"
    sha256: Word = ""
    characters: Count = 0
    symbols: Count = 0
    changes: Annotated[list[Word], msgspec.Meta(max_length=1000)] = []
    train_tokens: Count = 0
    val_tokens: Count = 0
    train_characters: Count = 0
    val_characters: Count = 0

    @property
    def characters_per_token(self) -> float | None:
        """Of the training part, or None where the file does not tell."""
        return characters_per_token(self.train_characters, self.train_tokens)

    def without_paths(self) -> CorpusFacts:
        """As a checkpoint tells it, which is sent to friends: nothing of the author's machine."""
        return msgspec.structs.replace(self, path="", sources=[])


class TokenizerFacts(msgspec.Struct, frozen=True):
    """Attributes:
    type: `char` or `bpe:N`.
    """

    type: Word
    vocab_size: Count


class ParentFacts(msgspec.Struct, frozen=True):
    """The checkpoint whose weights a run began with.

    Attributes:
        run: its run, or "" where it was a file outside a run.
        sha256: of the file.
    """

    run: Word
    step: Count
    sha256: Word


class PlanFacts(msgspec.Struct, frozen=True):
    """Why a run whose length was a time has the settings that it has.

    Attributes:
        minutes: that it was given.
        chosen: names of the settings that were left to the plan.
        val_loss: that was expected at its end, in nats per character; None where nothing could be
            said.
        margin: by which that may well be missed.
        settings: what was chosen, in words.
        reason: why, in words.
    """

    minutes: Annotated[float, msgspec.Meta(ge=0)]
    chosen: Annotated[list[Word], msgspec.Meta(max_length=100)]
    val_loss: float | None
    margin: float
    settings: Word
    reason: Word


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.json`.

    Attributes:
        created: ISO 8601, UTC.
        preset: the size it was asked for by, or None.
        train: how it began; what changed later is in `resume.safetensors`.
        baselines_by_name: see `baselines`.
        versions: of tuigpt, torch and python.
        plan: for a run whose settings were chosen to fit a time.
    """

    format: Annotated[int, msgspec.Meta(ge=1)] = FORMAT
    name: Word = ""
    created: Word = ""
    preset: Word | None = None
    model: GPTConfig
    train: TrainConfig
    tokenizer: TokenizerFacts
    corpus: CorpusFacts
    baselines_by_name: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = msgspec.field(
        name="baselines", default_factory=dict
    )
    versions: dict[str, Word] = {}
    parent: ParentFacts | None = None
    plan: PlanFacts | None = None

    def __post_init__(self) -> None:
        refuse_newer(self.format, FORMAT)
        check_model(self.model)

    @property
    def baselines(self) -> Baselines:
        """What counting alone reaches on the text."""
        return Baselines.named(self.baselines_by_name)


def find_corpus(checkpoint: Path, corpus: CorpusFacts) -> CorpusFacts:
    """What a checkpoint's header tells of its text, with where that was found, if that is known.

    A header names no paths (those of the first version do); the run that the file lies in does.

    Args:
        checkpoint: the path of its file.
        corpus: of its header.
    """
    try:
        own = read_run_record(checkpoint.parent.parent).corpus
    except UnreadableFile:
        return corpus
    return own if own.sha256 == corpus.sha256 else corpus


def check_model(config: GPTConfig) -> None:
    """Refuse a size that no machine holds, whose arithmetic would not end well.

    Raises:
        ValueError: names the field.
    """
    for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
        if getattr(config, name) >= 2**31:
            raise ValueError(f"model.{name} is larger than any that can be")


def read_run_record(folder: Path) -> RunRecord:
    """Read a run's `run.json`.

    Raises:
        UnreadableFile: it is missing or damaged; the reason is one line.
    """
    return read_record(folder / RUN_FILE, RunRecord)


def write_run_record(folder: Path, record: RunRecord) -> None:
    """Write a run's `run.json`.

    Raises:
        OSError: it could not be written.
    """
    write_json(folder / RUN_FILE, record)
