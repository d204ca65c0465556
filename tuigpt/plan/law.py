"""What a training with recipe `fast` reaches, from its settings alone: fitted to measured runs.

`benchmarks/fit_law.py` fits the numbers to the table that `benchmarks/plan_runs.py` makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuigpt.config import GPTConfig, TrainConfig

MARGIN = 0.04
"""Nats per character by which a training may well miss what is expected of it."""

MOST_READINGS = 30
"""Readings of a text after which no setting that was measured got better."""


@dataclass(frozen=True)
class TextSize:
    """What matters of a text.

    Attributes:
        vocab_size: of a model of it.
        train_tokens, val_tokens: of its two parts.
        pairs: what counting pairs reaches on it, in nats per character; None where that is not
            known.
    """

    vocab_size: int
    train_tokens: int
    val_tokens: int
    pairs: float | None


def usual_weight_decay(readings: float) -> float:
    """The weight decay with which so many readings teach most."""
    return 0.1 if readings < 3 else 0.3


def expected_val_loss(model: GPTConfig, config: TrainConfig, text: TextSize) -> float:
    """The val loss that a training ends with, in nats per character."""
    tokens = config.max_steps * config.batch_size * model.block_size
    return 1.33 + 0.34 / (tokens / 1e6) ** 0.55
