"""What a new run's settings cost here, timed where that is not known, and which a plan takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.estimate import Calibration, needed_bytes
from tuigpt.model.device import describe, memory_bytes
from tuigpt.plan.choose import Asked, Choice, candidates, ranked
from tuigpt.plan.law import TextSize
from tuigpt.plan.speeds import Device, Speeds
from tuigpt.runs.record import PlanFacts
from tuigpt.text.read import ProgressCallback
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.precision import settled_precision
from tuigpt.training.process_group import ProcessGroup
from tuigpt.wording import file_size

MOST_TRIALS = 4
"""Settings that are timed before a plan takes the best of them: each trial takes seconds."""


class Trials:
    """Times the first steps of trainings on one text.

    Attributes:
        notes: what was found on the way, for people.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        corpus: Corpus,
        device: torch.device,
        home: Path,
        group: ProcessGroup,
        progress: ProgressCallback,
    ) -> None:
        self.notes: list[str] = []
        self._tokenizer, self._corpus, self._device = tokenizer, corpus, device
        self._home, self._group, self._progress = home, group, progress
        self._speeds = Speeds(home, group.size)
        self._timed: list[tuple[GPTConfig, int]] = []

    def best(self, asked: Asked, text: TextSize, *, again: bool = False) -> list[Choice]:
        """What a plan would take, the best first. The best is timed, unless it was before.

        All processes of a group take what rank 0 finds.

        Args:
            asked: of which `planned` holds.
            again: time it also where an earlier process has.

        Raises:
            UserError: what was asked for cannot work, or there is too little memory.
        """
        for _ in range(MOST_TRIALS):
            order = self._group.from_rank_0(ranked(asked, text, self._speeds, self._device.type))
            if order and order[0].expected.measured and not (again and self._is_new(order[0])):
                return order
            if order:
                model, train = order[0].model, order[0].train
            else:
                known = candidates(asked, text, self._device.type, self._group.size)
                model, train = known[len(known) // 2]
            self.time(model, train)
        order = ranked(asked, text, self._speeds, self._device.type)
        timed = [choice for choice in order if choice.expected.measured]
        return self._group.from_rank_0(timed)

    def _is_new(self, choice: Choice) -> bool:
        return (choice.model, choice.train.batch_size) not in self._timed

    def time(self, model: GPTConfig, train: TrainConfig) -> Calibration:
        """Time some steps, and keep what they tell.

        Raises:
            UserError: there is too little memory for them.
        """
        require_memory(model, train, self._device)
        speeds, settled = self._speeds, train
        if train.precision == "auto":
            settled = replace(train, precision=self._precision(model))
        share = replace(settled, batch_size=train.batch_size // self._group.size)
        corpus = self._corpus.with_block_size(model.block_size)
        try:
            found = calibrate(model, share, self._tokenizer, corpus, self._device, self._progress)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, MemoryError) or "memory" in str(error):
                raise too_large(model, train, self._device) from None
            raise
        self._timed.append((model, train.batch_size))
        if self._group.is_rank_0:
            device = Device(describe(self._device), self._device.type, memory_bytes(self._device))
            speeds.keep(model, train, corpus.n_val, found, device)
        return found

    def settle(self, model: GPTConfig, train: TrainConfig) -> TrainConfig:
        """The training with the precision that "auto" stands for here."""
        if train.precision != "auto":
            return train
        return replace(train, precision=self._precision(model))

    def corrector(self, model: GPTConfig, train: TrainConfig) -> Callable[[float], None]:
        """What to tell how many seconds a step of this training really took.

        Args:
            train: with the precision that was asked for.
        """
        return partial(self._speeds.correct, model, train)

    def _precision(self, model: GPTConfig) -> str:
        found = self._group.from_rank_0(settled_precision(model, self._device, self._home))
        if found.tried and found.name != "float32":
            self.notes.append(f"precision auto is {found.name} from now on, for {found.tried}")
        return found.name


def plan_facts(asked: Asked, order: list[Choice]) -> PlanFacts:
    """Why a plan took the first of these, which are the best first."""
    best, *others = order
    reason = f"the lowest val loss expected of {len(order)} settings that were compared"
    if others and others[0].val_loss is not None:
        reason += f"; of {others[0].settings}: {others[0].val_loss:.3f}"
    chosen = [*asked.left_to_the_plan]
    return PlanFacts(best.minutes, chosen, best.val_loss, best.margin, best.settings, reason)


def require_memory(model: GPTConfig, train: TrainConfig, device: torch.device) -> None:
    """Refuse a training for which there is no use in trying.

    Raises:
        UserError: tells what it needs, and what there is.
    """
    if needed_bytes(model, train, device.type) > memory_bytes(device):
        raise too_large(model, train, device)


def too_large(model: GPTConfig, train: TrainConfig, device: torch.device) -> UserError:
    """The refusal of a training for which there is too little memory."""
    need = needed_bytes(model, train, device.type)
    return UserError(
        f"this needs at least {file_size(need)} of memory, but {device} has"
        f" {file_size(memory_bytes(device))}: try ", Setting("micro_batch_size", 1), ", a smaller ",
        Setting("block_size"), ", or a smaller model",
    )  # fmt: skip
