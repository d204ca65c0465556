"""The workshop's `checkpoint_*.pt` and `loss_log.json`.

A checkpoint is `torch.save` of a dict: `step`, `model_state_dict`, `config` (an instance of a
dataclass `GPTConfig`), `stoi`, `itos`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tuigpt.config import GPTConfig
from tuigpt.model.formats.foreign import ForeignModel, read_state_dict, sizes
from tuigpt.model.formats.pickles import CONFIG_CLASS, Record
from tuigpt.model.formats.torch_file import TorchFile
from tuigpt.model.formats.vocabulary import from_tables
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer

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
