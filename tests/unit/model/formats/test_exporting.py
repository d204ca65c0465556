"""What is exported is opened by the other programs, written out independently, and is the same."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from unit.model.formats.their_code import (
    TheirConfig,
    TheirGPT,
    config_class,
    generate,
    nanogpt_content,
    save_nanogpt,
    save_workshop,
    trained,
)

from tuigpt.cli.export import PROGRAMS
from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.decode import TextGenerator
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.formats import exporting
from tuigpt.model.formats.exporting import export_checkpoint
from tuigpt.model.formats.importing import import_models
from tuigpt.model.gpt import GPT
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import Checkpoint, open_run, read_checkpoint
from tuigpt.runs.header import CheckpointFacts
from tuigpt.text.bpe import BPETokenizer

CPU = torch.device("cpu")
Make = Callable[..., Checkpoint]


@pytest.fixture
def checkpoint(home: Path, tmp_path: Path) -> Make:
    """Imports a model of the other program's own, so that there is something to export."""

    def make(exact: bool = False) -> Checkpoint:
        model = trained(exact=exact)
        if exact:
            path = save_nanogpt(tmp_path / "in/ckpt.pt", nanogpt_content(model))
        else:
            path = save_workshop(tmp_path / "in/checkpoint_100.pt", model, 100)
            log = {"steps": [*range(101)], "train": [3.0] * 101, "val": [3.1, 2.0]}
            (tmp_path / "in/loss_log.json").write_text(json.dumps(log))
        imported = import_models([path], home, cache=home / "cache")
        return open_run(runs_dir(home) / imported.run).checkpoints[0]

    return make


def same_weights(model: TheirGPT, checkpoint: Checkpoint) -> bool:
    ours = load_checkpoint(checkpoint.path, CPU).model.state_dict()
    theirs = model.state_dict()
    return theirs.keys() == ours.keys() and all(torch.equal(theirs[n], ours[n]) for n in ours)


def ours_and_theirs_agree(
    ours: Checkpoint, model: TheirGPT, stoi: dict[str, int], itos: dict[int, str], seed: int
) -> bool:
    """Whether both programs write the same text, past the context as well."""
    prompt = [stoi[character] for character in "to be"]
    theirs = generate(model, prompt, seed, count=60, temperature=0.8, top_k=10)
    loaded = load_checkpoint(ours.path, CPU)
    config = SampleConfig(max_new_tokens=60, temperature=0.8, top_k=10, seed=seed)
    written = [t[0] for t in TextGenerator(loaded.model, torch.tensor(prompt), config)]
    return "to be" + loaded.tokenizer.decode(written) == "".join(itos[i] for i in theirs)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_workshops_program_prints_the_same_text(
    seed: int, checkpoint: Make, tmp_path: Path
) -> None:
    ours = checkpoint()
    export_checkpoint(ours, "workshop", tmp_path / "out")
    with config_class("model"):
        content = torch.load(tmp_path / "out/checkpoint_100.pt", weights_only=False)
        assert type(content["config"]).__module__ == "model"
        model = TheirGPT(TheirConfig(**vars(content["config"]))).eval()
    model.load_state_dict(content["model_state_dict"])
    assert content["step"] == 100 and same_weights(model, ours)
    assert ours_and_theirs_agree(ours, model, content["stoi"], content["itos"], seed)


def test_the_losses_go_along(checkpoint: Make, tmp_path: Path) -> None:
    exported = export_checkpoint(checkpoint(), "workshop", tmp_path / "out")
    assert set(exported.files) == {"checkpoint_100.pt", "loss_log.json"}
    log = json.loads((tmp_path / "out/loss_log.json").read_text())
    assert log == {"steps": [*range(101)], "train": [3.0] * 101, "val": [3.1, 2.0]}


def test_nanogpts_program_opens_it_without_running_anything(
    checkpoint: Make, tmp_path: Path
) -> None:
    ours = checkpoint(exact=True)
    exported = export_checkpoint(ours, "nanogpt", tmp_path / "poems")
    assert not any("GELU" in note for note in exported.notes)
    content = torch.load(tmp_path / "poems/ckpt.pt", weights_only=True)  # as its sample.py does
    arguments = content["model_args"]
    assert arguments.pop("bias") is True and arguments.pop("dropout") == 0.2
    model = TheirGPT(TheirConfig(**arguments), exact=True).eval()
    model.load_state_dict(content["model"])
    assert same_weights(model, ours) and content["config"]["dataset"] == "poems"
    meta = pickle.loads((tmp_path / "poems/meta.pkl").read_bytes())
    tokenizer = load_checkpoint(ours.path, CPU).tokenizer
    assert meta["vocab_size"] == tokenizer.vocab_size
    assert ours_and_theirs_agree(ours, model, meta["stoi"], meta["itos"], seed=4)
    text = "to be, or not"
    assert [meta["stoi"][c] for c in text] == tokenizer.encode(text).tolist()


@pytest.mark.parametrize(("exact", "to"), [(True, "workshop"), (False, "nanogpt")])
def test_another_gelu_is_told(exact: bool, to: str, checkpoint: Make, tmp_path: Path) -> None:
    exported = export_checkpoint(checkpoint(exact), to, tmp_path / "out")
    assert any("computes GELU in another way" in note for note in exported.notes)


@pytest.mark.parametrize("to", ["workshop", "nanogpt"])
@pytest.mark.parametrize("exact", [True, False])
def test_what_goes_out_comes_back(
    exact: bool, to: str, checkpoint: Make, home: Path, tmp_path: Path
) -> None:
    first = checkpoint(exact)
    export_checkpoint(first, to, tmp_path / "out")
    imported = import_models([tmp_path / "out"], home, cache=home / "cache")
    (again,) = open_run(runs_dir(home) / imported.run).checkpoints
    before, after = (load_checkpoint(c.path, CPU) for c in (first, again))
    weights = after.model.state_dict()
    assert all(torch.equal(t, weights[n]) for n, t in before.model.state_dict().items())
    assert before.tokenizer.to_dict() == after.tokenizer.to_dict()
    assert (first.step, after.header.step) == (again.step, before.header.step)


def test_pairs_of_bytes_are_refused_where_only_characters_are_known(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.train(["to be or not to be " * 50], 300)
    model = GPT(GPTConfig(tokenizer.vocab_size, 16, 1, 1, 8))
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, model, tokenizer, CheckpointFacts(step=1))
    for to in ("workshop", "nanogpt"):
        with pytest.raises(UserError, match="only tokens that are characters"):
            export_checkpoint(read_checkpoint(path), to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_stays_as_it_is(checkpoint: Make, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    with pytest.raises(UserError, match="is there already"):
        export_checkpoint(checkpoint(), "workshop", tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine"]


def test_the_shell_offers_every_program() -> None:
    assert set(PROGRAMS) == set(exporting.PROGRAMS)


def test_nothing_of_the_machine_goes_along(checkpoint: Make, tmp_path: Path) -> None:
    ours = checkpoint()
    for to in ("workshop", "nanogpt", "huggingface"):
        export_checkpoint(ours, to, tmp_path / to)
        for file in (tmp_path / to).iterdir():
            assert str(tmp_path).encode() not in file.read_bytes(), file
    assert "model" not in sys.modules
