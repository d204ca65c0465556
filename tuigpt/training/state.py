"""The resume file: everything that an exact continuation of a training needs.

Weights, what the optimizers remember and the states of the random generators are tensors. All else
is JSON in the file's metadata, read by name, and what an older file lacks has a default. Files of
format 1 hold no weights, which are then in the checkpoint of their step, and keep their numbers as
tensors that are read by position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tuigpt.files import (
    Count,
    UnreadableFile,
    read_safetensors_metadata,
    refuse_newer,
    write_atomic,
)

FORMAT = 2

_METADATA_KEY = "tuigpt-resume"

WEIGHTS, OPTIMIZER, RANDOM = "weights.", "optimizer.", "random."
"""What the names of the three kinds of tensors begin with."""


class Losses(msgspec.Struct, frozen=True):
    """What is known of the model at one step, in nats; None is not measured.

    Attributes:
        train_loss: of the newest batch, per token.
        val_loss: of the evenly spread evaluation, per token.
        early_val_loss: of an early evaluation, per token.
        whole_val_loss: of a pass over the whole validation part, per token.
    """

    train_loss: float | None = None
    val_loss: float | None = None
    val_loss_per_character: float | None = None
    early_val_loss: float | None = None
    early_val_loss_per_character: float | None = None
    whole_val_loss: float | None = None
    whole_val_loss_per_character: float | None = None


class TrainingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A training at one step, but for its tensors.

    Attributes:
        losses: of this step.
        best_val_loss: lowest so far, in nats per token, reached at `best_step`.
        evaluated_step: of the newest evaluation.
        not_better: evaluations in a row without a better val loss.
        learning_rate, dropout, max_steps, minutes, patience: settings that may have changed since
            the run began; None is as it began.
        provisional: steps of the checkpoints that are kept only until there is a better one.
        tokenizer: as its `to_dict` gives it; None where it is in the checkpoint of this step.
    """

    format: int = FORMAT
    step: Count
    losses: Losses = Losses()
    best_val_loss: float | None = None
    best_step: Count | None = None
    evaluated_step: Count | None = None
    not_better: Count = 0
    learning_rate: float | None = None
    dropout: float | None = None
    max_steps: Count | None = None
    minutes: float | None = None
    patience: Count | None = None
    provisional: tuple[Count, ...] = ()
    tokenizer: dict[str, Any] | None = None


@dataclass(frozen=True)
class TrainingState:
    """What the resume file holds: facts, and tensors by name."""

    facts: TrainingFacts
    tensors: Mapping[str, Tensor]

    def of_kind(self, prefix: str) -> dict[str, Tensor]:
        """The tensors of one kind, by the rest of their names."""
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }


def write_state(path: Path, state: TrainingState) -> None:
    """Replace a resume file all at once.

    Raises:
        OSError: it could not be written; the older file is untouched.
    """
    facts = {_METADATA_KEY: msgspec.json.encode(state.facts).decode()}
    write_atomic(path, save(dict(state.tensors), facts))


def read_state(path: Path, most_bytes: int) -> TrainingState:
    """Read a resume file; whether its tensors fit a model is not looked at here.

    Args:
        most_bytes: size above which the file cannot be one of its model.

    Raises:
        ValueError: it is none; the text says why.
    """
    try:
        text = read_safetensors_metadata(path).get(_METADATA_KEY)
        if path.stat().st_size > most_bytes:
            raise ValueError("it is larger than any of its model can be")
        with safe_open(path, framework="pt") as file:
            # Copies, because what safetensors gives is mapped to the file.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except UnreadableFile as error:
        raise ValueError(error.reason) from None
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    except SafetensorError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    if text is None:
        return TrainingState(_facts_of_format_1(tensors), tensors)
    try:
        facts = msgspec.json.decode(text, type=TrainingFacts)
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError("what it says of the training cannot be read") from None
    refuse_newer(facts.format, FORMAT)
    _require_sound(facts)
    return TrainingState(facts, tensors)


def _require_sound(facts: TrainingFacts) -> None:
    best = facts.best_val_loss
    if (best is None) != (facts.best_step is None) or (best is not None and not best >= 0):
        raise ValueError("its best val loss is none")
    if facts.best_step is not None and facts.best_step > facts.step:
        raise ValueError("its best step lies ahead of its step")


def _facts_of_format_1(tensors: dict[str, Tensor]) -> TrainingFacts:
    """Read the numbers of format 1, by their position."""

    def numbers(name: str, count: int) -> list[float]:
        tensor = tensors.pop(name, None)
        if tensor is None:
            raise ValueError(f"it lacks {name!r}")
        if tensor.numel() != count or tensor.dtype not in (torch.float64, torch.int64):
            raise ValueError(f"its {name!r} is not {count} numbers")
        found = tensor.flatten().tolist()
        if any(math.isnan(number) for number in found):
            raise ValueError(f"its {name!r} is not a number")
        return found

    (step,) = numbers("step", 1)
    best_val_loss, best_step = numbers("best", 2)
    learning_rate, dropout, max_steps, patience = numbers("changeable", 4)
    if not all(0 <= n < 2**53 for n in (step, max_steps, patience)) or not best_step < 2**53:
        raise ValueError("its numbers are not those of a training")
    known = best_step >= 0
    facts = TrainingFacts(
        format=1,
        step=int(step),
        best_val_loss=best_val_loss if known else None,
        best_step=int(best_step) if known else None,
        learning_rate=learning_rate,
        dropout=dropout,
        max_steps=int(max_steps),
        patience=int(patience),
    )
    _require_sound(facts)
    return facts


Layout = tuple[torch.Size, torch.dtype]


def require_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Layout]) -> None:
    """Refuse tensors that do not fit, before they reach code that would not look.

    Raises:
        ValueError: names the tensor and what is wrong with it.
    """
    for name, (shape, dtype) in expected.items():
        tensor = found.get(name)
        if tensor is None:
            raise ValueError(f"it lacks the tensor {name!r}")
        if tensor.shape != shape or tensor.dtype != dtype:
            raise ValueError(
                f"its tensor {name!r} is {_layout(tensor.shape, tensor.dtype)}, but its model needs"
                f" {_layout(shape, dtype)}"
            )
    if foreign := next((name for name in found if name not in expected), None):
        raise ValueError(f"its tensor {foreign!r} is not of its model")


def _layout(shape: torch.Size, dtype: torch.dtype) -> str:
    sizes = " × ".join(map(str, shape)) or "one"
    return f"{sizes} {str(dtype).removeprefix('torch.')}"
