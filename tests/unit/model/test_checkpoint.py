"""A checkpoint is one whole file that holds all it needs, and no other file passes for one."""

from __future__ import annotations

import json
import math
import pickletools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import checkpoint_header, write_header_only
from msgspec.structs import asdict, replace
from safetensors.torch import load_file, save_file

from tuigpt.config import GPTConfig
from tuigpt.errors import UserError
from tuigpt.files import read_safetensors_metadata
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.runs.folder import read_checkpoint
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.tokenizer import CharTokenizer

CPU = torch.device("cpu")
FIXTURES = Path(__file__).parents[2] / "fixtures"
VOCAB = "\n abcdé日🙂"
CONFIG = GPTConfig(vocab_size=len(VOCAB), block_size=8, n_layer=2, n_head=2, n_embd=8, dropout=0.25)
FACTS = CheckpointFacts(
    run="verse", step=250, train_loss=1.5, val_loss=1.75, corpus=CorpusFacts(name="v")
)


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(3)
    return GPT(CONFIG)


@pytest.fixture
def saved(model: GPT, tmp_path: Path) -> Path:
    path = tmp_path / "step-000250.safetensors"
    save_checkpoint(path, model, CharTokenizer(VOCAB), FACTS)
    return path


def refusal(path: Path) -> str:
    """Why a file is refused; the list of checkpoints says so as well, without torch."""
    with pytest.raises(UserError) as raised:
        load_checkpoint(path, CPU)
    message = str(raised.value)
    assert "\n" not in message and repr(str(path)) in message
    return message


class TestRoundTrip:
    def test_weights_vocabulary_and_facts_come_back(self, saved: Path, model: GPT) -> None:
        again, tokenizer, header = load_checkpoint(saved, CPU)
        assert again.config == CONFIG and not again.training
        assert all(
            torch.equal(a, b)
            for a, b in zip(again.state_dict().values(), model.state_dict().values(), strict=True)
        )
        assert again.lm_head.weight is again.transformer.wte.weight
        assert all(parameter.requires_grad for parameter in again.parameters())
        assert {part.device.type for part in again.state_dict().values()} == {"cpu"}
        assert isinstance(tokenizer, CharTokenizer) and tokenizer.vocab == VOCAB
        assert all(getattr(header, n) == value for n, value in asdict(FACTS).items())
        assert set(header.versions) == {"tuigpt", "torch", "python"}

    def test_the_shared_matrix_is_stored_once(self, saved: Path, model: GPT) -> None:
        tensors = load_file(saved)
        assert "lm_head.weight" not in tensors
        assert set(tensors) == set(model.state_dict()) - {"lm_head.weight"}
        assert saved.stat().st_size < 4 * CONFIG.n_params + 6000

    def test_the_list_reads_the_same_without_torch(self, saved: Path) -> None:
        listed = read_checkpoint(saved)
        assert (listed.step, listed.train_loss, listed.val_loss) == (250, 1.5, 1.75)
        assert (listed.n_params, listed.vocab_size) == (CONFIG.n_params, CONFIG.vocab_size)
        assert listed.corpus == "v" and listed.problem == ""

    def test_losses_that_are_no_numbers(self, model: GPT, tmp_path: Path) -> None:
        path = tmp_path / "nan.safetensors"
        facts = replace(FACTS, val_loss=math.nan, train_loss=math.inf)
        save_checkpoint(path, model, CharTokenizer(VOCAB), facts)
        raw = path.read_bytes()
        assert b"NaN" not in raw[:3000] and b"Infinity" not in raw[:3000]
        assert math.isnan(load_checkpoint(path, CPU).header.val_loss or 0.0)
        assert math.isnan(read_checkpoint(path).val_loss or 0.0)

    def test_a_path_that_is_no_utf_8(self, model: GPT, tmp_path: Path) -> None:
        path = tmp_path / "odd.safetensors"
        facts = replace(FACTS, corpus=CorpusFacts(path="a\udcff"))
        save_checkpoint(path, model, CharTokenizer(VOCAB), facts)
        assert load_checkpoint(path, CPU).header.corpus.path == "a\udcff"

    def test_half_precision_weights_open_as_float32(self, saved: Path, tmp_path: Path) -> None:
        half = {name: tensor.bfloat16() for name, tensor in load_file(saved).items()}
        path = tmp_path / "bf16.safetensors"
        save_file(half, path, read_safetensors_metadata(saved))
        model, _, _ = load_checkpoint(path, CPU)
        assert {p.dtype for p in model.parameters()} == {torch.float32}

    def test_nothing_is_pickled(self, saved: Path) -> None:
        with pytest.raises(Exception):  # noqa: B017
            list(pickletools.genops(saved.read_bytes()))

    def test_saving_again_replaces_the_file_whole(self, saved: Path, model: GPT) -> None:
        before = saved.stat().st_ino
        save_checkpoint(saved, model, CharTokenizer(VOCAB), replace(FACTS, step=251))
        assert saved.stat().st_ino != before
        assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_one_of_each_format_opens(saved: Path) -> None:
    newest = load_checkpoint(FIXTURES / "checkpoint-v3.safetensors", CPU)
    assert newest.header.format == 3
    text = "it's  <|endoftext|>"
    assert newest.tokenizer.decode(newest.tokenizer.encode(text)) == text
    newer = load_checkpoint(FIXTURES / "checkpoint-v2.safetensors", CPU)
    assert (newer.header.format, newer.model.config.gelu) == (2, "exact")
    older = load_checkpoint(saved, CPU)
    assert (older.header.format, older.model.config.gelu) == (1, "tanh")


