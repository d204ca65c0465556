"""What `precision auto` means on this machine: tried once, and kept."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import torch

from tuigpt.config import PRECISIONS, GPTConfig
from tuigpt.files import UnreadableFile, read_record, write_json
from tuigpt.model.device import faster_precision

PRECISION_FILE = "precision.json"
"""In the home. Without it two equal commands could compute in different types, because the trial is
a race that other work on the machine can decide."""


class _Kept(msgspec.Struct):
    choices: Annotated[dict[str, str], msgspec.Meta(max_length=1000)] = {}


@dataclass(frozen=True)
class Precision:
    """A type for the products of matrices.

    Attributes:
        tried: whether this machine was timed just now, and for which kind of product.
    """

    name: str
    tried: str = ""


def settled_precision(config: GPTConfig, device: torch.device, home: Path) -> Precision:
    """The faster type for a model of this width on this machine, always the same one.

    It is kept in the home by PyTorch's version, the processor or GPU, and the width.
    """
    kind = f"torch {torch.__version__}, {_hardware(device)}, width {config.n_embd}"
    path = home / PRECISION_FILE
    try:
        kept = read_record(path, _Kept)
    except UnreadableFile:
        kept = _Kept()
    if kept.choices.get(kind) in PRECISIONS[1:]:
        return Precision(kept.choices[kind])
    found = faster_precision(config, device)
    choices = {**kept.choices, kind: found}
    with suppress(OSError):  # it is then tried again
        home.mkdir(parents=True, exist_ok=True)
        write_json(path, _Kept(choices))
    return Precision(found, tried=kind)


def _hardware(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":
        with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as about:
            for line in about:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return value.strip()
    return platform.processor() or platform.machine()
