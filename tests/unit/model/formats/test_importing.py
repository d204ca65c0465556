"""Models of the workshop and nanoGPT become runs, with equal logits to the last bit."""

from __future__ import annotations

import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from unit.model.formats.their_code import (
    CHARACTERS,
    TheirConfig,
    TheirGPT,
    nanogpt_content,
    save_nanogpt,
    save_workshop,
    tables,
    their_ids,
    trained,
)

from tuigpt.errors import UserError
from tuigpt.files import read_bytes
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.formats.importing import Imported, import_models
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import Run, open_run
from tuigpt.runs.header import read_header
from tuigpt.runs.history import History
from tuigpt.runs.metrics import METRICS_FILE, MetricsTail

CPU = torch.device("cpu")
Import = Callable[..., Imported]


@pytest.fixture
def take(home: Path) -> Import:
    """Imports files into a home of the test."""

    def run(*paths: Path, **options: Any) -> Imported:
        return import_models(paths, home, cache=home / "cache", **options)

    return run


def opened(home: Path, name: str) -> Run:
    return open_run(runs_dir(home) / name)


def logits(home: Path, imported: Imported, ids: Tensor, step: int | None = None) -> Tensor:
    run = opened(home, imported.run)
    checkpoint = next(c for c in run.checkpoints if step is None or c.step == step)
    with torch.no_grad():
        out: Tensor = load_checkpoint(checkpoint.path, CPU).model(ids)[0]
    return out


def theirs(model: TheirGPT) -> tuple[Tensor, Tensor]:
    """Token ids, and what the other program makes of them."""
    ids = their_ids(model.config)
    with torch.no_grad():
        return ids, model(ids)


def nothing_was_made(home: Path) -> bool:
    return not runs_dir(home).exists() or not list(runs_dir(home).iterdir())


