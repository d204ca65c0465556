"""Lets a trainer, an app that writes and an app that watches run for a while: does anything grow?

    python benchmarks/soak.py [--minutes 20]

Memory (MB) and open files of each process are printed every minute. They are flat if, from the
second quarter of the time to the last, no process takes more than a tenth (and 8 MB) more memory
at its median, and at most two more files. The exit status is 1 where they are not, where a process
ends by itself, or where the trainer stands still. Needs Linux.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from endings import TUIGPT, Bench, until
from system.terminal import Terminal  # type: ignore[import-not-found, unused-ignore]

FLAGS = [
    "--n-layer=1", "--n-head=2", "--n-embd=64", "--block-size=64", "--batch-size=64",
    "--eval-tokens=4096", "--sample-tokens=64", "--device=cpu",
]  # fmt: skip
"""A model whose steps take as long as those of real ones: the app keeps some bytes of each."""

WRITE_EVERY = 5.0
"""Seconds between two prompts."""

MOST_GROWTH, LEAST_GROWTH_MB = 1.1, 8
MORE_FILES = 2


def memory_and_files(pid: int) -> tuple[float, int]:
    """Resident memory of a process in MB, and how many files it has open."""
    folder = Path(f"/proc/{pid}")
    status = (folder / "status").read_text()
    kilobytes = int(status.partition("VmRSS:")[2].split()[0])
    return kilobytes / 1024, len(list((folder / "fd").iterdir()))


def role(command: str, pid: int, watcher: int) -> str:
    """What a process is for."""
    if " train " in command:
        return "trainer"
    if "generation.server" in command:
        status = Path(f"/proc/{pid}/status").read_text()
        parent = int(status.partition("PPid:")[2].split()[0])
        return f"generator of the {'watcher' if parent == watcher else 'app'}"
    return "watcher" if pid == watcher else "app"


def growth(values: list[tuple[float, int]]) -> str:
    """What is wrong with a process's measurements, or ""."""
    quarter = max(1, len(values) // 4)
    before, after = values[quarter : 2 * quarter], values[-quarter:]
    memory = [median(megabytes for megabytes, _ in part) for part in (before, after)]
    files = [median(count for _, count in part) for part in (before, after)]
    if memory[1] > memory[0] * MOST_GROWTH and memory[1] > memory[0] + LEAST_GROWTH_MB:
        return f"memory grew from {memory[0]:.0f} to {memory[1]:.0f} MB"
    if files[1] > files[0] + MORE_FILES:
        return f"open files grew from {files[0]:.0f} to {files[1]:.0f}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    options = parser.parse_args()
    seen: dict[str, list[tuple[float, int]]] = {}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        bench = Bench(Path(folder), FLAGS)
        with (
            Terminal(TUIGPT, bench.env, columns=120, rows=40, cwd=bench.folder) as app,
            Terminal(TUIGPT, bench.env, columns=120, rows=40, cwd=bench.folder) as watcher,
        ):
            for terminal in (app, watcher):
                terminal.until("new run")
            app.press("ctrl+t", "r")
            until(lambda: bench.status()["state"] == "training")
            app.press("ctrl+g")
            watcher.press("ctrl+t")
            ids: dict[str, int] = {}
            end = time.monotonic() + options.minutes * 60
            minute = 0.0
            while time.monotonic() < end:
                step = bench.step()
                app.press(*"ROMEO:", "enter")
                for terminal in (app, watcher):
                    terminal.output = b""
                    terminal.until_still(patience=WRITE_EVERY / 2)
                for pid, command in bench.processes().items():
                    try:
                        name = role(command, pid, watcher.process.pid)
                        seen.setdefault(name, []).append(memory_and_files(pid))
                    except (OSError, IndexError):
                        wrong.append(f"a process has ended: {command}")
                        continue
                    if ids.setdefault(name, pid) != pid:
                        wrong.append(f"the {name} is another process now")
                        ids[name] = pid
                if bench.step() <= step:
                    wrong.append(f"the trainer stands still at step {step:,}")
                if time.monotonic() >= minute:
                    minute = time.monotonic() + 60
                    told = [f"{n} {v[-1][0]:.0f} MB, {v[-1][1]} files" for n, v in seen.items()]
                    print(f"step {bench.step():,}: {' · '.join(sorted(told))}", flush=True)
        bench.tuigpt("stop", "victim")
    wrong += [f"{name}: {problem}" for name, v in seen.items() if (problem := growth(v))]
    print("\n".join(wrong) or "nothing grew")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
