"""Kills a saving trainer again and again, and looks each time at what is left.

    python killed_trainers.py HOME TEXT KILLS SEED

Importing torch takes seconds; so this program does it once, and forks each trainer, which then is
`tuigpt train` itself. For each of two runs it prints what it counted as a line of JSON, or the kill
after which something was wrong.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.console import Console
from tuigpt.cli.main import main
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.runs.folder import checkpoint_path, open_run
from tuigpt.training.command import TrainCommand
from tuigpt.training.process import run
from tuigpt.training.state import read_state

PATIENCE = 60.0
"""Seconds after which what we wait for will not come."""

TINY = [
    "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4",
    "--recipe=workshop", "--eval-tokens=64", "--sample-tokens=0", "--max-steps=1000000",
    "--warmup-steps=0",
]  # fmt: skip

NEVER = 1_000_000

SAVING = {
    "kept": ["--checkpoint-interval=1", f"--eval-interval={NEVER}"],
    "best": [f"--checkpoint-interval={NEVER}", "--eval-interval=1", "--evolution-mb=0"],
}
"""Flags of a run that keeps every step, and of one that keeps the best so far."""

SAVES = {"kept": 2, "best": 4}
"""How many saves a trainer has time for; the third replaces the best so far."""

LOOKED_AT = 6
"""Checkpoints that are left when a kill has been looked at."""

OFTEN = 20
"""In so many kills each kind of instant should be met once."""

MEASURED_EVERY = 100
"""Kills after which the times are measured anew: the machine may have got other work."""

CPU = torch.device("cpu")


@dataclass
class Child:
    """A forked process.

    Attributes:
        output: the reading end of its standard output.
    """

    pid: int
    output: int

    def until_it_trains(self) -> None:
        """Wait for its first line of output, which comes when it has everything."""
        while (read := os.read(self.output, 1)) != b"\n":
            assert read, "it ended by itself"

    def end(self, number: int) -> int:
        """Send a signal, and give the status that it ends with."""
        os.kill(self.pid, number)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.output)
        return os.waitstatus_to_exitcode(status)


def fork(work: Callable[[], int]) -> Child:
    """Have a child do some work, with its standard output in a pipe."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Child(pid, reader)
    status = 70
    try:
        sys.stdout = open(writer, "w", encoding="utf-8")
        status = work()
        sys.stdout.flush()
    except BaseException:
        sys.stdout.flush()
        traceback.print_exc()
    finally:
        os._exit(status)


def train(home: Path, text: str, name: str, *flags: str) -> Child:
    """Fork a `tuigpt train`."""
    return fork(lambda: main(["train", f"--home={home}", text, f"--name={name}", *TINY, *flags]))


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def records(folder: Path) -> list[dict[str, Any]]:
    """The log's lines, of which only the last may be torn."""
    whole, _, _ = (folder / "metrics.jsonl").read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def losses(folder: Path) -> dict[int, float]:
    """The loss of each update, the newest where one was done twice."""
    return {r["step"]: r["loss"] for r in records(folder) if r["kind"] == "step"}


def half_written(folder: Path) -> list[Path]:
    return list(folder.rglob(".partial-*"))


