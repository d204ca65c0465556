"""Tests of probabilities, alternatives and surprise."""

import math

import pytest
import torch

from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.decode import Prompt, plain
from tuigpt.generation.logprobs import Score, insight, next_token, surprises
from tuigpt.model.gpt import GPT

torch.set_num_threads(1)


def make_model(block_size: int = 8) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(7, block_size, n_layer=2, n_head=2, n_embd=8)).eval().requires_grad_(False)


def test_an_insight_follows_the_token_through_the_samplers() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0, 2.0])
    seen = insight(logits, 2, SampleConfig(temperature=0.5, top_k=2), count=3)
    learned = torch.softmax(logits, -1)
    assert seen.rank == 3
    assert seen.logprob == pytest.approx(math.log(learned[2]))
    assert [c.token for c in seen.likeliest] == [1, 3, 2]
    assert [c.drawn_from for c in seen.likeliest] == pytest.approx([0.5, 0.5, 0.0])
    tempered = torch.softmax(logits * 2, -1)
    assert seen.chosen.tempered == pytest.approx(float(tempered[2]))
    assert seen.chosen.learned == pytest.approx(float(learned[2]))


def test_greedy_draws_from_one_token() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0])
    seen = insight(logits, 1, SampleConfig(temperature=0.0), count=100)
    assert [c.drawn_from for c in seen.likeliest] == [1.0, 0.0, 0.0]
    assert seen.rank == 1


def test_next_token_picks_what_generation_would() -> None:
    prompt = Prompt("", "", torch.tensor([1, 2, 3]))
    model = make_model()
    seen = next_token(model, prompt, SampleConfig(0, 1.0, top_k=0, seed=5), count=7)
    assert sum(c.drawn_from for c in seen.likeliest) == pytest.approx(1.0)
    config = SampleConfig(1, 1.0, top_k=0, seed=5)
    assert seen.chosen.token == next(plain(model, prompt.ids, config))


@pytest.mark.parametrize("block_size", [1, 2, 7, 8])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 10, 12, 13, 40, 200])
def test_every_token_but_the_first_is_measured_with_enough_context(
    block_size: int, length: int
) -> None:
    model = make_model(block_size)
    ids = torch.randint(7, (length,), generator=torch.Generator().manual_seed(1))
    measured = torch.cat([torch.empty(0), *surprises(model, ids)])
    assert len(measured) == length - 1
    for place in range(1, min(length, block_size + 1)):
        logits = model(ids[None, :place])[0][0, -1]
        expected = -float(torch.log_softmax(logits, -1)[ids[place]])
        assert float(measured[place - 1]) == pytest.approx(expected, abs=1e-5)
    if length - 1 > block_size:  # the last token sees a whole window
        logits = model(ids[None, -1 - block_size : -1])[0][0, -1]
        last = -float(torch.log_softmax(logits, -1)[ids[-1]])
        stride = max(1, block_size // 2)
        if (length - 1 - block_size) % stride:
            assert float(measured[-1]) == pytest.approx(last, abs=1e-5)


def test_broken_weights_are_told() -> None:
    model = make_model()
    model.lm_head.weight[0, 0] = torch.nan
    with pytest.raises(UserError, match="broken"):
        list(surprises(model, torch.tensor([1, 2, 3])))


def test_scores_in_all_units() -> None:
    score = Score(nats=math.log(2) * 30, tokens=10, characters=20)
    assert score.bits_per_character == pytest.approx(1.5)
    assert score.nats_per_character == pytest.approx(1.5 * math.log(2))
    assert score.perplexity == pytest.approx(8.0)
    assert math.isnan(Score(0.0, 0, 0).perplexity)
