"""How the training pane looks in each state of a run, each at another size; and any size."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from tui.conftest import with_fake_writer
from tui.test_app import RUNNING
from tui.test_snapshots import keys
from tui.test_training_pane import Host, history, run, sample, step

from tuigpt.tui.app import TuigptApp
from tuigpt.tui.widgets.loss_chart import LossChart

pytestmark = pytest.mark.usefixtures("nothing_timed")


def log(steps: int, rising: float = 0.0) -> list[dict[str, Any]]:
    """A run's log; `rising` is how much val is above train for each step."""
    lines: list[dict[str, Any]] = [{"kind": "eval", "step": 0, "val_loss": 4.2}]
    for n in range(1, steps + 1):
        noise = 0.05 * math.sin(7.0 * n)
        loss = 1.6 + 2.4 * math.exp(-n / 90)
        rate = 0.02 if n < 250 else 0.01
        lines.append(
            {"kind": "step", "step": n, "loss": loss + noise, "learning_rate": rate,
             "grad_norm": 0.6 + noise, "seconds": 0.05}
        )  # fmt: skip
        if n in (10, 25, 50) or n % 100 == 0:
            val = loss + 0.05 + rising * n
            lines.append({"kind": "eval", "step": n, "val_loss": val, "early": n % 100 != 0})
        if n % 100 == 0:
            text = " to be:\nthat is the question whether it is nobler in the mind to suffer"
            share = 1 - math.exp(-n / 150)
            lines.append(
                {"kind": "sample", "step": n, "prompt": "To be or not", "text": text,
                 "real_words": share}
            )  # fmt: skip
        if n == 250:
            words = "learning rate changed from 0.02 to 0.01"
            lines.append({"kind": "event", "step": n, "message": words, "setting": "learning_rate"})
    return lines


TRAINING = {
    **RUNNING, "step": 412, "max_steps": 1000, "train_loss": 1.62, "val_loss": 1.68,
    "best_val_loss": 1.68, "best_step": 400, "tokens_per_second": 20700.0, "seconds_left": 90.0,
}  # fmt: skip
KEPT = {100: 2.4, 200: 1.9, 300: 1.75, 400: 1.68}

STATES: dict[str, tuple[tuple[int, int], dict[str, Any] | None]] = {
    "before_a_run": ((60, 16), None),
    "preparing": (
        (80, 24), {"status": {**RUNNING, "state": "preparing", "progress": 0.4, "step": 0}}
    ),
    "learning": ((120, 40), {"checkpoints": KEPT, "records": log(412), "status": TRAINING}),
    "memorising": (
        (160, 45), {"checkpoints": KEPT, "records": log(412, 0.004), "status": TRAINING}
    ),
    "paused": (
        (80, 24),
        {"checkpoints": KEPT, "records": log(412), "status": TRAINING | {"state": "paused"}},
    ),
    "failed": (
        (200, 60),
        {"checkpoints": KEPT, "records": log(412),
         "status": TRAINING | {"state": "failed", "message": "out of memory at step 412"}},
    ),
    "lost": (
        (60, 16),
        {"checkpoints": KEPT, "records": log(412),
         "status": TRAINING
         | {"pid": 1234, "host": "elsewhere", "heartbeat": "2020-01-01T00:00:00+00:00"}},
    ),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a name so long that nothing before it is on the screen."""
    folder = tmp_path / ("a-very-long-name-" * 5)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("state", STATES)
def test_a_state(snap_compare: Any, make_run: MakeRun, home: Path, state: str) -> None:
    size, made = STATES[state]
    if made is not None:
        status = made.pop("status")
        make_run("verse-tiny-1", **made, **status)
    app = TuigptApp(home, panes=with_fake_writer(), strict=True)
    assert snap_compare(app, terminal_size=size, run_before=keys("ctrl+t"))


async def test_any_size_is_survived() -> None:
    app, chance = Host(), random.Random(1)
    async with app.run_test(size=(80, 24)) as pilot:
        app.show(run(), history(*(step(n, 2.0 + 1 / n) for n in range(1, 400)), sample(9, " be")))
        for _ in range(25):
            await pilot.resize_terminal(chance.randint(1, 220), chance.randint(1, 70))
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        chart = app.query_one(LossChart)
        rows = [chart.render_line(y).text for y in range(chart.size.height)]
        assert "train" in rows[0] and all(len(row) == chart.size.width for row in rows)
        assert "To be be" in app.samples
