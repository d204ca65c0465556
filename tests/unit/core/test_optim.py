"""The learning rate at each step, and the optimizer that is given it."""

from __future__ import annotations

import math

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.core.model import GPT
from tuigpt.core.optim import build_optimizer, learning_rate


def rates(**settings: float) -> list[float]:
    config = TrainConfig(**settings)  # type: ignore[arg-type]
    return [learning_rate(step, config) for step in range(config.max_steps)]


def test_the_workshops_schedule() -> None:
    found = rates()
    assert len(found) == 5000
    assert found[0] == pytest.approx(1e-3 / 100)  # above zero from the first update on
    assert found[49] == pytest.approx(1e-3 * 50 / 100)
    assert found[99] == pytest.approx(1e-3)
    assert found[100] == pytest.approx(1e-3)
    assert found[-1] == 1e-3 * 0.1  # the last update has exactly the lowest
    middle = 100 + (4999 - 100) / 2
    expected = 1e-4 + 0.5 * 9e-4 * (1 + math.cos(math.pi * (2549 - 100) / 4899))
    assert middle == 2549.5 and found[2549] == pytest.approx(expected)
    assert all(a <= b for a, b in zip(found[:100], found[1:101], strict=True))
    assert all(a >= b for a, b in zip(found[100:-1], found[101:], strict=True))


@pytest.mark.parametrize(
    ("max_steps", "warmup_steps"),
    [(1, 0), (1, 1), (1, 100), (2, 1), (2, 0), (10, 10), (10, 9), (10, 11), (10, 100), (7, 0)],
)
def test_any_lengths_are_well_defined(max_steps: int, warmup_steps: int) -> None:
    found = rates(max_steps=max_steps, warmup_steps=warmup_steps, learning_rate=0.5)
    assert all(0 < rate <= 0.5 for rate in found)


def test_a_warm_up_as_long_as_the_training_ends_at_the_highest() -> None:
    assert rates(max_steps=10, warmup_steps=10, learning_rate=0.5)[-1] == 0.5


def test_a_warm_up_longer_than_the_training_only_rises() -> None:
    found = rates(max_steps=4, warmup_steps=8, learning_rate=0.8)
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_without_a_warm_up_the_first_update_has_the_highest() -> None:
    found = rates(max_steps=5, warmup_steps=0, learning_rate=0.5)
    assert found[0] == 0.5 and found[-1] == pytest.approx(0.05)


def test_the_lowest_rate_can_be_chosen() -> None:
    assert rates(max_steps=200, min_lr_ratio=1.0)[-1] == 1e-3
    assert rates(max_steps=200, min_lr_ratio=0.0)[-1] == 0.0


def test_the_optimizer_is_the_workshops() -> None:
    model = GPT(GPTConfig(vocab_size=5, block_size=4, n_layer=1, n_head=1, n_embd=4))
    optimizer = build_optimizer(model, TrainConfig(learning_rate=0.25, weight_decay=0.125))
    assert isinstance(optimizer, torch.optim.AdamW)
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.25 and group["weight_decay"] == 0.125
    assert group["betas"] == (0.9, 0.999) and group["eps"] == 1e-8
    assert len(group["params"]) == len(list(model.parameters()))  # the shared matrix once