class TestWorkshop:
    @pytest.mark.parametrize("module", ["model", "__main__", "gpt_from_part_2"])
    def test_it_opens_as_it_was(
        self, module: str, take: Import, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where a module of the config's name lies in the current folder; it never runs."""
        model = trained()
        path = save_workshop(tmp_path / "poems/checkpoint_1000.pt", model, module=module)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "model.py").write_text("open('PWNED', 'w')")
        imported = take(path)
        assert (imported.run, imported.steps, imported.curve) == ("poems-1", (1000,), False)
        ids, expected = theirs(model)
        assert torch.equal(logits(home, imported, ids), expected)
        (checkpoint,) = opened(home, imported.run).checkpoints
        tokenizer = load_checkpoint(checkpoint.path, CPU).tokenizer
        assert tokenizer.decode(list(range(len(CHARACTERS)))) == "".join(CHARACTERS)
        assert not (tmp_path / "PWNED").exists()

    def test_several_become_one_run_with_their_curve(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        models = {step: trained(seed=step) for step in (1000, 2000, 2500)}
        for step, model in models.items():
            save_workshop(tmp_path / f"checkpoint_{step}.pt", model, step)
        save_workshop(tmp_path / "checkpoint_final.pt", models[2500], 2500)
        steps = list(range(2501))
        train = [4.0 - step / 1000 for step in steps]
        val = [4.1 - step / 1000 for step in steps[::100]]
        val[20] = 1.5
        log = {"steps": steps, "train": train, "val": val}
        (tmp_path / "loss_log.json").write_text(json.dumps(log))
        imported = take(*sorted(tmp_path.glob("*.pt")), name="mine")
        assert imported.steps == (1000, 2000, 2500) and imported.curve
        assert "'checkpoint_final.pt' is the same" in imported.notes[0]
        for step, model in models.items():
            ids, expected = theirs(model)
            assert torch.equal(logits(home, imported, ids, step), expected)
        run = opened(home, "mine")
        assert run.status.state == "finished" and run.status.step == 2500
        assert run.best is not None and run.best.step == 2000 and run.best.val_loss == 1.5
        history = History()
        history.add(MetricsTail(run.folder / METRICS_FILE).read_new()[0])
        assert history.train == list(zip(steps, train, strict=True))
        assert history.val == list(zip(steps[::100], val, strict=True))

    def test_a_folder_stands_for_the_files_in_it(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        for step in (5, 10):
            save_workshop(tmp_path / f"out/checkpoint_{step}.pt", trained(seed=step), step)
        assert take(tmp_path / "out").steps == (5, 10)

    def test_the_vocabulary_can_come_from_the_text(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        text = tmp_path / "poems.txt"
        text.write_text("".join(CHARACTERS) * 20, encoding="utf-8")
        path = save_workshop(tmp_path / "c.pt", trained(), stoi=None, itos=None)
        with pytest.raises(UserError, match=f"which characters its {len(CHARACTERS)} tokens are"):
            take(path)
        imported = take(path, text=str(text))
        corpus = opened(home, imported.run).checkpoints[0]
        header = read_header(corpus.path)
        assert header.corpus.name == "poems" and header.corpus.characters == 20 * len(CHARACTERS)
        assert str(tmp_path) not in read_bytes(corpus.path, 1 << 20).decode("latin-1")
        text.write_text("".join(CHARACTERS[:-1]) * 20, encoding="utf-8")
        with pytest.raises(UserError, match=f"{len(CHARACTERS)} tokens, but the text has"):
            take(path, text=str(text))

    def test_another_text_is_refused(self, take: Import, home: Path, tmp_path: Path) -> None:
        text = tmp_path / "other.txt"
        text.write_text("WHOLLY OTHER\n" * 20)
        with pytest.raises(UserError, match="was not trained on 'other'"):
            take(save_workshop(tmp_path / "c.pt", trained()), text=str(text))


SWAPPED = tables(["b", "a", *CHARACTERS[2:]])["itos"]

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a smaller vocabulary": (
        tables(CHARACTERS[:-2]),
        f"{len(CHARACTERS)} tokens, but its vocabulary has {len(CHARACTERS) - 2}",
    ),
    "tables that differ": ({"itos": SWAPPED}, "contradicts itself"),
    "tables of unequal length": ({"itos": tables(CHARACTERS[:5])["itos"]}, "contradicts itself"),
    "words": (tables(["the", *CHARACTERS[1:]]), "not of characters: token 0 is 'the'"),
    "a hole": ({"itos": {i + 1: c for i, c in enumerate(CHARACTERS)}}, "no token 0"),
    "no table": ({"itos": 5}, "not two tables"),
    "no config": ({"config": None}, "holds no config"),
    "an unknown setting": (
        {"config": {**vars(TheirConfig()), "rotary": True}},
        "its config has rotary",
    ),
    "a size that cannot be": ({"config": {**vars(TheirConfig()), "n_layer": 10**30}}, "n_layer"),
    "heads that do not divide": (
        {"config": {**vars(TheirConfig()), "n_head": 5}},
        "its config cannot be: n_head is 5",
    ),
    "a thousand layers": (
        {"config": {**vars(TheirConfig()), "n_layer": 1000}},
        "1,000 layers, but has only",
    ),
    "another context": (
        {"config": {**vars(TheirConfig()), "block_size": 17}},
        "wpe.weight is 16 × 24, but its config tells 17 × 24",
    ),
}


@pytest.mark.parametrize(("changed", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_does_not_fit_is_refused_and_named(
    changed: dict[str, Any], words: str, take: Import, home: Path, tmp_path: Path
) -> None:
    path = save_workshop(tmp_path / "c.pt", trained(), **changed)
    with pytest.raises(UserError, match=words):
        take(path)
    assert nothing_was_made(home)


def state(change: Callable[[dict[str, Tensor]], object]) -> dict[str, Tensor]:
    tensors = dict(trained().state_dict())
    change(tensors)
    return tensors


H0 = "transformer.h.0."
WEIGHTS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "one missing": (lambda s: s.pop(f"{H0}mlp.c_fc.bias"), f"lacks {H0}mlp.c_fc.bias"),
    "one unknown": (
        lambda s: s.update({"transformer.h.0.gate": torch.ones(3)}),
        "no place for: transformer.h.0.gate",
    ),
    "a layer too many": (
        lambda s: s.update({f"transformer.h.2.ln_{i}.weight": torch.ones(24) for i in (1, 2)}),
        "no place for: transformer.h.2.ln_1.weight, transformer.h.2.ln_2.weight",
    ),
    "one of another size": (
        lambda s: s.update({f"{H0}ln_1.bias": torch.ones(25)}),
        f"{H0}ln_1.bias is 25, but its config tells 24",
    ),
    "one of whole numbers": (
        lambda s: s.update({f"{H0}ln_1.bias": torch.ones(24, dtype=torch.int64)}),
        "torch.int64",
    ),
    "two that are one": (
        lambda s: s.update({f"{H0}ln_1.bias": s["transformer.h.1.ln_1.bias"]}),
        "share their numbers",
    ),
    "an output layer of its own": (
        lambda s: s.update({"lm_head.weight": s["lm_head.weight"] + 1}),
        "lm_head.weight and transformer.wte.weight differ",
    ),
    "one that is no tensor": (lambda s: s.update({"a": 5}), "no tensor: 'a'"),  # type: ignore[dict-item]
    "names that become one": (
        lambda s: s.update({f"module.{H0}ln_1.bias": torch.ones(24)}),
        f"{H0}ln_1.bias twice",
    ),
    "a mask that sees the future": (
        lambda s: s.update({f"{H0}attn.bias": torch.ones(1, 1, 16, 16)}),
        "sees only what is before",
    ),
}


@pytest.mark.parametrize(("change", "words"), WEIGHTS.values(), ids=list(WEIGHTS))
def test_weights_that_are_not_the_models_are_named(
    change: Callable[[dict[str, Tensor]], object],
    words: str,
    take: Import,
    home: Path,
    tmp_path: Path,
) -> None:
    path = save_workshop(tmp_path / "c.pt", trained(), model_state_dict=state(change))
    with pytest.raises(UserError, match=words):
        take(path)
    assert nothing_was_made(home)


def wrapped(prefix: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda tensors: {prefix + name: tensor for name, tensor in tensors.items()}


def with_masks(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    masks = {f"transformer.h.{i}.attn.bias": torch.ones(16, 16).tril()[None, None] for i in (0, 1)}
    return {**tensors, **masks, f"{H0}attn.masked_bias": torch.tensor(-1e4)}


def without_head(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if name != "lm_head.weight"}


def with_equal_head(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**tensors, "lm_head.weight": tensors["lm_head.weight"].clone()}


class TestNanoGPT:
    @pytest.mark.parametrize(
        "change",
        [
            dict, with_masks, without_head, with_equal_head, wrapped("_orig_mod."),
            wrapped("module."), wrapped("module._orig_mod."), wrapped("_orig_mod.module."),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("bias", [True, False])
    def test_it_opens_as_it_was(
        self, change: Callable[..., Any], bias: bool, take: Import, home: Path, tmp_path: Path
    ) -> None:
        model = trained(bias=bias, exact=True)
        content = nanogpt_content(model, bias)
        content["model"] = change(content["model"])
        imported = take(save_nanogpt(tmp_path / "out/ckpt.pt", content))
        ids, expected = theirs(model)
        assert torch.equal(logits(home, imported, ids), expected)
        (checkpoint,) = opened(home, imported.run).checkpoints
        assert (checkpoint.step, checkpoint.val_loss) == (250, 1.75)
        assert load_checkpoint(checkpoint.path, CPU).model.config.dropout == 0.2

    @pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
    def test_other_types_become_float32(
        self, kind: torch.dtype, take: Import, home: Path, tmp_path: Path
    ) -> None:
        model = trained(exact=True)
        content = nanogpt_content(model)
        content["model"] = {name: tensor.to(kind) for name, tensor in content["model"].items()}
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.to(kind))
        imported = take(save_nanogpt(tmp_path / "ckpt.pt", content))
        ids, expected = theirs(model)
        assert torch.equal(logits(home, imported, ids), expected)

    def test_the_exact_gelu_is_not_the_approximation(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        model = trained(exact=True)
        imported = take(save_nanogpt(tmp_path / "ckpt.pt", nanogpt_content(model)))
        other = TheirGPT(model.config)
        other.load_state_dict(model.state_dict())
        ids, approximate = theirs(other)
        assert not torch.equal(logits(home, imported, ids), approximate)

    def test_a_val_loss_of_another_step_is_not_this_ones(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        content = nanogpt_content(trained(exact=True), config={"always_save_checkpoint": True})
        imported = take(save_nanogpt(tmp_path / "ckpt.pt", content))
        assert opened(home, imported.run).checkpoints[0].val_loss is None

    def test_a_vocabulary_is_asked_for(self, take: Import, home: Path, tmp_path: Path) -> None:
        content = nanogpt_content(trained(exact=True))
        path = save_nanogpt(tmp_path / "a/ckpt.pt", content, meta=False)
        with pytest.raises(UserError, match=r"text .*meta\.pkl"):
            take(path)
        save_nanogpt(tmp_path / "b/ckpt.pt", content)
        assert take(path, meta=tmp_path / "b/meta.pkl").steps == (250,)

    def test_gpt_2s_vocabulary_is_named_as_such(
        self, take: Import, home: Path, tmp_path: Path
    ) -> None:
        config = TheirConfig(vocab_size=50304, n_embd=2, n_head=1, n_layer=1)
        path = save_nanogpt(tmp_path / "ckpt.pt", nanogpt_content(trained(config, exact=True)))
        with pytest.raises(UserError, match="50,304 tokens is GPT-2's"):
            take(path)
        assert nothing_was_made(home)

    def test_another_architecture_is_named(self, take: Import, tmp_path: Path) -> None:
        arguments = {**vars(TheirConfig()), "bias": False, "use_rmsnorm": True}
        content = nanogpt_content(trained(exact=True), model_args=arguments)
        with pytest.raises(UserError, match="its model_args have use_rmsnorm"):
            take(save_nanogpt(tmp_path / "ckpt.pt", content))

    def test_a_vocabulary_that_would_run_is_refused(
        self, take: Import, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Boom:
            def __reduce__(self) -> Any:
                return os.mkdir, ("PWNED",)

        monkeypatch.chdir(tmp_path)
        path = save_nanogpt(tmp_path / "ckpt.pt", nanogpt_content(trained(exact=True)))
        (tmp_path / "meta.pkl").write_bytes(pickle.dumps({**tables(), "vocab_size": Boom()}))
        with pytest.raises(UserError, match=r"posix\.mkdir"):
            take(path)
        with pytest.raises(UserError, match=r"'ckpt\.pt'.*posix\.mkdir"):
            take(save_nanogpt(path, {**nanogpt_content(trained(exact=True)), "note": Boom()}))
        assert not (tmp_path / "PWNED").exists() and nothing_was_made(home)


def test_models_that_do_not_go_together_are_refused(
    take: Import, home: Path, tmp_path: Path
) -> None:
    first = save_workshop(tmp_path / "checkpoint_10.pt", trained(), 10)
    small = trained(TheirConfig(n_layer=1))
    with pytest.raises(UserError, match="'checkpoint_10.pt' and 'b.pt' are models of different"):
        take(first, save_workshop(tmp_path / "b.pt", small, 20))
    with pytest.raises(UserError, match="both of step 10, but differ"):
        take(first, save_workshop(tmp_path / "b.pt", trained(seed=6), 10))
    other = tables([*CHARACTERS[:-1], "Z"])
    with pytest.raises(UserError, match="different vocabularies"):
        take(first, save_workshop(tmp_path / "b.pt", trained(), 20, **other))
    assert nothing_was_made(home)


def test_a_name_that_is_taken_is_refused(take: Import, tmp_path: Path) -> None:
    path = save_workshop(tmp_path / "c.pt", trained())
    take(path, name="mine")
    with pytest.raises(UserError, match="'mine' already"):
        take(path, name="mine")


LOGS: dict[str, tuple[Any, str]] = {
    "unequal": ({"steps": [0, 1], "train": [1.0], "val": []}, "2 steps, but 1 train losses"),
    "out of order": ({"steps": [1, 0], "train": [1.0, 1.0], "val": []}, "not in order"),
    "no interval": ({"steps": list(range(100)), "train": [1.0] * 100, "val": [1.0] * 70}, "70 val"),
    "no list": ({"steps": 5, "train": [], "val": []}, "steps should be"),
    "no log": ([], "should be"),
    "words": ({"steps": ["a"], "train": [1.0], "val": []}, "steps"),
}


@pytest.mark.parametrize(("log", "words"), LOGS.values(), ids=list(LOGS))
def test_a_damaged_loss_log_is_named(
    log: Any, words: str, take: Import, home: Path, tmp_path: Path
) -> None:
    path = save_workshop(tmp_path / "c.pt", trained())
    (tmp_path / "loss_log.json").write_text(json.dumps(log))
    with pytest.raises(UserError, match=f"cannot import 'loss_log.json': .*{words}"):
        take(path)
    assert nothing_was_made(home)


def test_neither_format_is_named(take: Import, tmp_path: Path) -> None:
    torch.save({"weights": torch.ones(3)}, tmp_path / "c.pt")
    with pytest.raises(UserError, match=r"neither the workshop's .* nor nanoGPT's"):
        take(tmp_path / "c.pt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"holds no \.pt file"):
        take(tmp_path / "empty")
    with pytest.raises(UserError, match="No such file"):
        take(tmp_path / "gone.pt")


def mutated(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 2, 5])):
        place, other = rng.randrange(len(damaged)), rng.randrange(len(damaged))
        match rng.randrange(4):
            case 0:
                damaged[place] = rng.randrange(256)
            case 1:
                del damaged[place : place + rng.randrange(1, 20)]
            case 2:
                damaged[place:place] = damaged[other : other + rng.randrange(1, 60)]
            case _:
                damaged[place:place] = rng.choice([b"(", b"}", b".", b"R", b"b", b"Q", b"\x81"])
    return bytes(damaged)


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_is_refused_in_one_line(seed: int, take: Import, tmp_path: Path) -> None:
    """Damage within the pickles too, which no checksum catches where somebody made it."""
    rng = random.Random(seed)
    small = trained(TheirConfig(block_size=4, n_layer=1, n_embd=4), exact=True)
    path = save_nanogpt(tmp_path / "ckpt.pt", nanogpt_content(small))
    meta = path.with_name("meta.pkl").read_bytes()
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    refused = 0
    for _ in range(100):
        path.with_name("meta.pkl").write_bytes(mutated(meta, rng) if rng.random() < 0.3 else meta)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts.items():
                hit = name.endswith("data.pkl")
                archive.writestr(name, mutated(content, rng) if hit else content)
        try:
            take(path)
        except UserError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50
