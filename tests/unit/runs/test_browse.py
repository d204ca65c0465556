"""How a list of checkpoints is sorted and filtered."""

from __future__ import annotations

import pytest
from conftest import MakeRun

from tuigpt.runs.browse import find, kept_as, sort_checkpoints, sort_runs
from tuigpt.runs.folder import open_run
from tuigpt.runs.marks import note, star

LOSSES = {100: 2.5, 200: 1.5, 300: None, 400: 1.8}


@pytest.mark.parametrize(
    ("by", "backwards", "order"),
    [
        ("step", False, [400, 300, 200, 100]),
        ("step", True, [100, 200, 300, 400]),
        ("val", False, [200, 400, 100, 300]),
        ("val", True, [100, 400, 200, 300]),
        ("kept", False, [200, 400, 100, 300]),
    ],
)
def test_checkpoints_without_a_value_come_last(
    make_run: MakeRun, by: str, backwards: bool, order: list[int]
) -> None:
    run = make_run("verse", LOSSES)
    assert [c.step for c in sort_checkpoints(run, run.checkpoints, by, backwards)] == order


def test_runs_follow_what_is_best_in_them(make_run: MakeRun) -> None:
    runs = [make_run("none"), make_run("good", {1: 1.0, 2: 3.0}), make_run("fair", {1: 2.0})]
    assert [run.name for run in sort_runs(runs, "val")] == ["good", "fair", "none"]
    assert [run.name for run in sort_runs(runs, "step")] == ["none", "good", "fair"]


def test_a_filter_finds_runs_and_single_checkpoints(make_run: MakeRun) -> None:
    folder = make_run("verse", LOSSES).folder
    star(folder, [100], True)
    note(folder, 400, "Reciting already")
    run = open_run(folder)

    def found(words: str) -> list[int] | None:
        left = find(run, words)
        return None if left is None else [c.step for c in left]

    assert found("") == found("VERSE finished") == [100, 200, 300, 400]
    assert found("best") == [200]
    assert found("verse star") == [100]
    assert found("@400") == found("reciting") == [400]
    assert found("prose") is None


def test_why_one_is_kept(make_run: MakeRun) -> None:
    run = make_run("verse", {1: 1.0})
    assert kept_as(run, run.checkpoints[0]) == "best, last"
