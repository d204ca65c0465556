"""The workshop's and nanoGPT's programs, written out for the tests: nothing of tuigpt is used."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import functional as F

CHARACTERS = sorted("\n .,abcdefghijklmnopqrstuvwxyzéß")


@dataclass
class TheirConfig:
    vocab_size: int = len(CHARACTERS)
    block_size: int = 16
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 24


class LayerNorm(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config: TheirConfig, bias: bool) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=bias)
        self.n_head = config.n_head
        self.n_embd = config.n_embd

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return out


class MLP(nn.Module):
    def __init__(self, config: TheirConfig, bias: bool, gelu: nn.Module) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=bias)
        self.gelu = gelu
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(self.gelu(self.c_fc(x)))
        return out


class Block(nn.Module):
    def __init__(self, config: TheirConfig, bias: bool, gelu: nn.Module) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, bias)
        self.attn = CausalSelfAttention(config, bias)
        self.ln_2 = LayerNorm(config.n_embd, bias)
        self.mlp = MLP(config, bias, gelu)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class TheirGPT(nn.Module):
    """The model of the workshop's part 2; with `exact`, and perhaps without biases, nanoGPT's."""

    def __init__(self, config: TheirConfig, bias: bool = True, exact: bool = False) -> None:
        super().__init__()
        self.config = config
        gelu = nn.GELU() if exact else nn.GELU(approximate="tanh")
        wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.transformer: Any = nn.ModuleDict(
            dict(
                wte=wte,
                wpe=nn.Embedding(config.block_size, config.n_embd),
                h=nn.ModuleList([Block(config, bias, gelu) for _ in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        wte.weight = self.lm_head.weight

    def forward(self, idx: Tensor) -> Tensor:
        pos = torch.arange(0, idx.shape[1])
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        out: Tensor = self.lm_head(self.transformer.ln_f(x))
        return out


def trained(
    config: TheirConfig | None = None, bias: bool = True, exact: bool = False, seed: int = 5
) -> TheirGPT:
    """A model whose weights are wild enough that every part of it shows in the logits."""
    torch.manual_seed(seed)
    model = TheirGPT(config or TheirConfig(), bias, exact).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return model


def their_ids(config: TheirConfig, batch: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.randint(config.vocab_size, (batch, config.block_size), generator=generator)


def tables(characters: list[str] = CHARACTERS) -> dict[str, Any]:
    return {
        "stoi": {c: i for i, c in enumerate(characters)},
        "itos": dict(enumerate(characters)),
    }


@contextmanager
def config_class(module: str, base: type = TheirConfig) -> Iterator[Any]:
    """The workshop's GPTConfig, as its learner's module has it while it trains."""

    class GPTConfig(base):  # type: ignore[misc]
        pass

    GPTConfig.__module__, GPTConfig.__qualname__ = module, "GPTConfig"
    before = sys.modules.get(module)
    stand_in = before if module == "__main__" and before else types.ModuleType(module)
    stand_in.GPTConfig = GPTConfig  # type: ignore[attr-defined]
    sys.modules[module] = stand_in
    try:
        yield GPTConfig
    finally:
        if before is None:
            del sys.modules[module]
        else:
            sys.modules[module] = before
            if before is stand_in:
                del before.GPTConfig


def save_workshop(
    path: Path, model: TheirGPT, step: int = 1000, module: str = "model", **changed: Any
) -> Path:
    """A checkpoint as the workshop's loop writes it; a `changed` entry of None is left out."""
    with config_class(module) as of_config:
        content = {
            "step": step,
            "model_state_dict": model.state_dict(),
            "config": of_config(**vars(model.config)),
            **tables(),
            **changed,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({k: v for k, v in content.items() if v is not None}, path)
    return path


def nanogpt_content(model: TheirGPT, bias: bool = True, **changed: Any) -> dict[str, Any]:
    """A checkpoint as nanoGPT's train.py makes it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "model_args": {**vars(model.config), "bias": bias, "dropout": 0.2},
        "iter_num": 250,
        "best_val_loss": torch.tensor(1.75),
        "config": {"dataset": "poems", "always_save_checkpoint": False, "learning_rate": 1e-3},
        **changed,
    }


def save_nanogpt(path: Path, content: Mapping[str, Any], meta: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(dict(content), path)
    if meta:
        record = {"vocab_size": len(CHARACTERS), **tables()}
        path.with_name("meta.pkl").write_bytes(pickle.dumps(record))
    return path


def generate(
    model: TheirGPT, ids: list[int], seed: int, count: int, temperature: float, top_k: int
) -> list[int]:
    """The workshop's generate.py, from token ids to token ids."""
    torch.manual_seed(seed)
    out = list(ids)
    with torch.no_grad():
        for _ in range(count):
            window = torch.tensor([out[-model.config.block_size :]])
            logits = model(window)[:, -1, :] / temperature
            kth = torch.topk(logits, top_k).values[:, -1:]
            logits[logits < kth] = float("-inf")
            probs = F.softmax(logits, dim=-1)
            out.append(int(torch.multinomial(probs, 1)))
    return out
