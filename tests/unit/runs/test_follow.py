"""Looking at a home again and again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only

from tuigpt import files
from tuigpt.files import to_json
from tuigpt.runs import follow, metrics
from tuigpt.runs.folder import checkpoint_path
from tuigpt.runs.follow import Follower
from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.status import RunStatus, status_of_this_process, write_status

STEPS = [{"kind": "step", "step": n, "loss": 4.0 - n} for n in (1, 2)]


def append(folder: Path, *records: dict[str, object]) -> None:
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as stream:
        stream.writelines(to_json(record) + "\n" for record in records)


def test_an_empty_home(home: Path) -> None:
    snapshot = Follower(home).look(None)
    assert snapshot.runs == () and snapshot.watched is None and snapshot.history.train == []


def test_runs_come_and_go(make_run: MakeRun, home: Path) -> None:
    follower = Follower(home)
    follower.look(None)
    first = make_run("first", {10: 2.0}, created=1000)
    assert [r.name for r in follower.look(None).runs] == ["first"]
    make_run("second", created=2000)
    assert [r.name for r in follower.look(None).runs] == ["second", "first"]
    shutil.rmtree(first.folder)
    assert [r.name for r in follower.look(None).runs] == ["second"]


def test_the_run_asked_for_is_watched(make_run: MakeRun, home: Path) -> None:
    make_run("first", records=STEPS, created=1000)
    make_run("second", created=2000)
    follower = Follower(home)
    snapshot = follower.look("first")
    assert snapshot.watched and snapshot.watched.name == "first"
    assert snapshot.history.train == [(1, 3.0), (2, 2.0)]
    assert follower.look("gone").watched == follower.look(None).watched


def test_without_a_wish_it_is_the_one_at_work_else_the_newest(
    make_run: MakeRun, home: Path
) -> None:
    at_work = make_run("at work", created=1000)
    make_run("newest", created=2000)
    follower = Follower(home)
    watched = follower.look(None).watched
    assert watched and watched.name == "newest"
    write_status(at_work.folder, status_of_this_process(state="training"))
    watched = follower.look(None).watched
    assert watched and watched.name == "at work" and watched.status.alive


def test_the_history_grows_by_what_is_new(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", records=STEPS)
    follower = Follower(home)
    assert follower.look(None).grown
    assert not follower.look(None).grown
    append(run.folder, {"kind": "step", "step": 3, "loss": 0.5})
    snapshot = follower.look(None)
    assert snapshot.grown and snapshot.history.train[-1] == (3, 0.5)
    assert len(snapshot.history.train) == 3


def test_another_run_has_another_history(make_run: MakeRun, home: Path) -> None:
    make_run("first", records=STEPS)
    make_run("second", records=[{"kind": "step", "step": 9, "loss": 1.0}])
    follower = Follower(home)
    assert follower.look("first").history.train[0][0] == 1
    snapshot = follower.look("second")
    assert snapshot.grown and snapshot.history.train == [(9, 1.0)]
    assert follower.look("first").history.train[0][0] == 1


def test_states_and_checkpoints_change(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", {10: 2.0}, state="stopped")
    follower = Follower(home)
    follower.look(None)
    write_status(run.folder, status_of_this_process(state="training", step=11))
    seen = follower.look(None).runs[0]
    assert (seen.status.state, seen.status.step) == ("training", 11)
    write_header_only(checkpoint_path(run.folder, 20), checkpoint_header(20, val_loss=1.5))
    assert [c.step for c in follower.look(None).runs[0].checkpoints] == [10, 20]
    write_status(run.folder, RunStatus(state="finished", step=20))
    assert follower.look(None).runs[0].status.state == "finished"
    checkpoint_path(run.folder, 10).unlink()
    assert [c.step for c in follower.look(None).runs[0].checkpoints] == [20]


def test_a_trainer_that_dies_without_a_word_is_noticed(make_run: MakeRun, home: Path) -> None:
    """Nothing in the folder changes then."""
    run = make_run("verse")
    follower = Follower(home)
    with trainer_lock(run.folder):
        write_status(run.folder, status_of_this_process(state="training"))
        assert follower.look(None).runs[0].status.alive
    assert follower.look(None).runs[0].status.state == "lost"


def test_what_did_not_change_is_not_read_again(
    make_run: MakeRun, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        make_run(f"run{number}", {10: 2.0})
    follower = Follower(home)
    before = follower.look(None)
    monkeypatch.setattr(files, "open_regular", lambda path: pytest.fail(f"{path} read again"))
    again = follower.look(None)
    assert all(a is b for a, b in zip(before.runs, again.runs, strict=True))


def test_a_broken_run_is_seen_and_hides_no_other(make_run: MakeRun, home: Path) -> None:
    broken, good = make_run("broken", created=2000), make_run("good", created=1000)
    (broken.folder / "run.json").write_text("{")
    problems = {r.name: r.problem for r in Follower(home).look(None).runs}
    assert problems[good.name] == "" and problems["broken"].startswith("run.json: it is not JSON")


def test_a_run_that_is_made_anew_under_its_name(make_run: MakeRun, home: Path) -> None:
    old = make_run("verse", {10: 2.0}, records=STEPS)
    follower = Follower(home)
    assert len(follower.look("verse").history.train) == 2
    # Not deleted, so that the file system cannot give its number to the new one.
    old.folder.rename(home / "old")
    make_run("verse", {20: 1.0}, records=[{"kind": "step", "step": n, "loss": 9.0} for n in (1, 2)])
    snapshot = follower.look("verse")
    assert snapshot.grown and snapshot.news == ()
    assert snapshot.history.train == [(1, 9.0), (2, 9.0)]
    assert [c.step for c in snapshot.runs[0].checkpoints] == [20]


def test_a_log_that_is_shorter_than_before_is_read_anew(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", records=STEPS)
    follower = Follower(home)
    follower.look("verse")
    (run.folder / "metrics.jsonl").write_text('{"kind": "step", "step": 7, "loss": 1.5}\n')
    snapshot = follower.look("verse")
    assert snapshot.grown and snapshot.history.train == [(7, 1.5)]


def test_a_renamed_run_is_still_the_one_that_is_watched(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", records=STEPS, created=1000)
    make_run("newer", created=2000)
    follower = Follower(home)
    follower.look("verse")
    run.folder.rename(run.folder.parent / "renamed")
    for _ in range(2):
        watched = follower.look("verse").watched
        assert watched and watched.name == "renamed"


def test_a_long_log_is_read_in_pieces(
    make_run: MakeRun, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LONGEST_READ", 0.0)
    monkeypatch.setattr(metrics, "PIECE", 100)
    make_run("verse", records=[{"kind": "step", "step": n, "loss": 1.0} for n in range(1, 10)])
    follower = Follower(home)
    looks = [follower.look("verse")]
    seen = [len(looks[-1].history.train)]
    while looks[-1].reading:
        looks.append(follower.look("verse"))
        seen.append(len(looks[-1].history.train))
    assert len(looks) > 3 and seen == sorted(seen) and seen[-1] == 9


def test_news_are_what_was_told_since_the_last_look(make_run: MakeRun, home: Path) -> None:
    told = {"kind": "event", "step": 2, "message": "an old story"}
    run = make_run("verse", records=[*STEPS, told])
    follower = Follower(home)
    assert follower.look("verse").news == ()
    append(run.folder, {"kind": "event", "step": 2, "message": "news"})
    assert follower.look("verse").news == ("news",)
    assert follower.look("verse").news == ()


def test_a_home_that_cannot_be_read_is_told(home: Path) -> None:
    home.mkdir()
    (home / "runs").write_text("no folder")
    snapshot = Follower(home).look(None)
    assert snapshot.runs == () and "cannot read" in snapshot.problem


def test_a_run_that_vanishes_under_its_watcher(make_run: MakeRun, home: Path) -> None:
    run = make_run("verse", {10: 2.0}, records=STEPS)
    follower = Follower(home)
    follower.look("verse")
    os.remove(run.folder / "status.json")
    assert follower.look("verse").runs[0].status.state == "lost"
    shutil.rmtree(run.folder)
    snapshot = follower.look("verse")
    assert snapshot.watched is None and snapshot.grown and snapshot.history.train == []
