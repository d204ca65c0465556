"""A plan is made of what was timed, and times no more than it has to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import UserError
from tuigpt.estimate import Calibration, step_flops, update_flops
from tuigpt.plan.choose import Asked
from tuigpt.plan.law import TextSize
from tuigpt.text.read import silent
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training import trials
from tuigpt.training.batches import Corpus
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.trials import MOST_TRIALS, Trials, plan_facts

WORDS = "the cat sat on the mat and ate the rat that had sat there. " * 400
ASKED = Asked(train={"minutes": 2.0, "precision": "float32"})


class Machine:
    """In the place of the timing; wide models are slower on it than their products say."""

    def __init__(self) -> None:
        self.timed: list[tuple[GPTConfig, int]] = []

    def calibrate(self, model: GPTConfig, train: TrainConfig, *rest: object) -> Calibration:
        self.timed.append((model, train.batch_size))
        flops = step_flops(model, train) + update_flops(model, train)
        return Calibration(flops / 1e11 * (1 + model.n_embd / 100), 0.5, 0.2, 1.0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(trials, "calibrate", machine.calibrate)
    return machine


TOKENIZER = CharTokenizer.from_text(WORDS)
CORPUS = Corpus.from_text(WORDS, TOKENIZER, 0.1, 64, torch.device("cpu"))
SIZE = TextSize(TOKENIZER.vocab_size, 1_000_000, 100_000, 2.05)


def new_trials(home: Path) -> Trials:
    return Trials(TOKENIZER, CORPUS, torch.device("cpu"), home, ProcessGroup(), silent)


def test_the_best_is_timed_and_what_was_timed_is_not_again(home: Path, machine: Machine) -> None:
    best, *_ = new_trials(home).best(ASKED, SIZE)
    assert best.expected.measured
    assert 0 < len(machine.timed) <= MOST_TRIALS and len({*machine.timed}) == len(machine.timed)
    machine.timed.clear()
    later, *_ = new_trials(home).best(ASKED, SIZE)
    assert machine.timed == []
    assert later == best
    again, *_ = new_trials(home).best(ASKED, SIZE, again=True)
    assert machine.timed == [(best.model, best.train.batch_size)]
    assert again == best


def test_a_machine_that_never_agrees_ends_it_all_the_same(
    home: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = [1.0]

    def ever_slower(*arguments: object) -> Calibration:
        slower[0] *= 50
        return Calibration(slower[0], 0.0, 0.0, 0.0)

    monkeypatch.setattr(trials, "calibrate", ever_slower)
    best, *_ = new_trials(home).best(ASKED, SIZE)
    assert best.expected.measured and best.train.max_steps <= 2


def test_the_reason_names_what_was_chosen_and_the_next(home: Path, machine: Machine) -> None:
    order = new_trials(home).best(ASKED, SIZE)
    told = plan_facts(ASKED, order)
    assert (told.minutes, told.settings, told.val_loss) == (
        2.0, order[0].settings, order[0].val_loss
    )  # fmt: skip
    assert order[1].settings in told.reason
    assert {"n_layer", "block_size", "batch_size", "weight_decay"} <= {*told.chosen}


def test_what_does_not_fit_into_memory_is_refused_before_trying(
    home: Path, machine: Machine
) -> None:
    huge = Asked(model={"n_layer": 100, "n_embd": 65_536, "n_head": 1}, train=ASKED.train)
    with pytest.raises(UserError, match="this needs at least .+ of memory, but cpu has"):
        new_trials(home).best(huge, SIZE)
    assert machine.timed == []


def test_no_memory_while_trying_is_a_refusal(
    home: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object) -> Calibration:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(trials, "calibrate", fails)
    with pytest.raises(UserError, match="of memory"):
        new_trials(home).best(ASKED, SIZE)
