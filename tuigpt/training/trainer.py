"""The workshop's training loop, as an iterator of events.

The trainer computes and tells; it knows no file, no clock of the user, no terminal. Whoever
iterates decides what to do with an event, and may stop iterating after any of them: the model is
then at `Trainer.step` finished updates, never in the middle of one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tuigpt.config import SampleConfig, TrainConfig
from tuigpt.errors import UserError
from tuigpt.estimate import micro_batch_windows
from tuigpt.generation.decode import generate, read_prompt
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.optimizers import build_optimizers
from tuigpt.training.process_group import Order, Team

LONGEST_WHOLE_PASS = 4_000_000
"""Tokens of a validation part above which it is not measured whole at the end."""

TELL_EVERY = 0.2
"""Seconds between two looks at the losses of updates on a device other than the CPU, because to
look at one means to wait for the device."""


@dataclass(frozen=True)
class Stepped:
    """One update is done. On another device than the CPU several are told together.

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


@dataclass(frozen=True)
class _Update:
    """An update whose figures may still be on their way from the device."""

    step: int
    loss: Tensor
    learning_rate: float
    grad_norm: Tensor


class Trainer:
    """Trains one model on one corpus.

    Attributes:
        model: the model, on the device.
        config: the settings; those that `change` may change are as they are now.
        step: number of updates done.
        out_of_patience: the val loss has not fallen for `patience` evaluations in a row.
        train_loss: of the newest batch, or None.
        val_loss: of the newest evenly spread evaluation with the weights as they are, or None.
        val_loss_per_character: the same in nats per character.
        whole_val_loss: `val_loss` over the whole validation part.
        whole_val_loss_per_character: the same in nats per character.
        best_val_loss: lowest `val_loss` so far, reached at `best_step`.
    """

    def __init__(
        self,
        model: GPT,
        tokenizer: Tokenizer,
        corpus: Corpus,
        config: TrainConfig,
        team: Team | None = None,
    ) -> None:
        """
        Args:
            team: the processes among which each batch is shared out; None is this one alone.

        Raises:
            ConfigError: the batch cannot be shared evenly.
        """
        self._team = team or Team()
        self._team.require_even(config.batch_size)
        self.model = model
        self.config = config
        self.step = 0
        self.out_of_patience = False
        self.train_loss: float | None = None
        self.val_loss: float | None = None
        self.val_loss_per_character: float | None = None
        self.whole_val_loss: float | None = None
        self.whole_val_loss_per_character: float | None = None
        self.best_val_loss = math.inf
        self.best_step: int | None = None
        self._tokenizer = tokenizer
        self._corpus = corpus
        self._optimizers = build_optimizers(model, config)
        self._data_order = torch.Generator().manual_seed(config.seed)
        self._together = self._team.together(model)
        self._forward: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = self._together
        self._device = model.lm_head.weight.device
        self._at_once = micro_batch_windows(
            model.config, config, self._device.type, self._team.size
        )
        self._untold: list[_Update] = []
        self._began = 0.0

    @property
    def finished(self) -> bool:
        """Whether no further update is to come."""
        return self.step >= self.config.max_steps or self.out_of_patience

    def run(self) -> Iterator[Event]:
        """Train until `max_steps` or until patience is over, telling each thing as it happens.

        Raises:
            Diverged: a loss is not finite. On the CPU it was not applied; elsewhere the weights
                may be spoilt by now, but no checkpoint was due since.
        """
        evaluated_at = None
        while self.step < self.config.max_steps:
            if self.step % self.config.eval_interval == 0:
                yield from self._evaluate_and_sample()
                evaluated_at = self.step
                if self.out_of_patience:
                    break
            if self.step and self.step % self.config.checkpoint_interval == 0:
                yield CheckpointDue(self.step, keep=True)
            config = self.config
            dropout = self.model.config.dropout
            self._team.give(Order(True, config.learning_rate, dropout, config.max_steps))
            self._update()
            if self._must_tell():
                yield from self._tell()
        # First on disk, then measured: a kill during the last evaluation loses nothing.
        yield CheckpointDue(self.step, keep=True)
        if evaluated_at != self.step:
            yield from self._evaluate_and_sample()
        if self._corpus.n_val <= LONGEST_WHOLE_PASS:
            yield from self._evaluate(max_tokens=None)
        yield CheckpointDue(self.step, keep=True)

    def follow(self) -> None:
        """Do a team's updates with its leader, until the leader ends."""
        while (order := self._team.receive()).goes_on:
            self.change(
                learning_rate=order.learning_rate,
                dropout=order.dropout,
                max_steps=order.max_steps,
            )
            self._update()
            self._untold.clear()

    def end(self) -> None:
        """Let those who follow go; no update can be done after this."""
        if self._team.leads:
            self._team.give(Order(False))

    def sample(self) -> Iterator[Event]:
        """Let the model write from the sample prompt. Disturbs no other random stream."""
        config = self.config
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

    def change(
        self,
        *,
        learning_rate: float | None = None,
        dropout: float | None = None,
        max_steps: int | None = None,
        patience: int | None = None,
    ) -> None:
        """Change settings of a training under way; the schedule keeps its shape.

        Args:
            learning_rate: the highest rate; where the schedule is at half of it, it stays there.
            max_steps: the step at which the schedule ends.

        Raises:
            ConfigError: a value with which no training can work.
        """
        given = dict(learning_rate=learning_rate, max_steps=max_steps, patience=patience)
        changes: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
        self.config = replace(self.config, **changes)
        if dropout is not None:
            self.model.set_dropout(dropout)

    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self.config.learning_rate_at(self.step)

    def compile(self) -> None:
        """Compute updates with `torch.compile` from now on, if the first attempt works.

        Raises:
            RuntimeError: it does not work on this machine; the trainer is as it was.
        """
        compiled = torch.compile(self._together)
        shape = self._pieces()[0], self.model.config.block_size
        tokens = torch.zeros(shape, dtype=torch.int64, device=self._device)
        try:
            with torch.random.fork_rng(), self._autocast():
                compiled(tokens, tokens)[1].backward()
        except Exception as error:  # compilers and their absence have many ways to fail
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise RuntimeError(reason) from None
        finally:
            self.model.zero_grad(set_to_none=True)
        self._forward = compiled

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
        config, dropout = self.config, self.model.config.dropout
        changeable = [config.learning_rate, dropout, config.max_steps, config.patience]
        tensors["changeable"] = torch.tensor(changeable, dtype=torch.float64)
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
        rate, dropout, max_steps, patience = tensors["changeable"].tolist()
        self.change(
            learning_rate=rate, dropout=dropout, max_steps=int(max_steps), patience=int(patience)
        )

    def _update(self) -> None:
        """Do one update; it is told later, by `_tell`."""
        if not self._untold:
            self._began = time.perf_counter()
        config, model = self.config, self.model
        rate = self.learning_rate()
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
        model.train()
        model.zero_grad(set_to_none=True)
        loss = self._gradients()
        limit = config.grad_clip or math.inf
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        done = _Update(self.step + 1, loss, rate, grad_norm)
        if self._device.type == "cpu":
            self._require_finite(done)
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self._untold.append(done)
        self.val_loss = self.val_loss_per_character = None
        self.whole_val_loss = self.whole_val_loss_per_character = None

    def _gradients(self) -> Tensor:
        """The gradients of a new batch, computed in pieces that add up; gives the batch's loss."""
        batch = self._corpus.batch(self.config.batch_size, self._data_order)
        inputs, targets = (self._team.share(rows) for rows in batch)
        total = torch.zeros((), device=self._device)
        first = 0
        for rows in self._pieces():
            part = slice(first, first + rows)
            first += rows
            with self._apart(until=first == len(inputs)):
                with self._autocast():
                    _, loss = self._forward(inputs[part], targets[part])
                loss = loss * (rows / len(inputs))
                torch.autograd.backward(loss)
            total += loss.detach()
        return self._team.mean(total)

    def _apart(self, until: bool) -> AbstractContextManager[None]:
        """Keep the gradients of this process to itself, until the last piece of a batch."""
        if until or not isinstance(self._together, DistributedDataParallel):
            return nullcontext()
        together: AbstractContextManager[None] = self._together.no_sync()
        return together

    def _pieces(self) -> list[int]:
        """How many windows of its batch a process computes at a time: parts of nearly one size."""
        rows = self.config.batch_size // self._team.size
        count = -(-rows // self._at_once)
        return [rows // count + (i < rows % count) for i in range(count)]

    def _autocast(self) -> torch.autocast:
        enabled = self.config.precision == "bfloat16"
        return torch.autocast(self._device.type, torch.bfloat16, enabled=enabled)

    def _must_tell(self) -> bool:
        config = self.config
        return (
            self._device.type == "cpu"
            or self.step >= config.max_steps
            or self.step % config.eval_interval == 0
            or self.step % config.checkpoint_interval == 0
            or time.perf_counter() - self._began >= TELL_EVERY
        )

    def _tell(self) -> Iterator[Event]:
        """Tell what was done since the last call, after waiting for the device."""
        untold, self._untold = self._untold, []
        for done in untold:
            self._require_finite(done)
        seconds = (time.perf_counter() - self._began) / len(untold)
        self.train_loss = float(untold[-1].loss)
        for done in untold:
            loss, grad_norm = float(done.loss), float(done.grad_norm)
            yield Stepped(done.step, loss, done.learning_rate, grad_norm, seconds)

    def _require_finite(self, done: _Update) -> None:
        loss, grad_norm = float(done.loss), float(done.grad_norm)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            raise self._diverged(
                f"the loss is no longer a number at step {done.step} (loss {loss},"
                f" gradient {grad_norm}): training stopped before such weights were saved"
            )

    def _evaluate_and_sample(self) -> Iterator[Event]:
        config = self.config
        yield from self._evaluate(config.eval_tokens)
        if self.val_loss is not None and self.val_loss < self.best_val_loss and self.step:
            self.best_val_loss, self.best_step = self.val_loss, self.step
            yield CheckpointDue(self.step, keep=False)
        if self.step and config.sample_tokens:
            yield from self.sample()
        if config.patience and self.best_step is not None:
            waited = (self.step - self.best_step) // config.eval_interval
            self.out_of_patience = waited >= config.patience

    def _evaluate(self, max_tokens: int | None) -> Iterator[Event]:
        corpus, batch_size = self._corpus, self._at_once
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
        return Diverged(f"{what}; try a lower --learning-rate than {self.config.learning_rate:g}")
