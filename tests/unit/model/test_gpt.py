"""The GPT against the workshop's: the same names, the same numbers, nothing seen of the future."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import functional as F

from tuigpt.config import GPTConfig
from tuigpt.model.gpt import GPT

SMALL = GPTConfig(vocab_size=11, block_size=12, n_layer=3, n_head=4, n_embd=16)

BLOCK_SHAPES = {
    "ln_1.weight": "C", "ln_1.bias": "C",
    "attn.c_attn.weight": "3C C", "attn.c_attn.bias": "3C",
    "attn.c_proj.weight": "C C", "attn.c_proj.bias": "C",
    "ln_2.weight": "C", "ln_2.bias": "C",
    "mlp.c_fc.weight": "4C C", "mlp.c_fc.bias": "4C",
    "mlp.c_proj.weight": "C 4C", "mlp.c_proj.bias": "C",
}  # fmt: skip
"""The parameters of a block of the workshop's model.py, by name, in units of the width C."""


def workshop_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a state dict that the workshop's code saves, in its order."""
    width = config.n_embd
    shapes: dict[str, tuple[int, ...]] = {
        "transformer.wte.weight": (config.vocab_size, width),
        "transformer.wpe.weight": (config.block_size, width),
    }
    for layer in range(config.n_layer):
        for name, shape in BLOCK_SHAPES.items():
            sizes = tuple(int(size[:-1] or 1) * width for size in shape.split())
            shapes[f"transformer.h.{layer}.{name}"] = sizes
    return shapes | {
        "transformer.ln_f.weight": (width,),
        "transformer.ln_f.bias": (width,),
        "lm_head.weight": (config.vocab_size, width),
    }


def build(config: GPTConfig = SMALL) -> GPT:
    """A model whose weights are wilder than fresh ones, so that attention is far from even."""
    torch.manual_seed(5)
    model = GPT(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
    return model


def some_ids(batch: int = 3, length: int = 12, vocab_size: int = 11) -> Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.randint(vocab_size, (batch, length), generator=generator)


def plain_gpt(weights: dict[str, Tensor], config: GPTConfig, ids: Tensor) -> Tensor:
    """The workshop's part 2 in plain tensors: explicit softmax, one head and one row at a time."""

    def norm(x: Tensor, name: str) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5) * weights[f"{name}.weight"] + (
            weights[f"{name}.bias"]
        )

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def attend(x: Tensor, name: str) -> Tensor:
        length, width = x.shape
        size = width // config.n_head
        qkv = linear(x, f"{name}.c_attn")
        heads = []
        for head in range(config.n_head):
            q, k, v = (qkv[:, part * width + head * size :][:, :size] for part in range(3))
            rows = []
            for i in range(length):
                scores = k[: i + 1] @ q[i] / math.sqrt(size)
                shares = torch.exp(scores - scores.max())
                rows.append((shares / shares.sum()) @ v[: i + 1])
            heads.append(torch.stack(rows))
        return linear(torch.cat(heads, dim=1), f"{name}.c_proj")

    logits = []
    for row in ids:
        x = weights["transformer.wte.weight"][row] + weights["transformer.wpe.weight"][: len(row)]
        for layer in range(config.n_layer):
            block = f"transformer.h.{layer}"
            x = x + attend(norm(x, f"{block}.ln_1"), f"{block}.attn")
            hidden = gelu(linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"))
            x = x + linear(hidden, f"{block}.mlp.c_proj")
        logits.append(norm(x, "transformer.ln_f") @ weights["lm_head.weight"].T)
    return torch.stack(logits)


class TestNumbers:
    def test_logits_are_those_of_a_plain_implementation(self) -> None:
        model = build().double()
        ids = some_ids()
        logits, loss = model(ids)
        assert loss is None
        expected = plain_gpt(model.state_dict(), SMALL, ids)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)

    def test_one_token_is_enough(self) -> None:
        model = build().double()
        ids = some_ids(batch=2, length=1)
        expected = plain_gpt(model.state_dict(), SMALL, ids)
        torch.testing.assert_close(model(ids)[0], expected, rtol=0, atol=1e-10)

    def test_the_loss_is_the_mean_surprise_in_nats(self) -> None:
        model = build().double()
        ids, targets = some_ids(), some_ids().flip(0)
        logits, loss = model(ids, targets)
        probabilities = torch.softmax(logits.detach(), 2)
        surprises = [
            -math.log(probabilities[b, t, targets[b, t]]) for b in range(3) for t in range(12)
        ]
        assert loss.item() == pytest.approx(sum(surprises) / len(surprises), abs=1e-10)

    def test_targets_may_be_a_view(self) -> None:
        """As a batch's are: the same windows, one token on."""
        model = build()
        windows = some_ids(length=13)
        _, of_view = model(windows[:, :-1], windows[:, 1:])
        _, of_copy = model(windows[:, :-1].clone(), windows[:, 1:].clone())
        assert of_view.item() == of_copy.item()


