"""Tokens and floating-point operations a second of a training step, beside what they could be.

    python benchmarks/throughput.py --preset medium

measures in turns, in one run: tuigpt's updates with each recipe, a loop in plain float32 as the
workshop writes it, and a bare product of matrices of the model's own size, which is the most that
the machine gives.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from tuigpt.config import PRESETS, GPTConfig, TrainConfig, train_defaults
from tuigpt.model.device import allow_tf32, describe, faster_precision, resolve_device
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import Stepped
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.trainer import Trainer

ALPHABET = "".join(map(chr, range(32, 97)))
TEXT = ALPHABET * 2000


def flops_a_token(config: GPTConfig) -> float:
    """Of forward and backward pass: 6 for each parameter, and attention's two products.

    Source: Chowdhery et al., "PaLM" (2022), appendix B.
    """
    return 6 * config.n_params + 12 * config.n_layer * config.n_embd * config.block_size


def tuigpt_updates(
    config: GPTConfig, device: torch.device, recipe: str, **fields: Any
) -> tuple[str, Callable[[], int]]:
    """A name, and a function that does one update and gives its number of tokens."""
    settings = {**train_defaults(recipe), **fields, "max_steps": 10**9, "eval_interval": 10**9}
    if settings["precision"] == "auto":
        settings["precision"] = faster_precision(config, device)
    train_config = TrainConfig(**settings)
    tokenizer = CharTokenizer.from_text(TEXT)
    corpus = Corpus.from_text(TEXT, tokenizer, 0.0, config.block_size, device)
    torch.manual_seed(1)
    model = GPT(config)
    set_first_weights(model, train_config)
    trainer = Trainer(model.to(device), tokenizer, corpus, train_config)
    if train_config.compile:
        trainer.compile()
    steps = (event for event in trainer.run() if isinstance(event, Stepped))
    tokens = train_config.batch_size * config.block_size

    def update() -> int:
        before = trainer.step
        while next(steps).step < trainer.step:
            pass  # updates that are told together
        return tokens * (trainer.step - before)

    compiled = ", compiled" if train_config.compile else ""
    name = f"tuigpt {recipe}, batch {train_config.batch_size}, {train_config.precision}{compiled}"
    return name, update


def plain_updates(
    config: GPTConfig, device: torch.device, batch_size: int
) -> tuple[str, Callable[[], int]]:
    """The workshop's loop: the whole batch at once, AdamW, the loss looked at in each step."""
    torch.manual_seed(1)
    model = GPT(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.tensor([ALPHABET.index(c) for c in TEXT], device=device)

    def update() -> int:
        starts = torch.randint(len(data) - config.block_size - 1, (batch_size,))
        inputs = torch.stack([data[i : i + config.block_size] for i in starts])
        targets = torch.stack([data[i + 1 : i + 1 + config.block_size] for i in starts])
        _, loss = model(inputs, targets)
        optimizer.zero_grad()
        assert loss is not None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        return inputs.numel()

    return f"plain loop, batch {batch_size}, float32", update


def product_rate(config: GPTConfig, device: torch.device) -> float:
    """Operations a second of a block's widest product, 4,096 tokens at a time, in float32."""
    x = torch.randn(4096, config.n_embd, device=device)
    weight = torch.randn(config.n_embd, 4 * config.n_embd, device=device)
    began = time.perf_counter()
    for _ in range(8):
        y = x @ weight
    float(y[0, 0])
    return 8 * 2 * x.numel() * 4 * config.n_embd / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", choices=sorted(PRESETS), default="medium")
    parser.add_argument("--block-size", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=64, help="of the plain loop")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--float32", action="store_true", help="as where there is no bfloat16")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile as well")
    asked = parser.parse_args()
    device = resolve_device(asked.device)
    config = GPTConfig(len(ALPHABET), asked.block_size, **PRESETS[asked.preset])
    plain_name, plain = plain_updates(config, device, asked.batch_size)
    updates = {plain_name: plain}
    plainest: dict[str, Any] = {"precision": "float32"} if asked.float32 else {}
    for recipe, fields in (
        ("workshop", {**plainest, "batch_size": asked.batch_size}),
        ("fast", plainest),
        ("fast", {**plainest, "batch_size": asked.batch_size}),
    ):
        for compiled in [False, True] if asked.compile else [False]:
            name, update = tuigpt_updates(config, device, recipe, **fields, compile=compiled)
            updates[name] = update
    print(f"{asked.preset}, block {asked.block_size}, on {describe(device)}", flush=True)
    for update in updates.values():
        update()
    best = dict.fromkeys(updates, 0.0)
    product = 0.0
    for _ in range(asked.rounds):  # in turns, so that other work on the machine slows all
        for name, update in updates.items():
            if device.type == "cuda":
                torch.set_float32_matmul_precision("highest")
            if name != plain_name:
                allow_tf32(device)
            began = time.perf_counter()
            tokens = update()
            best[name] = max(best[name], tokens / (time.perf_counter() - began))
        product = max(product, product_rate(config, device))
    for name, rate in best.items():
        flops = rate * flops_a_token(config)
        print(
            f"{name:<44} {rate:12,.0f} tok/s {flops / 1e9:10,.1f} GFLOP/s"
            f" {flops / product:6.0%} of the product's {rate / best[plain_name]:6.2f} x plain"
        )
    print(f"{'a bare product of matrices':<44} {'':>18} {product / 1e9:10,.1f} GFLOP/s")


if __name__ == "__main__":
    main()
