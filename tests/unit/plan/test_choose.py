"""A plan keeps to its time, to what was asked for, and to what the text allows."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tuigpt.config import PRESETS, GPTConfig
from tuigpt.estimate import Calibration, step_flops, update_flops
from tuigpt.paths import cache_dir
from tuigpt.plan.choose import Asked, Choice, candidates, ranked
from tuigpt.plan.law import TextSize, most_readings
from tuigpt.plan.speeds import SPEEDS_FILE, Device, Speeds

TEXT = TextSize(65, 1_000_000, 110_000, 2.05)
LONG = TextSize(65, 9_000_000, 1_000_000, 2.05)
SHORT = TextSize(50, 18_000, 2_000, 2.2)


def speeds(home: Path, text: TextSize = TEXT, *, flops: float = 150e9) -> Speeds:
    """A machine that is so fast at everything that a plan can choose."""
    cache_dir(home).mkdir(parents=True, exist_ok=True)
    (cache_dir(home) / SPEEDS_FILE).write_bytes(_kept(text, flops))
    return Speeds(home)


@cache
def _kept(text: TextSize, flops: float) -> bytes:
    device = Device("cpu", "cpu", 8 << 30)
    with TemporaryDirectory() as folder:
        known = Speeds(Path(folder))
        for model, train in candidates(Asked(), text, "cpu"):
            step = (step_flops(model, train) + update_flops(model, train)) / flops
            token = step / (train.batch_size * model.block_size)
            found = Calibration(step, 10_000 * token, 0.3, text.val_tokens * token / 3)
            known.keep(model, train, text.val_tokens, found, device)
        return (cache_dir(Path(folder)) / SPEEDS_FILE).read_bytes()


def best(
    home: Path,
    train: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    preset: str | None = None,
    text: TextSize = TEXT,
    flops: float = 150e9,
) -> Choice:
    asked = Asked(preset, model or {}, train or {})
    return ranked(asked, text, speeds(home, text, flops=flops))[0]


@pytest.mark.parametrize("minutes", [1.0, 2.0, 5.0, 15.0, 30.0])
def test_it_fills_its_time(home: Path, minutes: float) -> None:
    found = best(home, {"minutes": minutes}, text=LONG)
    timing = found.expected.calibration
    assert found.expected.measured and found.train.minutes == minutes
    seconds = timing.seconds(found.train)
    one_more = timing.step_seconds + timing.eval_seconds + timing.sample_seconds
    assert 60 * minutes - one_more < seconds <= 60 * minutes


@pytest.mark.parametrize("minutes", [1.0, 5.0, 30.0])
def test_evaluations_take_a_small_part_of_it(home: Path, minutes: float) -> None:
    found = best(home, {"minutes": minutes})
    timing, train = found.expected.calibration, found.train
    count = train.max_steps / train.eval_interval
    share = count * (timing.eval_seconds + timing.sample_seconds) / (60 * minutes)
    assert count >= 3 and (share < 0.1 or count < 6)


def test_more_time_makes_a_larger_model_and_a_lower_loss(home: Path) -> None:
    found = [best(home, {"minutes": minutes}) for minutes in (1.0, 5.0, 30.0, 120.0)]
    losses = [choice.val_loss for choice in found]
    sizes = [choice.model.n_params for choice in found]
    for loss, later in pairwise(losses):
        assert loss is not None and later is not None and later < loss + 0.001
    assert sizes[0] < sizes[2]


def test_a_faster_machine_reaches_more(home: Path, tmp_path: Path) -> None:
    slow, fast = best(home, flops=50e9), best(tmp_path / "other", flops=500e9)
    assert slow.val_loss is not None and fast.val_loss is not None
    assert fast.val_loss < slow.val_loss


def test_nothing_said_is_five_minutes(home: Path) -> None:
    assert best(home) == best(home, {"minutes": 5.0})


def test_what_is_asked_for_is_kept(home: Path) -> None:
    found = best(
        home,
        {"minutes": 2.0, "batch_size": 12, "weight_decay": 0.05, "eval_interval": 77, "seed": 3},
        {"block_size": 100, "dropout": 0.2},
        preset="small",
    )
    train, model = found.train, found.model
    assert (train.batch_size, train.weight_decay, train.eval_interval) == (12, 0.05, 77)
    assert (train.seed, model.block_size, model.dropout) == (3, 100, 0.2)
    assert PRESETS["small"].items() <= vars(model).items()


def test_a_width_alone_keeps_the_other_sizes_of_the_default(home: Path) -> None:
    found = best(home, model={"n_embd": 64})
    assert (found.model.n_layer, found.model.n_head, found.model.n_embd) == (2, 2, 64)


def test_a_short_text_is_not_read_for_ever(home: Path) -> None:
    found = best(home, {"minutes": 30.0}, text=SHORT)
    read = found.train.max_steps * found.train.batch_size * found.model.block_size
    assert read <= most_readings(SHORT.train_tokens) * SHORT.train_tokens
    assert found.train.minutes == 0  # what is left of the time is not filled
    assert "would teach nothing" in found.words


def test_windows_fit_into_both_parts_of_the_text(home: Path) -> None:
    tiny = TextSize(30, 1_500, 150, None)
    blocks = {model.block_size for model, _ in candidates(Asked(), tiny, "cpu")}
    assert blocks == {64, 128}


@pytest.mark.parametrize(
    ("train", "has_weights"),
    [({"max_steps": 100}, False), ({"recipe": "workshop"}, False), ({"minutes": 0.0}, False),
     ({"recipe": "workshop", "minutes": 5.0}, False), ({}, True)],
)  # fmt: skip
def test_without_a_time_nothing_is_planned(train: dict[str, Any], has_weights: bool) -> None:
    asked = Asked(None, {}, train, has_weights)
    assert not asked.planned and asked.left_to_the_plan == ()
    assert asked.sizes == GPTConfig(**PRESETS["tiny"]) and asked.label == "tiny"
    assert asked.settings().max_steps in (100, 5000)


def test_a_run_is_named_after_its_size_or_its_minutes() -> None:
    assert Asked().label == "5min" and Asked(train={"minutes": 1.5}).label == "1.5min"
    assert Asked("small", train={"minutes": 15.0}).label == "small"


def test_processes_share_every_batch(home: Path) -> None:
    for processes in (2, 3, 8, 16):
        for _, train in candidates(Asked(train={"batch_size": 48}), TEXT, "cpu", processes):
            assert train.batch_size % processes == 0
    sizes = {train.batch_size for _, train in candidates(Asked(), TEXT, "cpu", 16)}
    assert sizes == {16}


def test_what_a_machine_cannot_hold_is_left_out(home: Path) -> None:
    known = speeds(home)
    small = Device("cpu", "cpu", 40 << 20)
    for model, train in candidates(Asked(), TEXT, "cpu"):
        found = known.expected(model, train, TEXT.val_tokens)
        assert found is not None
        known.keep(model, train, TEXT.val_tokens, found.calibration, small)
    order = ranked(Asked(train={"minutes": 120.0}), TEXT, known)
    assert 0 < len(order) < len(candidates(Asked(), TEXT, "cpu"))
    assert order[0].model.n_embd <= 192


def test_word_pieces_get_a_plan_without_a_promise(home: Path) -> None:
    found = best(home, {"tokenizer": "bpe:1024"})
    assert found.val_loss is None and "expected" not in found.words


@pytest.mark.parametrize("train_tokens", [0, 1, 64, 10**12])
@pytest.mark.parametrize("triples", [None, 0.0, 1e-9, 9.0])
def test_texts_of_any_size_get_a_plan(home: Path, train_tokens: int, triples: float | None) -> None:
    text = TextSize(1, train_tokens, train_tokens // 9, triples)
    order = ranked(Asked(), text, speeds(home))
    assert order and all(choice.train.max_steps >= 1 for choice in order)


def test_less_is_promised_of_a_text_that_the_law_does_not_know(home: Path) -> None:
    code = TextSize(90, 400_000, 40_000, 1.3)
    known, unknown = best(home), best(home, text=code)
    assert known.margin < 0.06 and "± 0.05" in known.words
    assert unknown.margin > 0.1 and unknown.val_loss is not None and known.val_loss is not None
    assert unknown.val_loss < known.val_loss
