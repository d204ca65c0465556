"""What this machine can compute on."""

import os

import torch

from tuigpt.config import UserError


def available_devices() -> list[str]:
    """Names of the devices of this machine, best first."""
    names = []
    if torch.cuda.is_available():
        names += ["cuda"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def resolve_device(name: str) -> torch.device:
    """The device of that name; `auto` is the best there is.

    Raises:
        UserError: the machine has no such device; the text names those it has.
    """
    present = available_devices()
    if name == "auto":
        return torch.device(present[0])
    if name not in present:
        raise UserError(f"--device {name}: this machine has {', '.join(present)} (or auto)")
    return torch.device(name)


def memory_bytes(device: torch.device) -> int:
    """Memory of the device in all."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**63 - 1  # not told here; the attempt will show


def describe(device: torch.device) -> str:
    """The device in a few words for a status line."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


def type_name(dtype: torch.dtype) -> str:
    """A number type as users know it, such as `float32`."""
    return str(dtype).removeprefix("torch.")
