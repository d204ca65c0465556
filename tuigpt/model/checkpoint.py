"""Checkpoints: one self-contained safetensors file each.

The weights carry the workshop's names. The file's text metadata has one entry, `tuigpt`, a JSON
object with everything else that generation needs: the model's and the tokenizer's configuration,
and where the weights come from (run, step, losses, corpus, versions). Nothing is pickled.
"""

from __future__ import annotations

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from tuigpt import __version__
from tuigpt.config import GPTConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.files import read_header, to_json, write_atomic
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import Tokenizer, tokenizer_from_dict

FORMAT = 1
TIED = "lm_head.weight"  # the same matrix as transformer.wte.weight, so it is stored once


def versions() -> dict[str, str]:
    """The versions that decide what a run computes."""
    return {
        "tuigpt": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def save_checkpoint(path: Path, model: GPT, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
    """Write a checkpoint all at once.

    Args:
        facts: what else the header tells: `run`, `step`, `val_loss`, `corpus`, …

    Raises:
        OSError: it could not be written; an older file of that name is untouched.
    """
    tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items() if k != TIED}
    header = facts | {
        "format": FORMAT,
        "model": asdict(model.config),
        "tokenizer": tokenizer.to_dict(),
        "versions": versions(),
    }
    write_atomic(path, save(tensors, {"tuigpt": to_json(header)}))


def load_checkpoint(path: Path, device: torch.device) -> tuple[GPT, Tokenizer, dict[str, Any]]:
    """Open a checkpoint for generation or further training.

    Returns:
        the model (float32, in eval mode), its tokenizer, and the header.

    Raises:
        UserError: the file is missing, cut short, foreign, or from a newer tuigpt.
    """
    try:
        header = read_header(path)
        if header["format"] > FORMAT:
            raise ValueError("it was written by a newer tuigpt; update this one to open it")
        config = GPTConfig(**header["model"])
        tokenizer = tokenizer_from_dict(header["tokenizer"])
        if tokenizer.vocab_size != config.vocab_size:
            raise ValueError(
                f"its vocabulary has {tokenizer.vocab_size} tokens, its model {config.vocab_size}"
            )
        with safe_open(path, framework="pt", device=str(device)) as file:
            weights = {name: file.get_tensor(name).float() for name in file.keys()}
        if sum(tensor.numel() for tensor in weights.values()) != config.n_params:
            raise ValueError("it does not hold the weights of the model in its header")
        weights[TIED] = weights["transformer.wte.weight"]
        with torch.device(device):
            model = GPT(config)
        model.load_state_dict(weights)
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, ConfigError) as error:
        raise _unfit(path, str(error)) from None
    except SafetensorError as error:
        raise _unfit(path, str(error).partition("\n")[0]) from None
    except (TypeError, KeyError, AttributeError):
        raise _unfit(path, "its header is not of this tuigpt's kind") from None
    except RuntimeError:
        raise _unfit(path, "its weights do not fit the model in its header") from None
    return model.eval(), tokenizer, header


def _unfit(path: Path, reason: str) -> UserError:
    return UserError(f"cannot open {str(path)!r} as a checkpoint: {reason}")
