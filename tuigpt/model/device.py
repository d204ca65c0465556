"""What this machine can compute on."""

import math
import os
import time

import torch

from tuigpt.config import GPTConfig
from tuigpt.errors import Setting, UserError

CLEARLY_FASTER = 1.5
"""How many times faster than float32 the products of matrices must be in bfloat16 to be used. The
casts around them take a part back, and hardware made for bfloat16 gives twice the speed or more."""

_TRIALS = 5

_WIDEST_TRIED = 1024
"""Widths above it are as much faster in bfloat16 as this one, and might not fit the memory."""


def available_devices() -> list[str]:
    """Names of the devices of this machine, best first."""
    names = []
    if torch.cuda.is_available():
        names += ["cuda"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def resolve_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of that name; `auto` is the best there is.

    Args:
        local_rank: which of this machine's processes asks: each takes a GPU of its own.

    Raises:
        UserError: the machine has no such device; the text names those it has.
    """
    present = available_devices()
    chosen = present[0] if name == "auto" else name
    if local_rank and chosen == "cuda":
        chosen = f"cuda:{local_rank}"
    if chosen not in present:
        raise UserError(
            Setting("device", chosen), f": this machine has {', '.join(present)} (or auto)"
        )
    return torch.device(chosen)


def memory_bytes(device: torch.device) -> int:
    """Memory of the device in all."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**63 - 1  # unknown here; the attempt will show


def describe(device: torch.device) -> str:
    """The device in a few words for a status line."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


def faster_precision(config: GPTConfig, device: torch.device) -> str:
    """`bfloat16` where the hardware has it and a trial shows it clearly faster, else `float32`.

    The trial is the widest product of a block, and takes a fraction of a second.
    """
    if not _has_bfloat16(device):
        return "float32"
    width = min(config.n_embd, _WIDEST_TRIED)
    x = torch.zeros(1024, width, device=device)
    weight = torch.zeros(4 * width, width, device=device)
    best = dict.fromkeys((torch.float32, torch.bfloat16), math.inf)
    for _ in range(_TRIALS):  # in turns, so that other work on the machine slows both
        for dtype, seconds in best.items():
            one, other = x.to(dtype), weight.to(dtype)
            began = time.perf_counter()
            (one @ other.T)[0, 0].item()  # which waits for the device
            best[dtype] = min(seconds, time.perf_counter() - began)
    pays = best[torch.float32] > best[torch.bfloat16] * CLEARLY_FASTER
    return "bfloat16" if pays else "float32"


_BFLOAT16_INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16", "sve_bf16")
"""Names of x86's and ARM's, as `torch.cpu.get_capabilities` has them."""


def _has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are done by the hardware, not in its place by software."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        if not hasattr(torch.cpu, "get_capabilities"):  # it came after PyTorch 2.9
            return False
        present = torch.cpu.get_capabilities()
        return any(present.get(name, False) for name in _BFLOAT16_INSTRUCTIONS)
    return True  # MPS: the trial decides


def use_few_threads() -> None:
    """Prepare this process for reading one position at a time: too little work to share.

    Threads that wait for each other on a machine that a trainer keeps busy cost both processes far
    more than they give.
    """
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))


def allow_tf32(device: torch.device) -> None:
    """Let a GPU that has them use its TF32 units for products of float32 matrices."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
