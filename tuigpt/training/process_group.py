"""Several processes that train one model together, each on its share of every batch.

The process with rank 0 leads: it runs the `Trainer`, records, evaluates and listens to requests.
Before each update it gives an order; the others follow orders until it says that it is over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from tuigpt.errors import ConfigError, Setting
from tuigpt.files import write_atomic
from tuigpt.model.gpt import GPT

PATIENCE = timedelta(days=30)
"""How long a process waits for the others. A paused training keeps them waiting; that one of them
was killed is seen at once, by its closed connection."""


LEADER_FILE = "TUIGPT_LEADER_FILE"
"""Environment variable with the path of a file in which the leader writes its process number, for
whoever started the processes and has a signal to pass on."""


@dataclass(frozen=True)
class Order:
    """What the leader wants next of the others: one update with these settings, or the end."""

    goes_on: bool
    learning_rate: float = 0.0
    dropout: float = 0.0
    max_steps: int = 0


class Team:
    """This process's place among those that train together.

    Attributes:
        rank: 0 leads.
        size: how many there are; 1 is a process by itself.
        local_rank: number among those of this machine.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank

    @classmethod
    def join(cls) -> Team:
        """Join the processes that PyTorch's launcher started with this one, if it did."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return cls()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        if dist.get_rank() == 0 and LEADER_FILE in os.environ:
            write_atomic(Path(os.environ[LEADER_FILE]), str(os.getpid()).encode())
        return cls(dist.get_rank(), dist.get_world_size(), local_rank)

    def leave(self) -> None:
        """Give up the connections to the others."""
        if self.size > 1:
            dist.destroy_process_group()

    @property
    def leads(self) -> bool:
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

    def share(self, rows: Tensor) -> Tensor:
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

    def agreed(self, value: Any) -> Any:
        """The leader's value, in all processes."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
        return values[0]

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """Let the leader through a block before the others, which then find what it cached."""
        if self.size > 1 and not self.leads:
            self.agreed(None)
        yield
        if self.size > 1 and self.leads:
            self.agreed(None)

    def leader_goes_on(self) -> bool:
        """Wait until the leader wants something of this process, or has ended (False)."""
        try:
            self.agreed(None)
        except RuntimeError:
            return False
        return True

    def give(self, order: Order) -> None:
        """Tell the others what comes next; the leader's part of `receive`."""
        if self.size > 1:
            values = [order.goes_on, order.learning_rate, order.dropout, order.max_steps]
            dist.broadcast(torch.tensor(values, dtype=torch.float64), src=0)

    def receive(self) -> Order:
        """Wait for the leader's next order."""
        values = torch.empty(4, dtype=torch.float64)
        dist.broadcast(values, src=0)
        goes_on, learning_rate, dropout, max_steps = values.tolist()
        return Order(bool(goes_on), learning_rate, dropout, int(max_steps))

    def together(self, model: GPT) -> torch.nn.Module:
        """The model with gradients averaged over all processes; it begins with the leader's."""
        if self.size == 1:
            return model
        device = model.lm_head.weight.device
        return DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )
