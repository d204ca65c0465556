"""The GPT of the workshop's part 2, in one file.

The names of modules and parameters are the workshop's, so that its weights load here and ours
load there. The one addition is dropout, which is off by default.
"""

from dataclasses import replace
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import functional as F

from tuigpt.config import GPTConfig


class CausalSelfAttention(nn.Module):
    """Lets each token look at itself and all earlier tokens, in several heads at once."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)  # Q, K and V projections
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)  # output projection
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)  # each (B, T, C)

        # (B, T, C) -> (B, n_head, T, head_dim)
        head_dim = C // self.n_head
        q = q.view(B, T, self.n_head, head_dim).transpose(1, 2)
        k = k.view(B, T, self.n_head, head_dim).transpose(1, 2)
        v = v.view(B, T, self.n_head, head_dim).transpose(1, 2)

        # softmax(q @ k^T / sqrt(head_dim)) @ v, with the future masked
        dropout_p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout_p)

        y = y.transpose(1, 2).contiguous().view(B, T, C)  # heads side by side again
        out: Tensor = self.resid_dropout(self.c_proj(y))
        return out


class MLP(nn.Module):
    """Processes what attention gathered, each position by itself."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.gelu = nn.GELU("tanh" if config.gelu == "tanh" else "none")
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.gelu(self.c_fc(x))  # (B, T, 4 * C)
        out: Tensor = self.dropout(self.c_proj(x))  # (B, T, C)
        return out


class Block(nn.Module):
    """One transformer block: attention, then MLP, each normed before and added to its input."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    """A decoder-only transformer that predicts the next token at every position."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        wte = nn.Embedding(config.vocab_size, config.n_embd)  # what the token is
        self.transformer: Any = nn.ModuleDict(
            dict(
                wte=wte,
                wpe=nn.Embedding(config.block_size, config.n_embd),  # where it stands
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=nn.LayerNorm(config.n_embd),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        # Weight tying: the matrix that reads tokens also writes them.
        wte.weight = self.lm_head.weight

    def set_dropout(self, dropout: float) -> None:
        """Change the share of activations dropped while training.

        Raises:
            ConfigError: it is outside [0, 1).
        """
        self.config = replace(self.config, dropout=dropout)
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = dropout
            elif isinstance(module, CausalSelfAttention):
                module.dropout = dropout

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Predict the next token at every position.

        Args:
            idx: token ids, (B, T) with T at most `block_size`.
            targets: the tokens that really follow, (B, T), or None.

        Returns:
            logits (B, T, vocab_size), and the mean cross-entropy in nats per token (a scalar),
            or None without targets.
        """
        _, T = idx.shape
        pos = torch.arange(0, T, device=idx.device)

        tok_emb = self.transformer.wte(idx)  # (B, T, n_embd)
        pos_emb = self.transformer.wpe(pos)  # (T, n_embd)
        x = self.transformer.drop(tok_emb + pos_emb)  # (B, T, n_embd)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        logits = self.lm_head(x)  # (B, T, vocab_size)

        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
