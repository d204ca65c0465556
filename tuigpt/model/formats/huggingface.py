"""Hugging Face's GPT-2: a folder with `config.json`, `model.safetensors` and `tokenizer.json`.

Its linear layers store their matrices as (in, out), the other way round than ours. Tokenizers of
characters and of bytes are read, and so is byte-pair encoding where words are cut by GPT-2's rule
or by our own, as in what is exported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tuigpt.config import GPTConfig
from tuigpt.files import read_record, read_safetensors_metadata
from tuigpt.model.formats.foreign import ForeignModel, read_state_dict, sizes
from tuigpt.model.formats.torch_file import open_torch_file
from tuigpt.model.formats.weights import HEAD, TOKENS, ForeignTensor, is_linear, read_weights
from tuigpt.model.gpt import GPT
from tuigpt.text.bpe import GPT2_RULE, WORDS, WORDS_RULE, BPETokenizer
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer

CONFIG, WEIGHTS, OLD_WEIGHTS = "config.json", "model.safetensors", "pytorch_model.bin"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"

_TOKENIZER_LIMIT = 32 << 20
_RENAMED = {"block_size": "n_positions"}

_GELU = {"gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu": "exact"}
"""Hugging Face's names of activations, by ours; the first is what is exported."""


_WORDS = re.sub(r"\\x([0-9a-f]{2})", r"\\u00\1", WORDS.pattern)
"""Our rule of cutting words, as the library's engine of regular expressions spells it."""


class _Config(msgspec.Struct):
    """What `config.json` tells that decides what the model computes."""

    model_type: str
    vocab_size: int
    n_positions: int
    n_layer: int
    n_head: int
    n_embd: int
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    resid_pdrop: float = 0.1
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False
    tie_word_embeddings: bool = True

    def to_ours(self) -> GPTConfig:
        """
        Raises:
            ValueError: it is another model than GPT-2, or one that ours cannot be.
        """
        if self.model_type != "gpt2":
            raise ValueError(f"it is a {self.model_type[:40]!r} model, not GPT-2")
        gelu = _GELU.get(self.activation_function)
        for fits, name in (
            (gelu, "activation_function"),
            (self.n_inner in (None, 4 * self.n_embd), "n_inner"),
            (self.layer_norm_epsilon == 1e-5, "layer_norm_epsilon"),
            (self.scale_attn_weights, "scale_attn_weights"),
            (not self.scale_attn_by_inverse_layer_idx, "scale_attn_by_inverse_layer_idx"),
            (not self.add_cross_attention, "add_cross_attention"),
            (self.tie_word_embeddings, "tie_word_embeddings"),
        ):
            if not fits:
                raise ValueError(f"its {name} is {getattr(self, name)!r:.40}, unlike GPT-2's")
        told = sizes(msgspec.structs.asdict(self), _RENAMED)
        return GPTConfig(**told, dropout=self.resid_pdrop, gelu=str(gelu))


class _Vocabulary(msgspec.Struct):
    type: str
    vocab: dict[str, Annotated[int, msgspec.Meta(ge=0, lt=2**31)]]
    merges: list[str | tuple[str, str]] = []
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None


class _AddedToken(msgspec.Struct):
    """A text that is one token, wherever it stands."""

    id: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class _Tokenizer(msgspec.Struct):
    """What `tokenizer.json` tells."""

    model: _Vocabulary
    normalizer: Any = None
    pre_tokenizer: Any = None
    added_tokens: list[_AddedToken] = []


def is_huggingface(path: Path) -> bool:
    """Whether a path is a folder with a model of Hugging Face's."""
    return (path / CONFIG).is_file()


def read_huggingface(folder: Path) -> ForeignModel:
    """A GPT-2 in a folder; its tokenizer, if it has one.

    Raises:
        UserError: a file cannot be read.
        ValueError: it is another model, or its tokenizer is of another kind.
    """
    config = read_record(folder / CONFIG, _Config).to_ours()
    tokenizer: Tokenizer | None = None
    order: list[int] | None = None
    if (folder / TOKENIZER).is_file():
        tokenizer, order = _read_tokenizer(folder / TOKENIZER)
    return ForeignModel(
        path=folder,
        program="Hugging Face",
        config=config,
        step=None,
        tokenizer=tokenizer,
        val_loss=None,
        read_weights=partial(_read_weights, folder, config, order),
    )


