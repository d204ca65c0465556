"""Hugging Face's own library opens what is exported, and what it saves is imported."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tuigpt.config import GPTConfig
from tuigpt.errors import UserError
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.formats.huggingface import to_huggingface
from tuigpt.model.formats.importing import Imported, import_models
from tuigpt.model.gpt import GPT
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import open_run
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer

os.environ["HF_HUB_OFFLINE"] = "1"

TEXT = (
    "But soft, what light through yonder window breaks?\nIt's the east, it isn't 1,234 \t \n\n\n"
    "  décor cafe\u0301 நீ 床前 👨‍👩‍👧‍👦 ❤️\u00a0\u3000x\u0085y\u200bz ١٢٣ (brackets) [x]"
    " it'll we've\r\n"
) * 30
TOKENIZERS: list[Tokenizer] = [
    CharTokenizer.from_text(TEXT),
    CharTokenizer("".join(sorted(set(TEXT), reverse=True))),
    BPETokenizer.train([TEXT], 420),
    BPETokenizer([]),
]
CPU = torch.device("cpu")


@pytest.fixture(params=TOKENIZERS, ids=["char", "char backwards", "bpe", "bytes"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    found: Tokenizer = request.param
    return found


def model_for(tokenizer: Tokenizer, gelu: str = "tanh") -> GPT:
    torch.manual_seed(1)
    model = GPT(GPTConfig(tokenizer.vocab_size, 24, 2, 2, 16, gelu=gelu)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return model


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    return write(tmp_path / "gpt2", to_huggingface(model_for(tokenizer), tokenizer))


@pytest.fixture
def take(home: Path) -> Callable[..., Imported]:
    return lambda *paths: import_models(paths, home, cache=home / "cache")


def loaded(home: Path, imported: Imported) -> Any:
    return load_checkpoint(open_run(runs_dir(home) / imported.run).checkpoints[0].path, CPU)


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers")


class TestTheirLibrary:
    def test_it_reads_the_same_tokens(
        self, folder: Path, tokenizer: Tokenizer, transformers: Any
    ) -> None:
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        ids = theirs(TEXT)["input_ids"]
        assert ids == tokenizer.encode(TEXT).tolist()
        assert theirs.decode(ids) == TEXT and len(theirs) == tokenizer.vocab_size

    @pytest.mark.parametrize("gelu", ["tanh", "exact"])
    def test_it_computes_the_same_logits(
        self, gelu: str, folder: Path, tokenizer: Tokenizer, transformers: Any
    ) -> None:
        """In double precision, where two ways of adding up agree to far more digits."""
        model = model_for(tokenizer, gelu)
        write(folder, to_huggingface(model, tokenizer))
        theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        ids = torch.from_numpy(tokenizer.encode(TEXT)[:48].reshape(2, 24))
        with torch.no_grad():
            torch.testing.assert_close(theirs(ids).logits, model(ids)[0], rtol=0, atol=1e-4)
            in_double = theirs.double()(ids).logits
            torch.testing.assert_close(in_double, model.double()(ids)[0], rtol=0, atol=1e-10)

    def test_what_it_saves_is_imported(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        transformers: Any,
        take: Any,
        home: Path,
        tmp_path: Path,
    ) -> None:
        again = tmp_path / "again"
        transformers.AutoModelForCausalLM.from_pretrained(folder).save_pretrained(again)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(again)
        found = loaded(home, take(again))
        expected = model_for(tokenizer).state_dict()
        assert all(torch.equal(t, expected[n]) for n, t in found.model.state_dict().items())
        assert found.tokenizer.to_dict() == tokenizer.to_dict()


def test_the_format_before_safetensors_is_read(
    folder: Path, tokenizer: Tokenizer, take: Any, home: Path
) -> None:
    from safetensors.torch import load

    tensors = load((folder / "model.safetensors").read_bytes())
    torch.save(
        {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()},
        folder / "pytorch_model.bin",
    )
    (folder / "model.safetensors").unlink()
    found = loaded(home, take(folder))
    expected = model_for(tokenizer).state_dict()
    assert all(torch.equal(t, expected[n]) for n, t in found.model.state_dict().items())


def test_bytes_in_another_order_keep_their_meaning(tmp_path: Path, take: Any, home: Path) -> None:
    """Libraries number the bytes by the characters that stand for them, we by their value."""
    tokenizer = BPETokenizer([])
    files = to_huggingface(model_for(tokenizer), tokenizer)
    told = json.loads(files["tokenizer.json"])
    told["model"]["vocab"] = {t: i for i, t in enumerate(sorted(told["model"]["vocab"]))}
    told["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    files["tokenizer.json"] = json.dumps(told).encode()
    found = loaded(home, take(write(tmp_path / "bytes", files)))
    theirs = [told["model"]["vocab"][token] for token in tokenizer.shown_tokens()]
    ids = tokenizer.encode("décor")
    with torch.no_grad():
        expected = model_for(tokenizer)(torch.tensor([theirs])[:, ids])[0]
        torch.testing.assert_close(
            found.model(torch.from_numpy(ids)[None])[0], expected[..., theirs], rtol=0, atol=1e-5
        )


def changed(folder: Path, file: str, **values: Any) -> None:
    record = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(record | values), encoding="utf-8")


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("config.json", {"model_type": "llama"}, "'llama' model, not GPT-2"),
    ("config.json", {"activation_function": "relu"}, "its activation_function is 'relu'"),
    ("config.json", {"n_inner": 7}, "its n_inner is 7"),
    ("config.json", {"layer_norm_epsilon": 1e-6}, "its layer_norm_epsilon"),
    ("config.json", {"tie_word_embeddings": False}, "its tie_word_embeddings"),
    ("config.json", {"scale_attn_by_inverse_layer_idx": True}, "its scale_attn_by_inverse"),
    ("config.json", {"n_layer": "two"}, "n_layer should be"),
    ("config.json", {"n_layer": 1000}, "1,000 layers, but has only"),
    ("config.json", {"vocab_size": 7}, "has 7 tokens, but its vocabulary has"),
    ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}, "normalizer"),
    ("tokenizer.json", {"pre_tokenizer": {"type": "Whitespace"}}, "cuts words"),
    ("tokenizer.json", {"model": {"type": "Unigram", "vocab": {}}}, "of type Unigram"),
    ("tokenizer.json", {"model": {"type": "BPE", "vocab": {"a": 0, "b": 2}}}, "one by one"),
    ("tokenizer.json", {"model": {"type": "BPE", "vocab": {"a": 0, "the": 1}}}, "'the'"),
    ("tokenizer.json", {"model": 5}, "model should be"),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS[:1], ids=["char"])
@pytest.mark.parametrize(("file", "values", "words"), REFUSED)
def test_what_ours_cannot_be_is_named(
    file: str, values: dict[str, Any], words: str, folder: Path, take: Any, home: Path
) -> None:
    changed(folder, file, **values)
    with pytest.raises(UserError, match=words):
        take(folder)
    assert not runs_dir(home).exists() or not list(runs_dir(home).iterdir())


@pytest.fixture(scope="module")
def gpt2(transformers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 as their libraries make one: words cut by GPT-2's rule, and a token of its own."""
    from tokenizers import Tokenizer as Theirs
    from tokenizers import models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("their-gpt2")
    engine = Theirs(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    engine.train_from_iterator([TEXT], trainer)
    engine.save(str(folder / "tokenizer.json"))
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=engine.get_vocab_size(), n_positions=24, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


END = "<|endoftext|>"

NASTY = (
    f"{TEXT}I'm don't we'LL {END}next\n\n  \n x²½ Ⅷ ٣ _a_ a_b  \t\u2003x"
    f"\x1c\x1dy \ufeff 'tis z {END}"
)


def test_gpt2_reads_the_same_tokens_and_thinks_the_same(
    gpt2: Path, transformers: Any, take: Any, home: Path, tmp_path: Path
) -> None:
    found = loaded(home, take(gpt2))
    again = write(tmp_path / "again", to_huggingface(found.model, found.tokenizer))
    theirs = {f: transformers.AutoTokenizer.from_pretrained(f) for f in (gpt2, again)}
    long = NASTY * 20
    ids = found.tokenizer.encode(long)
    assert theirs[again](long)["input_ids"] == ids.tolist()
    pieces = [long[at : at + 1009] for at in range(0, len(long), 1009)]
    assert [i for part in found.tokenizer.encode_stream(pieces) for i in part] == ids.tolist()
    assert found.tokenizer.decode(ids) == long
    # Ours numbers the tokens in another order: the same place has the same probability.
    original = theirs[gpt2](NASTY)["input_ids"][:24]
    model = transformers.AutoModelForCausalLM.from_pretrained(gpt2).eval()
    with torch.no_grad():
        expected = model(torch.tensor([original])).logits
        logits = found.model(torch.from_numpy(ids[:24])[None])[0]
    order = theirs[gpt2].convert_tokens_to_ids(found.tokenizer.shown_tokens())
    assert [order[i] for i in ids[:24]] == original
    torch.testing.assert_close(logits, expected[..., order], rtol=0, atol=1e-5)
    assert found.header.format == 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "puts a blank before the text"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}},
         "cuts words neither as GPT-2's does nor"),
        ({"added_tokens": [{"id": 0, "content": END, "lstrip": True}]}, "takes in what stands"),
    ],
)  # fmt: skip
def test_what_reads_otherwise_is_refused(
    values: dict[str, Any], words: str, gpt2: Path, tmp_path: Path, take: Any
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(gpt2, folder)
    changed(folder, "tokenizer.json", **values)
    with pytest.raises(UserError, match=words):
        take(folder)


@pytest.mark.parametrize("tokenizer", TOKENIZERS[:1], ids=["char"])
def test_a_damaged_folder_is_named(folder: Path, take: Any) -> None:
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-9])
    with pytest.raises(UserError, match="cut short"):
        take(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="neither model.safetensors nor pytorch_model.bin"):
        take(folder)
