"""What a training costs, reckoned: against real models, optimizers and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig, train_defaults
from tuigpt.estimate import (
    memory,
    micro_batch_windows,
    needed_bytes,
    reading,
    step_flops,
)
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import Stepped
from tuigpt.training.trainer import Trainer

TEXT = "Tell me, O muse, of that ingenious hero who travelled far and wide.\n" * 20
TOKENIZER = CharTokenizer.from_text(TEXT)
SHAPE = GPTConfig(TOKENIZER.vocab_size, block_size=16, n_layer=3, n_head=2, n_embd=24)
MEDIUM = GPTConfig()
CPU = torch.device("cpu")


def settings(recipe: str, **given: Any) -> TrainConfig:
    return TrainConfig(**{**train_defaults(recipe), "batch_size": 4, **given})


def kept_bytes(model: GPT, windows: int) -> int:
    """What a forward pass keeps for the backward pass, beside the weights and the ids."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point() and tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    ids = torch.zeros(windows, model.config.block_size, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits, _ = model(ids, ids)
    kept[logits.untyped_storage().data_ptr()] = logits
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("shape", [SHAPE, replace(SHAPE, n_layer=1, n_head=4, n_embd=32)])
def test_the_parameters_of_each_part_are_the_models(shape: GPTConfig) -> None:
    parts = dict(tokens=0, positions=0, attention=0, mlp=0, norms=0)
    marks = {".attn.": "attention", ".mlp.": "mlp", "ln_": "norms", "wpe": "positions"}
    for name, parameter in GPT(shape).named_parameters():
        part = next((part for mark, part in marks.items() if mark in name), "tokens")
        parts[part] += parameter.numel()
    found = shape.parameters
    matrices = [p for p in GPT(shape).transformer.h.parameters() if p.ndim == 2]
    assert vars(found) == parts
    assert shape.block_matrices == sum(p.numel() for p in matrices)
    assert found.total == shape.n_params


@pytest.mark.parametrize("recipe", ["fast", "workshop"])
def test_the_optimizers_hold_what_is_told(recipe: str) -> None:
    config = settings(recipe)
    corpus = Corpus.from_text(TEXT, TOKENIZER, 0.1, SHAPE.block_size, CPU)
    trainer = Trainer(GPT(SHAPE), TOKENIZER, corpus, config)
    next(event for event in trainer.run() if isinstance(event, Stepped))
    held = sum(
        value.nbytes
        for name, value in trainer.tensors().items()
        if name.startswith("optimizer.") and value.dim()  # but for counters of steps
    )
    assert memory(SHAPE, config).optimizer == held


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("shape", [SHAPE, replace(SHAPE, n_layer=1, n_head=4, block_size=8)])
def test_the_activations_are_what_a_forward_pass_keeps(shape: GPTConfig, dropout: float) -> None:
    shape = replace(shape, dropout=dropout)
    told = memory(shape, settings("fast")).activations
    held = kept_bytes(GPT(shape).train(), windows=4)
    # The norms outside the blocks, and a few numbers of the loss, are not worth a term.
    assert told == pytest.approx(held, rel=0.01)


@pytest.mark.parametrize(("batch_size", "micro"), [(16, 0), (64, 0), (7, 3), (1, 0)])
def test_windows_are_computed_together_as_the_trainer_does(
    monkeypatch: pytest.MonkeyPatch, batch_size: int, micro: int
) -> None:
    config = settings("fast", batch_size=batch_size, micro_batch_size=micro)
    shape = replace(SHAPE, block_size=256)
    corpus = Corpus.from_text(TEXT * 4, TOKENIZER, 0.1, 256, CPU)
    seen = []
    forward = GPT.forward

    def spy(self: GPT, idx: torch.Tensor, targets: torch.Tensor | None = None) -> Any:
        if self.training:
            seen.append(len(idx))
        return forward(self, idx, targets)

    monkeypatch.setattr(GPT, "forward", spy)
    trainer = Trainer(GPT(shape), TOKENIZER, corpus, config)
    next(event for event in trainer.run() if isinstance(event, Stepped))
    assert sum(seen) == batch_size
    assert micro_batch_windows(shape, config, "cpu") == max(seen)
    assert micro_batch_windows(shape, replace(config, micro_batch_size=0), "cuda") == batch_size


PEAK = """
import json, sys, torch
from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.training.batches import Corpus
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.events import Stepped
from tuigpt.training.trainer import Trainer

def memory(key):
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith(key))

def train(shape, config, steps):
    text = "abcdefghijklmnopqrstuvwxyz\\n" * 2000
    tokenizer = CharTokenizer.from_text(text)
    corpus = Corpus.from_text(text, tokenizer, 0.1, shape.block_size, torch.device("cpu"))
    trainer = Trainer(GPT(shape), tokenizer, corpus, config)
    next(event for event in trainer.run() if isinstance(event, Stepped) and event.step == steps)
    return trainer

shape, config = json.load(sys.stdin)
shape, config = GPTConfig(**shape), TrainConfig(**config)
train(GPTConfig(27, 8, 1, 1, 8), TrainConfig(recipe=config.recipe, batch_size=1), 2)
before = memory("VmRSS")
kept = train(shape, config, 2)
print(memory("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="told by Linux only")
@pytest.mark.parametrize(
    ("shape", "recipe"),
    [
        (GPTConfig(27, 128, 2, 2, 128), "workshop"),  # activations decide
        (GPTConfig(27, 16, 2, 8, 384), "fast"),  # weights and Muon decide
    ],
)
def test_the_peak_is_as_near_as_is_told(shape: GPTConfig, recipe: str) -> None:
    config = settings(recipe, batch_size=16)
    done = subprocess.run(
        [sys.executable, "-c", PEAK],
        input=json.dumps([vars(shape), vars(config)]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert 0.9 < int(done.stdout) / needed_bytes(shape, config) < 2.2


def test_smaller_micro_batches_and_other_devices_need_less() -> None:
    config = settings("fast", batch_size=16)
    smaller = replace(config, micro_batch_size=1)
    assert needed_bytes(MEDIUM, smaller) < needed_bytes(MEDIUM, config)
    dropout = replace(MEDIUM, dropout=0.1)
    assert needed_bytes(dropout, config, "cuda") < needed_bytes(dropout, config, "cpu")


def test_the_operations_are_those_of_the_palm_paper() -> None:
    config = settings("workshop")
    n = MEDIUM.n_params - 256 * 384
    assert step_flops(MEDIUM, config) == 4 * 256 * (6 * n + 12 * 6 * 384 * 256)


def test_it_takes_room_and_readings_to_overfit() -> None:
    characters = 1_003_854  # tiny Shakespeare's training part
    config = TrainConfig(max_steps=1500)
    found = reading(MEDIUM, config, characters, characters)
    assert (found.step_tokens, found.tokens) == (16_384, 24_576_000)
    assert found.epochs == pytest.approx(24.5, abs=0.05)
    assert found.parameters_per_character == pytest.approx(10.7, abs=0.05)
    assert found.overfits
    assert not reading(MEDIUM, replace(config, max_steps=500), characters, characters).overfits
    tiny = replace(MEDIUM, n_layer=2, n_head=2, n_embd=128)
    assert not reading(tiny, config, characters, characters).overfits
