"""A training that has not begun: what it would cost, and how long its steps take."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import UserError
from tuigpt.estimate import Calibration, memory, reading, step_flops
from tuigpt.model.device import describe, memory_bytes
from tuigpt.paths import cache_dir
from tuigpt.plan.choose import Asked, Choice
from tuigpt.plan.compiling import compile_advice
from tuigpt.plan.law import TextSize
from tuigpt.plan.speeds import Speeds
from tuigpt.reports import CostReport
from tuigpt.text.baselines import baselines
from tuigpt.text.named import BUILT_IN
from tuigpt.text.read import ProgressCallback
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.optimizers import have_compiler_cache
from tuigpt.training.prepare import make_corpus, make_tokenizer, read, settings_and_device
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.trials import Trials


@dataclass(frozen=True)
class Draft:
    """A training that has not begun.

    Attributes:
        config, train_config: what a plan decides is still open in them before `settle`.
        plan: what a plan chose, after `settle`.
        calibration: what was timed, after `settle`.
    """

    asked: Asked
    config: GPTConfig
    train_config: TrainConfig
    tokenizer: Tokenizer
    corpus: Corpus
    device: torch.device
    home: Path
    characters: int
    size: TextSize
    plan: Choice | None = None
    calibration: Calibration | None = None

    @classmethod
    def make(
        cls, sources: list[str], asked: Asked, home: Path, progress: ProgressCallback
    ) -> Draft:
        """Read the text as the training would.

        Args:
            sources: the text; none is the built-in.

        Raises:
            UserError: no run with these settings can start.
        """
        cache = cache_dir(home)
        train_config, device = settings_and_device(asked)
        config = asked.sizes
        have_compiler_cache(cache)
        text = read(sources or [BUILT_IN], train_config, cache, progress)
        tokenizer = make_tokenizer(text, train_config, config.block_size, progress)
        corpus = make_corpus(
            text, tokenizer, train_config, config.block_size, device, cache, progress
        )
        triples = baselines(text.scan, train_config.val_fraction).triples
        return cls(
            asked=asked,
            config=replace(config, vocab_size=tokenizer.vocab_size),
            train_config=train_config,
            tokenizer=tokenizer,
            corpus=corpus,
            device=device,
            home=home,
            characters=train_characters(text.scan.characters, train_config.val_fraction),
            size=TextSize(tokenizer.vocab_size, corpus.n_train, corpus.n_val, triples),
        )

    def settle(self, progress: ProgressCallback) -> Draft:
        """The same with its steps timed, and what its time decides decided.

        Raises:
            UserError: there is too little memory.
        """
        trials = Trials(
            self.tokenizer, self.corpus, self.device, self.home, ProcessGroup(), progress
        )
        plan, config, train = None, self.config, self.train_config
        if self.asked.planned:
            plan = trials.best(self.asked, self.size, again=True)[0]
            timing, config, train = plan.expected.calibration, plan.model, plan.train
        else:
            timing = trials.time(config, train)
            if train.minutes:
                train = replace(train, max_steps=timing.steps_within(60 * train.minutes, train))
        if train.compile:
            trials.time(config, replace(train, compile=False))  # to compare
        return replace(self, config=config, train_config=train, plan=plan, calibration=timing)

    def report(self, problem: UserError | None = None) -> CostReport:
        """What it would cost, as far as that is known.

        Args:
            problem: why it cannot be trained.
        """
        config, train_config, timing = self.config, self.train_config, self.calibration
        read = reading(config, train_config, self.corpus.n_train, self.characters)
        parts = config.parameters
        return CostReport(
            parameters=asdict(parts) | {"total": parts.total},
            memory=memory(config, train_config, self.device.type),
            device=describe(self.device),
            device_type=self.device.type,
            device_memory=memory_bytes(self.device),
            max_steps=train_config.max_steps,
            step_flops=step_flops(config, train_config),
            step_tokens=read.step_tokens,
            tokens=read.tokens,
            epochs=read.epochs,
            parameters_per_character=read.parameters_per_character,
            overfits=read.overfits,
            train_tokens=self.corpus.n_train,
            train_characters=self.characters,
            calibration=timing,
            seconds=timing.seconds(train_config) if timing else None,
            plan=self.plan.words if self.plan else "",
            compiling=compile_advice(config, train_config, Speeds(self.home)),
            problem=str(problem or ""),
        )
