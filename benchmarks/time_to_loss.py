"""How long training takes to a given validation loss, beside other ways of training.

    python benchmarks/time_to_loss.py tinyshakespeare.txt --target 1.57 --seconds 280

trains with recipe fast for so many seconds, and notes when it was at the target; then gives the
other side (recipe workshop, or nanoGPT's small setting) `--times` as long, with a schedule that
ends there, and tells what that reached. Losses are over the whole validation part. Only updates
count as time, on both sides, so that how often it is measured decides nothing.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tuigpt.config import GPTConfig, TrainConfig, train_defaults
from tuigpt.model.gpt import GPT
from tuigpt.text.read import silent
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.events import Evaluated, Stepped
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.trainer import Trainer

CPU = torch.device("cpu")
MEASURED_TIMES = 12
"""How often a training's validation loss is measured."""

Curve = Iterator[tuple[float, int, float]]
"""Seconds of updates, step, validation loss."""


def tuigpt_curve(
    recipe: str, shape: GPTConfig, text: str, tokenizer: Tokenizer, seconds: float, **fields: Any
) -> Curve:
    """A training of tuigpt's whose schedule ends after so many seconds of updates."""
    config = TrainConfig(
        **{**train_defaults(recipe), "precision": "float32", "sample_tokens": 0, **fields}
    )
    corpus = Corpus.from_text(text, tokenizer, config.val_fraction, shape.block_size, CPU)
    step_seconds = calibrate(shape, config, tokenizer, corpus, CPU, silent).step_seconds
    steps = max(1, round(seconds / step_seconds))
    config = replace(
        config, max_steps=steps, eval_interval=max(1, steps // MEASURED_TIMES),
        eval_tokens=len(text), checkpoint_interval=steps,
    )  # fmt: skip
    torch.manual_seed(config.seed)
    model = GPT(shape)
    set_first_weights(model, config)
    spent = 0.0
    for event in Trainer(model, tokenizer, corpus, config).run():
        match event:
            case Stepped():
                spent += event.seconds
            case Evaluated(whole=False):
                yield spent, event.step, event.val_loss


def nanogpt_curve(text: str, tokenizer: Tokenizer, seconds: float) -> Curve:
    """nanoGPT's small CPU setting as its README gives it, the cosine over the seconds given.

    4 layers, 4 heads, 128 wide, block 64, batch 12, no dropout; AdamW with learning rate 1e-3,
    betas 0.9 and 0.99, weight decay 0.1 on matrices; 100 steps of warm-up, lowest rate 1e-4.
    """
    shape = GPTConfig(tokenizer.vocab_size, block_size=64, n_layer=4, n_head=4, n_embd=128)
    corpus = Corpus.from_text(text, tokenizer, 0.1, shape.block_size, CPU)
    torch.manual_seed(1337)
    model = GPT(shape)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            deviation = 0.02
            if name.endswith("c_proj.weight"):
                deviation /= math.sqrt(2 * shape.n_layer)
            nn.init.normal_(parameter, std=deviation)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.99),
    )  # fmt: skip
    order = torch.Generator().manual_seed(1337)
    spent, step, measured = 0.0, 0, -1.0
    while spent < seconds:
        began = time.perf_counter()
        warm = min(1.0, (step + 1) / 100)
        rate = 1e-4 + 0.5 * 9e-4 * (1 + math.cos(math.pi * spent / seconds))
        for group in optimizer.param_groups:
            group["lr"] = warm * rate
        inputs, targets = corpus.batch(12, order)
        model.train()
        _, loss = model(inputs, targets)
        optimizer.zero_grad(set_to_none=True)
        assert loss is not None
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        spent += time.perf_counter() - began
        if spent - measured >= seconds / MEASURED_TIMES or spent >= seconds:
            measured = spent
            yield spent, step, val_loss(model, corpus)


@torch.inference_mode()
def val_loss(model: GPT, corpus: Corpus) -> float:
    """Over all windows of the validation part."""
    model.eval()
    total, tokens = 0.0, 0
    for inputs, targets in corpus.val_batches(64):
        _, loss = model(inputs, targets)
        total += float(loss) * targets.numel()
        tokens += targets.numel()
    return total / tokens


def follow(name: str, curve: Curve, target: float) -> tuple[float | None, float]:
    """Print a curve as it comes; gives when it was at the target, and the lowest loss."""
    reached, lowest = None, math.inf
    for spent, step, loss in curve:
        print(f"{name:<10} {spent:8.1f} s  step {step:6,}  val {loss:.4f}", flush=True)
        lowest = min(lowest, loss)
        if loss <= target and reached is None:
            reached = spent
    return reached, lowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--target", type=float, required=True, help="validation loss to reach")
    parser.add_argument("--seconds", type=float, required=True, help="for recipe fast")
    parser.add_argument("--versus", choices=["workshop", "nanogpt", "nobody"], default="workshop")
    parser.add_argument("--times", type=float, default=4.0, help="as long for the other side")
    parser.add_argument("--n-layer", type=int, default=4)
    parser.add_argument("--n-head", type=int, default=4)
    parser.add_argument("--n-embd", type=int, default=256)
    parser.add_argument("--block-size", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=train_defaults("fast")["batch_size"])
    parser.add_argument("--dropout", type=float, default=0.0)
    weight_decay = train_defaults("fast")["weight_decay"]
    parser.add_argument("--weight-decay", type=float, default=weight_decay)
    asked = parser.parse_args()
    text = asked.text.read_text("utf-8")
    tokenizer = CharTokenizer.from_text(text)
    shape = GPTConfig(
        tokenizer.vocab_size, asked.block_size, asked.n_layer, asked.n_head, asked.n_embd,
        asked.dropout,
    )  # fmt: skip
    fast = tuigpt_curve(
        "fast", shape, text, tokenizer, asked.seconds,
        batch_size=asked.batch_size, weight_decay=asked.weight_decay,
    )  # fmt: skip
    reached, lowest = follow("fast", fast, asked.target)
    if reached is None:
        print(f"fast: not at {asked.target} in {asked.seconds:.0f} s; lowest {lowest:.4f}")
        return
    print(f"fast: at {asked.target} after {reached:.1f} s; lowest {lowest:.4f}")
    if asked.versus == "nobody":
        return
    longer = asked.times * reached
    if asked.versus == "workshop":
        other = tuigpt_curve("workshop", replace(shape, dropout=0.0), text, tokenizer, longer)
    else:
        other = nanogpt_curve(text, tokenizer, longer)
    reached_too, lowest = follow(asked.versus, other, asked.target)
    if reached_too is None:
        print(
            f"{asked.versus}: {asked.times:g} times as long ({longer:.0f} s) is not enough:"
            f" lowest {lowest:.4f}"
        )
    else:
        ratio = reached_too / reached
        print(f"{asked.versus}: at {asked.target} after {reached_too:.1f} s = {ratio:.2f} times")


if __name__ == "__main__":
    main()
