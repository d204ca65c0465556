"""A trainer killed while it saves: nothing is lost, nothing half-written is taken for whole."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

KILLED_TRAINERS = Path(__file__).with_name("killed_trainers.py")


def test_killed_at_random_instants_it_is_the_run_that_was_never_killed(
    env: dict[str, str], home: Path, verse_file: Path, pytestconfig: pytest.Config
) -> None:
    """Saving at every step; each time it is resumed where the newest save left it."""
    kills, seed = pytestconfig.getoption("kills"), random.randrange(10**6)
    result = subprocess.run(
        [sys.executable, str(KILLED_TRAINERS), str(home), str(verse_file), str(kills), str(seed)],
        env=env, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(told) == 2
    for counts in told:
        assert sum(counts.values()) > kills // 2
        # Each at least once in twenty kills, if these are many enough to tell.
        assert kills < 100 or min(counts.values()) >= kills // 40, (seed, counts)
