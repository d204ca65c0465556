"""`tuigpt train --nproc N`: the same training in several processes of this machine."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tuigpt.child import child_arguments, child_environment
from tuigpt.errors import ConfigError
from tuigpt.signals import on_ending
from tuigpt.training.process import FAILED
from tuigpt.training.process_group import RANK_0_FILE


def run(nproc: int, device: str, arguments: list[str]) -> int:
    """Run `tuigpt` with these arguments in `nproc` processes under PyTorch's elastic launcher.

    SIGINT, SIGTERM and SIGHUP are passed on to rank 0, which saves and ends all.

    Raises:
        ConfigError: there are fewer GPUs than processes.
    """
    gpus = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    if 0 < gpus < nproc:
        raise ConfigError("nproc", nproc, f"at most {gpus}: this machine has {gpus} GPUs")
    cores = os.cpu_count() or 1
    os.environ.update(child_environment())
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // nproc)))
    logging.disable(logging.CRITICAL)  # rank 0 says what is wrong
    with tempfile.TemporaryDirectory(prefix="tuigpt-") as folder:
        rank_0_file = Path(folder) / "rank-0"
        os.environ[RANK_0_FILE] = str(rank_0_file)

        def pass_on(number: int, frame: FrameType | None) -> None:
            try:
                os.kill(int(rank_0_file.read_text()), number)
            except (OSError, ValueError):  # it has not come so far, or is gone
                sys.exit(128 + number)

        on_ending(pass_on)
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=nproc,
            run_id="tuigpt",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=0,
            signals_to_handle="SIGQUIT",
        )
        try:
            elastic_launch(config, sys.executable)(*child_arguments("tuigpt", *arguments))
        except ChildFailedError as error:
            codes = [failure.exitcode for failure in error.failures.values()]
            for rank, failure in error.failures.items():
                if failure.exitcode < 0 and -failure.exitcode != signal.SIGTERM:  # the launcher's
                    print(
                        f"tuigpt: process {rank + 1} of {nproc} was killed by signal"
                        f" {-failure.exitcode}; the run can be resumed",
                        file=sys.stderr,
                    )
            return max([FAILED, *codes])
    return 0
