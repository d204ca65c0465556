"""Tests of generation against the workshop's loop, written out here as its part 4 describes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.generation import decode
from tuigpt.generation import kv_cache as cached
from tuigpt.generation.decode import (
    TextGenerator,
    first_difference,
    generate,
    plain,
    read_prompt,
    refuse_broken_weights,
)
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer

torch.set_num_threads(1)  # two threads that wait for each other on a busy machine take ages

BLOCK = 16


def make_model(
    seed: int = 0, vocab_size: int = 11, block_size: int = BLOCK, n_layer: int = 2
) -> GPT:
    """A model with weights large enough that its distributions are neither flat nor certain."""
    torch.manual_seed(seed)
    model = GPT(GPTConfig(vocab_size, block_size, n_layer, n_head=2, n_embd=16)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def workshop(model: GPT, ids: list[int], config: SampleConfig) -> list[int]:
    """The workshop's loop, with the global generator."""
    torch.manual_seed(config.seed)
    idx = torch.tensor([ids])
    with torch.no_grad():
        for _ in range(config.max_new_tokens):
            logits, _ = model(idx[:, -model.config.block_size :])
            logits = logits[:, -1, :] / config.temperature
            if config.top_k:
                top, _ = torch.topk(logits, min(config.top_k, logits.size(-1)))
                logits[logits < top[:, [-1]]] = -float("inf")
            token = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            idx = torch.cat((idx, token), dim=1)
    return idx[0, len(ids) :].tolist()


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let no allocation of more than a few gigabytes succeed."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def random_ids(count: int, model: GPT, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(model.config.vocab_size, (count,), generator=generator)


