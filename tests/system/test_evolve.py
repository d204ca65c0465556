"""A run's growing up, read again from its checkpoints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

Tuigpt = Callable[..., "subprocess.CompletedProcess[str]"]


def test_each_step_writes_what_generate_writes_for_it(tuigpt: Tuigpt, verse_file: Path) -> None:
    flags = [
        "--n-layer=1", "--n-head=2", "--n-embd=8", "--block-size=16", "--batch-size=2",
        "--max-steps=4", "--checkpoint-interval=2", "--eval-interval=2", "--sample-tokens=0",
    ]  # fmt: skip
    trained = tuigpt("train", str(verse_file), "--name=verse", *flags)
    assert trained.returncode == 0, trained.stderr
    drawn = ["--prompt=But", "--seed=7", "--max-new-tokens=30"]
    evolved = tuigpt("evolve", "verse", *drawn)
    assert evolved.returncode == 0, evolved.stderr
    parts = re.split(r"^── ", evolved.stdout, flags=re.MULTILINE)[1:]
    assert [part.split()[:2] for part in parts] == [["step", "2"], ["step", "4"]]
    assert all("0% copied" in part and "val " in part for part in parts)
    for step, part in zip((2, 4), parts, strict=True):
        alone = tuigpt("generate", f"verse@{step}", *drawn).stdout
        assert part.split("\n", 1)[1].rstrip() == alone.rstrip()