class TestCausality:
    @pytest.mark.parametrize("seen", [1, 4, 11])
    def test_no_position_sees_the_next_token(self, seen: int) -> None:
        """Whatever comes later, the logits of earlier positions are the same to the last bit."""
        model = build()
        ids = some_ids()
        changed = ids.clone()
        changed[:, seen:] = (changed[:, seen:] + 1) % 11
        before, after = model(ids)[0], model(changed)[0]
        assert torch.equal(before[:, :seen], after[:, :seen])
        assert not torch.equal(before[:, seen:], after[:, seen:])

    def test_the_loss_of_a_position_pulls_on_no_later_token(self) -> None:
        model = build()
        embedded = model.transformer.wte(some_ids(batch=1)).detach().requires_grad_()
        x = embedded + model.transformer.wpe(torch.arange(12))
        for block in model.transformer.h:
            x = block(x)
        x[0, 5].sum().backward()
        assert embedded.grad is not None
        reached = embedded.grad[0].abs().sum(dim=1) > 0
        assert reached.tolist() == [True] * 6 + [False] * 6


class TestNames:
    def test_the_state_dict_is_the_workshops(self) -> None:
        for config in (SMALL, GPTConfig()):
            with torch.device("meta"):
                model = GPT(config)
            found = {name: tuple(t.shape) for name, t in model.state_dict().items()}
            assert list(found.items()) == list(workshop_shapes(config).items())

    def test_weights_of_the_workshops_code_load(self) -> None:
        theirs = {name: torch.randn(shape) for name, shape in workshop_shapes(SMALL).items()}
        theirs["lm_head.weight"] = theirs["transformer.wte.weight"]
        model = GPT(SMALL).eval()
        assert str(model.load_state_dict(theirs)) == "<All keys matched successfully>"
        ids = some_ids()
        as_double = {name: tensor.double() for name, tensor in theirs.items()}
        expected = plain_gpt(as_double, SMALL, ids)
        torch.testing.assert_close(model.double()(ids)[0], expected, rtol=0, atol=1e-10)

    def test_dropout_adds_no_parameter(self) -> None:
        dropping = GPT(GPTConfig(11, 12, 3, 4, 16, dropout=0.3))
        assert list(dropping.state_dict()) == list(workshop_shapes(SMALL))


class TestParameters:
    def test_reading_and_writing_tokens_share_a_matrix(self) -> None:
        model = build()
        assert model.transformer.wte.weight is model.lm_head.weight
        with torch.no_grad():
            model.lm_head.weight[3] += 1.0
        assert torch.equal(model.transformer.wte.weight, model.lm_head.weight)

    def test_first_weights_are_those_of_the_workshops_code(self) -> None:
        """Layers are made in its order, so that its seed gives its weights."""
        torch.manual_seed(1337)
        model = GPT(SMALL)
        torch.manual_seed(1337)
        nn.Embedding(11, 16)  # replaced by the output projection, but it draws its numbers
        position = nn.Embedding(12, 16)
        blocks = []
        for _ in range(3):
            parts = [nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 64), nn.Linear(64, 16)]
            blocks.append(parts)
        head = nn.Linear(16, 11, bias=False)
        assert torch.equal(model.transformer.wpe.weight, position.weight)
        for block, (c_attn, attn_proj, c_fc, mlp_proj) in zip(
            model.transformer.h, blocks, strict=True
        ):
            assert torch.equal(block.attn.c_attn.weight, c_attn.weight)
            assert torch.equal(block.attn.c_proj.bias, attn_proj.bias)
            assert torch.equal(block.mlp.c_fc.weight, c_fc.weight)
            assert torch.equal(block.mlp.c_proj.weight, mlp_proj.weight)
        assert torch.equal(model.lm_head.weight, head.weight)

    @pytest.mark.parametrize(
        "config",
        [
            SMALL,
            GPTConfig(vocab_size=1, block_size=1, n_layer=1, n_head=1, n_embd=1),
            GPTConfig(vocab_size=500, block_size=7, n_layer=2, n_head=3, n_embd=9, dropout=0.5),
            GPTConfig(n_layer=2, n_head=2, n_embd=128),
            GPTConfig(),
        ],
    )
    def test_the_promised_number_is_the_real_one(self, config: GPTConfig) -> None:
        with torch.device("meta"):
            model = GPT(config)
        assert sum(p.numel() for p in model.parameters()) == config.n_params

    def test_the_workshops_medium_model_has_exactly_its_parameters(self) -> None:
        assert GPTConfig().n_params == 10_770_816


class TestDropout:
    CONFIG = GPTConfig(vocab_size=11, block_size=12, n_layer=2, n_head=2, n_embd=16, dropout=0.4)

    def test_it_is_off_when_not_training(self) -> None:
        dropping = build(self.CONFIG)
        without = build(GPTConfig(11, 12, 2, 2, 16))
        ids = some_ids()
        assert torch.equal(dropping(ids)[0], without(ids)[0])

    def test_it_is_on_when_training(self) -> None:
        model = build(self.CONFIG).train()
        ids = some_ids()
        assert not torch.equal(model(ids)[0], model(ids)[0])

    def test_none_is_none_even_when_training(self) -> None:
        model = build().train()
        ids = some_ids()
        assert torch.equal(model(ids)[0], model(ids)[0])


def test_the_gelu_is_gpt_2s_approximation() -> None:
    x = torch.linspace(-4, 4, 101)
    block = build().transformer.h[0]
    assert torch.equal(block.mlp.gelu(x), F.gelu(x, approximate="tanh"))
