"""How long a training takes on this machine: a few of its own steps, timed."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import replace
from statistics import median

import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import LONGEST_WHOLE_PASS, Calibration
from tuigpt.model.gpt import GPT
from tuigpt.text.read import ProgressCallback
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import PartDone, Stepped
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.trainer import Trainer

_MOST_SECONDS, _MOST_STEPS = 2.0, 20
"""After these no further step is timed; one always is."""

_EVALUATED_BATCHES = 3
_SAMPLE_SECONDS = 1.0
"""After it the rest of a sample is estimated."""


def calibrate(
    config: GPTConfig,
    train_config: TrainConfig,
    tokenizer: Tokenizer,
    corpus: Corpus,
    device: torch.device,
    progress: ProgressCallback,
) -> Calibration:
    """Time the first steps of a training, some batches of an evaluation and a sample.

    The model is a scratch copy, and torch's random state is left as it was. It takes about three
    seconds, or as long as two steps, and longer where the model is compiled.

    Args:
        config: with the tokenizer's `vocab_size`.

    Raises:
        Diverged: the training would fail within these steps.
        RuntimeError: there is not enough memory.
    """
    what = "compiling and timing a few steps" if train_config.compile else "timing a few steps"
    progress(what, 0, 1)
    batch_tokens = train_config.batch_size * config.block_size
    few = replace(
        train_config,
        max_steps=sys.maxsize,
        eval_interval=sys.maxsize,
        eval_tokens=min(train_config.eval_tokens, _EVALUATED_BATCHES * batch_tokens),
        checkpoint_interval=sys.maxsize,
    )
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(train_config.seed)
        model = GPT(config)
        set_first_weights(model, train_config)
        trainer = Trainer(model.to(device), tokenizer, corpus, few)
        compiling = time.perf_counter()
        if train_config.compile:
            with suppress(RuntimeError):
                trainer.compile()
        compile_seconds = 0.0
        batches: list[float] = []
        steps: list[float] = []
        now = began = time.perf_counter()
        warm = False
        for event in trainer.run():
            before, now = now, time.perf_counter()
            progress(what, 0, 1)
            match event:
                case PartDone():
                    batches.append(now - before)
                case Stepped() if not warm:
                    warm = event.step == trainer.step  # the last of those reported together
                    began = now
                    compile_seconds = now - compiling if train_config.compile else 0.0
                case Stepped():
                    steps.append(event.seconds)
                    last = event.step == trainer.step
                    if last and (now - began >= _MOST_SECONDS or len(steps) >= _MOST_STEPS):
                        break
        sample_seconds = _sample_seconds(trainer, train_config, progress, what)
    per_batch = median(batches[1:] or batches or [0.0])
    size, n_val = train_config.batch_size, corpus.n_val
    whole = corpus.n_val_batches(size) if n_val <= LONGEST_WHOLE_PASS else 0
    return Calibration(
        step_seconds=median(steps),
        eval_seconds=per_batch * corpus.n_val_batches(size, train_config.eval_tokens),
        sample_seconds=sample_seconds,
        whole_eval_seconds=per_batch * whole,
        compile_seconds=compile_seconds,
    )


def _sample_seconds(
    trainer: Trainer, config: TrainConfig, progress: ProgressCallback, what: str
) -> float:
    if not config.sample_tokens:
        return 0.0
    began = time.perf_counter()
    done = total = 1
    for event in trainer.sample():
        progress(what, 0, 1)
        if isinstance(event, PartDone):
            done, total = event.done, event.total
        if time.perf_counter() - began >= _SAMPLE_SECONDS:
            break
    return (time.perf_counter() - began) * total / done
