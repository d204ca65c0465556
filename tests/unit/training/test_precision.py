"""What `precision auto` means is found out once for each machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
import torch

from tuigpt.config import GPTConfig
from tuigpt.training import precision as precision_module
from tuigpt.training.precision import PRECISION_FILE, settled_precision

CPU = torch.device("cpu")
NARROW, WIDE = GPTConfig(n_embd=48), GPTConfig(n_embd=96)


@pytest.fixture(autouse=True)
def race(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A machine whose every trial ends otherwise; lists the trials."""
    trials: list[str] = []
    winners = cycle(["bfloat16", "float32"])

    def trial(*arguments: object) -> str:
        trials.append(next(winners))
        return trials[-1]

    monkeypatch.setattr(precision_module, "faster_precision", trial)
    yield trials


def test_the_same_command_computes_in_the_same_type(home: Path, race: list[str]) -> None:
    first = settled_precision(NARROW, CPU, home)
    assert first.name == "bfloat16" and "width 48" in first.tried
    for _ in range(3):
        again = settled_precision(NARROW, CPU, home)
        assert (again.name, again.tried) == ("bfloat16", "")
    assert len(race) == 1


def test_another_width_is_another_question(home: Path, race: list[str]) -> None:
    assert settled_precision(NARROW, CPU, home).name == "bfloat16"
    assert settled_precision(WIDE, CPU, home).name == "float32"
    assert settled_precision(NARROW, CPU, home).name == "bfloat16"
    assert len(race) == 2


@pytest.mark.parametrize("content", ["", "[]", '{"choices": 5}', "\0", '{"choices": {"a": 1}}'])
def test_a_damaged_file_is_made_anew(home: Path, content: str) -> None:
    home.mkdir()
    (home / PRECISION_FILE).write_text(content)
    kept = settled_precision(NARROW, CPU, home)
    assert settled_precision(NARROW, CPU, home).name == kept.name


def test_a_type_that_there_is_not_is_not_believed(home: Path) -> None:
    kind = settled_precision(NARROW, CPU, home).tried
    path = home / PRECISION_FILE
    path.write_text(path.read_text().replace("bfloat16", "float8"))
    assert settled_precision(NARROW, CPU, home).tried == kind


def test_where_it_cannot_be_kept_it_is_tried_each_time(tmp_path: Path, race: list[str]) -> None:
    (tmp_path / "file").write_text("")
    settled_precision(NARROW, CPU, tmp_path / "file")
    settled_precision(NARROW, CPU, tmp_path / "file")
    assert len(race) == 2
