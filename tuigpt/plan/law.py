"""What a training with recipe `fast` reaches, from its settings alone: fitted to measured runs.

`benchmarks/fit_law.py` fits the numbers to the table that `benchmarks/plan_runs.py` makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuigpt.config import GPTConfig, TrainConfig

MOST_READINGS = 30
"""Readings of a text after which no setting that was measured got better."""

_PAIRS = 2.485
"""What counting pairs reaches on the texts that most runs were measured on."""


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


@dataclass(frozen=True)
class Law:
    """The val loss as a sum of what is missing, in nats per character.

    With N the millions of entries in the matrices of the blocks, T the millions of tokens that are
    read, D the millions of tokens of the training part, b the thousands of tokens in a step, and
    R = T / D the readings:

        floor
        + size · N ** -size_power                            what so small a model cannot hold
        + context · (block_size / 64) ** -context_power      what lies too far back to be seen
        + learning · S ** -learning_power                    what is still to be learned, with
              S = T · N ** quickness / (1 + b / (batch · T ** batch_power))
        + memorising · D ** -memorising_power · R / (R + readings)

    The form of the sum: Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models"; the
    batch beyond which tokens are wasted, which grows as the loss falls: McCandlish et al. 2018, "An
    Empirical Model of Large-Batch Training". All of it times (pairs / 2.485) ** language, where
    pairs is what counting pairs reaches: how hard the text itself is.
    """

    floor: float
    size: float
    size_power: float
    context: float
    context_power: float
    learning: float
    learning_power: float
    quickness: float
    batch: float
    batch_power: float
    memorising: float
    memorising_power: float
    readings: float
    language: float

    def val_loss(
        self, *, entries: Any, block_size: Any, step_tokens: Any, tokens: Any, train_tokens: Any,
        pairs: Any = _PAIRS,
    ) -> Any:  # fmt: skip
        """The val loss that a training ends with, in nats per character.

        It is arithmetic alone, so that it works for tensors too.

        Args:
            entries: of the matrices in the blocks.
            step_tokens: tokens in a step.
            tokens: that are read in all.
            train_tokens: of the training part.
            pairs: what counting pairs reaches on the text, in nats per character.
        """
        millions, unique = tokens / 1e6, train_tokens / 1e6
        wasted = step_tokens / 1e3 / (self.batch * millions**self.batch_power)
        seen = millions * (entries / 1e6) ** self.quickness / (1 + wasted)
        read = millions / unique
        memorised = unique**-self.memorising_power * read / (read + self.readings)
        return (pairs / _PAIRS) ** self.language * (
            self.floor
            + self.size * (entries / 1e6) ** -self.size_power
            + self.context * (block_size / 64) ** -self.context_power
            + self.learning * seen**-self.learning_power
            + self.memorising * memorised
        )


LAW = Law(
    floor=0.702, size=0.0895, size_power=0.472, context=0.0517, context_power=0.434,
    learning=0.739, learning_power=0.1304, quickness=0.0927, batch=1.355, batch_power=1.028,
    memorising=0.1762, memorising_power=0.316, readings=9.77, language=1.0,
)  # fmt: skip


def usual_weight_decay(readings: float) -> float:
    """The weight decay with which so many readings teach most: what is read often is memorised."""
    return min(2.0, max(0.1, float(f"{0.07 * readings:.1g}")))


def margin(text: TextSize) -> float:
    """Nats per character by which a training may well miss what is expected of it."""
    return 0.04 if text.train_tokens >= 500_000 else 0.1


def expected_val_loss(model: GPTConfig, config: TrainConfig, text: TextSize) -> float:
    """The val loss that a training ends with, in nats per character; dropout is not in it."""
    step_tokens = config.batch_size * model.block_size
    return float(
        LAW.val_loss(
            entries=model.block_matrices,
            block_size=model.block_size,
            step_tokens=step_tokens,
            tokens=config.max_steps * step_tokens,
            train_tokens=max(1, text.train_tokens),
            pairs=text.pairs or _PAIRS,
        )
    )
