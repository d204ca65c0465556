"""The workshop's `checkpoint_*.pt` and `loss_log.json`.

A checkpoint is `torch.save` of a dict: `step`, `model_state_dict`, `config` (an instance of a
dataclass `GPTConfig`), `stoi`, `itos`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec
import torch

from tuigpt.config import GPTConfig
from tuigpt.files import read_record
from tuigpt.model.formats.foreign import ForeignModel, read_state_dict, sizes
from tuigpt.model.formats.pickles import CONFIG_CLASS, Record
from tuigpt.model.formats.torch_file import TorchFile
from tuigpt.model.formats.vocabulary import from_tables
from tuigpt.model.gpt import GPT
from tuigpt.runs.metrics import Point
from tuigpt.text.tokenizer import CharTokenizer

LOSS_LOG = "loss_log.json"

EVALUATED_EVERY = 100
"""Steps between two evaluations in the workshop's loop."""

_LOG_LIMIT = 64 << 20
_FIELDS = {"vocab_size", "block_size", "n_layer", "n_head", "n_embd", "dropout", "bias"}
_MODULE = "model"


def is_workshop(content: Any) -> bool:
    """Whether a file of torch.save is the workshop's."""
    return isinstance(content, dict) and "model_state_dict" in content


def read_workshop(path: Path, file: TorchFile) -> ForeignModel:
    """A checkpoint of the workshop.

    Raises:
        ValueError: something in it is missing, or cannot be this program's.
    """
    content = file.content
    told = content.get("config")
    if isinstance(told, Record):
        told = told.fields
    if not isinstance(told, dict):
        raise ValueError("it holds no config")
    if strange := told.keys() - _FIELDS:
        names = ", ".join(sorted(map(str, strange)))[:120]
        raise ValueError(f"its config has {names}, which a model of the workshop does not")
    config = GPTConfig(**sizes(told), dropout=told.get("dropout", 0.0))
    biases = told.get("bias", True) is not False
    tokenizer = None
    if content.get("stoi") is not None or content.get("itos") is not None:
        tokenizer = from_tables(content.get("stoi"), content.get("itos"))
    return ForeignModel(
        path=path,
        program="the workshop",
        config=config,
        step=_step(path, content.get("step")),
        tokenizer=tokenizer,
        val_loss=None,
        read_weights=lambda: read_state_dict(file, content["model_state_dict"], config, biases),
    )


def _step(path: Path, told: Any) -> int | None:
    if type(told) is int and 0 <= told < 2**53:
        return told
    number = re.search(r"\d{1,12}", path.stem)
    return int(number[0]) if number else None


class LossLog(msgspec.Struct, frozen=True):
    """The losses of a training.

    Attributes:
        steps: step of each entry in `train`.
        train: of each step's batch.
        val: of each evaluation, of which there are fewer.
    """

    steps: list[Annotated[int, msgspec.Meta(ge=0, lt=2**53)]]
    train: list[float | None]
    val: list[float | None]

    def curves(self) -> tuple[list[Point], list[Point]]:
        """The training's and the validation's losses, each with its step.

        Raises:
            ValueError: the lists do not fit together.
        """
        if len(self.steps) != len(self.train):
            raise ValueError(
                f"it has {len(self.steps):,} steps, but {len(self.train):,} train losses"
            )
        if any(a >= b for a, b in zip(self.steps, self.steps[1:], strict=False)):
            raise ValueError("its steps are not in order")
        at = _evaluated(self.steps, len(self.val))
        return _points(self.steps, self.train), _points(at, self.val)


def _points(steps: Sequence[int], losses: Sequence[float | None]) -> list[Point]:
    return [(s, loss) for s, loss in zip(steps, losses, strict=True) if loss is not None]


def _evaluated(steps: Sequence[int], count: int) -> list[int]:
    """The steps of so many evaluations at equal intervals."""
    if count == len(steps):
        return list(steps)
    longest = steps[-1] if steps else 0
    for interval in (EVALUATED_EVERY, *range(1, min(longest, 10_000) + 1)):
        if abs(longest // interval + 1 - count) <= 1:
            at = [step for step in steps if step % interval == 0]
            if len(at) == count:
                return at
    raise ValueError(f"it has {count:,} val losses, which fit no interval in {len(steps):,} steps")


def read_loss_log(path: Path) -> LossLog:
    """Read a `loss_log.json`.

    Raises:
        UnreadableFile: it cannot be read, or is none.
    """
    return read_record(path, LossLog, _LOG_LIMIT)


def loss_log(
    train: Mapping[int, float | None], val: Mapping[int, float | None], every: int
) -> LossLog:
    """The `loss_log.json` of a run's curves, by step.

    The workshop pairs its val losses with steps at equal intervals, so only those are written.

    Args:
        every: steps between two evaluations.
    """
    steps = sorted(train)
    return LossLog(
        steps=steps,
        train=[train[step] for step in steps],
        val=[val[step] for step in steps if step % every == 0 and step in val],
    )


def to_workshop(model: GPT, tokenizer: CharTokenizer, step: int) -> bytes:
    """A checkpoint that the workshop's `generate.py` opens."""
    config = model.config
    fields = {
        name: getattr(config, name)
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")
    }
    stoi = {character: number for number, character in enumerate(tokenizer.vocab)}
    stream = io.BytesIO()
    with _config_class(fields) as of_config:
        torch.save(
            {
                "step": step,
                "model_state_dict": model.state_dict(),
                "config": of_config(**fields),
                "stoi": stoi,
                "itos": dict(enumerate(tokenizer.vocab)),
            },
            stream,
        )
    return stream.getvalue()


@contextmanager
def _config_class(fields: dict[str, int]) -> Iterator[Any]:
    """A class that pickle writes as the workshop's `model.GPTConfig`.

    Pickle writes only the names of classes that it finds by them, so for that moment a module of
    our own making stands in the place of the workshop's.
    """
    stand_in = ModuleType(_MODULE)
    made = make_dataclass(CONFIG_CLASS, [(name, int) for name in fields])
    made.__module__ = _MODULE
    stand_in.GPTConfig = made  # type: ignore[attr-defined]
    before = sys.modules.get(_MODULE)
    sys.modules[_MODULE] = stand_in
    try:
        yield made
    finally:
        if before is None:
            del sys.modules[_MODULE]
        else:
            sys.modules[_MODULE] = before
