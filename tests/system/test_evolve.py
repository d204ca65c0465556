"""A run's growing up, read again from its checkpoints."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"

Tuigpt = Callable[..., "subprocess.CompletedProcess[str]"]


def test_each_step_writes_what_generate_writes_for_it(
    tuigpt: Tuigpt, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(FIXTURES / "run-v1-char", home / "runs" / "verse")
    shutil.copy(FIXTURES / "verse.txt", tmp_path)
    drawn = ["--prompt=It", "--seed=7", "--max-new-tokens=30"]
    evolved = tuigpt("evolve", "verse", *drawn)
    assert evolved.returncode == 0, evolved.stderr
    parts = re.split(r"^── ", evolved.stdout, flags=re.MULTILINE)[1:]
    assert [part.split()[:2] for part in parts] == [["step", "3"], ["step", "6"]]
    assert all("0% copied" in part and "val " in part for part in parts)
    alone = tuigpt("generate", "verse@3", *drawn).stdout
    assert parts[0].split("\n", 1)[1].rstrip() == alone.rstrip()
