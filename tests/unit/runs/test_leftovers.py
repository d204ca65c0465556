"""What killed trainers left half-made is never listed, and goes when nobody can be using it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from conftest import MakeRun

from tuigpt.paths import runs_dir
from tuigpt.runs.folder import list_checkpoints, run_folders
from tuigpt.runs.leftovers import ABANDONED_AFTER, remove_from_home, remove_from_run


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_in_a_home(make_run: MakeRun, home: Path) -> None:
    run = make_run("run", {10: 2.0})
    for age, word in ((ABANDONED_AFTER + 60, "old"), (ABANDONED_AFTER - 60, "young")):
        log = home / f"starting-{word}-trainer.log"
        log.write_text("counting the text …\n", "utf-8")
        draft = runs_dir(home) / f".partial-{word}"
        (draft / "checkpoints").mkdir(parents=True)
        (draft / "run.json").write_text("{}")
        for path in (log, draft):
            os.utime(path, (time.time() - age,) * 2)
    (home / "starting-notes.txt").write_text("mine")
    os.utime(home / "starting-notes.txt", (0, 0))
    os.utime(run.folder, (0, 0))

    assert list(run_folders(home)) == [run.folder]
    remove_from_home(home)
    assert names(home) == ["runs", "starting-notes.txt", "starting-young-trainer.log"]
    assert names(runs_dir(home)) == [".partial-young", "run"]


def test_in_a_home_that_is_not_there(home: Path) -> None:
    remove_from_home(home)
    assert not home.exists()


def test_in_a_run_folder(make_run: MakeRun) -> None:
    run = make_run("run", {10: 2.0})
    before = names(run.folder)
    (run.folder / ".partial-a").write_bytes(b"half a status")
    (run.folder / "checkpoints" / ".partial-b").write_bytes(b"half a checkpoint")
    assert list_checkpoints(run.folder) == run.checkpoints
    remove_from_run(run.folder)
    assert names(run.folder) == before
    assert names(run.folder / "checkpoints") == ["step-000010.safetensors"]
