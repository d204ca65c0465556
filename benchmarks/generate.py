"""How fast text is written: `python benchmarks/generate.py [--threads N] [--presets tiny,small]`.

For each preset, in one run and with random weights, in tokens a second:

- the workshop's loop, which re-feeds the window, at a short and at a full context;
- tuigpt at the same contexts, and with the sliding and the rolling window past the edge;
- the bound that memory sets at a full context: all weights and the whole cache are read once for
  each token, at the rate at which this machine sums a large float32 tensor;

then how many times longer 20 samples in one batch take than one (200 tokens each), and how many
draws were too close and recomputed by the plain loop. `RESULTS.md` has figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tuigpt.config import PRESETS, GPTConfig, Preset, SampleConfig
from tuigpt.generation.decode import TextGenerator, plain
from tuigpt.model.gpt import GPT

VOCAB_SIZE = 65
SHORT = 16
"""Tokens of the short context."""

EXTRA = {"4/4/128": Preset(n_layer=4, n_head=4, n_embd=128)}
"""A shape between the presets that others publish figures for."""


def seconds_each(steps: Iterator[Any], rounds: int, count: int = 1) -> float:
    """The best mean time of `count` steps; the machine may be busy with other things."""
    next(steps)
    return seconds_of(lambda: [next(steps) for _ in range(count)], rounds) / count


def seconds_of(action: Callable[[], object], rounds: int) -> float:
    """The best time of an action."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def memory_rate() -> float:
    """Bytes a second at which this machine reads memory."""
    large = torch.ones(32_000_000)
    return large.numel() * 4 / seconds_of(large.sum, 5)


def bound(config: GPTConfig, rate: float) -> float:
    """Tokens a second, if nothing but reading memory took time."""
    cache = config.n_layer * 2 * config.block_size * config.n_embd
    return rate / (4 * (config.n_params + cache))


def measure(name: str, config: GPTConfig, rate: float) -> str:
    torch.manual_seed(0)
    model = GPT(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # random weights give flat distributions; this makes them less so
    size = config.block_size
    ids = torch.randint(VOCAB_SIZE, (2 * size,))
    settings = SampleConfig(max_new_tokens=10**6)
    few = 25 if config.n_embd > 256 else 60
    plain_short = seconds_each(plain(model, ids[:SHORT], settings), 16)
    plain_full = seconds_each(plain(model, ids, settings), few)
    fast_short = seconds_each(TextGenerator(model, ids[:SHORT], settings), 32)
    fast_full = seconds_each(TextGenerator(model, ids[: size - 34], settings), 32)
    sliding = seconds_each(TextGenerator(model, ids, settings), few)
    roller = TextGenerator(model, ids, settings, window="rolling")
    rolling = seconds_each(roller, 5, size // 2)  # one filling of the window

    poem = SampleConfig(max_new_tokens=200)
    prompt = ids[:12]
    one = seconds_of(lambda: list(TextGenerator(model, prompt, poem)), 5)
    twenty = seconds_of(lambda: list(TextGenerator(model, prompt, poem, samples=20)), 3)
    generator = TextGenerator(model, prompt, poem, samples=20)
    list(generator)
    return (
        f"{name:8} {1 / plain_short:9.0f} {1 / fast_short:9.0f}"
        f" {1 / plain_full:9.0f} {1 / fast_full:9.0f} {plain_full / fast_full:6.1f}x"
        f" {1 / sliding:9.0f} {plain_full / sliding:6.2f}x {1 / rolling:9.0f}"
        f" {bound(config, rate):9.0f} {twenty / one:6.2f}x {generator.recomputed:5} of 4000"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--presets", default="tiny,4/4/128,small,medium")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rate = memory_rate()
    print(f"CPU, {options.threads} threads, PyTorch {torch.__version__}, block 256, float32;")
    print(
        f"memory is read at {rate / 1e9:.1f} GB a second. All figures but ratios: tokens a second."
    )
    print(
        f"{'':8} {'short context':^19} {'full context':^27} {'sliding':^17} {'rolling':>9}"
        f" {'memory':>9} {'20 for':>7} {'recomputed'}"
    )
    print(
        f"{'preset':8} {'plain':>9} {'tuigpt':>9} {'plain':>9} {'tuigpt':>9} {'ratio':>7}"
        f" {'tuigpt':>9} {'ratio':>7} {'tuigpt':>9} {'bound':>9} {'one':>7} {'plainly'}"
    )
    for name in options.presets.split(","):
        shape = {**PRESETS, **EXTRA}[name]
        config = GPTConfig(vocab_size=VOCAB_SIZE, **shape)
        print(measure(name, config, rate), flush=True)


if __name__ == "__main__":
    main()
