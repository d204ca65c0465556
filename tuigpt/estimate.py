"""What a training will cost, before it starts: arithmetic alone, without torch.

`core/calibrate.py` adds what only this machine can tell: how long a step takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuigpt.config import GPTConfig, TrainConfig

MANY_READINGS = 4
"""Readings up to which text that is read again teaches nearly as much as new text would
(Muennighoff et al., "Scaling Data-Constrained Language Models", 2023)."""

_FLOAT = 4


@dataclass(frozen=True)
class Parameters:
    """Trainable parameters by part; `total` is `GPTConfig.n_params`.

    Attributes:
        tokens: the embedding of the tokens, which is the output layer as well.
        positions: the embedding of the positions.
        attention: query, key, value and output projections of all blocks.
        mlp: both layers of all blocks' MLPs.
        norms: two layer norms a block, and the last one.
    """

    tokens: int
    positions: int
    attention: int
    mlp: int
    norms: int

    @property
    def total(self) -> int:
        return self.tokens + self.positions + self.attention + self.mlp + self.norms


def count_parameters(config: GPTConfig) -> Parameters:
    """The parameters of a model, by part."""
    width, blocks = config.n_embd, config.n_layer
    return Parameters(
        tokens=config.vocab_size * width,
        positions=config.block_size * width,
        attention=blocks * (4 * width * width + 4 * width),
        mlp=blocks * (8 * width * width + 5 * width),
        norms=blocks * 4 * width + 2 * width,
    )


@dataclass(frozen=True)
class Memory:
    """Bytes that training takes in float32.

    Attributes:
        weights: of the model.
        gradients: one for each weight.
        optimizer: two moments for each weight (AdamW), or one momentum (Muon).
        activations: of one batch, kept from the forward for the backward pass, with its logits.
        logit_gradients: what the backward pass begins with.
        update: Muon's working space.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logit_gradients: int
    update: int

    @property
    def peak(self) -> int:
        """The most at once: at the end of the forward pass, early in the backward or in the update.

        The last step's gradients live until the backward pass begins.
        """
        forward = self.gradients + self.activations
        backward = self.activations + self.logit_gradients
        return self.weights + self.optimizer + max(forward, backward, self.gradients + self.update)


def memory(config: GPTConfig, train_config: TrainConfig, device_type: str = "cpu") -> Memory:
    """What the tensors of a training take, from the shapes in `core/model.py`.

    For each token, in floats, a block keeps 16 widths: the inputs of both norms (2), what the norms
    give (2), queries, keys and values (3), what attention gives (1), the MLP's hidden layer before
    and after GELU (8); also each norm's mean and deviation (4), and attention's log-sum-exp (one a
    head). The last norm keeps its input and output (2 widths), and the loss keeps logits and their
    log-softmax (2 vocabularies); its gradient takes as much again. Dropout keeps two masks a block
    and one for the embeddings, and on a processor attention then keeps three matrices of block_size
    by block_size a head: the probabilities, their mask, and both together.

    Accuracy: the tensors' real peak on a processor is 1.00 to 1.10 times this. The process grows
    by 1.0 to 1.7 times as much, because the C library keeps freed blocks that it cannot reuse;
    PyTorch itself takes some 300 MB beside that.

    Args:
        device_type: "cuda" computes attention with dropout without keeping its matrices.
    """
    width, blocks = config.n_embd, config.n_layer
    tokens = train_config.batch_size * config.block_size
    per_block = 16 * width + 4 + config.n_head
    outside = 2 * width
    if config.dropout:
        per_block += 2 * width
        outside += width
        if device_type != "cuda":
            per_block += 3 * config.n_head * config.block_size
    count = config.n_params
    matrices = 12 * width * width * blocks  # those in the blocks, without their biases
    fast = train_config.recipe == "fast"
    # Muon works on all matrices of a shape at once, at most a third of them: beside every matrix's
    # direction it holds their stack, two iterates and two Gram matrices.
    update = matrices + 5 * matrices // 3 if fast else 0
    logits = 2 * tokens * config.vocab_size
    return Memory(
        weights=_FLOAT * count,
        gradients=_FLOAT * count,
        optimizer=_FLOAT * (2 * count - (matrices if fast else 0)),
        activations=_FLOAT * (tokens * (blocks * per_block + outside) + logits),
        logit_gradients=_FLOAT * logits,
        update=_FLOAT * update,
    )


