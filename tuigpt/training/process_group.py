"""Several processes that train one model together, each on its share of every batch.

The process with rank 0 runs the `Trainer`: it records, evaluates, samples and listens to requests.
Before each update it broadcasts the settings of that update; the others do the same update on their
share, until it broadcasts that there is none to come.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from tuigpt.errors import ConfigError, Setting
from tuigpt.files import write_atomic
from tuigpt.model.gpt import GPT

_Value = TypeVar("_Value")

PATIENCE = timedelta(days=30)
"""How long a process waits for the others. A paused training keeps them waiting; that one of them
was killed is seen at once, by its closed connection."""


RANK_0_FILE = "TUIGPT_RANK_0_FILE"
"""Environment variable with the path of a file in which rank 0 writes its process number, for
whoever started the processes and has a signal to pass on."""


@dataclass(frozen=True)
class UpdateSettings:
    """What may change from one update to the next."""

    learning_rate: float
    dropout: float
    max_steps: int


class ProcessGroup:
    """This process's place among those that train together.

    Attributes:
        rank: from 0 on; rank 0 runs the training.
        size: how many processes there are; 1 is a process by itself.
        local_rank: number among those of this machine.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank

    @classmethod
    def join(cls) -> ProcessGroup:
        """Join the processes that PyTorch's launcher started with this one, if it did."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return cls()
        # Its functions take the group as a default, and would keep it if imported later.
        importlib.import_module("torch.distributed.nn.functional")
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        if dist.get_rank() == 0 and RANK_0_FILE in os.environ:
            write_atomic(Path(os.environ[RANK_0_FILE]), str(os.getpid()).encode())
        return cls(dist.get_rank(), dist.get_world_size(), local_rank)

    def leave(self) -> None:
        """Give up the connections to the others, once nothing of the training is in use any more.

        The threads of a connection that is still open when Python ends may abort the process.
        """
        if dist.is_initialized():
            gc.collect()
            dist.destroy_process_group()

    @property
    def is_rank_0(self) -> bool:
        return self.rank == 0

    def require_even(self, batch_size: int) -> None:
        """Refuse a batch that cannot be shared out evenly.

        Raises:
            ConfigError: names the size and those that work.
        """
        if batch_size % self.size:
            less = max(self.size, batch_size // self.size * self.size)
            raise ConfigError(
                "batch_size", batch_size, f"a multiple of the {self.size} processes that share it;"
                " try ", Setting("batch_size", less), f" or {less + self.size}",
            )  # fmt: skip

    def share_of(self, rows: Tensor) -> Tensor:
        """This process's part of the rows of a batch; the parts are of equal size."""
        if self.size == 1:
            return rows
        part = len(rows) // self.size
        return rows[self.rank * part : (self.rank + 1) * part]

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all processes of a scalar that each of them has."""
        if self.size > 1:
            dist.all_reduce(value)
            value /= self.size
        return value

    def from_rank_0(self, value: _Value) -> _Value:
        """Rank 0's value, in all processes."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
        return values[0]

    @contextmanager
    def rank_0_first(self) -> Iterator[None]:
        """Let rank 0 through a block before the others, which then find what it cached."""
        if self.size > 1 and not self.is_rank_0:
            self.from_rank_0(None)
        yield
        if self.size > 1 and self.is_rank_0:
            self.from_rank_0(None)

    def rank_0_ended(self) -> bool:
        """Wait until rank 0 has ended (True), or wants something of this process (False)."""
        try:
            self.from_rank_0(None)
        except RuntimeError:
            return True
        return False

    def announce(self, update: UpdateSettings | None) -> None:
        """Broadcast what comes next, None for the end; rank 0's side of `next_update`."""
        if self.size > 1:
            values = [0.0, 0.0, 0.0, 0.0]
            if update is not None:
                values = [1.0, update.learning_rate, update.dropout, update.max_steps]
            dist.broadcast(torch.tensor(values, dtype=torch.float64), src=0)

    def next_update(self) -> UpdateSettings | None:
        """Wait for what rank 0 announces."""
        values = torch.empty(4, dtype=torch.float64)
        dist.broadcast(values, src=0)
        more, learning_rate, dropout, max_steps = values.tolist()
        return UpdateSettings(learning_rate, dropout, int(max_steps)) if more else None

    def distributed(self, model: GPT) -> torch.nn.Module:
        """The model with gradients averaged over all processes; it begins with rank 0's weights."""
        if self.size == 1:
            return model
        device = model.lm_head.weight.device
        return DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )
