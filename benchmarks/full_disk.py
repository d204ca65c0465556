"""Fills a disk of three megabytes under every writer, frees it again, and looks for what is lost.

    python benchmarks/full_disk.py [--trials 3] [--seed 1]

Needs the right to mount a tmpfs, and says so otherwise. A trainer's disk is filled at a random
instant, up to so many bytes, so that now the log, now the status, a checkpoint or the resume file
is the first that does not fit. Somebody reads of it within seconds. Then room is made, and every
step is as in a training that never waited; or the trainer is asked to stop while the disk is full,
and saves. Requests, settings, tokens, cards and a new run on a full disk end in one plain line and
leave nothing half-made. The exit status is 1 if anything else happened. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

TUIGPT = [sys.executable, "-m", "tuigpt"]

DISK = 3 << 20
"""Bytes of the disk."""

SEEN_WITHIN = 5.0
"""Seconds within which a person must read that the disk is full."""

PATIENCE = 60.0
"""Seconds after which something that has not come counts as never coming."""

SHAPE = [
    "--n-layer=2", "--n-head=2", "--n-embd=32", "--block-size=32", "--batch-size=8",
    "--eval-tokens=64", "--sample-tokens=0", "--recipe=workshop", "--precision=float32",
    "--device=cpu", "--max-steps=100000", "--patience=0", "--warmup-steps=0", "--eval-interval=50",
    "--checkpoint-interval=50",
]  # fmt: skip

FREE = (0, 4 << 10, 12 << 10, 40 << 10, 120 << 10, 260 << 10)
"""Bytes that are left free: for nothing, for a line of the log, a status, a checkpoint …"""

VERSE = "It is the east, and Juliet is the sun.\nArise, fair sun, and kill the moon.\n" * 40


class Wrong(Exception):
    """Something that may not happen on a full disk."""


class Disk:
    """A small file system, mounted while it is used.

    Attributes:
        home: tuigpt's, on that disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._ballast = folder / "ballast"

    def fill(self, left: int = 0) -> None:
        """Leave only so many bytes free."""
        with open(self._ballast, "ab", buffering=0) as stream:
            while (size := self.free() - left) > 0:
                try:
                    stream.write(bytes(min(size, 1 << 16)))
                except OSError:  # a trainer took what was left
                    break

    def make_room(self) -> None:
        self._ballast.unlink()

    def free(self) -> int:
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize

    def half_made(self) -> list[str]:
        """What a write that failed has left."""
        return [str(path) for path in self.folder.rglob(".partial-*")]


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Mount a disk of `DISK` bytes.

    Raises:
        SystemExit: it cannot be mounted.
    """
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        raise SystemExit(f"needs the right to mount: {mounted.stderr.decode().strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@dataclass
class Bench:
    """What all trials share: a text, an environment, and the losses of a run that never waited."""

    folder: Path
    text: Path

    def command(self, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that must end well or with one plain line.

        Raises:
            Wrong: it does neither.
        """
        done = subprocess.run(
            [*TUIGPT, *arguments], env=self.env(home), cwd=self.folder, capture_output=True,
            stdin=subprocess.DEVNULL, encoding="utf-8", timeout=PATIENCE,
        )  # fmt: skip
        told = done.stdout + done.stderr
        if "Traceback" in told or done.returncode not in (0, 1, 2):
            raise Wrong(f"{arguments[0]}: status {done.returncode}\n{told}")
        return done

    def trainer(self, home: Path, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*TUIGPT, "train", *arguments], env=self.env(home), cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=open(home.parent.parent / "out.txt", "w"),
            stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip

    def env(self, home: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "TUIGPT_HOME": str(home),
            "TUIGPT_CONFIG": str(home / "settings.toml"),
            "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip

    def losses_to(self, step: int) -> dict[int, float]:
        """The loss of each step of a run on a disk with room."""
        home = self.folder / "roomy"
        run = home / "runs" / "roomy"
        if not run.exists():
            trainer = self.trainer(home, str(self.text), "--name=roomy", *SHAPE)
        elif max(losses(run)) < step:
            trainer = self.trainer(home, "--resume=roomy")
        else:
            return losses(run)
        until(lambda: max(losses(run), default=0) >= step, "the run with room")
        trainer.send_signal(signal.SIGTERM)
        trainer.wait(PATIENCE)
        return losses(run)


def losses(run: Path) -> dict[int, float]:
    """The loss of each update in a log, the newest where one was done twice."""
    found = {}
    with suppress(OSError):
        whole, _, _ = (run / "metrics.jsonl").read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            record = json.loads(line)
            if record["kind"] == "step":
                found[record["step"]] = record["loss"]
    return found


def status(run: Path) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads((run / "status.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def until(reached: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            raise Wrong(f"never came: {what}")
        time.sleep(0.02)


# --- the trials ---


def train_through(bench: Bench, disk: Disk, chance: random.Random, free: int, stop: bool) -> str:
    """Fill the disk under a trainer; then free it, or have the trainer stop first.

    Raises:
        Wrong: something is lost, or nobody is told.
    """
    run = disk.home / "runs" / "victim"
    trainer = bench.trainer(disk.home, str(bench.text), "--name=victim", *SHAPE)
    out = bench.folder / "out.txt"
    try:
        begun = chance.randrange(5, 120)
        until(lambda: max(losses(run), default=0) >= begun, "the first steps")
        time.sleep(chance.uniform(0, 0.1))
        disk.fill(free)
        filled = time.monotonic()
        at = max(losses(run))

        def told() -> bool:
            return "disk" in out.read_text() or "disk" in str(status(run).get("message"))

        until(lambda: told() or trainer.poll() is not None, "word of the full disk", 30)
        seconds = time.monotonic() - filled
        if trainer.poll() is not None:
            raise Wrong(f"the trainer ended: {out.read_text()[-600:]}")
        disk.fill(free)
        listed = bench.command(disk.home, "list", "victim").stdout
        if "disk" not in listed:
            raise Wrong(f"list does not tell of the full disk: {listed}")
        if stop:
            trainer.send_signal(signal.SIGTERM)
            try:
                trainer.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise Wrong("a full disk keeps it from stopping") from None
            disk.make_room()
            if trainer.returncode != 0:
                raise Wrong(f"stopping: status {trainer.returncode}: {out.read_text()[-600:]}")
            end = int(str(status(run)["step"]))
            if not (run / "checkpoints" / f"step-{end:06d}.safetensors").exists():
                raise Wrong(f"it stopped at {end}, and that is not saved")
            trainer = bench.trainer(disk.home, "--resume=victim")
        else:
            time.sleep(chance.uniform(0, 1))
            disk.make_room()
            end = at
        until(
            lambda: max(losses(run)) > end + 20 or trainer.poll() is not None, "the steps after it"
        )
        if trainer.poll() is not None:
            raise Wrong(f"it does not go on: {out.read_text()[-600:]}")
        trainer.send_signal(signal.SIGTERM)
        trainer.wait(PATIENCE)
    finally:
        trainer.kill()
        trainer.wait()
    if trainer.returncode != 0:
        raise Wrong(f"status {trainer.returncode} at the end: {out.read_text()[-600:]}")
    compare(bench, run)
    if left := disk.half_made():
        raise Wrong(f"left: {left}")
    if seconds > SEEN_WITHIN + 1:
        raise Wrong(f"told only after {seconds:.1f} s")
    return f"told after {seconds:.1f} s"


def compare(bench: Bench, run: Path) -> None:
    """See that a run did every step as one that had room."""
    found = losses(run)
    end = int(str(status(run)["step"]))
    expected = bench.losses_to(end)
    for step in range(1, end + 1):
        if found.get(step) != expected[step]:
            raise Wrong(f"step {step}: loss {found.get(step)}, with room {expected[step]}")
    for step in [*range(50, end + 1, 50), end]:
        if not (run / "checkpoints" / f"step-{step:06d}.safetensors").exists():
            raise Wrong(f"the checkpoint of step {step} is missing")


def small_writers(bench: Bench, disk: Disk) -> None:
    """Requests, settings, a new run, a card and the token cache on a full disk."""
    home = disk.home
    bench.command(home, "train", str(bench.text), "--name=old", *SHAPE, "--max-steps=5")
    bench.command(home, "list", "--show-poet")
    settings = (home / "settings.toml").read_bytes()
    disk.fill()
    for arguments in (
        ["list", "--hide-poet"],
        ["train", str(bench.text), "--name=new", *SHAPE],
        ["generate", "old", f"--card={disk.folder / 'card.md'}", "--max-new-tokens=8"],
    ):
        done = bench.command(home, *arguments)
        if done.returncode == 0:
            raise Wrong(f"{arguments} on a full disk: status 0\n{done.stdout}")
        if len(done.stderr.strip().splitlines()) != 1 and arguments[0] != "generate":
            raise Wrong(f"{arguments} is not refused in one line:\n{done.stderr}")
    if (home / "settings.toml").read_bytes() != settings:
        raise Wrong("the settings have changed")
    if (home / "runs" / "new").exists():
        raise Wrong("a new run was made")
    if left := disk.half_made():
        raise Wrong(f"left: {left}")
    disk.make_room()
    bench.command(home, "list", "--hide-poet")


def token_cache(bench: Bench, disk: Disk) -> None:
    """A text whose tokens do not fit."""
    large = bench.folder / "large.txt"
    large.write_text(VERSE * 6000, "utf-8")
    done = bench.command(disk.home, "train", str(large), "--name=large", *SHAPE)
    if done.returncode != 2 or (disk.home / "runs" / "large").exists() or disk.half_made():
        raise Wrong(f"tokens on a full disk: {done.returncode} {done.stderr} {disk.half_made()}")


def requests(bench: Bench, disk: Disk) -> None:
    """A trainer that waits for room is asked for something, and to stop."""
    run = disk.home / "runs" / "victim"
    trainer = bench.trainer(disk.home, str(bench.text), "--name=victim", *SHAPE)
    try:
        until(lambda: max(losses(run), default=0) >= 10, "the first steps")
        disk.fill()
        until(lambda: "disk" in str(status(run).get("message")), "word of the full disk")
        disk.fill()
        told = bench.command(disk.home, "stop", "victim")
        if told.returncode and "No space left" not in told.stderr:
            raise Wrong(f"stop does not tell why not: {told}")
        if told.returncode == 0:
            trainer.wait(PATIENCE)
        disk.make_room()
        if told.returncode:
            bench.command(disk.home, "stop", "victim")
        trainer.wait(PATIENCE)
        compare(bench, run)
    finally:
        trainer.kill()
        trainer.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2, help="of each filling of a trainer's disk")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="full-disk-") as folder:
        bench = Bench(Path(folder), Path(folder, "verse.txt"))
        bench.text.write_text(VERSE, "utf-8")
        trials: list[tuple[str, Callable[[Disk], object]]] = [
            ("requests to a trainer", lambda disk: requests(bench, disk)),
            ("settings, a new run, a card", lambda disk: small_writers(bench, disk)),
            ("tokens", lambda disk: token_cache(bench, disk)),
        ]
        for free in FREE:
            for stop in (False, True):
                what = "stopped" if stop else "waited out"
                for _ in range(options.trials):
                    trials.append(
                        (
                            f"training, {free:,} bytes free, {what}",
                            lambda disk, free=free, stop=stop: train_through(  # type: ignore[misc]
                                bench, disk, chance, free, stop
                            ),
                        )
                    )
        for name, trial in trials:
            print(f"{name:<45}", end="", flush=True)
            with small_disk(Path(folder, "disk")) as disk:
                try:
                    print(f"ok  {trial(disk) or ''}")
                except Wrong as error:
                    wrong += 1
                    print(f"WRONG  {error}")
    print(f"{len(trials)} trials, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
