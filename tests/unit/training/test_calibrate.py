"""Timing a few steps: what it tells, and that it leaves no trace."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import Calibration
from tuigpt.model.gpt import GPT
from tuigpt.text.read import silent
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.calibrate import calibrate
from tuigpt.training.events import Evaluated, Sampled, Stepped
from tuigpt.training.trainer import Trainer

TEXT = "Tell me, O muse, of that ingenious hero who travelled far and wide.\n" * 40
TOKENIZER = CharTokenizer.from_text(TEXT)
SHAPE = GPTConfig(TOKENIZER.vocab_size, block_size=8, n_layer=1, n_head=2, n_embd=16, dropout=0.1)
CONFIG = TrainConfig(max_steps=3, batch_size=4, eval_interval=2, eval_tokens=64, sample_tokens=5)
CPU = torch.device("cpu")


def corpus(val_fraction: float = 0.1) -> Corpus:
    return Corpus.from_text(TEXT, TOKENIZER, val_fraction, SHAPE.block_size, CPU)


@pytest.mark.parametrize("recipe", ["fast", "workshop"])
def test_every_part_is_timed_and_no_random_number_is_taken(recipe: str) -> None:
    config, told = replace(CONFIG, recipe=recipe), set()
    before = torch.get_rng_state()
    found = calibrate(
        SHAPE, config, TOKENIZER, corpus(), CPU, lambda what, done, total: told.add(what)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert told == {"timing a few steps"}
    parts = (found.step_seconds, found.eval_seconds, found.sample_seconds)
    assert all(0 < seconds < 1 for seconds in parts)
    assert found.whole_eval_seconds > found.eval_seconds


def test_what_a_run_does_not_do_takes_no_time() -> None:
    config = replace(CONFIG, sample_tokens=0)
    found = calibrate(SHAPE, config, TOKENIZER, corpus(val_fraction=0), CPU, silent)
    assert found.sample_seconds == found.eval_seconds == found.whole_eval_seconds == 0


@pytest.mark.parametrize("max_steps", [1, 2, 3, 20, 21])
def test_evaluations_and_samples_are_counted_as_the_trainer_has_them(max_steps: int) -> None:
    config = replace(CONFIG, max_steps=max_steps)
    trainer = Trainer(GPT(SHAPE), TOKENIZER, corpus(), config)
    events = list(trainer.run())
    kinds = {Stepped: 1.0, Sampled: 10_000.0}
    expected = sum(kinds.get(type(event), 0) for event in events)
    expected += sum(
        1_000_000.0 if event.whole else 100.0 for event in events if isinstance(event, Evaluated)
    )
    assert Calibration(1.0, 100.0, 10_000.0, 1_000_000.0).seconds(config) == expected


def test_the_most_steps_that_fit() -> None:
    timing = Calibration(1.0, 2.0, 3.0, 4.0)
    config = replace(CONFIG, eval_interval=10)
    for seconds in (30.0, 99.5, 100.0, 1234.0):
        steps = timing.steps_within(seconds, config)
        assert timing.seconds(replace(config, max_steps=steps)) <= seconds
        assert timing.seconds(replace(config, max_steps=steps + 1)) > seconds
    assert timing.steps_within(0.1, config) == 1
