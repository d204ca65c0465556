"""How the workbench looks: a finished run at the two sizes that matter most."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from textual.pilot import Pilot
from textual.widgets import TextArea
from tui.conftest import settle, still, with_fake_writer

from tuigpt.tui.app import TuigptApp

pytestmark = pytest.mark.usefixtures("nothing_timed")


def overfitting(step: int) -> float:
    return 1.2 + 3.0 * math.exp(-step / 60)


RECORDS = [
    {"kind": "eval", "step": 0, "val_loss": 4.2, "whole": False},
    *(
        record
        for step in range(1, 401)
        for record in (
            {"kind": "step", "step": step, "loss": overfitting(step), "learning_rate": 1e-3},
            *(
                {"kind": kind, "step": step, "whole": False, "prompt": "To be or not", "text": text,
                 "val_loss": overfitting(step) + step / 800}
                for kind, text in (("eval", ""), ("sample", " to be:\nthat is the question"))
                if step % 100 == 0
            ),
        )
    ),
]  # fmt: skip

STATUS = {
    "state": "finished", "step": 400, "max_steps": 400, "device": "cpu", "train_loss": 1.2,
    "val_loss": 1.7, "best_val_loss": 1.55, "best_step": 200,
}  # fmt: skip


@pytest.fixture
def app(make_run: MakeRun, home: Path) -> TuigptApp:
    losses = {n: overfitting(n) + n / 800 for n in (100, 200, 300, 400)}
    make_run("verse-tiny-1", losses, RECORDS, **STATUS)
    return TuigptApp(home, panes=with_fake_writer(), strict=True)


def keys(*pressed: str) -> Any:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for box in pilot.app.query(TextArea):
            box.cursor_blink = False
        await pilot.press(*pressed)
        await still(pilot)

    return before


def test_the_workbench_at_140_by_40(snap_compare: Any, app: TuigptApp) -> None:
    assert snap_compare(app, terminal_size=(140, 40), run_before=keys("ctrl+t"))


def test_training_at_80_by_24(snap_compare: Any, app: TuigptApp) -> None:
    assert snap_compare(app, terminal_size=(80, 24), run_before=keys("ctrl+t"))