class TestRefused:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        assert "No such file" in refusal(tmp_path / "gone.safetensors")

    def test_a_folder(self, tmp_path: Path) -> None:
        assert "it is a folder" in refusal(tmp_path)

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
    def test_a_file_cut_short_anywhere(self, saved: Path, share: float) -> None:
        raw = saved.read_bytes()
        saved.write_bytes(raw[: int(len(raw) * share)])
        assert "cut short" in refusal(saved) or "empty" in refusal(saved)
        assert read_checkpoint(saved).problem

    @pytest.mark.parametrize(
        "content",
        [
            b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            b"PK\x03\x04" + b"\0" * 100,
            b"\x80\x02}q\0." + b"x" * 50,
            b"\0" * 500,
        ],
    )
    def test_a_file_of_another_kind(self, saved: Path, content: bytes) -> None:
        saved.write_bytes(content)
        assert "not a safetensors file" in refusal(saved)
        assert "not a safetensors file" in read_checkpoint(saved).problem

    def test_weights_of_somebody_else(self, tmp_path: Path) -> None:
        path = tmp_path / "other.safetensors"
        save_file({"w": torch.zeros(3)}, path)
        assert "not one of tuigpt's checkpoints" in refusal(path)
        save_file({"w": torch.zeros(3)}, path, {"format": "pt"})
        assert "not one of tuigpt's checkpoints" in refusal(path)

    def test_one_from_a_newer_tuigpt(self, saved: Path) -> None:
        rewrite(saved, format=4)
        assert "its format is 4, and this one reads up to 3" in refusal(saved)

    def test_a_vocabulary_that_does_not_fit_the_model(self, saved: Path) -> None:
        rewrite(saved, tokenizer={"type": "char", "vocab": "abc"})
        assert "vocabulary has 3 tokens, its model 9" in refusal(saved)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            (dict(model=None), "model should be object, not null"),
            (dict(model={"n_layer": False}), "model.n_layer should be int, not bool"),
            (dict(model=vars(CONFIG) | {"n_head": 3}), "a divisor of n_embd 8"),
            (dict(model=vars(CONFIG) | {"n_layer": 5}), "not hold the weights"),
            (dict(model=vars(CONFIG) | {"n_layer": 1_000}), "not hold the weights"),
            (dict(model=vars(CONFIG) | {"n_layer": 10**9}), "at most 1,000"),
            (dict(model=vars(CONFIG) | {"n_layer": 10**12}), "at most 1,000"),
            (dict(model=vars(CONFIG) | {"block_size": 10**9}), "not hold the weights"),
            (dict(model=vars(CONFIG) | {"block_size": 10**30}), "larger than any"),
            (dict(tokenizer={"type": "telepathy"}), "telepathy"),
            (dict(tokenizer={"type": "char", "vocab": "aba"}), "once"),
        ],
    )
    def test_a_header_that_tells_of_another_model(
        self, saved: Path, changed: dict[str, Any], words: str
    ) -> None:
        rewrite(saved, **changed)
        assert words in refusal(saved)

    @pytest.mark.parametrize(
        ("name", "tensor"),
        [
            ("transformer.wte.weight", torch.zeros(CONFIG.n_params)),
            ("transformer.wpe.weight", torch.zeros(8, 9)),
            ("transformer.h.1.mlp.c_fc.bias", torch.zeros(8, 4)),
            ("transformer.ln_f.weight", torch.zeros(8, dtype=torch.uint8)),
            ("transformer.ln_f.bias", torch.zeros(8, dtype=torch.complex64)),
            ("transformer.h.1.ln_1.bias", None),
            ("transformer.h.2.ln_1.bias", torch.zeros(8)),
        ],
    )
    def test_other_tensors_than_the_models(
        self, saved: Path, name: str, tensor: torch.Tensor | None
    ) -> None:
        tensors, metadata = load_file(saved), read_safetensors_metadata(saved)
        if tensor is None:
            del tensors[name]
        else:
            tensors[name] = tensor
        save_file(tensors, saved, metadata)
        assert re.search("weights|no type of weights", refusal(saved))

    def test_merges_that_would_fill_the_memory_are_refused(self, saved: Path) -> None:
        doubling = [[97, 97], *([256 + i, 256 + i] for i in range(40))]
        rewrite(saved, tokenizer={"type": "bpe", "words": 1, "merges": doubling})
        assert "token of more than" in refusal(saved)

    @pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 100_000, "{}", '"x"'])
    def test_a_header_that_is_none(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "odd.safetensors"
        write_header_only(path, {"tuigpt": text})
        assert "header" in refusal(path)
        assert read_checkpoint(path).problem

    def test_a_header_without_weights(self, tmp_path: Path) -> None:
        path = tmp_path / "bare.safetensors"
        write_header_only(path, checkpoint_header(5))
        assert "not hold the weights" in refusal(path)


def rewrite(path: Path, **changed: Any) -> None:
    """The same weights under a changed header."""
    header = json.loads(read_safetensors_metadata(path)["tuigpt"]) | changed
    save_file(load_file(path), path, {"tuigpt": json.dumps(header)})