@dataclass
class Victim:
    """A run whose trainer is killed again and again.

    Attributes:
        step: the last one that resuming went on from.
        steps: of the checkpoints that there were after the last kill.
        counts: how many kills met what.
    """

    home: Path
    saving: str
    step: int = 0
    steps: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(
        default_factory=lambda: {"within a file": 0, "between two files": 0, "at rest": 0}
    )

    @property
    def folder(self) -> Path:
        return self.home / "runs" / self.saving

    def resume(self) -> Child:
        # Not through the parser of flags, which takes as long as the rest of the start.
        command = TrainCommand(self.home, resume=self.saving)
        return fork(lambda: run(command, Console(sys.stdout)))

    def begin(self, text: str) -> None:
        """Train it until there is something to resume."""
        child = train(self.home, text, self.saving, *SAVING[self.saving])
        child.until_it_trains()
        until(lambda: (self.folder / "resume.safetensors").exists())
        child.end(signal.SIGKILL)

    def measure(self) -> tuple[float, float]:
        """The seconds that resuming takes, and that a step with its save takes."""
        began = time.monotonic()
        child = self.resume()
        child.until_it_trains()
        resuming = time.monotonic() - began
        first = max(losses(self.folder))
        began = time.monotonic()
        until(lambda: max(losses(self.folder)) >= first + 10)
        cycle = (time.monotonic() - began) / 10
        child.end(signal.SIGKILL)
        self.look()
        return resuming, cycle

    def look(self) -> None:
        """See that nothing is lost and nothing half-written is taken for whole.

        Raises:
            AssertionError: something is wrong.
        """
        found = open_run(self.folder)
        status = found.status
        assert status.state == "lost" and str(status.pid) in status.message, status
        assert not [c for c in found.checkpoints if c.problem], found.checkpoints
        steps = {c.step for c in found.checkpoints}
        assert found.last is not None
        newest = found.last.step
        assert newest == max(steps)
        state = read_state(self.folder / "resume.safetensors", 1 << 20)
        resumed_from = state.facts.step
        model, _, header = load_checkpoint(checkpoint_path(self.folder, newest), CPU)
        assert header.step == newest
        if newest == resumed_from:
            weights = state.of_kind("weights.")
            assert all(torch.equal(weights[n], p) for n, p in model.named_parameters())
        assert self.step <= resumed_from and newest <= resumed_from, (resumed_from, newest)
        if self.saving == "kept":
            assert self.steps <= steps, self.steps - steps
            assert newest >= resumed_from - 1
        else:  # the best so far makes room, whatever was killed in between
            assert len(steps) <= 2, steps
            assert state.facts.best_step is not None
        records(self.folder)

        met = "within a file" if half_written(self.folder) else "at rest"
        self.counts[met if newest == resumed_from else "between two files"] += 1
        self.step = resumed_from
        # Delete old checkpoints, as a user would; else a look would take longer every time.
        for checkpoint in found.checkpoints[:-LOOKED_AT]:
            checkpoint.path.unlink()
            steps.remove(checkpoint.step)
        self.steps = steps

    def finish(self, text: str) -> None:
        """See that the run is, step by step, the one that was never killed."""
        child = self.resume()
        child.until_it_trains()
        known = max(losses(self.folder))
        until(lambda: max(losses(self.folder)) > known)
        assert child.end(signal.SIGTERM) == 0
        found = open_run(self.folder)
        end = found.status.step
        assert found.status.state == "stopped" and not half_written(self.folder)
        assert found.last is not None and found.last.step == end

        name = f"{self.saving}-whole"
        whole = self.folder.with_name(name)
        never = (f"--checkpoint-interval={NEVER}", f"--eval-interval={NEVER}")
        child = train(self.home, text, name, *never)
        child.until_it_trains()
        until(lambda: max(losses(whole), default=0) >= end)
        assert child.end(signal.SIGTERM) == 0
        killed, never_killed = losses(self.folder), losses(whole)
        assert [killed[s] for s in range(1, end + 1)] == [
            never_killed[s] for s in range(1, end + 1)
        ]


def warm_up(home: Path, text: str) -> None:
    """Have loaded what torch loads at the first step, so that no child has to."""
    with redirect_stdout(StringIO()):
        assert main(["train", f"--home={home}", text, *TINY, "--max-steps=1"]) == 0
    gc.freeze()  # so that a child's collections do not copy every page that we share


def kill(home: Path, text: str, saving: str, kills: int, seed: int) -> int:
    """Kill a run at random instants, let it go on, and print what the kills met as JSON.

    It goes on past so many kills where some kind of instant was met too rarely to tell.
    """
    chance = random.Random(f"{saving} {seed}")
    victim = Victim(home, saving)
    victim.begin(text)
    for number in range(3 * kills):
        if number % MEASURED_EVERY == 0:
            resuming, cycle = victim.measure()
        if number >= kills and min(victim.counts.values()) >= kills // OFTEN:
            break
        child = victim.resume()
        if number % 5 == 0:  # while it takes up where the last one left
            delay = chance.uniform(0, resuming)
        else:
            child.until_it_trains()
            delay = chance.uniform(0, SAVES[saving] * cycle)
        time.sleep(delay)
        assert child.end(signal.SIGKILL) == -signal.SIGKILL, "it ended by itself"
        try:
            victim.look()
        except Exception:
            print(f"{saving}: kill {number}, after {1000 * delay:.2f} ms, seed {seed}")
            raise
    victim.finish(text)
    print(json.dumps(victim.counts))
    return 0


def kill_all(home: Path, text: str, kills: int, seed: int) -> int:
    """Kill a run of each kind, side by side; print for each what the kills met."""
    ended = [0]
    for child in [
        fork(partial(kill, home, text, saving, kills // len(SAVING), seed)) for saving in SAVING
    ]:
        with open(child.output, encoding="utf-8") as output:
            print(output.read(), end="")
        ended.append(os.waitpid(child.pid, 0)[1])
    return int(any(ended))


if __name__ == "__main__":
    torch.set_num_threads(1)
    home, text, kills, seed = sys.argv[1:]
    warm_up(Path(home), text)
    sys.exit(kill_all(Path(home), text, int(kills), int(seed)))
