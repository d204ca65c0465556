"""The workshop's training loop, as an iterator of events.

The trainer computes and tells; it knows no file, no clock of the user, no terminal. Whoever
iterates decides what to do with an event, and may stop iterating after any of them: the model is
then at `Trainer.step` finished updates, never in the middle of one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tuigpt.config import SampleConfig, TrainConfig, UserError
from tuigpt.core.corpus import Corpus
from tuigpt.core.decode import generate, read_prompt
from tuigpt.core.model import GPT
from tuigpt.core.optim import build_optimizers, learning_rate
from tuigpt.core.tokenizer import Tokenizer

LONGEST_WHOLE_PASS = 4_000_000
"""Tokens of a validation part above which it is not measured whole at the end."""


@dataclass(frozen=True)
class Stepped:
    """One update is done.

    Attributes:
        step: number of updates done.
        loss: of this update's batch, before the update, in nats per token.
        learning_rate: the rate of this update.
        grad_norm: length of the gradient before clipping.
        seconds: how long the update took.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    seconds: float


@dataclass(frozen=True)
class Progress:
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
    """

    step: int
    val_loss: float
    val_loss_per_character: float
    tokens: int
    whole: bool


@dataclass(frozen=True)
class Sampled:
    """The model wrote `text` after `prompt`."""

    step: int
    prompt: str
    text: str


@dataclass(frozen=True)
class CheckpointDue:
    """The weights of this step are worth keeping now.

    Attributes:
        keep: False when the checkpoint is kept only until a better one comes.
    """

    step: int
    keep: bool


Event = Stepped | Progress | Evaluated | Sampled | CheckpointDue


class Diverged(UserError):
    """The loss, its gradient or the validation loss is no longer a number."""


class Trainer:
    """Trains one model on one corpus.

    Attributes:
        model: the model, on the device.
        step: number of updates done.
        train_loss: of the newest batch, or None.
        val_loss: of the newest evenly spread evaluation with the weights as they are, or None.
        val_loss_per_character: the same in nats per character.
        whole_val_loss: `val_loss` over the whole validation part.
        whole_val_loss_per_character: the same in nats per character.
        best_val_loss: lowest `val_loss` so far, reached at `best_step`.
    """

    def __init__(
        self, model: GPT, tokenizer: Tokenizer, corpus: Corpus, config: TrainConfig
    ) -> None:
        self.model = model
        self.step = 0
        self.train_loss: float | None = None
        self.val_loss: float | None = None
        self.val_loss_per_character: float | None = None
        self.whole_val_loss: float | None = None
        self.whole_val_loss_per_character: float | None = None
        self.best_val_loss = math.inf
        self.best_step: int | None = None
        self._tokenizer = tokenizer
        self._corpus = corpus
        self._config = config
        self._optimizers = build_optimizers(model, config)
        self._data_order = torch.Generator().manual_seed(config.seed)

    def run(self) -> Iterator[Event]:
        """Train until `max_steps`, telling each thing as it happens.

        Raises:
            Diverged: a loss is not finite. A train loss that is not was not applied.
        """
        config = self._config
        while self.step < config.max_steps:
            if self.step % config.eval_interval == 0:
                yield from self._evaluate_and_sample()
            if self.step and self.step % config.checkpoint_interval == 0:
                yield CheckpointDue(self.step, keep=True)
            yield self._update()
        # First on disk, then measured: a kill during the last evaluation loses nothing.
        yield CheckpointDue(self.step, keep=True)
        yield from self._evaluate_and_sample()
        if self._corpus.n_val <= LONGEST_WHOLE_PASS:
            yield from self._evaluate(max_tokens=None)
        yield CheckpointDue(self.step, keep=True)

    def sample(self) -> Iterator[Event]:
        """Let the model write from the sample prompt. Disturbs no other random stream."""
        config = self._config
        prompt = read_prompt(config.sample_prompt, self._tokenizer)
        settings = SampleConfig(
            max_new_tokens=config.sample_tokens, seed=(config.seed + self.step) % 2**63
        )
        ids: list[int] = []
        try:
            for token in generate(self.model, prompt.ids, settings):
                ids.append(token)
                yield Progress(self.step, "sample", len(ids), settings.max_new_tokens)
        except UserError:  # its logits are not finite
            what = f"the model's predictions are no longer numbers at step {self.step}"
            raise self._diverged(what) from None
        yield Sampled(self.step, prompt.text, self._tokenizer.decode(ids))

    def state(self) -> dict[str, Tensor]:
        """Everything but the weights that an exact continuation needs, as named tensors."""
        tensors = {
            f"optimizer.{name}.{key}": value.detach().cpu().contiguous()
            for name, parameter in self.model.named_parameters()
            for optimizer in self._optimizers
            for key, value in optimizer.state.get(parameter, {}).items()
        }
        tensors["random.data_order"] = self._data_order.get_state()
        tensors["random.cpu"] = torch.get_rng_state()
        if self.model.lm_head.weight.is_cuda:
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        best = [self.best_val_loss, -1 if self.best_step is None else self.best_step]
        tensors["best"] = torch.tensor(best, dtype=torch.float64)
        tensors["step"] = torch.tensor(self.step)
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken; the model must hold the weights of that step.

        Raises:
            KeyError: a tensor is missing.
        """
        parameters = dict(self.model.named_parameters())
        entries: dict[nn.Parameter, dict[str, Tensor]] = {p: {} for p in parameters.values()}
        for full_name, value in tensors.items():
            kind, _, rest = full_name.partition(".")
            if kind == "optimizer":
                name, _, key = rest.rpartition(".")
                entries[parameters[name]][key] = value
        for optimizer in self._optimizers:
            # Loading through the optimizer puts each tensor on the device that it wants.
            optimizer_state = optimizer.state_dict()
            own = [p for group in optimizer.param_groups for p in group["params"]]
            optimizer_state["state"] = dict(enumerate(entries[p] for p in own))
            optimizer.load_state_dict(optimizer_state)
        self._data_order.set_state(tensors["random.data_order"])
        torch.set_rng_state(tensors["random.cpu"])
        if self.model.lm_head.weight.is_cuda and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"])
        best_val_loss, best_step = tensors["best"].tolist()
        self.best_val_loss = best_val_loss
        self.best_step = None if best_step < 0 else int(best_step)
        self.step = int(tensors["step"])

    def _update(self) -> Stepped:
        began = time.perf_counter()
        config, model = self._config, self.model
        rate = learning_rate(self.step, config)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
        inputs, targets = self._corpus.batch(config.batch_size, self._data_order)
        model.train()
        _, loss = model(inputs, targets)
        model.zero_grad(set_to_none=True)
        loss.backward()
        limit = config.grad_clip or math.inf
        grad_norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit))
        train_loss = float(loss.detach())
        if not (math.isfinite(train_loss) and math.isfinite(grad_norm)):
            raise self._diverged(
                f"the loss is no longer a number at step {self.step + 1} (loss {train_loss},"
                f" gradient {grad_norm}): training stopped before it spoilt the weights"
            )
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self.train_loss = train_loss
        self.val_loss = self.val_loss_per_character = None
        self.whole_val_loss = self.whole_val_loss_per_character = None
        return Stepped(self.step, train_loss, rate, grad_norm, time.perf_counter() - began)

    def _evaluate_and_sample(self) -> Iterator[Event]:
        yield from self._evaluate(self._config.eval_tokens)
        if self.val_loss is not None and self.val_loss < self.best_val_loss and self.step:
            self.best_val_loss, self.best_step = self.val_loss, self.step
            yield CheckpointDue(self.step, keep=False)
        if self.step and self._config.sample_tokens:
            yield from self.sample()

    def _evaluate(self, max_tokens: int | None) -> Iterator[Event]:
        corpus, batch_size = self._corpus, self._config.batch_size
        n_batches = corpus.n_val_batches(batch_size, max_tokens)
        total, tokens, characters = 0.0, 0, 0
        self.model.eval()
        for done, (inputs, targets) in enumerate(corpus.val_batches(batch_size, max_tokens), 1):
            with torch.inference_mode():
                _, loss = self.model(inputs, targets)
            total += float(loss) * targets.numel()
            tokens += targets.numel()
            characters += int(corpus.token_characters[targets].sum())
            yield Progress(self.step, "evaluation", done, n_batches)
        if not tokens:
            return
        per_token, per_character = total / tokens, total / max(1, characters)
        whole = max_tokens is None
        if whole:
            self.whole_val_loss, self.whole_val_loss_per_character = per_token, per_character
        else:
            self.val_loss, self.val_loss_per_character = per_token, per_character
        yield Evaluated(self.step, per_token, per_character, tokens, whole)
        if not math.isfinite(per_token):
            raise self._diverged(f"the validation loss is no longer a number at step {self.step}")

    def _diverged(self, what: str) -> Diverged:
        return Diverged(f"{what}; try a lower --learning-rate than {self._config.learning_rate:g}")
