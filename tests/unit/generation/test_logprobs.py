"""Tests of probabilities, alternatives and surprise."""

import math

import pytest
import torch

from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.decode import plain
from tuigpt.generation.judge import next_token, score, window_speeds
from tuigpt.generation.logprobs import logprobs, surprises
from tuigpt.model.checkpoint import LoadedCheckpoint
from tuigpt.model.gpt import GPT
from tuigpt.runs.header import Header
from tuigpt.text.tokenizer import CharTokenizer

torch.set_num_threads(1)


LETTERS = CharTokenizer("abcdefg")

HEADER = Header(step=0, format=1, model=GPTConfig(4), tokenizer={})


def make_model(block_size: int = 8) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(7, block_size, n_layer=2, n_head=2, n_embd=8)).eval().requires_grad_(False)


def test_logprobs_follow_the_token_through_the_samplers() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0, 2.0])
    found = logprobs(logits, 2, SampleConfig(temperature=0.5, top_k=2), 3, LETTERS)
    learned = torch.softmax(logits, -1)
    assert found.rank == 3
    assert found.logprob == pytest.approx(math.log(learned[2]))
    assert [c.token for c in found.top_logprobs] == [1, 3, 2]
    assert [c.drawn_from for c in found.top_logprobs] == pytest.approx([0.5, 0.5, 0.0])
    tempered = torch.softmax(logits * 2, -1)
    assert found.chosen.tempered == pytest.approx(float(tempered[2]))
    assert [c.text for c in found.top_logprobs] == ["b", "d", "c"] and found.chosen.text == "c"
    assert found.chosen.learned == pytest.approx(float(learned[2]))


def test_without_alternatives_a_token_has_the_same_facts() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0, 2.0])
    for token in range(4):
        alone = logprobs(logits, token, SampleConfig(), 0, LETTERS)
        among = logprobs(logits, token, SampleConfig(), 4, LETTERS)
        assert (alone.chosen, alone.logprob, alone.rank) == (
            among.chosen, among.logprob, among.rank,
        )  # fmt: skip
        assert alone.top_logprobs == [] and among.top_logprobs[alone.rank - 1].token == token


def test_greedy_draws_from_one_token() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0])
    found = logprobs(logits, 1, SampleConfig(temperature=0.0), 100, LETTERS)
    assert [c.drawn_from for c in found.top_logprobs] == [1.0, 0.0, 0.0]
    assert found.rank == 1


def test_next_token_picks_what_generation_would() -> None:
    prompt = torch.tensor([1, 2, 3])
    loaded = LoadedCheckpoint(make_model(), LETTERS, HEADER)
    config = SampleConfig(1, 1.0, top_k=0, seed=5)
    found = next_token(loaded, prompt, config, 7)
    assert sum(c.drawn_from for c in found.top_logprobs) == pytest.approx(1.0)
    first, second = plain(loaded.model, prompt, SampleConfig(2, 1.0, top_k=0, seed=5))
    assert found.chosen.token == first
    assert next_token(loaded, prompt, config, 0, forced_ids=[first]).chosen.token == second


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


def test_a_text_is_scored_in_all_units() -> None:
    found = score(LoadedCheckpoint(make_model(), LETTERS, HEADER), "abXcda")
    assert (found.text, found.dropped, found.left_out) == ("abcda", "X", 1)
    assert found.characters == len(found.surprises) == 4
    nats = sum(found.surprises) / 4
    assert found.nats_per_character == pytest.approx(nats, abs=1e-3)
    assert found.bits_per_character == pytest.approx(nats / math.log(2), abs=1e-3)
    assert found.perplexity == pytest.approx(math.exp(nats), rel=1e-3)


@pytest.mark.parametrize("text", ["", "a", "XYZ"])
def test_a_text_without_two_known_tokens_has_no_score(text: str) -> None:
    found = score(LoadedCheckpoint(make_model(), LETTERS, HEADER), text)
    assert found.surprises == [] and found.text in ("", "a")
    assert found.nats_per_character is found.bits_per_character is found.perplexity is None


def test_both_windows_are_timed() -> None:
    speeds = window_speeds(LoadedCheckpoint(make_model(), LETTERS, HEADER))
    assert speeds.sliding > 1 and speeds.rolling > 1
