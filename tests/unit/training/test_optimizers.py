"""The learning rate at each step, and the optimizer that is given it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tuigpt.config import GPTConfig, TrainConfig, train_defaults, train_settings
from tuigpt.estimate import memory
from tuigpt.model.gpt import GPT
from tuigpt.recipes import RECIPES, OptimizerRule, Recipe
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import Stepped
from tuigpt.training.muon import Muon, orthogonalised
from tuigpt.training.optimizers import build_optimizers, set_first_weights
from tuigpt.training.trainer import Trainer


def rates(**settings: float) -> list[float]:
    config = TrainConfig(**settings)  # type: ignore[arg-type]
    return [config.learning_rate_at(step) for step in range(config.max_steps)]


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
    (optimizer,) = build_optimizers(model, TrainConfig(learning_rate=0.25, weight_decay=0.125))
    assert isinstance(optimizer, torch.optim.AdamW)
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.25 and group["weight_decay"] == 0.125
    assert group["betas"] == (0.9, 0.999) and group["eps"] == 1e-8
    assert len(group["params"]) == len(list(model.parameters()))  # the shared matrix once


class TestFast:
    """Muon for the matrices inside the blocks, AdamW for the rest."""

    @staticmethod
    def model() -> GPT:
        torch.manual_seed(0)
        return GPT(GPTConfig(vocab_size=5, block_size=4, n_layer=2, n_head=1, n_embd=8))

    def test_every_parameter_is_learned_by_exactly_one_optimizer(self) -> None:
        model = self.model()
        muon, adamw = build_optimizers(model, TrainConfig(**train_defaults("fast")))
        by_muon = {p for group in muon.param_groups for p in group["params"]}
        by_adamw = {p for group in adamw.param_groups for p in group["params"]}
        assert not by_muon & by_adamw
        assert by_muon | by_adamw == set(model.parameters())
        assert {p.ndim for p in by_muon} == {2} and len(by_muon) == 2 * 4
        assert model.lm_head.weight in by_adamw

    def test_the_rate_falls_in_a_straight_line_to_its_lowest(self) -> None:
        config = TrainConfig(
            recipe="fast", max_steps=12, warmup_steps=1, learning_rate=1.0, min_lr_ratio=0.0
        )
        found = [config.learning_rate_at(step) for step in range(12)]
        assert found == pytest.approx([1.0, *(1 - n / 10 for n in range(11))])

    def test_residual_branches_are_silent_at_first(self) -> None:
        model = self.model()
        before = {name: p.clone() for name, p in model.named_parameters()}
        set_first_weights(model, TrainConfig(recipe="workshop"))
        assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
        set_first_weights(model, TrainConfig(recipe="fast"))
        for block in model.transformer.h:
            x = torch.randn(1, 3, 8)
            assert torch.equal(block(x), x)
        assert 0.01 < float(model.transformer.wpe.weight.detach().std()) < 0.03

    @pytest.mark.parametrize("shape", [(8, 8), (4, 16), (16, 4), (1, 5)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize("size", [7.0, 1e-9])
    def test_singular_values_come_close_to_one(
        self, shape: tuple[int, int], dtype: torch.dtype, size: float
    ) -> None:
        generator = torch.Generator().manual_seed(3)
        matrices = torch.randn((6, *shape), generator=generator) * size
        values = torch.linalg.svdvals(orthogonalised(matrices.to(dtype)).float())
        assert values.min() > 0.13 and values.max() < 1.9

    def test_nothing_comes_of_a_matrix_of_zeros(self) -> None:
        assert not orthogonalised(torch.zeros(2, 4, 8)).any()

    def test_what_is_small_grows_fiftyfold_at_least(self) -> None:
        """Also beside many that are large, because the norm of X Xᵀ bounds the largest well."""
        values = torch.cat([torch.ones(15), torch.tensor([1e-3])])
        found = torch.linalg.svdvals(orthogonalised(torch.diag(values)[None]))
        assert found.min() > 0.05

    @pytest.mark.parametrize("smallest", [1e-1, 1e-4, 1e-8])
    @pytest.mark.parametrize("shape", [(8, 8), (12, 30), (64, 16)])
    def test_a_wide_matrix_gets_what_the_textbook_iteration_gives(
        self, shape: tuple[int, int], smallest: float
    ) -> None:
        generator = torch.Generator().manual_seed(7)
        random = torch.randn((3, *shape), generator=generator, dtype=torch.float64)
        u, values, v = torch.linalg.svd(random, full_matrices=False)
        values = torch.logspace(0, math.log10(smallest), values.size(-1), dtype=torch.float64)
        matrices = (u * values) @ v
        values = values / values.pow(4).sum(-1).pow(1 / 4)
        for a, b, c in (
            (8.28721201814563, -23.595886519098837, 17.300387312530933),
            (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
            (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
        ):
            values = values / 1.01
            values = a * values + b * values**3 + c * values**5
        found = orthogonalised(matrices.float()).double()
        torch.testing.assert_close(found, (u * values) @ v, rtol=0, atol=5e-4)

    def test_matrices_of_a_shape_are_worked_off_as_if_alone(self) -> None:
        """Also the three that a query-key-value projection consists of."""
        generator = torch.Generator().manual_seed(5)
        together = [
            torch.nn.Parameter(torch.randn(shape, generator=generator))
            for shape in ((8, 8), (8, 8), (24, 8), (8, 32))
        ]
        alone = []
        for p in together:
            p.grad = torch.randn(p.shape, generator=generator)
            parts = 3 if p.size(0) == 24 else 1
            for part, gradient in zip(p.chunk(parts), p.grad.chunk(parts), strict=True):
                copy = torch.nn.Parameter(part.detach().clone())
                copy.grad = gradient.clone()
                alone.append(copy)
        Muon(together, 0.1, weight_decay=0.5).step()
        for p in alone:
            Muon([p], 0.1, weight_decay=0.5).step()
        expected = [alone[0], alone[1], torch.cat(tuple(alone[2:5])), alone[5]]
        for found, wanted in zip(together, expected, strict=True):
            torch.testing.assert_close(found.detach(), wanted.detach())

    def test_in_bfloat16_the_update_is_nearly_the_same(self) -> None:
        config = TrainConfig(**{**train_defaults("fast"), "precision": "bfloat16"})
        updated = []
        for precise in (config, replace(config, precision="float32")):
            torch.manual_seed(1)
            model = self.model()
            set_first_weights(model, precise)
            muon, _ = build_optimizers(model, precise)
            matrices = [p for group in muon.param_groups for p in group["params"]]
            for p in matrices:
                p.grad = torch.randn_like(p)
            before = torch.cat([p.detach().flatten() for p in matrices])
            muon.step()
            updated.append(torch.cat([p.detach().flatten() for p in matrices]) - before)
        rough, exact = updated
        assert rough.dtype == torch.float32 and not torch.equal(rough, exact)
        assert torch.cosine_similarity(rough, exact, dim=0) > 0.99

    def test_the_first_update_is_the_orthogonal_gradient(self) -> None:
        p = torch.nn.Parameter(torch.zeros(4, 4))
        p.grad = torch.diag(torch.tensor([5.0, 3.0, 2.0, 1.0]))
        Muon([p], lr=0.5).step()
        off_diagonal = p.detach() - torch.diag(p.detach().diagonal())
        assert off_diagonal.abs().max() < 1e-6
        assert ((p.detach().diagonal() < -0.13 * 0.5) & (p.detach().diagonal() > -1.9 * 0.5)).all()


def test_a_third_recipe_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is validated, explained, estimated, scheduled and trained with like the others."""
    plain = Recipe(
        help="gradient descent with momentum",
        optimizers=(
            OptimizerRule("torch.optim:SGD", "block matrices", dict(momentum=0.9), moments=1),
            OptimizerRule("torch.optim:SGD", "rest", rate="adamw_lr_ratio", moments=0),
        ),
        decay=lambda progress: 1 - progress**2,
        first_weights="silent branches",
        defaults=dict(learning_rate=0.5, min_lr_ratio=0.0, warmup_steps=1),
    )
    monkeypatch.setitem(RECIPES, "plain", plain)
    config = train_settings(
        dict(recipe="plain", max_steps=12, batch_size=4, eval_interval=100, sample_tokens=0)
    )
    assert config.learning_rate == 0.5
    assert config.learning_rate_at(6) == pytest.approx(0.5 * 0.75)

    text = "to be or not to be, that is the question\n" * 10
    tokenizer = CharTokenizer.from_text(text)
    sizes = GPTConfig(tokenizer.vocab_size, block_size=8, n_layer=1, n_head=2, n_embd=16)
    torch.manual_seed(0)
    model = GPT(sizes)
    set_first_weights(model, config)
    corpus = Corpus.from_text(text, tokenizer, 0.1, 8, torch.device("cpu"))
    trainer = Trainer(model, tokenizer, corpus, config)
    losses = [event.loss for event in trainer.run() if isinstance(event, Stepped)]
    assert len(losses) == 12 and losses[-1] < losses[0] - 0.2
    remembered = sum(
        tensor.nbytes for name, tensor in trainer.tensors().items() if name.startswith("optimizer.")
    )
    assert memory(sizes, config).optimizer == remembered
