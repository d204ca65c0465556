"""The GPT arranged for generation: the same numbers as `model/gpt.py`, with what was computed kept.

A token's keys and values depend on it, its position and the tokens before it, so inside the
context they stay valid and one step computes one position. Once the window slides every token
stands one position earlier, with learned positions every key and value is then another, and the
window must be read anew: `last_logits` does that with as little work as the last position needs.

Rounding differs from `gpt.py` in the last bits; `decode.py` deals with it. On CUDA, where launching
a step's many small kernels takes longer than they do, a step is a captured graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from tuigpt.generation.samplers import ROUNDING
from tuigpt.model.gpt import GPT

_GELU_LINEAR = 2 * math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715 * _GELU_LINEAR


class _Block(NamedTuple):
    """One block's weights as plain tensors, because looking them up in modules costs time."""

    ln_1: tuple[Tensor, Tensor]
    c_attn: tuple[Tensor, Tensor]
    attn_proj: tuple[Tensor, Tensor]
    ln_2: tuple[Tensor, Tensor]
    c_fc: tuple[Tensor, Tensor]
    mlp_proj: tuple[Tensor, Tensor]


class CachedGPT:
    """Reads `rows` texts of equal length in step, with preallocated keys and values.

    Its weights are the model's own tensors; it must not outlive a change of them. Nothing here
    needs a gradient; under `torch.inference_mode` it is a little faster.

    Attributes:
        rows: number of texts.
        length: positions in the cache, at most `block_size`.
    """

    def __init__(self, model: GPT, rows: int = 1) -> None:
        config = model.config
        self.rows = rows
        self.length = 0
        self._block_size = config.block_size
        self._n_head = config.n_head
        self._width = config.n_embd
        self._gelu = _tanh_gelu if config.gelu == "tanh" else F.gelu
        self._tokens = model.lm_head.weight.detach()  # they read and write tokens
        self._positions = model.transformer.wpe.weight.detach()
        self._ln_f = _parameters(model.transformer.ln_f)
        self._blocks = [
            _Block(
                _parameters(block.ln_1),
                _parameters(block.attn.c_attn),
                _parameters(block.attn.c_proj),
                _parameters(block.ln_2),
                _parameters(block.mlp.c_fc),
                _parameters(block.mlp.c_proj),
            )
            for block in model.transformer.h
        ]
        head_size = config.n_embd // config.n_head
        shape = (config.n_layer, 2, rows, config.n_head, config.block_size, head_size)
        # Zeros, so that the memory is there before the first step and not page by page in it.
        self._cache = self._tokens.new_zeros(shape)
        self._graph: StepGraph | None = None
        self._to_be_captured = captures(self._tokens.device)

    def start(self, ids: Tensor) -> Tensor:
        """Read texts from their beginning, forgetting what was read before.

        Args:
            ids: (rows, T) int64, or (T,) for the same text in every row; T from 1 to block_size.

        Returns:
            the last position's logits, (rows, vocab_size).
        """
        same = ids.dim() == 1
        logits = self._read(ids[None] if same else ids, keep=True)
        self.length = ids.size(-1)
        return logits.expand(self.rows, -1)

    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token in every row; `length` must be less than block_size.

        Args:
            tokens: (rows,) int64.

        Returns:
            logits, (rows, vocab_size).
        """
        if self._graph is not None:
            logits = self._graph(tokens, self.length)
        else:
            logits = self._step(tokens)
            if self._to_be_captured:
                self._to_be_captured = False
                self._graph = _captured(self, tokens, logits)
        self.length += 1
        return logits

    def _step(self, tokens: Tensor) -> Tensor:
        position = self.length

        def attend(qkv: Tensor, cache: Tensor) -> Tensor:
            cache[:, :, :, position : position + 1] = qkv[:, 1:].transpose(0, 1)
            keys, values = cache[:, :, :, : position + 1]  # (rows, n_head, length + 1, head) each
            return F.scaled_dot_product_attention(qkv[:, 0], keys, values)

        return self._through(F.embedding(tokens, self._tokens) + self._positions[position], attend)

    def step_at(self, tokens: Tensor, position: Tensor) -> Tensor:
        """A step that does the same on every position, as a graph must; `length` is not used.

        It attends to the whole cache under a mask, which is the same but for rounding.

        Args:
            tokens: (rows,) int64.
            position: (1,) int64, which the tokens come to stand on.

        Returns:
            logits, (rows, vocab_size).
        """
        seen = torch.arange(self._block_size, device=position.device)[None] <= position

        def attend(qkv: Tensor, cache: Tensor) -> Tensor:
            cache.index_copy_(3, position, qkv[:, 1:].transpose(0, 1))
            return F.scaled_dot_product_attention(qkv[:, 0], cache[0], cache[1], attn_mask=seen)

        x = F.embedding(tokens, self._tokens) + F.embedding(position, self._positions)
        return self._through(x, attend)

    def _through(self, x: Tensor, attend: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Take one position, (rows, C), through the blocks to its logits."""
        rows, width = self.rows, self._width
        shape, per_head = (width,), (rows, 3, self._n_head, 1, width // self._n_head)
        for block, cache in zip(self._blocks, self._cache, strict=True):
            h = torch.layer_norm(x, shape, *block.ln_1)
            y = attend(F.linear(h, *block.c_attn).view(per_head), cache)
            x = x + F.linear(y.view(rows, width), *block.attn_proj)
            h = torch.layer_norm(x, shape, *block.ln_2)
            x = x + F.linear(self._gelu(F.linear(h, *block.c_fc)), *block.mlp_proj)
        return F.linear(torch.layer_norm(x, shape, *self._ln_f), self._tokens)

    def last_logits(self, ids: Tensor) -> Tensor:
        """Read whole windows without touching the cache.

        Args:
            ids: (B, T) int64, any B, T at most block_size.

        Returns:
            the last position's logits, (B, vocab_size).
        """
        return self._read(ids, keep=False)

    def _read(self, ids: Tensor, keep: bool) -> Tensor:
        B, T = ids.shape
        shape, heads = (self._width,), (self._n_head, self._width // self._n_head)
        x = F.embedding(ids, self._tokens) + self._positions[:T]  # (B, T, C)
        for number, block in enumerate(self._blocks, 1):
            h = torch.layer_norm(x, shape, *block.ln_1)
            if number < len(self._blocks):
                q, k, v = F.linear(h, *block.c_attn).view(B, T, 3, *heads).unbind(2)
            else:
                # Only the last position's logits are wanted, so the last block needs one query.
                weight, bias = block.c_attn
                width = self._width
                q = F.linear(h[:, -1:], weight[:width], bias[:width]).view(B, 1, *heads)
                k, v = F.linear(h, weight[width:], bias[width:]).view(B, T, 2, *heads).unbind(2)
                x = x[:, -1:]
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            if keep:
                self._cache[number - 1, 0, :, :, :T] = k
                self._cache[number - 1, 1, :, :, :T] = v
            # One query sees everything, so it needs no mask.
            y = F.scaled_dot_product_attention(q, k, v, is_causal=q.size(2) > 1)
            x = x + F.linear(y.transpose(1, 2).reshape(x.shape), *block.attn_proj)
            h = torch.layer_norm(x, shape, *block.ln_2)
            x = x + F.linear(self._gelu(F.linear(h, *block.c_fc)), *block.mlp_proj)
        return F.linear(torch.layer_norm(x[:, -1], shape, *self._ln_f), self._tokens)


class StepGraph:
    """`CachedGPT.step_at` as a CUDA graph: one launch for all of its kernels, at any position.

    Source: PyTorch's notes "CUDA semantics", section "CUDA Graphs".
    """

    def __init__(self, cached: CachedGPT, tokens: Tensor) -> None:
        """Capture a step on the tokens' device.

        Args:
            cached: with these tokens read already at its `length`, which is done again.
            tokens: (rows,) int64.

        Raises:
            RuntimeError: it cannot be captured here.
        """
        self._tokens = tokens.clone()
        self._position = torch.tensor([cached.length], device=tokens.device)
        with torch.cuda.device(tokens.device):
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            # Inside, so that the stream in use is also restored when capturing fails.
            with torch.cuda.stream(stream):
                for _ in range(3):  # the libraries behind a step set themselves up first
                    cached.step_at(self._tokens, self._position)
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=stream):
                    self._logits = cached.step_at(self._tokens, self._position)
            torch.cuda.current_stream().wait_stream(stream)

    def __call__(self, tokens: Tensor, position: int) -> Tensor:
        """The step's logits, (rows, vocab_size)."""
        self._tokens.copy_(tokens)
        self._position.fill_(position)
        self._graph.replay()
        return self._logits.clone()  # the next replay overwrites them


def captures(device: torch.device) -> bool:
    """Whether steps on the device are worth a graph."""
    return device.type == "cuda"


def _captured(cached: CachedGPT, tokens: Tensor, expected: Tensor) -> StepGraph | None:
    """A graph of the step that just gave `expected`; None if it fails or gives something else."""
    try:
        graph = StepGraph(cached, tokens)
        error = (graph(tokens, cached.length) - expected).abs().max()
        return graph if bool(error <= ROUNDING * expected.abs().max().clamp(min=1)) else None
    except RuntimeError:
        return None


def _parameters(module: torch.nn.Module) -> tuple[Tensor, Tensor]:
    weight, bias = module.weight, module.bias
    assert isinstance(weight, Tensor) and isinstance(bias, Tensor)
    return weight.detach(), bias.detach()


def _tanh_gelu(x: Tensor) -> Tensor:
    """GELU's tanh approximation, written with a sigmoid, as 1 + tanh(u) = 2 * sigmoid(2u).

    On a CPU the sigmoid takes half the tanh's time, where there is enough to do.
    """
    if x.device.type != "cpu" or x.numel() < 4096:
        return F.gelu(x, approximate="tanh")
    inner = x * x
    inner.mul_(_GELU_CUBIC).add_(_GELU_LINEAR).mul_(x)
    return inner.sigmoid_().mul_(x)
