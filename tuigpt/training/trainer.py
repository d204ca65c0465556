"""The workshop's training loop, as an iterator of events.

The trainer computes and says what it did; it knows no file, no clock of the user, no terminal.
Whoever iterates decides what to do with an event, and may stop iterating after any of them: the
model is then at `Trainer.step` finished updates, never in the middle of one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tuigpt.config import SampleConfig, TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.estimate import LONGEST_WHOLE_PASS, micro_batch_windows
from tuigpt.generation.decode import generate, read_prompt
from tuigpt.loss import can_be_best
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.text.words import share_of_words, words_of
from tuigpt.training.batches import Corpus
from tuigpt.training.early import early_tokens
from tuigpt.training.events import (
    CheckpointDue,
    Evaluated,
    Event,
    PartDone,
    Sampled,
    Skipped,
    StateDue,
    Stepped,
)
from tuigpt.training.optimizers import build_optimizers, state_layout
from tuigpt.training.process_group import ProcessGroup, UpdateSettings
from tuigpt.training.state import (
    OPTIMIZER,
    RANDOM,
    WEIGHTS,
    Layout,
    Losses,
    TrainingFacts,
    TrainingState,
    require_tensors,
)

MOST_WORD_TOKENS = 8_000_000
"""Tokens from the beginning of the text whose words count as its own."""

REPORT_EVERY = 0.2
"""Seconds between two looks at the losses of updates on a device other than the CPU, because to
look at one means to wait for the device."""


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
        losses: what is known of the model as it is.
        best_val_loss: lowest spread val loss so far, reached at `best_step`.
        not_better: evaluations in a row whose val loss was not lower than the best.
    """

    def __init__(
        self,
        model: GPT,
        tokenizer: Tokenizer,
        corpus: Corpus,
        config: TrainConfig,
        group: ProcessGroup | None = None,
    ) -> None:
        """
        Args:
            group: the processes among which each batch is shared out; None is this one alone.

        Raises:
            ConfigError: the batch cannot be shared evenly.
        """
        self._group = group or ProcessGroup()
        self._group.require_even(config.batch_size)
        self.model = model
        self.config = config
        self.step = 0
        self.losses = Losses()
        self.best_val_loss = math.inf
        self.best_step: int | None = None
        self.not_better = 0
        self._evaluated_step: int | None = None
        self._tokenizer = tokenizer
        self._corpus = corpus
        self._optimizers = build_optimizers(model, config)
        self._data_order = torch.Generator().manual_seed(config.seed)
        self._distributed = self._group.distributed(model)
        self._forward: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = self._distributed
        self._device = model.lm_head.weight.device
        self._micro_batch = micro_batch_windows(
            model.config, config, self._device.type, self._group.size
        )
        self._words: frozenset[str] | None = None
        self._unreported: list[_Update] = []
        self._began = 0.0

    @property
    def out_of_patience(self) -> bool:
        """Whether the val loss has not fallen for `patience` evaluations in a row."""
        return 0 < self.config.patience <= self.not_better

    @property
    def finished(self) -> bool:
        """Whether no further update is to come."""
        return self.step >= self.config.max_steps or self.out_of_patience

    def run(self) -> Iterator[Event]:
        """Train until `max_steps` or until patience is over, saying each thing as it happens.

        Raises:
            Diverged: a loss is not finite. On the CPU it was not applied; elsewhere the weights
                may be spoilt by now, but no checkpoint was due since.
        """
        evaluated = False
        while self.step < self.config.max_steps:
            evaluated = self.step % self.config.eval_interval == 0
            keep = self.step > 0 and self.step % self.config.checkpoint_interval == 0
            if keep:
                yield StateDue(self.step)
            if evaluated:
                yield from self._evaluate_and_judge()
                if self.out_of_patience:
                    break
            if early := self._early_tokens():
                yield from self._harmless("evaluation", self._measure(early, early=True))
            tells = evaluated and self._tells_something
            if keep or tells or (early and self.config.evolution_mb):
                yield CheckpointDue(self.step, keep)
            if evaluated and self.step:
                yield from self.sample()
            config = self.config
            self._group.announce(
                UpdateSettings(config.learning_rate, self.model.config.dropout, config.max_steps)
            )
            self._update()
            evaluated = False
            if self._must_report():
                yield from self._report()
        yield StateDue(self.step)
        if not evaluated:
            yield from self._evaluate_and_judge()
        if self._corpus.n_val <= LONGEST_WHOLE_PASS:
            yield from self._evaluate(max_tokens=None)
        yield CheckpointDue(self.step, keep=True)
        yield from self.sample()

    def follow(self) -> None:
        """Do the updates that rank 0 announces, until it announces the end."""
        while (update := self._group.next_update()) is not None:
            self.change(
                learning_rate=update.learning_rate,
                dropout=update.dropout,
                max_steps=update.max_steps,
            )
            self._update()
            self._unreported.clear()

    def end(self) -> None:
        """Let the other processes end; no update can be done after this."""
        if self._group.is_rank_0:
            self._group.announce(None)

    def sample(self) -> Iterator[Event]:
        """Let the model write from the sample prompt. Disturbs no other random stream.

        Raises:
            Diverged: what the model predicts is no longer a number.
        """
        if self.config.sample_tokens:
            yield from self._harmless("sample", self._sample())

    def evaluate(self) -> Iterator[Event]:
        """Measure the model on an evenly spread part of the validation text.

        It decides nothing: best and patience are those of the evaluations that `run` does.

        Raises:
            Diverged: the validation loss is no longer a number.
        """
        yield from self._evaluate(self.config.eval_tokens)

    def _early_tokens(self) -> int:
        """How many tokens to measure now, before the regular evaluations begin; 0 for none."""
        config = self.config
        update_tokens = config.batch_size // self._group.size * self.model.config.block_size
        tokens = early_tokens(self.step, config.eval_interval, update_tokens)
        return min(tokens, config.eval_tokens) if tokens >= self.model.config.block_size else 0

    @property
    def _tells_something(self) -> bool:
        """Whether the weights of an evaluation are worth keeping for a while: they are the best so
        far, or are to tell how the model grew up."""
        if self.best_step == self.step:
            return True
        wanted = self.config.evolution_mb > 0
        return wanted and self.step > 0 and self.losses.val_loss is not None

    def _evaluate_and_judge(self) -> Iterator[Event]:
        yield from self.evaluate()
        val_loss = self.losses.val_loss
        if val_loss is None or not can_be_best(self.step):
            return
        if val_loss < self.best_val_loss:
            self.best_val_loss, self.best_step = val_loss, self.step
            self.not_better = 0
        elif self.step not in (self._evaluated_step, self.best_step):
            self.not_better += 1
        self._evaluated_step = self.step

    def _harmless(self, what: str, work: Iterator[Event]) -> Iterator[Event]:
        """Work that a training can do without: where it fails, that is an event."""
        try:
            yield from work
        except Diverged:
            raise
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), "")
            yield Skipped(self.step, what, f"{type(error).__name__}: {reason}".rstrip(": "))

    def _sample(self) -> Iterator[Event]:
        config = self.config
        prompt = read_prompt(config.sample_prompt, self._tokenizer)
        settings = SampleConfig(
            max_new_tokens=config.sample_tokens, seed=(config.seed + self.step) % 2**63
        )
        ids: list[int] = []
        try:
            for token in generate(self.model, prompt.ids, settings):
                ids.append(token)
                yield PartDone(self.step, "sample", len(ids), settings.max_new_tokens)
        except UserError:  # its logits are not finite
            what = f"the model's predictions are no longer numbers at step {self.step}"
            raise self._diverged(what) from None
        if self._words is None:
            pieces = self._corpus.pieces(MOST_WORD_TOKENS)
            self._words = frozenset(word for piece in pieces for word in words_of(piece))
        text = self._tokenizer.decode(ids)
        yield Sampled(self.step, prompt.text, text, share_of_words(prompt.text, text, self._words))

    def change(
        self,
        *,
        learning_rate: float | None = None,
        dropout: float | None = None,
        max_steps: int | None = None,
        minutes: float | None = None,
        patience: int | None = None,
    ) -> None:
        """Change settings of a training under way; the schedule keeps its shape.

        Args:
            learning_rate: the highest rate; where the schedule is at half of it, it stays there.
            max_steps: the step at which the schedule ends.
            minutes: into which `max_steps` fits; 0, and so is None beside a `max_steps`, where
                that does not follow from a time.

        Raises:
            ConfigError: a value with which no training can work.
        """
        if max_steps is not None and minutes is None:
            minutes = 0.0
        changes: dict[str, Any] = dict(
            learning_rate=learning_rate, max_steps=max_steps, minutes=minutes, patience=patience
        )
        changes = {name: value for name, value in changes.items() if value is not None}
        config = replace(self.config, **changes)
        if dropout is not None:
            self.model.set_dropout(dropout)
        self.config = config

    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self.config.learning_rate_at(self.step)

    def compile(self) -> None:
        """Compute updates with `torch.compile` from now on, if the first attempt works.

        Raises:
            RuntimeError: it does not work on this machine; the trainer is as it was.
        """
        compiled = torch.compile(self._distributed)
        size = self._micro_batches()[0], self.model.config.block_size
        tokens = torch.zeros(size, dtype=torch.int64, device=self._device)
        try:
            with torch.random.fork_rng(), self._autocast():
                compiled(tokens, tokens)[1].backward()
        except Exception as error:  # compilers and their absence have many ways to fail
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise RuntimeError(reason) from None
        finally:
            self.model.zero_grad(set_to_none=True)
        self._forward = compiled

    def state(self) -> TrainingState:
        """Everything that an exact continuation needs."""
        return TrainingState(self.facts(), self.tensors())

    def facts(self) -> TrainingFacts:
        """The part of `state` that is no tensor."""
        config = self.config
        known = self.best_step is not None
        return TrainingFacts(
            step=self.step,
            losses=self.losses,
            best_val_loss=self.best_val_loss if known else None,
            best_step=self.best_step,
            evaluated_step=self._evaluated_step,
            not_better=self.not_better,
            learning_rate=config.learning_rate,
            dropout=self.model.config.dropout,
            max_steps=config.max_steps,
            minutes=config.minutes,
            patience=config.patience,
        )

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of `state`, on the CPU."""
        parameters = dict(self.model.named_parameters())
        tensors: dict[str, Tensor] = {WEIGHTS + name: p for name, p in parameters.items()}
        for optimizer in self._optimizers:
            for name, parameter in parameters.items():
                for key, value in optimizer.state.get(parameter, {}).items():
                    if isinstance(value, Tensor):
                        tensors[f"{OPTIMIZER}{name}.{key}"] = value
        tensors[RANDOM + "data_order"] = self._data_order.get_state()
        tensors[RANDOM + "cpu"] = torch.get_rng_state()
        if self._device.type == "cuda":
            tensors[RANDOM + "cuda"] = torch.cuda.get_rng_state()
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def restore(self, state: TrainingState) -> None:
        """Go on where `state` was taken.

        Where it holds no weights, the model must have those of that step.

        Raises:
            ConfigError, ValueError: it is not of such a training; the text says what is wrong.
        """
        facts = state.facts
        parameters = dict(self.model.named_parameters())
        weights = state.of_kind(WEIGHTS)
        if weights or facts.format > 1:
            require_tensors(weights, {n: (p.shape, p.dtype) for n, p in parameters.items()})
        remembered = state.of_kind(OPTIMIZER)
        require_tensors(remembered, self._remembered_layout() if facts.step else {})
        random = state.of_kind(RANDOM)
        cuda_random = random.pop("cuda", None)  # a training may move to a device without
        generator = (self._data_order.get_state().shape, torch.uint8)
        require_tensors(random, {"data_order": generator, "cpu": generator})
        self.change(
            learning_rate=facts.learning_rate,
            dropout=facts.dropout,
            max_steps=facts.max_steps,
            minutes=self.config.minutes if facts.minutes is None else facts.minutes,
            patience=facts.patience,
        )

        with torch.no_grad():
            for name, value in weights.items():
                parameters[name].copy_(value)
        names = {p: name for name, p in parameters.items()}
        entries: dict[nn.Parameter, dict[str, Tensor]] = {p: {} for p in names}
        for full_name, value in remembered.items():
            name, _, key = full_name.rpartition(".")
            entries[parameters[name]][key] = value
        for optimizer in self._optimizers:
            # Loading through the optimizer puts each tensor on the device that it wants.
            optimizer_state = optimizer.state_dict()
            own = [p for group in optimizer.param_groups for p in group["params"]]
            optimizer_state["state"] = dict(enumerate(entries[p] for p in own))
            optimizer.load_state_dict(optimizer_state)
        try:
            self._data_order.set_state(random["data_order"])
            torch.set_rng_state(random["cpu"])
            if self._device.type == "cuda" and cuda_random is not None:
                torch.cuda.set_rng_state(cuda_random)
        except (RuntimeError, TypeError):
            raise ValueError("its random generators' states are none") from None
        self.step = facts.step
        self.losses = facts.losses
        self.best_step = facts.best_step
        self.best_val_loss = math.inf if facts.best_val_loss is None else facts.best_val_loss
        self._evaluated_step = facts.evaluated_step
        self.not_better = facts.not_better
        if facts.format == 1 and self.best_step is not None:  # which did not count them
            self.not_better = (self.step - self.best_step) // self.config.eval_interval
            self._evaluated_step = self.step

    def _remembered_layout(self) -> dict[str, Layout]:
        """What the optimizers remember once an update is done, by name."""
        names = {p: name for name, p in self.model.named_parameters()}
        return {
            f"{names[p]}.{key}": (p.shape if shape is None else shape, dtype)
            for optimizer in self._optimizers
            for key, (shape, dtype) in state_layout(optimizer).items()
            for group in optimizer.param_groups
            for p in group["params"]
        }

    def _update(self) -> None:
        """Do one update; it is reported later, by `_report`."""
        if not self._unreported:
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
        self._unreported.append(done)
        self.losses = Losses()

    def _gradients(self) -> Tensor:
        """The gradients of a new batch, summed over its micro-batches; gives the batch's loss."""
        batch = self._corpus.batch(self.config.batch_size, self._data_order)
        inputs, targets = (self._group.share_of(rows) for rows in batch)
        total = torch.zeros((), device=self._device)
        first = 0
        for rows in self._micro_batches():
            part = slice(first, first + rows)
            first += rows
            with self._gradients_kept_local(until=first == len(inputs)):
                with self._autocast():
                    _, loss = self._forward(inputs[part], targets[part])
                loss = loss * (rows / len(inputs))
                torch.autograd.backward(loss)
            total += loss.detach()
        return self._group.mean(total)

    def _gradients_kept_local(self, until: bool) -> AbstractContextManager[None]:
        """Keep the gradients of this process to itself, until the last micro-batch of a batch."""
        if until or not isinstance(self._distributed, DistributedDataParallel):
            return nullcontext()
        local: AbstractContextManager[None] = self._distributed.no_sync()
        return local

    def _micro_batches(self) -> list[int]:
        """The sizes of the micro-batches of this process's share: nearly one size."""
        rows = self.config.batch_size // self._group.size
        count = -(-rows // self._micro_batch)
        return [rows // count + (i < rows % count) for i in range(count)]

    def _autocast(self) -> torch.autocast:
        enabled = self.config.precision == "bfloat16"
        return torch.autocast(self._device.type, torch.bfloat16, enabled=enabled)

    def _must_report(self) -> bool:
        config = self.config
        return (
            self._device.type == "cpu"
            or self.step >= config.max_steps
            or self.step % config.eval_interval == 0
            or self._early_tokens() > 0
            or self.step % config.checkpoint_interval == 0
            or time.perf_counter() - self._began >= REPORT_EVERY
        )

    def _report(self) -> Iterator[Event]:
        """Say what was done since the last call, after waiting for the device."""
        unreported, self._unreported = self._unreported, []
        for done in unreported:
            self._require_finite(done)
        seconds = (time.perf_counter() - self._began) / len(unreported)
        self.losses = Losses(train_loss=float(unreported[-1].loss))
        memory = None
        if self._device.type == "cuda":
            memory = torch.cuda.max_memory_allocated(self._device)
        for done in unreported:
            loss, grad_norm = float(done.loss), float(done.grad_norm)
            yield Stepped(done.step, loss, done.learning_rate, grad_norm, seconds, memory)

    def _require_finite(self, done: _Update) -> None:
        loss, grad_norm = float(done.loss), float(done.grad_norm)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            raise self._diverged(
                f"the loss is no longer a number at step {done.step} (loss {loss},"
                f" gradient {grad_norm}): training stopped before such weights were saved"
            )

    def _evaluate(self, max_tokens: int | None) -> Iterator[Event]:
        yield from self._harmless("evaluation", self._measure(max_tokens))

    def _measure(self, max_tokens: int | None, early: bool = False) -> Iterator[Event]:
        corpus, batch_size = self._corpus, self._micro_batch
        n_batches = corpus.n_val_batches(batch_size, max_tokens)
        total, tokens, characters = 0.0, 0, 0
        self.model.eval()
        for done, (inputs, targets) in enumerate(corpus.val_batches(batch_size, max_tokens), 1):
            with torch.inference_mode():
                _, loss = self.model(inputs, targets)
            total += float(loss) * targets.numel()
            tokens += targets.numel()
            characters += int(corpus.token_characters[targets].sum())
            if not early:
                yield PartDone(self.step, "evaluation", done, n_batches)
        if not tokens:
            return
        per_token, per_character = total / tokens, total / max(1, characters)
        whole = max_tokens is None
        kind = "whole_" * whole + "early_" * early + "val_loss"
        measured = {kind: per_token, f"{kind}_per_character": per_character}
        self.losses = msgspec.structs.replace(self.losses, **measured)
        yield Evaluated(self.step, per_token, per_character, tokens, whole, early)
        if not math.isfinite(per_token):
            raise self._diverged(f"the validation loss is no longer a number at step {self.step}")

    def _diverged(self, what: str) -> Diverged:
        rate = self.config.learning_rate
        return Diverged(f"{what}; try a lower ", Setting("learning_rate"), f" than {rate:g}")
