"""Properties of the samplers, over many random logits."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.generation import samplers as sampler
from tuigpt.generation.samplers import (
    apply_samplers,
    draw_noise,
    min_p_filter,
    next_token_probs,
    pick,
    pick_surely,
    top_k_filter,
    top_p_filter,
)

torch.set_num_threads(1)  # two threads that wait for each other on a busy machine take ages

EXACT = [
    SampleConfig(),
    SampleConfig(temperature=0.0),
    SampleConfig(temperature=1.3, top_k=0),
    SampleConfig(top_k=3),
]
"""Settings that the workshop's program has as well."""

CONFIGS = [
    *EXACT,
    SampleConfig(top_k=0, top_p=0.6),
    SampleConfig(top_k=0, min_p=0.3),
    SampleConfig(temperature=1.9, top_k=12, top_p=0.9, min_p=0.1),
]


def many_logits(count: int = 200) -> Iterator[Tensor]:
    for seed in range(count):
        generator = torch.Generator().manual_seed(seed)
        vocab_size = int(torch.randint(1, 70, (), generator=generator))
        logits = torch.randn(vocab_size, generator=generator) * (0.1 + seed % 7)
        if seed % 5 == 0:  # ties
            logits = logits.round()
        yield logits


def kept(logits: Tensor) -> Tensor:
    return torch.isfinite(logits)


@pytest.mark.parametrize("vocab_size", [1, 2, 15, 16, 17, 65, 100, 1000])
def test_dividing_by_noise_is_multinomial(vocab_size: int) -> None:
    """The one thing here that rests on how PyTorch draws."""
    for seed in range(150):
        theirs = torch.Generator().manual_seed(seed)
        ours = torch.Generator().manual_seed(seed)
        for _ in range(3):
            probs = torch.softmax(torch.randn(vocab_size, generator=theirs) * 3, -1)
            ours.set_state(theirs.get_state())
            expected = int(torch.multinomial(probs, 1, generator=theirs))
            noise = draw_noise(torch.empty(2, vocab_size)[1], ours)
            assert int((probs / noise).argmax()) == expected
            assert torch.equal(ours.get_state(), theirs.get_state())


def test_top_k_keeps_k_and_ties() -> None:
    for logits in many_logits():
        for k in (1, 2, 5, len(logits)):
            mask = kept(top_k_filter(logits, k))
            assert mask.sum() >= min(k, len(logits))
            assert not mask.all() or k >= len(logits) or len(set(logits.tolist())) < len(logits)
            if not mask.all():
                assert logits[mask].min() > logits[~mask].max()
        for off in (0, len(logits), len(logits) + 1, 100_000):
            assert torch.equal(top_k_filter(logits, off), logits)


def test_top_p_keeps_the_fewest_that_reach_p() -> None:
    for logits in many_logits():
        for p in (1e-9, 0.3, 0.9, 0.999):
            mask = kept(top_p_filter(logits, p))
            probs = torch.softmax(logits, -1)
            total = float(probs[mask].sum())
            assert mask.any() and mask[logits.argmax()]
            assert total >= p - 1e-5
            assert mask.sum() == 1 or total - float(probs[mask].min()) < p + 1e-5
            if not mask.all():
                assert probs[mask].min() >= probs[~mask].max()
        assert torch.equal(top_p_filter(logits, 1.0), logits)


def test_min_p_keeps_by_share_of_the_likeliest() -> None:
    for logits in many_logits():
        for min_p in (0.01, 0.5, 1.0):
            mask = kept(min_p_filter(logits, min_p))
            share = torch.softmax(logits, -1) / torch.softmax(logits, -1).max()
            assert mask[logits.argmax()]
            assert (share[mask] >= min_p - 1e-5).all()
            assert (share[~mask] <= min_p + 1e-5).all()
        assert torch.equal(min_p_filter(logits, 0.0), logits)


@pytest.mark.parametrize("config", CONFIGS)
def test_distributions_are_distributions_and_keep_the_order(config: SampleConfig) -> None:
    for logits in many_logits(60):
        probs = next_token_probs(logits, config)
        assert math.isclose(float(probs.sum()), 1.0, rel_tol=1e-5)
        assert probs.argmax() == logits.argmax()
        mask = probs > 0
        if mask.sum() > 1 and config.temperature:
            expected = torch.log_softmax(logits[mask] / config.temperature, -1)
            assert torch.allclose(probs[mask].log(), expected, atol=1e-4)


