"""What every foreign format is read into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from torch import Tensor

from tuigpt.config import GPTConfig
from tuigpt.model.formats.pickles import StoredTensor
from tuigpt.model.formats.torch_file import TorchFile
from tuigpt.model.formats.weights import ForeignTensor, read_weights
from tuigpt.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ForeignModel:
    """A model in a file of another program; its weights stay there until they are read.

    Attributes:
        program: whose file it is, in words.
        step: of its training, or None where the file does not tell.
        tokenizer: None where the file holds no vocabulary.
        val_loss: in nats per token, or None where the file does not tell that of this step.
        read_weights: all weights, float32, by our names without the output layer; it raises
            ValueError where they are not those of the model.
    """

    path: Path
    program: str
    config: GPTConfig
    step: int | None
    tokenizer: Tokenizer | None
    val_loss: float | None
    read_weights: Callable[[], dict[str, Tensor]]


class Sizes(TypedDict):
    """The sizes of a model."""

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int


def sizes(told: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Sizes:
    """The five sizes of a model, from a foreign record of them.

    Args:
        renamed: foreign names, by ours.

    Raises:
        ValueError: one is missing or no number.
    """
    found = Sizes(vocab_size=0, block_size=0, n_layer=0, n_head=0, n_embd=0)
    for name in found:
        foreign = (renamed or {}).get(name, name)
        value = told.get(foreign)
        if type(value) is not int or not 0 < value < 2**31:
            raise ValueError(f"its config tells no {foreign} that can be: {value!r:.40}")
        found[name] = value  # type: ignore[literal-required]
    return found


def read_state_dict(
    file: TorchFile, state: Any, config: GPTConfig, biases: bool, input_first: bool = False
) -> dict[str, Tensor]:
    """The weights in a state dict of a file of torch.save; see `read_weights`.

    Raises:
        ValueError: it is none, or not that of the model.
    """
    if not isinstance(state, dict):
        raise ValueError("it holds no weights")
    tensors = {}
    for name, stored in state.items():
        if not isinstance(name, str) or not isinstance(stored, StoredTensor):
            raise ValueError(f"its weights hold something that is no tensor: {name!r:.80}")
        read = partial(file.tensor, stored)
        tensors[name] = ForeignTensor(stored.shape, stored.storage.key, read)
    return read_weights(tensors, config, biases, input_first)
