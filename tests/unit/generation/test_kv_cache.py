"""Tests of the one-token step that a CUDA graph records, and of what happens where it cannot.

No graph can be captured on a CPU. Here the step that goes into it is compared with the usual one,
and a stand-in takes the graph's place.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.generation import kv_cache as cached
from tuigpt.generation.decode import TextGenerator, plain
from tuigpt.generation.kv_cache import CachedGPT
from tuigpt.model.gpt import GPT

torch.set_num_threads(1)

BLOCK = 12
VOCAB = 11


def make_model(block_size: int = BLOCK) -> GPT:
    torch.manual_seed(3)
    model = GPT(GPTConfig(VOCAB, block_size, n_layer=2, n_head=2, n_embd=16)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


@pytest.mark.parametrize("rows", [1, 3])
def test_a_step_with_the_position_as_a_tensor_is_the_same_step(rows: int) -> None:
    """At every position, and with a longer text's leftovers in the cache."""
    usual, other = (CachedGPT(make_model(), rows) for _ in range(2))
    tokens = torch.randint(VOCAB, (BLOCK, rows), generator=torch.Generator().manual_seed(1))
    position = torch.empty(1, dtype=torch.int64)
    with torch.inference_mode():
        for text in (tokens, tokens.flip(0)):
            for reader in (usual, other):
                reader.start(text[:1].T)
            for place in range(1, BLOCK):
                expected = usual.step(text[place])
                got = other.step_at(text[place], position.fill_(place))
                limit = 2**-20 * max(1.0, float(expected.abs().max()))
                torch.testing.assert_close(got, expected, rtol=0, atol=limit)


class Recorded:
    """Stands in for `StepGraph`: does on each call what the graph would."""

    made = 0
    used = 0
    off_by = 0.0

    def __init__(self, reader: CachedGPT, tokens: Tensor) -> None:
        type(self).made += 1
        self._reader = reader

    def __call__(self, tokens: Tensor, position: int) -> Tensor:
        type(self).used += 1
        return self._reader.step_at(tokens, torch.tensor([position])) + self.off_by


class Wrong(Recorded):
    off_by = 0.1


class Broken(Recorded):
    off_by = torch.nan


class Impossible(Recorded):
    def __init__(self, reader: CachedGPT, tokens: Tensor) -> None:
        super().__init__(reader, tokens)
        raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize(
    ("graph", "used"), [(Recorded, True), (Wrong, False), (Broken, False), (Impossible, False)]
)
def test_a_graph_is_used_only_if_it_gives_what_the_step_gives(
    graph: type[Recorded], used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "captures", lambda device: True)
    monkeypatch.setattr(cached, "StepGraph", graph)
    monkeypatch.setattr(graph, "made", 0)
    monkeypatch.setattr(graph, "used", 0)
    model = make_model()
    reader = CachedGPT(model)
    with torch.inference_mode():
        logits = reader.start(torch.tensor([1]))
        for token in range(2, BLOCK):
            logits = reader.step(torch.tensor([token % VOCAB]))
        expected = model(torch.tensor([[token % VOCAB for token in range(1, BLOCK)]]))[0][:, -1]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    assert graph.made == 1  # tried once, whatever comes of it
    if used:
        assert graph.used == BLOCK - 2


@pytest.mark.parametrize("graph", [Recorded, Wrong, Impossible])
@pytest.mark.parametrize("samples", [1, 3])
def test_with_a_graph_or_without_the_text_is_the_reference(
    samples: int, graph: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "captures", lambda device: True)
    monkeypatch.setattr(cached, "StepGraph", graph)
    model = make_model()
    ids = torch.tensor([1, 2])
    rows = zip(
        *TextGenerator(model, ids, SampleConfig(2 * BLOCK, 1.0), samples=samples), strict=True
    )
    for number, row in enumerate(rows):
        alone = SampleConfig(2 * BLOCK, 1.0, seed=SampleConfig().seed + number)
        assert list(row) == list(plain(model, ids, alone))


def test_only_cuda_is_captured_on() -> None:
    assert cached.captures(torch.device("cuda", 1))
    assert not cached.captures(torch.device("cpu")) and not cached.captures(torch.device("mps"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_graph_is_captured_and_right() -> None:
    reader = CachedGPT(make_model().cuda(), rows=2)
    usual = CachedGPT(make_model(), rows=2)
    with torch.inference_mode():
        for each, device in ((reader, "cuda"), (usual, "cpu")):
            each.start(torch.tensor([1], device=device))
        for token in range(2, BLOCK):
            tokens = torch.tensor([token % VOCAB, (2 * token) % VOCAB])
            got, expected = reader.step(tokens.cuda()).cpu(), usual.step(tokens)
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-2)
