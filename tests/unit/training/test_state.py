"""Resume files of every format are read, and newer ones refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tuigpt.files import read_safetensors_metadata
from tuigpt.training.state import OPTIMIZER, RANDOM, WEIGHTS, read_state

FIXTURES = Path(__file__).parents[2] / "fixtures"
V1, V2 = FIXTURES / "run-v1-char" / "resume.safetensors", FIXTURES / "resume-v2.safetensors"
MOST = 10**6


def test_one_of_each_format_is_read() -> None:
    old, new = read_state(V1, MOST), read_state(V2, MOST)
    assert (old.facts.format, old.facts.step, old.facts.max_steps) == (1, 6, 6)
    assert (new.facts.format, new.facts.step, new.facts.max_steps) == (2, 4, 4)
    assert new.facts.best_step == 4 and new.facts.losses.train_loss == pytest.approx(3.386, abs=0.1)
    assert not old.of_kind(WEIGHTS) and new.of_kind(WEIGHTS)
    for state in (old, new):
        assert state.of_kind(OPTIMIZER) and set(state.of_kind(RANDOM)) == {"data_order", "cpu"}


def test_a_newer_one_is_refused_with_both_numbers(tmp_path: Path) -> None:
    facts = json.loads(read_safetensors_metadata(V2)["tuigpt-resume"]) | {"format": 3}
    path = tmp_path / "resume.safetensors"
    save_file(load_file(V2), path, {"tuigpt-resume": json.dumps(facts)})
    with pytest.raises(ValueError, match="its format is 3, and this one reads up to 2"):
        read_state(path, MOST)
