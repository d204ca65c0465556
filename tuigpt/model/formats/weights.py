"""From the tensors of a foreign checkpoint to the weights of our model: all of them or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tuigpt.config import GPTConfig
from tuigpt.model.gpt import GPT

TOKENS = "transformer.wte.weight"
HEAD = "lm_head.weight"
"""The output layer: the same matrix as `TOKENS`."""

_LEAST_IN_A_BLOCK = 6
"""Tensors of a block without biases."""

_WRAPPERS = re.compile(r"(?:_orig_mod\.|module\.)+")
"""What torch.compile and DistributedDataParallel put before a name, in any order."""

_MASK = re.compile(r"transformer\.h\.\d+\.attn\.(bias|masked_bias)")
"""The causal mask and the number that stood for "masked", which older programs saved as well."""

_SHOWN = 3
"""Names that an error tells of those that it is about."""


@dataclass(frozen=True)
class ForeignTensor:
    """A tensor in a foreign file.

    Attributes:
        memory: equal for tensors that share their numbers.
        read: loads it, with its own type.
    """

    shape: tuple[int, ...]
    memory: Hashable
    read: Callable[[], Tensor]


def read_weights(
    tensors: Mapping[str, ForeignTensor], config: GPTConfig, biases: bool, input_first: bool = False
) -> dict[str, Tensor]:
    """The weights of our model: float32, with our names, the output layer left out.

    Args:
        biases: whether the model has them; where it has none, ours are 0, which gives the same
            logits to the last bit.
        input_first: whether the matrices of linear layers are stored as (in, out).

    Raises:
        ValueError: a tensor is missing, unknown, of another size, not of numbers with fractions or
            shared with another: the text names them.
    """
    found = _without_masks(_without_wrappers(tensors))
    if config.n_layer * _LEAST_IN_A_BLOCK > len(found):
        raise ValueError(
            f"it tells of {config.n_layer:,} layers, but has only {len(found):,} tensors"
        )
    with torch.device("meta"):
        ours = {name: tuple(t.shape) for name, t in GPT(config).state_dict().items()}
    expected = {n: shape for n, shape in ours.items() if biases or not n.endswith(".bias")}
    if input_first:
        expected = {n: s[::-1] if is_linear(n) else s for n, s in expected.items()}
    head = found.pop(HEAD, None)
    del expected[HEAD], ours[HEAD]
    if missing := [name for name in expected if name not in found]:
        raise ValueError(f"it lacks {_listed(missing)}")
    if unknown := [name for name in found if name not in expected]:
        raise ValueError(f"it has tensors that this model has no place for: {_listed(unknown)}")
    for name, shape in expected.items():
        if found[name].shape != shape:
            raise ValueError(
                f"{name} is {_size(found[name].shape)}, but its config tells {_size(shape)}"
            )
    _refuse_shared(found)
    weights = {}
    for name in ours:
        if name not in expected:
            weights[name] = torch.zeros(ours[name])
            continue
        tensor = _floating(name, found[name].read())
        weights[name] = (tensor.t() if input_first and is_linear(name) else tensor).contiguous()
    if head is not None and head.memory != found[TOKENS].memory:
        if not torch.equal(_floating(HEAD, head.read()), weights[TOKENS]):
            raise ValueError(
                f"{HEAD} and {TOKENS} differ: its output layer has weights of its own, which this"
                " model has no place for"
            )
    return weights


def _without_wrappers(tensors: Mapping[str, ForeignTensor]) -> dict[str, ForeignTensor]:
    plain: dict[str, ForeignTensor] = {}
    for name, tensor in tensors.items():
        match = _WRAPPERS.match(name)
        short = name[match.end() :] if match else name
        if short in plain:
            raise ValueError(f"it has {short} twice")
        plain[short] = tensor
    return plain


def _without_masks(tensors: Mapping[str, ForeignTensor]) -> dict[str, ForeignTensor]:
    rest = {}
    for name, tensor in tensors.items():
        match = _MASK.fullmatch(name)
        if not match:
            rest[name] = tensor
        elif match[1] == "bias":
            mask = tensor.read().squeeze()
            if not torch.equal(mask != 0, torch.ones_like(mask, dtype=torch.bool).tril()):
                raise ValueError(f"{name} is not the mask of a model that sees only what is before")
    return rest


def _refuse_shared(tensors: Mapping[str, ForeignTensor]) -> None:
    owner: dict[Hashable, str] = {}
    for name, tensor in tensors.items():
        other = owner.setdefault(tensor.memory, name)
        if other != name:
            raise ValueError(f"{other} and {name} share their numbers, as no GPT's do")


def _floating(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        raise ValueError(f"{name} holds {tensor.dtype}, which is no type of weights")
    return tensor.to(torch.float32)


def is_linear(name: str) -> bool:
    """Whether a weight is the matrix of a linear layer within a block."""
    return re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name) is not None


def _listed(names: Iterable[str]) -> str:
    all_names = [name[:80] for name in names]
    more = f" and {len(all_names) - _SHOWN:,} more" if len(all_names) > _SHOWN else ""
    return ", ".join(all_names[:_SHOWN]) + more


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{n:,}" for n in shape) or "a single number"
