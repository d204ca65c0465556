"""The header of a checkpoint: what its file tells of itself, read without torch.

It is the entry `tuigpt` of the safetensors file's text metadata, a JSON object. Losses in it are in
nats per token, as they were optimised, and where the name says so in nats per character.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tuigpt.config import GPTConfig
from tuigpt.files import (
    Count,
    UnreadableFile,
    Word,
    decode,
    read_safetensors_metadata,
    refuse_newer,
    to_json,
)
from tuigpt.loss import per_character
from tuigpt.runs.record import CorpusFacts, check_model

HEADER = "tuigpt"
"""Name of the metadata's entry."""

FORMAT = 3
"""Of checkpoints; one with a higher number was written by a newer tuigpt. Format 2 brought GELU
without GPT-2's approximation, format 3 tokenizers that cut words by GPT-2's rule; what an older one
can hold is still written so."""

Setting = str | int | float | bool | None


class CheckpointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer tells of a checkpoint.

    Attributes:
        run: name of the run that wrote it.
        train_loss: of the newest batch, in nats per token; None or NaN where there is none.
        val_loss: over the evenly spread validation windows, in nats per token.
        early_val_loss: an estimate from little text, in nats per token; it decides nothing.
        whole_val_loss: over the whole validation part, in nats per token.
        corpus: the text, without paths.
        train: the settings of the training by name.
        created: ISO 8601, UTC.
    """

    run: Word = ""
    step: Count
    train_loss: float | None = None
    val_loss: float | None = None
    val_loss_per_character: float | None = None
    early_val_loss: float | None = None
    early_val_loss_per_character: float | None = None
    whole_val_loss: float | None = None
    whole_val_loss_per_character: float | None = None
    corpus: CorpusFacts = CorpusFacts()
    train: dict[str, Setting] = {}
    created: Word = ""

    @property
    def train_nats_per_character(self) -> float | None:
        """`train_loss` in the unit that is shown."""
        return per_character(self.train_loss, self.corpus.characters_per_token)

    @property
    def val_nats_per_character(self) -> float | None:
        """`val_loss` in the unit that is shown."""
        return self._shown(self.val_loss, self.val_loss_per_character)

    @property
    def early_val_nats_per_character(self) -> float | None:
        """`early_val_loss` in the unit that is shown."""
        return self._shown(self.early_val_loss, self.early_val_loss_per_character)

    @property
    def whole_val_nats_per_character(self) -> float | None:
        """`whole_val_loss` in the unit that is shown."""
        return self._shown(self.whole_val_loss, self.whole_val_loss_per_character)

    def _shown(self, per_token: float | None, measured: float | None) -> float | None:
        if measured is not None:
            return measured
        return per_character(per_token, self.corpus.characters_per_token)


class Header(CheckpointFacts, frozen=True, kw_only=True):
    """A whole header.

    Attributes:
        tokenizer: what the tokenizer's own kind tells of itself.
        versions: of tuigpt, torch and python.
    """

    format: Annotated[int, msgspec.Meta(ge=1)]
    model: GPTConfig
    tokenizer: dict[str, Any]
    versions: dict[str, Word] = {}

    def __post_init__(self) -> None:
        refuse_newer(self.format, FORMAT)
        check_model(self.model)


def format_of(model: GPTConfig, tokenizer: Mapping[str, Any]) -> int:
    """The oldest format that can hold a checkpoint of such a model.

    Args:
        tokenizer: as its `to_dict` gives it.
    """
    if tokenizer.get("words", 1) != 1:
        return 3
    return 1 if model.gelu == "tanh" else 2


def read_header(path: Path) -> Header:
    """Read a checkpoint's header, without its tensors.

    Raises:
        UnreadableFile: it cannot be read, or is not a whole checkpoint of tuigpt; the reason is one
            line.
    """
    text = read_safetensors_metadata(path).get(HEADER)
    if text is None:
        reason = "it is a safetensors file, but not one of tuigpt's checkpoints"
        raise UnreadableFile(path, reason)
    try:
        return decode(text.encode("utf-8", "surrogatepass"), Header)
    except ValueError as error:
        raise UnreadableFile(path, f"its header is damaged: {error}") from None


def to_metadata(header: Header) -> dict[str, str]:
    """The text metadata of a checkpoint's file."""
    return {HEADER: to_json(header)}
