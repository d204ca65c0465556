"""Checkpoints: one self-contained safetensors file each.

The weights carry the workshop's names. The file's text metadata has one entry, `tuigpt`, a JSON
object with everything else that generation needs: the model's and the tokenizer's configuration,
and where the weights come from (run, step, losses, corpus, versions). Nothing is pickled.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from tuigpt.config import GPTConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.files import UnreadableFile, write_atomic
from tuigpt.model.gpt import GPT
from tuigpt.runs.header import CheckpointFacts, Header, format_of, read_header, to_metadata
from tuigpt.text.tokenizer import Tokenizer, tokenizer_from_dict
from tuigpt.version import __version__

TIED = "lm_head.weight"  # the same matrix as transformer.wte.weight, so it is stored once

TENSORS_OUTSIDE_BLOCKS, TENSORS_IN_A_BLOCK = 4, 12
"""Stored tensors: both embeddings and the last norm; in each block two norms and four projections,
each with weight and bias."""

FLOATING = ("F32", "BF16", "F16", "F64")
"""Types, in safetensors' words, that weights may be stored in."""


def versions() -> dict[str, str]:
    """The versions that decide what a run computes."""
    return {
        "tuigpt": __version__,
        "torch": str(torch.__version__),  # it is a class of its own
        "python": platform.python_version(),
    }


def save_checkpoint(path: Path, model: GPT, tokenizer: Tokenizer, facts: CheckpointFacts) -> None:
    """Write a checkpoint all at once.

    Args:
        facts: what else the header holds.

    Raises:
        OSError: it could not be written; an older file of that name is untouched.
    """
    tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items() if k != TIED}
    vocabulary = tokenizer.to_dict()
    header = Header(
        **msgspec.structs.asdict(facts),
        format=format_of(model.config, vocabulary),
        model=model.config,
        tokenizer=vocabulary,
        versions=versions(),
    )
    write_atomic(path, save(tensors, to_metadata(header)))


class LoadedCheckpoint(NamedTuple):
    """A checkpoint with its weights in memory.

    Attributes:
        model: float32, in eval mode.
        header: what else its file says: run, step, losses, corpus, versions.
    """

    model: GPT
    tokenizer: Tokenizer
    header: Header


def load_checkpoint(path: Path, device: torch.device) -> LoadedCheckpoint:
    """Open a checkpoint for generation or further training.

    The file is not trusted: nothing is built before the tensors in it are known to be those of the
    model in its header, so memory and time stay in proportion to the file's size.

    Raises:
        UserError: the file is missing, cut short, foreign, or from a newer tuigpt.
    """
    try:
        header = read_header(path)
        config = header.model
        with safe_open(path, framework="pt", device=str(device)) as file:
            model = _model_for(file, config)
            tokenizer = tokenizer_from_dict(header.tokenizer)
            if tokenizer.vocab_size != config.vocab_size:
                raise ValueError(
                    f"its vocabulary has {tokenizer.vocab_size} tokens, its model"
                    f" {config.vocab_size}"
                )
            # Copies, because what safetensors gives is mapped to the file and changes with it.
            weights = {
                name: file.get_tensor(name).to(torch.float32, copy=True) for name in file.keys()
            }
    except UnreadableFile as error:
        raise _unfit(path, error.reason) from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, ConfigError) as error:
        raise _unfit(path, str(error)) from None
    except SafetensorError as error:
        raise _unfit(path, str(error).partition("\n")[0]) from None
    except (TypeError, KeyError, AttributeError):
        raise _unfit(path, "its header is not of this tuigpt's kind") from None
    except (RuntimeError, MemoryError):  # how PyTorch says that it cannot allocate
        raise _unfit(path, f"its weights do not fit into the memory of {device}") from None
    return LoadedCheckpoint(_filled(model, weights), tokenizer, header)


def assemble(config: GPTConfig, weights: Mapping[str, Tensor]) -> GPT:
    """A model with these weights, in eval mode.

    Args:
        weights: all of the model's, as a checkpoint stores them; they are not copied.
    """
    return _filled(_outline(config), weights)


class _NoFirstWeights(TorchFunctionMode):
    """Leaves out what `torch.nn.init` does to new parameters.

    For parameters without memory PyTorch 2.13 would import its compiler, which takes longer than
    the rest of it together.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            return kwargs["tensor"]
        return func(*args, **kwargs)


def _outline(config: GPTConfig) -> GPT:
    """A model without memory for its weights."""
    with torch.device("meta"), _NoFirstWeights():
        return GPT(config)


def _filled(model: GPT, weights: Mapping[str, Tensor]) -> GPT:
    # Not by load_state_dict, whose time is quadratic in the number of layers.
    for name, weight in weights.items():
        owner, _, own_name = name.rpartition(".")
        model.get_submodule(owner).register_parameter(own_name, Parameter(weight))
    model.lm_head.weight = model.transformer.wte.weight
    return model.eval()


def _model_for(file: Any, config: GPTConfig) -> GPT:
    """The model of a configuration without memory for its weights, if a file holds its weights.

    Raises:
        ValueError: the file holds other tensors.
    """
    names = set(file.keys())
    unlike = ValueError("it does not hold the weights of the model in its header")
    # The few facts that decide the size of everything come first: the outline of a model with a
    # million layers takes minutes to build.
    if len(names) != TENSORS_OUTSIDE_BLOCKS + config.n_layer * TENSORS_IN_A_BLOCK:
        raise unlike
    embeddings = {
        "transformer.wte.weight": (config.vocab_size, config.n_embd),
        "transformer.wpe.weight": (config.block_size, config.n_embd),
    }
    for name, shape in embeddings.items():
        if name not in names or tuple(file.get_slice(name).get_shape()) != shape:
            raise unlike
    model = _outline(config)
    shapes = {k: tuple(v.shape) for k, v in model.state_dict().items() if k != TIED}
    if names != set(shapes):
        raise unlike
    for name, shape in shapes.items():
        part = file.get_slice(name)
        if tuple(part.get_shape()) != shape:
            raise ValueError(f"its weights do not fit the model in its header: {name}")
        if part.get_dtype() not in FLOATING:
            raise ValueError(f"{name} is stored as {part.get_dtype()}, which is no type of weights")
    return model


def _unfit(path: Path, reason: str) -> UserError:
    return UserError(f"cannot open {str(path)!r} as a checkpoint: {reason}")