def needed_bytes(config: GPTConfig, train_config: TrainConfig, device_type: str = "cpu") -> int:
    """The least memory with which a training can work, in bytes. See `memory`."""
    return memory(config, train_config, device_type).peak


def step_flops(config: GPTConfig, train_config: TrainConfig) -> int:
    """Floating-point operations of a step: multiplications and additions of its matrix products.

    For each token 6 a parameter (2 forward, 4 backward) and 12 · n_layer · n_embd · block_size for
    attention. Sources: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1;
    Chowdhery et al. 2022, "PaLM", appendix B. Positions are left out, which are only added; tokens
    count, because the output layer multiplies with them.
    """
    multiplied = config.n_params - config.block_size * config.n_embd
    attention = 12 * config.n_layer * config.n_embd * config.block_size
    return train_config.batch_size * config.block_size * (6 * multiplied + attention)


@dataclass(frozen=True)
class Reading:
    """How much of a text is read, and by how large a model.

    Attributes:
        step_tokens: of one step.
        tokens: of all steps.
        epochs: how many times as many as the training part holds.
        parameters_per_character: of the training part.
    """

    step_tokens: int
    tokens: int
    epochs: float
    parameters_per_character: float

    @property
    def overfits(self) -> bool:
        """Whether the model will learn its text by heart instead of what texts have in common.

        That takes both: room (more parameters than characters) and readings (more than
        `MANY_READINGS`). The workshop's medium model, with 11 parameters a character, was at its
        best after 25 readings, and after 57 worse than after 8.
        """
        return self.parameters_per_character > 1 and self.epochs > MANY_READINGS


def reading(
    config: GPTConfig, train_config: TrainConfig, train_tokens: int, train_characters: int
) -> Reading:
    """What training on a text means.

    Args:
        train_tokens: tokens of the training part.
        train_characters: characters of the training part.
    """
    step_tokens = train_config.batch_size * config.block_size
    tokens = step_tokens * train_config.max_steps
    return Reading(
        step_tokens=step_tokens,
        tokens=tokens,
        epochs=tokens / max(1, train_tokens),
        parameters_per_character=config.n_params / max(1, train_characters),
    )


@dataclass(frozen=True)
class Calibration:
    """Seconds that the parts of a training take on some machine. Writing checkpoints is not counted.

    Attributes:
        step_seconds: of one update.
        eval_seconds: of one evaluation while training; 0 without a validation part.
        sample_seconds: of one sample; 0 if none is drawn.
        whole_eval_seconds: of the last evaluation, over the whole validation part; 0 if the part
            is too long for one.
    """

    step_seconds: float
    eval_seconds: float
    sample_seconds: float
    whole_eval_seconds: float

    def seconds(self, train_config: TrainConfig) -> float:
        """What a whole run takes."""
        return self._seconds(train_config.max_steps, train_config.eval_interval)

    def steps_within(self, seconds: float, train_config: TrainConfig) -> int:
        """The most steps whose run, with its evaluations and samples, ends in time; at least 1."""
        fits, too_many = 1, max(2, int(seconds / self.step_seconds) + 2)
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._seconds(middle, train_config.eval_interval) <= seconds:
                fits = middle
            else:
                too_many = middle
        return fits

    def _seconds(self, steps: int, eval_interval: int) -> float:
        # `Trainer.run` evaluates before step 0 and every interval, and then at the end; it draws
        # a sample with each of these but the first.
        samples = -(-steps // eval_interval)
        return (
            steps * self.step_seconds
            + (samples + 1) * self.eval_seconds
            + samples * self.sample_seconds
            + self.whole_eval_seconds
        )
