"""What a training tells while it goes on; whoever iterates over it decides what to do with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stepped:
    """One update is done. On another device than the CPU several are reported together.

    Attributes:
        step: number of updates done.
        loss: of this update's batch, before the update, in nats per token.
        learning_rate: the rate of this update.
        grad_norm: length of the gradient before clipping.
        seconds: how long the update took.
        gpu_memory: most bytes that were in use on the GPU so far; None without one.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    seconds: float
    gpu_memory: int | None = None


@dataclass(frozen=True)
class PartDone:
    """A part of an evaluation or a sample is done: `done` of `total` batches or tokens."""

    step: int
    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Evaluated:
    """The model was measured on the validation part.

    Attributes:
        val_loss: mean loss in nats per token.
        val_loss_per_character: the same surprise in nats per character: comparable between
            tokenizers, and equal to `val_loss` where tokens are characters.
        tokens: how many were measured.
        whole: tells a pass over the whole part from the evenly spread one.
        early: whether it is a first impression from little text, which decides nothing.
    """

    step: int
    val_loss: float
    val_loss_per_character: float
    tokens: int
    whole: bool
    early: bool = False


@dataclass(frozen=True)
class Sampled:
    """The model wrote `text` after `prompt`.

    Attributes:
        real_words: share of its words that are words of the text it learns from; None where there
            are too few.
    """

    step: int
    prompt: str
    text: str
    real_words: float | None = None


@dataclass(frozen=True)
class Skipped:
    """An evaluation or a sample failed; the training is as it was.

    Attributes:
        what: "evaluation" or "sample".
        reason: in one line.
    """

    step: int
    what: str
    reason: str


@dataclass(frozen=True)
class StateDue:
    """The training should be safe on disk before what is computed from it next."""

    step: int


@dataclass(frozen=True)
class CheckpointDue:
    """The weights of this step are worth keeping now; all that is to be measured of them is.

    Attributes:
        keep: False for one that may go again: as the best so far, when a better one comes; as one
            that tells how the model grew up, when there are too many of those.
    """

    step: int
    keep: bool


Event = Stepped | PartDone | Evaluated | Sampled | Skipped | StateDue | CheckpointDue