def _read_weights(folder: Path, config: GPTConfig, order: list[int] | None) -> dict[str, Tensor]:
    read = _from_safetensors if (folder / WEIGHTS).is_file() else _from_torch
    weights = read(folder, config)
    if order is not None:
        weights[TOKENS] = weights[TOKENS][order].contiguous()
    return weights


def _from_safetensors(folder: Path, config: GPTConfig) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    read_safetensors_metadata(path)  # which bounds the header before the library reads it
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {}
            for name in file.keys():
                shape = tuple(file.get_slice(name).get_shape())
                tensors[_full_name(name)] = ForeignTensor(
                    shape, name, partial(_copied, file.get_tensor, name)
                )
            return read_weights(tensors, config, biases=True, input_first=True)
    except SafetensorError as error:
        raise ValueError(str(error).partition("\n")[0]) from None


def _copied(get: Callable[[str], Tensor], name: str) -> Tensor:
    return get(name).clone()  # what safetensors gives is mapped to the file and changes with it


def _from_torch(folder: Path, config: GPTConfig) -> dict[str, Tensor]:
    path = folder / OLD_WEIGHTS
    if not path.exists():
        raise ValueError(f"it has neither {WEIGHTS} nor {OLD_WEIGHTS}, or they are split")
    with open_torch_file(path) as file:
        if not isinstance(file.content, dict):
            raise ValueError("it holds no weights")
        state = {_full_name(str(name)): tensor for name, tensor in file.content.items()}
        return read_state_dict(file, state, config, biases=True, input_first=True)


def _full_name(name: str) -> str:
    """A tensor's name; files of the bare model lack the first part."""
    return name if name == HEAD or name.startswith("transformer.") else f"transformer.{name}"


# --- tokenizers ---


def _read_tokenizer(path: Path) -> tuple[Tokenizer, list[int] | None]:
    """The tokenizer, and where its tokens stand in the file if that is another order."""
    found = read_record(path, _Tokenizer, _TOKENIZER_LIMIT)
    model = found.model
    if found.normalizer is not None:
        raise ValueError("its tokenizer changes the text (it has a normalizer)")
    if model.type not in ("BPE", "WordLevel"):
        raise ValueError(f"its tokenizer is of type {model.type[:40]}, not of characters or bytes")
    for token in found.added_tokens:
        if token.single_word or token.lstrip or token.rstrip:
            raise ValueError(f"its token {token.content[:40]!r} takes in what stands around it")
        model.vocab[token.content] = token.id
    if sorted(model.vocab.values()) != list(range(len(model.vocab))):
        raise ValueError("its vocabulary does not number its tokens one by one")
    tokens = sorted(model.vocab, key=model.vocab.__getitem__)
    if not _has(found.pre_tokenizer, "ByteLevel"):
        if found.pre_tokenizer is not None and not _has(found.pre_tokenizer, "Split"):
            raise ValueError("its tokenizer cuts words, so it is not one of characters")
        if model.merges or any(len(token) != 1 for token in tokens):
            longest = max(tokens, key=len, default="")
            raise ValueError(f"its vocabulary is not of characters: it has {longest[:40]!r}")
        return CharTokenizer("".join(tokens)), None
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise ValueError("its tokenizer marks the beginnings or ends of words")
    merges = [tuple(m.split(" ")) if isinstance(m, str) else m for m in model.merges]
    special = [token.content for token in sorted(found.added_tokens, key=lambda t: t.id)]
    return _bytes_and_merges(model.vocab, merges, _rule(found.pre_tokenizer, merges), special)


def _rule(pre_tokenizer: Any, merges: Sequence[tuple[str, ...]]) -> int:
    """The number of the rule by which words are cut.

    Raises:
        ValueError: it is neither GPT-2's nor ours.
    """
    if pre_tokenizer == _pre_tokenizer():
        return WORDS_RULE
    told: dict[str, Any] = {"add_prefix_space": True, "use_regex": True} | dict(pre_tokenizer)
    if told["add_prefix_space"] is False and told.get("type") == "ByteLevel":
        if told["use_regex"] is True:
            return GPT2_RULE
        if not merges:
            return WORDS_RULE  # without pairs no rule matters
    raise ValueError(
        "its tokenizer cuts words neither as GPT-2's does nor as tuigpt's, or puts a blank before"
        " the text: models with those, or with tokenizers of characters or bytes, can be imported"
    )


