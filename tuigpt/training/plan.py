"""A training that has not begun: what it would cost, and how long its steps take."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.estimate import Calibration, memory, needed_bytes, reading, step_flops
from tuigpt.model.device import describe, memory_bytes
from tuigpt.paths import cache_dir
from tuigpt.reports import CostReport
from tuigpt.text.named import BUILT_IN
from tuigpt.text.read import ProgressCallback
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.optimizers import have_compiler_cache
from tuigpt.training.precision import settled_precision
from tuigpt.training.prepare import make_corpus, make_tokenizer, read, settings_and_device
from tuigpt.wording import file_size

_SMALLER = (
    "try ", Setting("micro_batch_size", 1), ", a smaller ", Setting("block_size"),
    ", or a smaller model",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A training that has not begun."""

    config: GPTConfig
    train_config: TrainConfig
    tokenizer: Tokenizer
    corpus: Corpus
    device: torch.device
    characters: int

    @classmethod
    def make(
        cls,
        sources: list[str],
        model: GPTConfig,
        train_fields: dict[str, Any],
        home: Path,
        progress: ProgressCallback,
    ) -> Plan:
        """Read the text as the training would.

        Args:
            sources: the text; none is the built-in.
            model: but for the vocabulary, which is the text's.
            train_fields: fields of TrainConfig that override the defaults.

        Raises:
            UserError: no run with these settings can start.
        """
        cache = cache_dir(home)
        train_config, device = settings_and_device(train_fields)
        have_compiler_cache(cache)
        text = read(sources or [BUILT_IN], train_config, cache, progress)
        tokenizer = make_tokenizer(text, train_config, model.block_size, progress)
        corpus = make_corpus(
            text, tokenizer, train_config, model.block_size, device, cache, progress
        )
        config = replace(model, vocab_size=tokenizer.vocab_size)
        if train_config.precision == "auto":
            found = settled_precision(config, device, home)
            train_config = replace(train_config, precision=found.name)
        characters = train_characters(text.scan.characters, train_config.val_fraction)
        return cls(config, train_config, tokenizer, corpus, device, characters)

    def within_its_minutes(self, calibration: Calibration) -> Plan:
        """The same with as many steps as its time allows, if it has a time."""
        if not (minutes := self.train_config.minutes):
            return self
        steps = calibration.steps_within(60 * minutes, self.train_config)
        return replace(self, train_config=replace(self.train_config, max_steps=steps))

    def time(self, progress: ProgressCallback) -> Calibration:
        """Time some of its steps.

        Raises:
            UserError: there is too little memory for them.
        """
        try:
            return calibrate(
                self.config, self.train_config, self.tokenizer, self.corpus, self.device, progress
            )
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, MemoryError) or "memory" in str(error):
                need = needed_bytes(self.config, self.train_config, self.device.type)
                raise UserError(
                    f"out of memory: this needs at least {file_size(need)} on {self.device}: ",
                    *_SMALLER,
                ) from None
            raise

    def memory_problem(self) -> UserError | None:
        """Why there is no use in trying, if there is none."""
        need = needed_bytes(self.config, self.train_config, self.device.type)
        have = memory_bytes(self.device)
        if need <= have:
            return None
        return UserError(
            f"this needs at least {file_size(need)} of memory, but {self.device} has"
            f" {file_size(have)}: ", *_SMALLER,
        )  # fmt: skip

    def report(
        self, calibration: Calibration | None = None, problem: UserError | None = None
    ) -> CostReport:
        """What it would cost, as far as that is known."""
        config, train_config = self.config, self.train_config
        plan = reading(config, train_config, self.corpus.n_train, self.characters)
        parts = config.parameters
        return CostReport(
            parameters=asdict(parts) | {"total": parts.total},
            memory=memory(config, train_config, self.device.type),
            device=describe(self.device),
            device_type=self.device.type,
            device_memory=memory_bytes(self.device),
            max_steps=train_config.max_steps,
            step_flops=step_flops(config, train_config),
            step_tokens=plan.step_tokens,
            tokens=plan.tokens,
            epochs=plan.epochs,
            parameters_per_character=plan.parameters_per_character,
            overfits=plan.overfits,
            train_tokens=self.corpus.n_train,
            train_characters=self.characters,
            calibration=calibration,
            seconds=calibration.seconds(train_config) if calibration else None,
            problem=str(problem or ""),
        )