@pytest.mark.parametrize("prompt_length", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("seed", range(4))
def test_the_text_is_the_workshops_across_the_edge(prompt_length: int, seed: int) -> None:
    model = make_model(seed)
    ids = random_ids(prompt_length, model)
    config = SampleConfig(5 * BLOCK, 0.5 + 0.4 * seed, top_k=[0, 3, 11, 40][seed], seed=seed)
    expected = workshop(model, ids.tolist(), config)
    assert list(generate(model, ids, config)) == expected
    assert list(plain(model, ids, config)) == expected
    assert first_difference(model, ids, config, expected) is None


@pytest.mark.parametrize("n_layer", [1, 3])
@pytest.mark.parametrize("block_size", [1, 2, 5])
def test_the_text_is_the_workshops_in_odd_shapes(n_layer: int, block_size: int) -> None:
    model = make_model(3, vocab_size=2, block_size=block_size, n_layer=n_layer)
    config = SampleConfig(40, 1.1, top_k=0, seed=9)
    assert list(generate(model, torch.tensor([1]), config)) == workshop(model, [1], config)


def test_every_sampler_writes_what_the_plain_loop_writes() -> None:
    model = make_model(5, vocab_size=40)
    ids = random_ids(3, model)
    for settings in (
        dict(temperature=0.0),
        dict(temperature=1e-40),
        dict(temperature=1e-5, top_k=0),
        dict(top_p=0.7),
        dict(min_p=0.2, top_k=0),
        dict(temperature=1.7, top_k=20, top_p=0.9, min_p=0.05),
        dict(top_k=1),
        dict(top_k=100_000),
    ):
        config = SampleConfig(max_new_tokens=3 * BLOCK, **settings)
        assert list(generate(model, ids, config)) == list(plain(model, ids, config)), settings


def test_a_close_draw_is_decided_by_the_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a huge tolerance every draw counts as close, and the ids stay the same."""
    monkeypatch.setattr("tuigpt.generation.samplers.ROUNDING", 1.0)
    model = make_model()
    ids = random_ids(4, model)
    config = SampleConfig(2 * BLOCK, 1.0, seed=3)
    texts = TextGenerator(model, ids, config)
    assert [tokens[0] for tokens in texts] == workshop(model, ids.tolist(), config)
    assert texts.recomputed == 2 * BLOCK


def test_logits_off_by_less_than_the_tolerance_change_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise as large as the tolerance allows is put on the cached logits; the text stays."""
    noise = torch.Generator().manual_seed(0)

    class Noisy(cached.CachedGPT):
        def step(self, tokens: torch.Tensor) -> torch.Tensor:
            return self._disturb(super().step(tokens))

        def last_logits(self, ids: torch.Tensor) -> torch.Tensor:
            return self._disturb(super().last_logits(ids))

        def _disturb(self, logits: torch.Tensor) -> torch.Tensor:
            sign = torch.rand(logits.shape, generator=noise).sub(0.5).sign()
            return logits + 0.9e-3 * logits.abs().max().clamp(min=1) * sign

    monkeypatch.setattr(decode, "CachedGPT", Noisy)
    monkeypatch.setattr("tuigpt.generation.samplers.ROUNDING", 1e-3)
    model = make_model(2, vocab_size=60)
    decided = 0
    settings: list[dict[str, Any]] = [
        dict(), dict(top_k=0), dict(temperature=1.4), dict(top_k=5), dict(temperature=0.0)
    ]  # fmt: skip
    for seed, some in enumerate(settings * 4):
        config = SampleConfig(60, seed=seed, **some)
        texts = TextGenerator(model, random_ids(3, model), config)
        ids = [tokens[0] for tokens in texts]
        assert ids == list(plain(model, random_ids(3, model), config)), some
        decided += texts.recomputed
    assert 0 < decided < 600


def test_the_model_is_left_in_its_mode_and_no_other_stream_is_disturbed() -> None:
    model = make_model().train()
    state = torch.get_rng_state()
    list(generate(model, torch.tensor([1]), SampleConfig(BLOCK + 3)))
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_are_those_of_their_seeds() -> None:
    model = make_model()
    ids = random_ids(5, model)
    config = SampleConfig(3 * BLOCK, 1.0, seed=2**63 - 2)
    rows = list(zip(*TextGenerator(model, ids, config, samples=4), strict=True))
    for row, seed in zip(rows, (2**63 - 2, 2**63 - 1, 0, 1), strict=True):
        alone = SampleConfig(3 * BLOCK, 1.0, seed=seed)
        assert list(row) == list(plain(model, ids, alone))


def test_a_text_goes_on_from_any_place_as_it_would_have() -> None:
    model = make_model()
    ids = random_ids(5, model)
    config = SampleConfig(3 * BLOCK, 1.0, seed=7)
    whole = list(generate(model, ids, config))
    for place in (0, 1, BLOCK, len(whole) - 1, len(whole)):
        rest = [t[0] for t in TextGenerator(model, ids, config, forced_ids=whole[:place])]
        assert whole[:place] + rest == whole


def test_a_branch_keeps_the_draws_of_its_places() -> None:
    model = make_model()
    ids = random_ids(5, model)
    config = SampleConfig(BLOCK, 1.0, seed=7)
    whole = list(generate(model, ids, config))
    other = (whole[4] + 1) % model.config.vocab_size
    branch = [t[0] for t in TextGenerator(model, ids, config, forced_ids=[*whole[:4], other])]
    assert len(branch) == BLOCK - 5
    again = [
        t[0] for t in TextGenerator(model, ids, config, forced_ids=[*whole[:4], other, branch[0]])
    ]
    assert again == branch[1:]


def test_a_config_acts_at_the_next_token() -> None:
    model = make_model(4)
    ids = random_ids(5, model)
    hot, cold = SampleConfig(BLOCK, 1.5, seed=7), SampleConfig(BLOCK, 0.0, seed=7)
    texts = TextGenerator(model, ids, hot)
    begun = [next(texts)[0] for _ in range(6)]
    texts.config = cold
    rest = [tokens[0] for tokens in texts]
    assert begun == list(generate(model, ids, hot))[:6]
    assert rest == list(generate(model, torch.cat((ids, torch.tensor(begun))), cold))[: len(rest)]
    assert len(rest) == BLOCK - 6


def test_what_cannot_be_asked_for_is_refused() -> None:
    model = make_model()
    for asked in (dict(samples=0), dict(samples=101), dict(window="round")):
        with pytest.raises(ConfigError):
            TextGenerator(model, torch.tensor([1]), SampleConfig(), **asked)
    hungry = make_model(block_size=2**22, n_layer=1).requires_grad_(False)
    with (
        limited_memory(),
        pytest.raises(UserError, match="100 texts in a context of 4,194,304 tokens do not fit"),
    ):
        TextGenerator(hungry, torch.tensor([1]), SampleConfig(), samples=100)
    for token in (-1, 11):
        with pytest.raises(UserError, match="vocabulary"):
            TextGenerator(model, torch.tensor([1]), SampleConfig(), forced_ids=[token])


def test_a_rolling_window_is_the_reference_until_it_is_full() -> None:
    model = make_model()
    ids = random_ids(6, model)
    config = SampleConfig(4 * BLOCK, 1.0, seed=1)
    rolling = [t[0] for t in TextGenerator(model, ids, config, window="rolling")]
    room = BLOCK - len(ids) + 1
    assert rolling[:room] == list(plain(model, ids, config))[:room]
    assert len(rolling) == 4 * BLOCK


def test_a_rolling_window_keeps_its_newest_half() -> None:
    model = make_model()
    full = random_ids(BLOCK, model)
    config = SampleConfig(2, temperature=0.0)
    first, second = (t[0] for t in TextGenerator(model, full, config, window="rolling"))
    half = torch.cat((full, torch.tensor([first])))[-BLOCK // 2 :]
    assert second == next(plain(model, half, SampleConfig(1, temperature=0.0)))


def test_it_says_when_a_rolling_window_has_moved() -> None:
    model = make_model()
    ids = random_ids(6, model)
    room = BLOCK - len(ids) + 1
    for window in ("sliding", "rolling"):
        texts = TextGenerator(model, ids, SampleConfig(3 * BLOCK, 1.0), window=window)
        begun = [next(texts)[0] for _ in range(room)]
        assert not texts.rolled and len(begun) == room
        next(texts)
        assert texts.rolled == (window == "rolling")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_broken_weights_are_told_and_never_drawn_from(temperature: float) -> None:
    model = make_model()
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.weight[0, 0] = torch.nan
    with pytest.raises(UserError, match="broken"):
        list(generate(model, torch.tensor([1]), SampleConfig(temperature=temperature)))
    with pytest.raises(UserError, match=r"broken at transformer\.h\.1\.mlp\.c_fc\.weight"):
        refuse_broken_weights(model)
    refuse_broken_weights(make_model())


def test_first_difference_names_the_place() -> None:
    model = make_model()
    ids, config = random_ids(3, model), SampleConfig(6, 1.0)
    text = list(plain(model, ids, config))
    wrong = [*text[:4], text[4] + 1, text[5]]
    assert first_difference(model, ids, config, wrong) == 4
    assert first_difference(model, ids, config, text[:4]) == 4
    assert first_difference(model, ids, config, [*text, 1]) == 6


def test_prompts_are_read_visibly() -> None:
    tokenizer = CharTokenizer("\nabc")
    prompt = read_prompt("a\r\nb?🙂c?", tokenizer)
    assert (prompt.text, prompt.dropped) == ("a\nbc", "?🙂")
    assert read_prompt("🙂", tokenizer).text == "\n"
    assert read_prompt("", CharTokenizer("xyz")).text == "x"
