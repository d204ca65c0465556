"""The app ended from outside: nothing is left but the trainer, and the terminal is as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ENDINGS = Path(__file__).resolve().parents[2] / "benchmarks" / "endings.py"


def test_the_app_is_ended_in_a_form_and_beside_a_trainer() -> None:
    """`benchmarks/endings.py` without arguments tries every state and every ending."""
    states, endings = ("form", "training"), ("QUIT", "closed")
    result = subprocess.run(
        [
            sys.executable, str(ENDINGS),
            *(f"--state={state}" for state in states), *(f"--ending={end}" for end in endings),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(" ok") == len(states) * len(endings)
