"""Deleting, thinning out and renaming: what stays, what comes back, and what is refused."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from conftest import MakeRun

from tuigpt.errors import UserError
from tuigpt.files import UnreadableFile
from tuigpt.runs.folder import Checkpoint, Run, open_run, run_folders
from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.manage import (
    KEPT_FOR,
    delete_checkpoints,
    delete_run,
    empty_trash,
    look_into_trash,
    rename_run,
    thinnable,
    trash_mark,
    undo,
)
from tuigpt.runs.marks import MARKS_FILE, note, read_marks, star

LOSSES = {100: 2.5, 200: 2.0, 300: 1.5, 400: 1.8, 500: 1.9}


def steps(folder: Path) -> list[int]:
    return [c.step for c in open_run(folder).checkpoints]


def chosen(run: Run, *wanted: int) -> list[Checkpoint]:
    return [c for c in run.checkpoints if c.step in wanted]


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_deleted_checkpoints_come_back_as_they_were(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    before = content(run.folder)
    done = delete_checkpoints(home, run, chosen(run, 100, 400))
    assert done.words.startswith("deleted 2 checkpoints of verse, ")
    assert steps(run.folder) == [200, 300, 500]
    assert look_into_trash(home).size == done.size > 0
    assert undo(home).words.startswith("2 checkpoints of verse are back")
    assert content(run.folder) == before
    assert look_into_trash(home).size == 0


def test_a_deleted_run_is_in_no_list_and_comes_back(make_run: MakeRun, home: Path) -> None:
    run, other = make_run("verse", LOSSES), make_run("other")
    before = content(run.folder)
    delete_run(home, run)
    assert list(run_folders(home)) == [other.folder]
    undo(home)
    after = content(run.folder)
    after.pop("trainer.lock")
    assert after == before


def test_a_run_that_is_trained_stays(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    with trainer_lock(run.folder), pytest.raises(UserError, match="being trained"):
        delete_run(home, run)
    assert steps(run.folder) == sorted(LOSSES)


def test_a_running_trainer_keeps_its_newest_and_its_best(make_run: MakeRun, home: Path) -> None:
    folder = make_run("verse", LOSSES, state="training").folder
    with trainer_lock(folder):
        run = open_run(folder)
        for step, why in ((500, "newest"), (300, "best")):
            with pytest.raises(UserError, match=f"verse@{step} stays: .* its {why}"):
                delete_checkpoints(home, run, chosen(run, 100, step))
        assert steps(folder) == sorted(LOSSES)
        delete_checkpoints(home, run, chosen(run, 100))
        assert steps(folder) == [200, 300, 400, 500]


def test_the_poet_stays(poet: Run, home: Path) -> None:
    with pytest.raises(UserError, match="built in"):
        delete_run(home, poet)
    with pytest.raises(UserError, match="built in"):
        delete_checkpoints(home, poet, poet.checkpoints)
    with pytest.raises(UserError, match="built in"):
        rename_run(home, poet, "mine")


@pytest.mark.parametrize(
    ("every", "going"), [(None, [200, 400]), (200, []), (400, [200]), (50, [])]
)
def test_thinning_spares_best_last_starred_and_every_nth(
    make_run: MakeRun, every: int | None, going: list[int]
) -> None:
    run = make_run("verse", LOSSES)
    star(run.folder, [100], True)
    assert [c.step for c in thinnable(open_run(run.folder), every)] == going


def test_thinning_leaves_what_it_cannot_read(make_run: MakeRun) -> None:
    run = make_run("verse", LOSSES)
    run.checkpoints[1].path.write_bytes(b"half a file")
    assert [c.step for c in thinnable(open_run(run.folder), None)] == [100, 400]


def test_renaming_and_what_was_done_are_taken_back_in_turn(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    assert rename_run(home, run, "poems").words == "verse is now poems"
    poems = open_run(home / "runs" / "poems")
    delete_checkpoints(home, poems, chosen(poems, 200))
    undo(home)
    assert undo(home).words == "poems is verse again"
    assert steps(run.folder) == sorted(LOSSES)
    with pytest.raises(UserError, match="nothing to undo"):
        undo(home)


@pytest.mark.parametrize("name", ["poet", "../x", "other", ""])
def test_names_that_no_run_can_have(make_run: MakeRun, home: Path, name: str) -> None:
    run = make_run("verse")
    make_run("other")
    with pytest.raises(UserError):
        rename_run(home, run, name)
    assert open_run(run.folder).name == "verse"


def test_nothing_is_put_over_what_took_the_place(make_run: MakeRun, home: Path) -> None:
    delete_run(home, make_run("verse", LOSSES))
    new = make_run("verse", {7: 1.0})
    with pytest.raises(UserError, match="there again: rename it first"):
        undo(home)
    assert steps(new.folder) == [7]
    rename_run(home, new, "later")
    undo(home)  # the renaming, which came last
    assert steps(home / "runs" / "verse") == [7]


def test_checkpoints_of_a_run_that_is_gone(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    delete_checkpoints(home, run, run.checkpoints[:1])
    os.rename(run.folder, home / "elsewhere")
    with pytest.raises(UserError, match="the run 'verse', to which they belong, is not there"):
        undo(home)
    os.rename(home / "elsewhere", run.folder)
    undo(home)
    assert steps(run.folder) == sorted(LOSSES)


def test_the_trash_has_an_end(
    make_run: MakeRun, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("verse", LOSSES)
    mark = trash_mark(home)
    delete_checkpoints(home, run, run.checkpoints[:1])
    assert trash_mark(home) != mark
    later = time.time_ns() + int((KEPT_FOR + 60) * 1e9)
    monkeypatch.setattr("time.time_ns", lambda: later)
    delete_checkpoints(home, run, run.checkpoints[1:2])
    assert len(list((home / "runs" / ".trash").iterdir())) == 1
    assert empty_trash(home).words.startswith("freed ")
    assert list((home / "runs" / ".trash").iterdir()) == []


def test_emptying_follows_no_link_out_of_the_trash(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    real = home / "elsewhere"
    os.rename(run.folder, real)
    run.folder.symlink_to(real)
    delete_run(home, open_run(run.folder))
    empty_trash(home)
    assert steps(real) == sorted(LOSSES)


def test_a_hostile_entry_names_nothing_outside(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", LOSSES)
    delete_checkpoints(home, run, run.checkpoints[:1])
    entry = next((home / "runs" / ".trash").iterdir()) / "entry.json"
    target = home / "precious"
    target.write_text("mine")
    entry.write_text(entry.read_text().replace("step-000100.safetensors", "../../../precious"))
    undo(home)
    assert target.read_text() == "mine"


def test_marks(make_run: MakeRun) -> None:
    folder = make_run("verse", LOSSES).folder
    star(folder, [100, 300], True)
    star(folder, [100], False)
    note(folder, 300, "the best")
    note(folder, None, "of May")
    marks = read_marks(folder)
    assert (marks.stars, marks.notes, marks.note) == ([300], {300: "the best"}, "of May")
    note(folder, 300, "")
    assert read_marks(folder).notes == {}


@pytest.mark.parametrize("damaged", ["", "[]", '{"stars": "x"}', '{"notes": {"x": "y"}}'])
def test_damaged_marks_are_none_and_are_not_replaced(make_run: MakeRun, damaged: str) -> None:
    folder = make_run("verse", LOSSES).folder
    (folder / MARKS_FILE).write_text(damaged)
    run = open_run(folder)
    assert run.marks.stars == [] and not run.problem
    with pytest.raises(UnreadableFile):
        star(folder, [100], True)
    assert (folder / MARKS_FILE).read_text() == damaged
