"""What a training will cost, before it starts: arithmetic alone, without torch.

`training/calibrate.py` adds what only this machine can tell: how long a step takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.recipes import RECIPES, Parameters

MANY_READINGS = 15
"""Readings of a text after which a model that has room for it memorises it.

With 11 parameters a character the workshop's medium model is at its best after 25 readings, and the
recipe `fast` brought a tiny one there after 17; from then on both got worse. Muennighoff et al.
2023, "Scaling Data-Constrained Language Models", find what reading again can teach used up after
some 15 readings.
"""

LONGEST_WHOLE_PASS = 4_000_000
"""Tokens of a validation part above which it is not measured whole at the end."""

CPU_MICRO_BATCH_TOKENS = 4096
"""Tokens that a CPU computes at a time: few enough that what one layer made is still near when the
next one needs it. At medium a batch of 64 windows takes 1.3 times as long in one go."""

_FLOAT = 4
"""Bytes."""


@dataclass(frozen=True)
class Memory:
    """Bytes that training takes.

    Attributes:
        weights: of the model.
        gradients: one for each weight.
        optimizer: what the recipe's optimizers remember.
        activations: kept from the forward for the backward pass, with the logits, of as many
            windows as are computed at a time.
        peak: the most at once, which is less than the sum: not all are there at all times.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    peak: int


def micro_batch_windows(
    config: GPTConfig, train_config: TrainConfig, device_type: str, processes: int = 1
) -> int:
    """Most windows in a micro-batch, which a trainer computes at a time: all are nearly as large.

    Args:
        processes: among which a batch is shared out.
    """
    rows = train_config.batch_size // processes
    most = train_config.micro_batch_size or rows
    if not train_config.micro_batch_size and device_type == "cpu":
        most = max(1, CPU_MICRO_BATCH_TOKENS // config.block_size)
    count = -(-rows // most)
    return -(-rows // count)


def memory(config: GPTConfig, train_config: TrainConfig, device_type: str = "cpu") -> Memory:
    """What the tensors of a training take in float32, from the shapes in `model/gpt.py`.

    For each token, in floats, a block keeps 16 widths: the inputs of both norms (2), what the norms
    give (2), queries, keys and values (3), what attention gives (1), the MLP's hidden layer before
    and after GELU (8); also each norm's mean and deviation (4), and attention's log-sum-exp (one a
    head). The last norm keeps its input and output (2 widths), and the loss keeps logits and their
    log-softmax (2 vocabularies); its gradient takes as much again. Dropout keeps two masks a block
    and one for the embeddings, and on a processor attention then keeps three matrices of block_size
    by block_size a head: the probabilities, their mask, and both together.

    Accuracy: on a processor the real peak of the tensors was 1.0 to 1.1 times this in eight trials
    from 0.4 to 14 million parameters. The process grows by 1.0 to 2.0 times as much, because the C
    library keeps freed blocks that it cannot reuse, and PyTorch takes some 300 MB beside that.
    Computing in bfloat16 takes less.

    Args:
        device_type: "cpu" computes a batch in micro-batches; "cuda" computes attention with dropout
            without keeping its matrices.
    """
    width, blocks, vocab_size = config.n_embd, config.n_layer, config.vocab_size
    windows = micro_batch_windows(config, train_config, device_type)
    tokens = windows * config.block_size
    per_block = 16 * width + 4 + config.n_head
    outside = 2 * width + 2 * vocab_size
    if config.dropout:
        per_block += 2 * width
        outside += width
        if device_type != "cuda":
            per_block += 3 * config.n_head * config.block_size
    weights = gradients = config.n_params
    rules = RECIPES[train_config.recipe].optimizers
    learned = [(rule, _learned(rule.parameters, config)) for rule in rules]
    optimizer = sum(rule.moments * count for rule, count in learned)
    activations = tokens * (blocks * per_block + outside)
    backward = activations + 2 * tokens * vocab_size
    if windows < train_config.batch_size:  # the micro-batches before have left gradients
        backward += gradients
    # Optimizers work one after the other.
    update = gradients + max(int(rule.workspace * count) for rule, count in learned)
    # In a block an evaluation holds 11 widths at most, and the last gradients are still there.
    evaluation = gradients
    if train_config.val_fraction:
        evaluation += tokens * max(11 * width, 2 * width + 2 * vocab_size)
    peak = weights + optimizer + max(backward, update, evaluation)
    return Memory(*(_FLOAT * n for n in (weights, gradients, optimizer, activations, peak)))


def _learned(parameters: Parameters, config: GPTConfig) -> int:
    """How many numbers those parameters are."""
    return {
        "all": config.n_params,
        "block matrices": config.block_matrices,
        "rest": config.n_params - config.block_matrices,
    }[parameters]


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


def update_flops(config: GPTConfig, train_config: TrainConfig) -> int:
    """Floating-point operations of what the optimizers multiply in a step, beside `step_flops`."""
    rules = RECIPES[train_config.recipe].optimizers
    work = sum(rule.products * _learned(rule.parameters, config) for rule in rules)
    return int(work * config.n_embd)


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
        """Whether the model will memorise its text instead of what texts have in common.

        That takes both: room (more parameters than characters) and more than `MANY_READINGS`.
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
    """Seconds that the parts of a training take on this machine, but for writing checkpoints.

    Attributes:
        step_seconds: of one update.
        eval_seconds: of one evaluation while training; 0 without a validation part.
        sample_seconds: of one sample; 0 if none is drawn.
        whole_eval_seconds: of the last evaluation, over the whole validation part; 0 if the part
            is too long for one.
        compile_seconds: of compiling the model before the first step; 0 where it is not.
    """

    step_seconds: float
    eval_seconds: float
    sample_seconds: float
    whole_eval_seconds: float
    compile_seconds: float = 0.0

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
            self.compile_seconds
            + steps * self.step_seconds
            + (samples + 1) * self.eval_seconds
            + samples * self.sample_seconds
            + self.whole_eval_seconds
        )