def _has(pre_tokenizer: Any, kind: str) -> bool:
    if not isinstance(pre_tokenizer, dict):
        return False
    parts = pre_tokenizer.get("pretokenizers")
    steps = [pre_tokenizer, *parts] if isinstance(parts, list) else [pre_tokenizer]
    return any(isinstance(step, dict) and step.get("type") == kind for step in steps)


def _bytes_and_merges(
    vocab: Mapping[str, int], merges: list[tuple[str, ...]], words: int, special: Sequence[str]
) -> tuple[Tokenizer, list[int]]:
    try:
        tokenizer = BPETokenizer.from_shown(merges, words, special)
    except ValueError as error:
        raise ValueError(f"its tokenizer cannot be used: {error}") from None
    shown = tokenizer.shown_tokens()
    known = set(shown)
    if strange := [token for token in vocab if token not in known]:
        raise ValueError(f"its vocabulary has a token that no merge makes: {strange[0][:40]!r}")
    if lacking := [token for token in shown if token not in vocab]:
        raise ValueError(f"its vocabulary lacks {len(lacking):,} tokens, such as {lacking[0]!r}")
    return tokenizer, [vocab[token] for token in shown]


def _pre_tokenizer() -> dict[str, Any]:
    """Our rule of cutting words, then bytes."""
    return {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": _WORDS},
                "behavior": "Isolated",
                "invert": False,
            },
            {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": False,
                "use_regex": False,
            },
        ],
    }


def _tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    added: list[dict[str, Any]] = []
    model: dict[str, Any] = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": False,
    }  # fmt: skip
    if isinstance(tokenizer, BPETokenizer):
        shown = tokenizer.shown_tokens()
        model |= {"vocab": {t: i for i, t in enumerate(shown)}, "merges": tokenizer.shown_merges()}
        before: dict[str, Any] | None = _pre_tokenizer()
        if tokenizer.words == GPT2_RULE:
            before = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                      "use_regex": True}  # fmt: skip
        added = [
            {"id": shown.index(text), "content": text, "special": True, "normalized": False,
             "single_word": False, "lstrip": False, "rstrip": False}
            for text in tokenizer.special
        ]  # fmt: skip
        decoder = {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
            "use_regex": False,
        }  # fmt: skip
    else:
        assert isinstance(tokenizer, CharTokenizer)
        # Byte-pair encoding without pairs cuts a text into characters.
        model |= {"vocab": {c: i for i, c in enumerate(tokenizer.vocab)}, "merges": []}
        before, decoder = None, {"type": "Fuse"}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": before, "post_processor": None, "decoder": decoder,
        "model": model,
    }  # fmt: skip


# --- writing ---


def to_huggingface(model: GPT, tokenizer: Tokenizer) -> dict[str, bytes]:
    """The files of a folder that `transformers` opens, by name."""
    ours = model.config
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": ours.vocab_size,
        "n_positions": ours.block_size,
        "n_layer": ours.n_layer,
        "n_head": ours.n_head,
        "n_embd": ours.n_embd,
        "activation_function": next(name for name, gelu in _GELU.items() if gelu == ours.gelu),
        "layer_norm_epsilon": 1e-5,
        "resid_pdrop": ours.dropout,
        "embd_pdrop": ours.dropout,
        "attn_pdrop": ours.dropout,
        "bos_token_id": None,
        "eos_token_id": None,
        "tie_word_embeddings": True,
        "dtype": "float32",
    }
    weights = {
        name: (tensor.t() if is_linear(name) else tensor).contiguous().cpu()
        for name, tensor in model.state_dict().items()
        if name != HEAD
    }
    # Without this class, transformers would take the tokenizer for GPT-2's own.
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": ours.block_size,
        "clean_up_tokenization_spaces": False,
    }
    return {
        CONFIG: _json(config),
        WEIGHTS: save(weights, {"format": "pt"}),
        TOKENIZER: _json(_tokenizer_json(tokenizer)),
        TOKENIZER_CONFIG: _json(tokenizer_config),
    }


def _json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode()