def test_samplers_work_in_the_stated_order() -> None:
    """top-p counts what temperature and top-k left: three of four equals hold 0.7 together."""
    logits = torch.tensor([2.0, 2.0, 2.0, 2.0, 1.0])
    config = SampleConfig(temperature=1.0, top_k=4, top_p=0.7)
    assert kept(apply_samplers(logits, config)).tolist() == [True, True, True, False, False]
    cold = SampleConfig(temperature=0.1, top_k=0, min_p=0.01)
    assert kept(apply_samplers(logits, cold)).sum() == 4  # exp(-10) is below 0.01, exp(-1) not


def test_rows_are_drawn_like_single_texts() -> None:
    logits = torch.randn(8, 65, generator=torch.Generator().manual_seed(0))
    for config in CONFIGS:
        noise = torch.empty(8, 65)
        for row in range(8):
            draw_noise(noise[row], torch.Generator().manual_seed(row))
        together = pick(logits, config, noise).tolist()
        assert together == [int(pick(logits[i], config, noise[i])) for i in range(8)]


@pytest.mark.parametrize("config", EXACT)
def test_a_sure_pick_is_the_pick_whatever_the_rounding(config: SampleConfig) -> None:
    """Disturb the logits by up to what counts as rounding: sure picks do not change."""
    unsure = 0
    for seed, logits in enumerate(many_logits()):
        generator = torch.Generator().manual_seed(seed)
        noise = draw_noise(torch.empty(logits.shape), generator)
        tokens, sure = pick_surely(logits[None], config, noise[None])
        if not sure[0]:
            unsure += 1
            continue
        assert tokens[0] == int(pick(logits, config, noise))
        for _ in range(3):
            sign = torch.rand(logits.shape, generator=generator) * 2 - 1
            size = sampler.ROUNDING * max(1.0, float(logits.abs().max()))
            assert tokens[0] == int(pick(logits + size * sign, config, noise))
    assert unsure < 80  # ties only, which a fifth of the logits have


@pytest.mark.parametrize("config", CONFIGS[len(EXACT) :])
def test_without_a_reference_every_draw_is_sure(config: SampleConfig) -> None:
    for seed, logits in enumerate(many_logits(50)):
        noise = draw_noise(torch.empty(logits.shape), torch.Generator().manual_seed(seed))
        picked = pick_surely(logits[None], config, noise[None])
        assert picked == ([int(pick(logits, config, noise))], [True])


def test_close_draws_are_not_sure() -> None:
    noise = torch.ones(1, 4)
    config = SampleConfig(temperature=1.0, top_k=0)
    assert pick_surely(torch.tensor([[3.0, 3.0, 0.0, 0.0]]), config, noise).sure == [False]
    assert pick_surely(torch.tensor([[3.0, 2.9, 0.0, 0.0]]), config, noise).sure == [True]
    # The winner of the draw stands at the edge of the two kept ones.
    edge, lucky = torch.tensor([[3.0, 2.0, 2.0, 0.0]]), torch.tensor([[9.0, 9.0, 1e-3, 9.0]])
    top_2 = SampleConfig(temperature=1.0, top_k=2)
    assert pick_surely(edge, top_2, lucky).sure == [False]
    assert pick_surely(edge, SampleConfig(temperature=1.0, top_k=1), lucky).sure == [True]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_never_drawn_from(bad: float) -> None:
    logits = torch.tensor([0.0, bad, 1.0])
    for config in CONFIGS:
        with pytest.raises(UserError, match="broken"):
            pick(logits, config, torch.ones(3))
        with pytest.raises(UserError, match="broken"):
            pick_surely(logits[None], config, torch.ones(1, 3))


@pytest.mark.parametrize(
    "settings",
    [
        dict(temperature=-0.1),
        dict(temperature=math.nan),
        dict(temperature=math.inf),
        dict(temperature=1e39),
        dict(top_k=-1),
        dict(top_k=2.5),
        dict(top_p=0.0),
        dict(top_p=1.1),
        dict(top_p=math.nan),
        dict(min_p=-0.1),
        dict(min_p=1.5),
        dict(seed=-1),
        dict(max_new_tokens=-1),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings)).replace("_", " ")):
        SampleConfig(**settings)  # type: ignore[arg-type]
