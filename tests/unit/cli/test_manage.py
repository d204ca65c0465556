"""Looking after runs and checkpoints from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import MakeRun

from tuigpt.cli.main import main

LOSSES = {100: 2.5, 200: 1.5, 300: 1.8}


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path) -> object:
    monkeypatch.setenv("TUIGPT_HOME", str(home))

    def say(*arguments: str, status: int = 0) -> str:
        assert main(arguments) == status
        captured = capsys.readouterr()
        return captured.out + captured.err

    return say


def listed(said: object) -> list[list[str]]:
    out: str = said("list", "verse")  # type: ignore[operator]
    return [line.split() for line in out.splitlines()]


def test_a_round_of_deleting_thinning_and_undoing(make_run: MakeRun, said: object) -> None:
    assert callable(said)
    make_run("verse", LOSSES)
    assert [row[0] for row in listed(said)] == ["verse", "step", "300", "200", "100"]
    assert "verse@100" in said("delete", "verse@100")
    assert [row[0] for row in listed(said)][2:] == ["300", "200"]
    assert "a checkpoint of verse is back" in said("undo")
    assert "1 checkpoints would go" in said("thin", "verse", "--dry-run")
    assert "2 stay" in said("thin", "verse")
    said("undo")
    said("star", "verse@100")
    assert "nothing to thin out" in said("thin", "verse")
    said("star", "verse@100", "--remove")
    assert "nothing to thin out" in said("thin", "verse", "--every", "100")
    assert "verse is now poems" in said("rename", "verse", "poems")
    assert "deleted poems" in said("delete", "poems")
    assert "there are no runs yet" in said("list", "poems", status=2)
    assert "poems is back" in said("undo")
    said("delete", "poems@100")
    assert "freed" in said("delete", "--empty-trash")
    assert "the trash is empty" in said("undo", status=2)


def test_sorted_and_for_programs(make_run: MakeRun, said: object) -> None:
    assert callable(said)
    make_run("verse", LOSSES)
    said("note", "verse@200", "the best one")
    said("note", "verse", "of May")
    out = said("list", "verse", "--sort", "val")
    assert [line.split()[0] for line in out.splitlines()][2:] == ["200", "300", "100"]
    assert "“the best one”" in out and "“of May”" in out
    record = json.loads(said("list", "--sort", "val", "--json"))
    (run,) = record["runs"]
    assert [c["step"] for c in run["checkpoints"]] == [200, 300, 100]
    assert run["checkpoints"][0]["kept"] == "best" and run["note"] == "of May"


def test_all_that_is_known(make_run: MakeRun, said: object) -> None:
    assert callable(said)
    make_run("verse", LOSSES)
    out = said("show", "verse@best")
    assert "verse@200" in out and "1.500 nats = 2.16 bits a character" in out
    assert "step-000200.safetensors" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["delete"], "name a run or a checkpoint"),
        (["delete", "gone"], "no run 'gone'"),
        (["delete", "verse@7"], "has no checkpoint '7'"),
        (["thin", "verse", "--every", "0"], "--every"),
        (["rename", "verse", "poet"], "built-in"),
        (["star", "gone@1"], "no run"),
        (["show", "gone"], "no run"),
    ],
)
def test_refusals(make_run: MakeRun, said: object, arguments: list[str], words: str) -> None:
    assert callable(said)
    make_run("verse", LOSSES)
    assert words in said(*arguments, status=2)
