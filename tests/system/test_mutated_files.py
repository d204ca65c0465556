"""Files damaged in every way: no traceback, no hang, nothing run, nothing else changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MUTATE = Path(__file__).resolve().parents[2] / "benchmarks" / "mutate.py"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_whatever_is_read(pytestconfig: pytest.Config, env: dict[str, str]) -> None:
    """A thorough trial is `--mutations 10000`; each failure tells what replays it.

    Cached tokens need a large text, and so are only tried by the program itself.
    """
    count = pytestconfig.getoption("mutations")
    how = (f"--count={count}", "--seed=1", "--workers=1", "--skip=cache")
    result = subprocess.run(
        [sys.executable, str(MUTATE), *how],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{count:,}" in result.stdout.splitlines()[-1]
