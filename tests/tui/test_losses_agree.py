"""One loss, one number: wherever a run with a BPE tokenizer shows it, in nats per character."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tui.conftest import OpenApp, screen_text, still, until

from tuigpt.cli.main import main
from tuigpt.runs.folder import open_run
from tuigpt.runs.follow import Follower

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run-v1-bpe"

VAL, TRAIN = 3.9720210386, 4.0214029473
"""Nats per character at step 6: 5.5236 and 5.5532 per token, in which val has 1.390625 characters
and the training part 1809 / 1310."""


@pytest.fixture
def folder(home: Path) -> Path:
    shutil.copytree(FIXTURE, home / "runs" / "verse")
    return home / "runs" / "verse"


def test_in_everything_that_reads_the_run(folder: Path, home: Path) -> None:
    run = open_run(folder)
    assert run.best is not None and run.best.step == 6
    history = Follower(home).look("verse").history
    for val in (
        run.best.val_loss,
        run.status.val_loss,
        run.status.best_val_loss,
        history.val[-1][1],
    ):
        assert val == pytest.approx(VAL, abs=1e-9)
    for train in (run.best.train_loss, run.status.train_loss, history.train[-1][1]):
        assert train == pytest.approx(TRAIN, abs=1e-9)


def test_in_the_list(folder: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "verse", "--home", str(home)]) == 0
    assert re.search(r"6 +3\.97 ★ +4\.02", capsys.readouterr().out)


async def test_on_the_screen(folder: Path, open_app: OpenApp) -> None:
    async with open_app(160, 45) as pilot:
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "best 3.97 @ 6" in screen_text(pilot))
        await still(pilot)
        screen = screen_text(pilot)
    assert "6/6" in screen and "best val 3.97 ★ @6" in screen  # the status line
    assert re.search(r"6 +3\.97 ?★", screen)  # the list of checkpoints
    assert "val 3.972 ★ = 5.73 bits" in screen  # above the chart
    axis = [float(value) for value in re.findall(r"([\d.]+)┤", screen)]
    assert axis and all(3 < value < 4.6 for value in axis)  # per token it would be 5.5
