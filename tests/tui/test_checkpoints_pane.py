"""The list of runs and checkpoints: what a row tells, what enter does, where the cursor stays."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.widgets import OptionList
from tui.conftest import entry, screen_text, session

from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.metrics import History
from tuigpt.runs.status import RunStatus
from tuigpt.tui.messages import OpenCheckpoint, WatchRun
from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane


def checkpoint(step: int, val_loss: float | None = 2.0, **facts: Any) -> Checkpoint:
    path = Path(f"/runs/{facts.get('run', 'verse')}/checkpoints/step-{step:06d}.safetensors")
    some = dict(run="verse", train_loss=1.25, vocab_size=65, n_params=438_000, corpus="verse",
                size=1_640_000, modified=time.time() - 7300)  # fmt: skip
    return Checkpoint(**{**some, "path": path, "step": step, "val_loss": val_loss, **facts})


def run(name: str, *checkpoints: Checkpoint, state: str = "finished") -> Run:
    mine = tuple(replace(c, run=name, path=Path(f"/{name}/{c.step}")) for c in checkpoints)
    return Run(Path("/runs") / name, None, RunStatus(state=state), mine)


class Host(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def compose(self) -> ComposeResult:
        yield CheckpointsPane(entry("checkpoints"), session())

    def on_open_checkpoint(self, event: OpenCheckpoint) -> None:
        self.heard.append(event.checkpoint.label)

    def on_watch_run(self, event: WatchRun) -> None:
        self.heard.append(event.name)

    def show(self, runs: tuple[Run, ...], open_checkpoint: Checkpoint | None) -> None:
        self.pane.session.snapshot = Snapshot(runs, None, None, History(), False)
        self.pane.session.checkpoint = open_checkpoint
        self.pane.show()

    @property
    def pane(self) -> CheckpointsPane:
        return self.query_one(CheckpointsPane)

    @property
    def options(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def rows(self) -> list[str]:
        prompts = [option.prompt for option in self.options.options]
        return [" ".join(str(prompt).split()) for prompt in prompts]


async def test_a_row_tells_what_matters_in_a_narrow_pane() -> None:
    app = Host()
    async with app.run_test(size=(42, 20)):
        best = checkpoint(100, 1.5)
        app.show((run("verse", best, checkpoint(1000, None)),), None)
        assert app.rows == ["verse finished", "1,000 – 1.6 MB 2 h", "100 1.50 ★ 1.6 MB 2 h"]


async def test_a_wide_one_has_room_for_more() -> None:
    app = Host()
    async with app.run_test(size=(100, 20)):
        app.show((run("verse", checkpoint(100, 1.5)),), None)
        assert app.rows[1] == "100 1.50 ★ train 1.25 438k parameters 1.6 MB 2 h"


async def test_the_open_one_is_marked() -> None:
    app = Host()
    async with app.run_test(size=(42, 20)):
        shown = run("verse", checkpoint(1), checkpoint(2))
        app.show((shown,), shown.checkpoints[0])
        assert [row.startswith("▸") for row in app.rows] == [False, False, True]


async def test_broken_ones_say_why_and_do_not_open() -> None:
    app = Host()
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        app.show((run("verse", checkpoint(7, problem="the file is [cut] short")),), None)
        assert app.rows[1] == "7 the file is [cut] short"
        app.options.focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.heard == []
        assert "the file is [cut] short" in screen_text(pilot).replace(app.rows[1], "")


async def test_enter_opens_a_checkpoint_and_watches_a_run() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        app.show((run("one", checkpoint(5)), run("two", checkpoint(8), checkpoint(9))), None)
        app.options.focus()
        for _ in range(5):
            await pilot.press("enter", "down")
        assert app.heard == ["one", "one@5", "two", "two@9", "two@8"]


async def test_the_cursor_stays_on_its_row_when_others_come() -> None:
    app = Host()
    async with app.run_test(size=(60, 10)) as pilot:
        runs = (run("verse", *(checkpoint(n) for n in range(1, 40))),)
        app.show(runs, None)
        app.options.focus()
        await pilot.press("down", "down", "down")
        await pilot.press("enter")
        later = (run("new", checkpoint(1)), run("verse", *(checkpoint(n) for n in range(1, 44))))
        app.show(later, None)
        await pilot.press("enter")
        assert app.heard == ["verse@37", "verse@37"]


async def test_the_cursor_survives_its_row() -> None:
    app = Host()
    async with app.run_test(size=(60, 10)) as pilot:
        app.show((run("verse", checkpoint(1), checkpoint(2)),), None)
        app.options.focus()
        await pilot.press("end")
        app.show((run("verse", checkpoint(2)),), None)
        await pilot.press("enter")
        app.show((), None)
        await pilot.press("enter")
        assert app.heard and app.heard[0].startswith("verse")


async def test_nothing_is_drawn_anew_while_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Host()
    async with app.run_test(size=(60, 10)):
        runs = (run("verse", checkpoint(1), checkpoint(2)),)
        app.show(runs, None)
        for name in ("clear_options", "replace_option_prompt", "add_options"):
            monkeypatch.setattr(app.options, name, lambda *a, **k: pytest.fail("drawn anew"))
        app.show(runs, None)


async def test_empty_and_total() -> None:
    app = Host()
    async with app.run_test(size=(80, 10)):
        total = app.query_one("#total")
        assert "No checkpoints of your own" in str(total.render())
        app.show((run("verse", state="preparing"),), None)
        assert "No checkpoint has been saved yet" in str(total.render())
        app.show((run("verse", checkpoint(1)),), None)
        assert "1 checkpoint · 1.6 MB" in str(total.render())
        app.show((run("verse", *(checkpoint(n) for n in range(1000))),), None)
        assert "1,000 checkpoints · 1.6 GB" in str(total.render())
        app.show((), None)
        assert "No checkpoints of your own" in str(total.render())


async def test_odd_names_stand_as_written() -> None:
    app = Host()
    async with app.run_test(size=(60, 10)):
        app.show((run("[red]x[b", checkpoint(1)), run("日本" * 30)), None)
        assert app.rows[0] == "[red]x[b finished"
        assert app.rows[2].startswith("日本") and app.rows[2].endswith("… finished")


@pytest.mark.parametrize("width", [24, 41, 42, 60, 65, 66, 67, 68, 69, 70, 71, 100, 200])
async def test_each_row_stands_on_one_line(width: int) -> None:
    app = Host()
    async with app.run_test(size=(width, 10)) as pilot:
        app.show((run("a long name of a run", checkpoint(10**8), checkpoint(5)),), None)
        await pilot.pause()
        shown = [line for line in screen_text(pilot).splitlines() if line.strip()]
        assert len(shown) == 4, shown  # the run, its checkpoints, and the total


@pytest.mark.parametrize("width", [1, 5, 20])
async def test_any_width(width: int) -> None:
    app = Host()
    async with app.run_test(size=(width, 10)) as pilot:
        app.show((run("a long name of a run", checkpoint(10**9), checkpoint(5)),), None)
        await pilot.pause()
        assert app.options.option_count == 3
