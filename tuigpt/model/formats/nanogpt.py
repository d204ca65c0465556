"""nanoGPT's `ckpt.pt`, whose vocabulary lies beside it in `meta.pkl`.

A checkpoint is `torch.save` of a dict: `model`, `optimizer`, `model_args`, `iter_num`,
`best_val_loss`, `config`. nanoGPT computes GELU exactly, not by the tanh approximation.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import torch

from tuigpt.config import GPTConfig
from tuigpt.model.formats.foreign import ForeignModel, read_state_dict, sizes
from tuigpt.model.formats.pickles import StoredTensor
from tuigpt.model.formats.torch_file import TorchFile, is_scalar
from tuigpt.model.formats.vocabulary import read_meta
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer

CHECKPOINT, META = "ckpt.pt", "meta.pkl"

GPT2_VOCABULARIES = (50257, 50304)
"""Sizes of GPT-2's vocabulary, as it is and as nanoGPT pads it."""

_FIELDS = {"vocab_size", "block_size", "n_layer", "n_head", "n_embd", "dropout", "bias"}


def is_nanogpt(content: Any) -> bool:
    """Whether a file of torch.save is nanoGPT's."""
    return isinstance(content, dict) and {"model", "model_args"} <= content.keys()


def read_nanogpt(path: Path, file: TorchFile) -> ForeignModel:
    """A checkpoint of nanoGPT, with the vocabulary of a `meta.pkl` in its folder.

    Raises:
        UserError: the `meta.pkl` cannot be read.
        ValueError: something in it is missing, or cannot be this program's.
    """
    content = file.content
    told = content["model_args"]
    if not isinstance(told, dict):
        raise ValueError("it holds no model_args")
    if strange := told.keys() - _FIELDS:
        names = ", ".join(sorted(map(str, strange)))[:120]
        raise ValueError(f"its model_args have {names}, which a model of nanoGPT does not")
    config = GPTConfig(**sizes(told), dropout=told.get("dropout", 0.0), gelu="exact")
    biases = told.get("bias", True) is not False
    meta = path.parent / META
    step = content.get("iter_num")
    return ForeignModel(
        path=path,
        program="nanoGPT",
        config=config,
        step=step if type(step) is int and 0 <= step < 2**53 else None,
        tokenizer=read_meta(meta) if meta.is_file() else None,
        val_loss=_val_loss(file),
        read_weights=lambda: read_state_dict(file, content["model"], config, biases),
    )


def _val_loss(file: TorchFile) -> float | None:
    """The best val loss, if the checkpoint is of the step that had it."""
    settings = file.content.get("config")
    if not isinstance(settings, dict) or settings.get("always_save_checkpoint") is not False:
        return None
    best = file.content.get("best_val_loss")
    if isinstance(best, StoredTensor) and is_scalar(best):
        return float(file.tensor(best))
    return float(best) if isinstance(best, int | float) else None


def to_nanogpt(model: GPT, tokenizer: CharTokenizer, step: int, dataset: str) -> dict[str, bytes]:
    """A checkpoint that nanoGPT's `sample.py` opens, and its vocabulary, by file name.

    Args:
        dataset: the folder under nanoGPT's `data` where `sample.py` looks for `meta.pkl`.
    """
    config = model.config
    stream = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "model_args": {
                "n_layer": config.n_layer,
                "n_head": config.n_head,
                "n_embd": config.n_embd,
                "block_size": config.block_size,
                "bias": True,
                "vocab_size": config.vocab_size,
                "dropout": config.dropout,
            },
            "iter_num": step,
            "config": {"dataset": dataset},
        },
        stream,
    )
    meta = {
        "vocab_size": config.vocab_size,
        "itos": dict(enumerate(tokenizer.vocab)),
        "stoi": {character: number for number, character in enumerate(tokenizer.vocab)},
    }
    return {CHECKPOINT: stream.getvalue(), META: pickle.dumps(meta)}
