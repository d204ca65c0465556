"""What a training with recipe `fast` reaches, from its settings alone: fitted to measured runs.

`benchmarks/fit_law.py` fits the numbers to the table that `benchmarks/plan_runs.py` makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuigpt.config import GPTConfig, TrainConfig

_TRIPLES = 2.05
"""What counting triples reaches on the texts that most runs were measured on."""


@dataclass(frozen=True)
class TextSize:
    """What matters of a text.

    Attributes:
        vocab_size: of a model of it.
        train_tokens, val_tokens: of its two parts.
        triples: what counting triples reaches on it, in nats per character; None where that is not
            known.
    """

    vocab_size: int
    train_tokens: int
    val_tokens: int
    triples: float | None


@dataclass(frozen=True)
class Law:
    """The val loss as a sum of what is missing, in nats per character.

    With N the millions of entries in the matrices of the blocks, W the ten thousands of windows
    that are read in s thousand steps, D the millions of tokens of the training part, and R how
    often that is read:

        floor
        + size · N ** -size_power                        what so small a model cannot hold
        + context · (block_size / 64) ** -context_power  what lies too far back to be seen
        + learning · S ** -learning_power                what is still to be learned, with
              S = W · s / (s + steps)
        + memorising · D ** -memorising_power · N ** memorising_size · R / (R + readings)

    The form of the sum: Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models".
    That windows count, however long they are, is what the runs say: tokens of one window are alike.
    The same windows teach less in fewer steps: McCandlish et al. 2018, "An Empirical Model of
    Large-Batch Training", equation 5.1. All of it times (triples / 2.05) ** language, where triples
    is what counting triples reaches: how hard the text itself is.
    """

    floor: float
    size: float
    size_power: float
    context: float
    context_power: float
    learning: float
    learning_power: float
    steps: float
    memorising: float
    memorising_power: float
    memorising_size: float
    readings: float
    language: float

    def val_loss(
        self, *, entries: Any, block_size: Any, windows: Any, steps: Any, train_tokens: Any,
        triples: Any = _TRIPLES,
    ) -> Any:  # fmt: skip
        """The val loss that a training ends with, in nats per character.

        It is arithmetic alone, so that it works for tensors too.

        Args:
            entries: of the matrices in the blocks.
            windows: that are read in all.
            steps: in which they are read.
            train_tokens: of the training part.
            triples: what counting triples reaches on the text, in nats per character.
        """
        thousands = steps / 1e3
        learned = windows / 1e4 * thousands / (thousands + self.steps)
        read = windows * block_size / train_tokens
        room = (train_tokens / 1e6) ** -self.memorising_power
        memorised = room * (entries / 1e6) ** self.memorising_size * read / (read + self.readings)
        return (triples / _TRIPLES) ** self.language * (
            self.floor
            + self.size * (entries / 1e6) ** -self.size_power
            + self.context * (block_size / 64) ** -self.context_power
            + self.learning * learned**-self.learning_power
            + self.memorising * memorised
        )


LAW = Law(
    floor=0.2988,
    size=0.1594,
    size_power=0.2921,
    context=0.7534,
    context_power=0.1539,
    learning=0.4525,
    learning_power=0.249,
    steps=0.2007,
    memorising=0.3104,
    memorising_power=0.2354,
    memorising_size=0.3661,
    readings=35.25,
    language=1.126,
)


def most_readings(train_tokens: int) -> float:
    """Readings of a text after which no setting that was measured got better: 15 of 20,000
    characters, 30 of 100,000 and more."""
    return float(min(30.0, 12 * (train_tokens / 1e4) ** 0.4))


def usual_weight_decay(entries: int, tokens: int, train_tokens: int) -> float:
    """The weight decay that teaches most: more for who reads often, and has room to memorise.

    Args:
        entries: of the matrices in the blocks.
        tokens: that are read in all.
        train_tokens: of the training part.
    """
    unique = max(1, train_tokens)
    pressure = tokens / unique * entries / unique
    return min(1.0, max(0.1, float(f"{0.03 * pressure:.1g}")))


def margin(text: TextSize) -> float:
    """Nats per character by which a training may well miss what is expected of it.

    The law knows Shakespeare's English, where it was at most 0.046 off; on Python code and a manual
    it was 0.11 to 0.16 off.
    """
    is_known = text.triples is not None and abs(text.triples / _TRIPLES - 1) < 0.06
    return 0.05 if is_known and text.train_tokens >= 250_000 else 0.15


def expected_val_loss(model: GPTConfig, config: TrainConfig, text: TextSize) -> float:
    """The val loss that a training ends with, in nats per character; dropout is not in it."""
    return float(
        LAW.val_loss(
            entries=model.block_matrices,
            block_size=model.block_size,
            windows=config.max_steps * config.batch_size,
            steps=config.max_steps,
            train_tokens=max(1, text.train_tokens),
            triples=text.triples or _TRIPLES,
        )
    )
