"""The browser of runs and checkpoints: what it tells, what can be done, where the cursor stays."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun
from textual.app import ComposeResult
from textual.content import Content
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input
from tui.conftest import InkApp, OpenApp, entry, screen_text, session, settle, until

from tuigpt.runs.folder import Checkpoint, Run, open_run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.history import History
from tuigpt.runs.metrics import SampleLine
from tuigpt.runs.status import RunStatus
from tuigpt.tui import app as app_module
from tuigpt.tui.messages import OpenCheckpoint, WatchRun
from tuigpt.tui.panes.checkpoints.details import Past, card
from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane
from tuigpt.tui.panes.checkpoints.rows import CheckpointRow, RunRow
from tuigpt.tui.widgets.row_list import RowList


def checkpoint(step: int, val_loss: float | None = 2.0, **facts: Any) -> Checkpoint:
    path = Path(f"/runs/{facts.get('run', 'verse')}/checkpoints/step-{step:06d}.safetensors")
    some = dict(run="verse", train_loss=1.25, vocab_size=65, n_params=438_000, corpus="verse",
                size=1_640_000, modified=time.time() - 7300)  # fmt: skip
    return Checkpoint(**{**some, "path": path, "step": step, "val_loss": val_loss, **facts})


def run(name: str, *checkpoints: Checkpoint, state: str = "finished") -> Run:
    mine = tuple(replace(c, run=name, path=Path(f"/{name}/{c.step}")) for c in checkpoints)
    return Run(Path("/runs") / name, None, RunStatus(state=state), mine)


class Host(InkApp):
    CSS_PATH = Path(app_module.__file__).with_name("app.tcss")

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def compose(self) -> ComposeResult:
        yield CheckpointsPane(entry("checkpoints"), session())

    def on_open_checkpoint(self, event: OpenCheckpoint) -> None:
        self.heard.append(event.checkpoint.label)

    def on_watch_run(self, event: WatchRun) -> None:
        self.heard.append(event.name)

    def show(self, runs: tuple[Run, ...], open_checkpoint: Checkpoint | None = None) -> None:
        watched = runs[0] if runs else None
        self.pane.session.snapshot = Snapshot(runs, None, watched, History(), False)
        self.pane.session.checkpoint = open_checkpoint
        self.pane.show()

    @property
    def pane(self) -> CheckpointsPane:
        return self.query_one(CheckpointsPane)

    @property
    def list(self) -> RowList:
        return self.query_one(RowList)


async def rows(pilot: Pilot[None]) -> list[str]:
    """The rows of the list as they are on the screen."""
    await pilot.pause()
    lines = screen_text(pilot).split("\n")
    found = pilot.app.query_one(RowList)
    region = found.region
    shown = lines[region.y : region.y + min(region.height, len(found.keys))]
    return [" ".join(line[region.x :].split()) for line in shown]


async def test_a_row_tells_what_matters_in_a_narrow_pane() -> None:
    app = Host()
    async with app.run_test(size=(42, 20)) as pilot:
        app.show((run("verse", checkpoint(100, 1.5), checkpoint(1000, None)),))
        assert await rows(pilot) == ["▾ verse finished", "1,000 – 1.25 2 h", "100 1.50★ 1.25 2 h"]
        assert "▾step val train age" in " ".join(screen_text(pilot).split())


async def test_a_wide_one_has_room_for_more() -> None:
    app = Host()
    async with app.run_test(size=(100, 20)) as pilot:
        app.show((run("verse", checkpoint(100, 1.5)),))
        assert await rows(pilot) == [
            "▾ verse finished",
            "100 1.50★ 1.25 0.25 ███ best, last 1.6 MB 2 h",
        ]
        headings = "▾step val train gap kept size age"
        assert headings in " ".join(screen_text(pilot).split())


async def test_the_open_one_is_marked() -> None:
    app = Host()
    async with app.run_test(size=(42, 20)) as pilot:
        shown = run("verse", checkpoint(1), checkpoint(2))
        app.show((shown,), shown.checkpoints[0])
        assert [row.startswith("▸") for row in await rows(pilot)] == [False, False, True]


async def test_broken_ones_say_why_and_do_not_open() -> None:
    app = Host()
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        app.show((run("verse", checkpoint(7, problem="the file is [cut] short")),))
        row = (await rows(pilot))[1]
        assert row == "7 the file is [cut] short"
        app.list.focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.heard == []
        assert "7 cannot be opened: the" in " ".join(screen_text(pilot).split())  # a toast


async def test_enter_opens_a_checkpoint_and_watches_a_run() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        app.show((run("one", checkpoint(5)), run("two", checkpoint(8), checkpoint(9))))
        app.list.focus()
        await pilot.press("end", "right")
        await pilot.press("home")
        for _ in range(5):
            await pilot.press("enter", "down")
        assert app.heard == ["one", "one@5", "two", "two@9", "two@8"]


async def test_the_cursor_stays_on_its_row_when_others_come() -> None:
    app = Host()
    async with app.run_test(size=(60, 10)) as pilot:
        runs = (run("verse", *(checkpoint(n) for n in range(1, 40))),)
        app.show(runs)
        app.list.focus()
        await pilot.press("down", "down", "down", "enter")
        app.show((run("verse", *(checkpoint(n) for n in range(1, 44))),))
        await pilot.press("enter")
        assert app.heard == ["verse@37", "verse@37"]


async def test_the_cursor_survives_its_row() -> None:
    app = Host()
    async with app.run_test(size=(60, 10)) as pilot:
        app.show((run("verse", checkpoint(1), checkpoint(2)),))
        app.list.focus()
        await pilot.press("end")
        app.show((run("verse", checkpoint(2)),))
        await pilot.press("enter")
        app.show(())
        await pilot.press("enter", "x", "space", "r", "left", "s")
        assert app.heard == ["verse@2"]


async def test_nothing_is_drawn_anew_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Host()
    async with app.run_test(size=(60, 10)):
        runs = (run("verse", checkpoint(1), checkpoint(2)),)
        app.show(runs)
        monkeypatch.setattr(app.list, "set_rows", lambda *_: pytest.fail("drawn anew"))
        app.show(runs)


async def test_empty_and_total() -> None:
    app = Host()
    async with app.run_test(size=(80, 10)):
        total = app.query_one("#total")
        assert "No checkpoints of your own" in str(total.render())
        app.show((run("verse", state="preparing"),))
        assert "No checkpoint has been saved yet" in str(total.render())
        app.show((run("verse", checkpoint(1)),))
        assert "1 checkpoint · 1.6 MB" in str(total.render())
        app.show((run("verse", *(checkpoint(n) for n in range(1000))),))
        assert "1,000 checkpoints · 1.6 GB" in str(total.render())
        app.show(())
        assert "No checkpoints of your own" in str(total.render())


async def test_odd_names_stand_as_written() -> None:
    app = Host()
    async with app.run_test(size=(60, 12)) as pilot:
        app.show((run("[red]x[b", checkpoint(1)), run("日本" * 30)))
        shown = await rows(pilot)
        assert shown[0] == "▾ [red]x[b finished"
        assert shown[2].startswith("▸ 日本") and shown[2].endswith("… finished")


@pytest.mark.parametrize("width", [24, 41, 42, 60, 65, 66, 67, 68, 69, 70, 71, 100, 200])
async def test_each_row_stands_on_one_line(width: int) -> None:
    app = Host()
    async with app.run_test(size=(width, 10)) as pilot:
        app.show((run("a long name of a run", checkpoint(10**8), checkpoint(5)),))
        shown = await rows(pilot)
        assert [row.split()[0] for row in shown] == ["▾", "100,000,000", "5"]


@pytest.mark.parametrize("width", [1, 5, 20])
async def test_any_width(width: int) -> None:
    app = Host()
    async with app.run_test(size=(width, 10)) as pilot:
        app.show((run("a long name of a run", checkpoint(10**9), checkpoint(5)),))
        await pilot.pause()
        assert len(app.list.keys) == 3


async def test_runs_fold_and_unfold() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        app.show((run("one", checkpoint(5)), run("two", checkpoint(8), checkpoint(9))))
        app.list.focus()
        assert [row.split()[:2] for row in await rows(pilot)] == [
            ["▾", "one"], ["5", "2.00★"], ["▸", "two"]]  # fmt: skip
        await pilot.press("down", "left")  # from a checkpoint's row, its run folds
        assert [row.split()[:2] for row in await rows(pilot)] == [["▸", "one"], ["▸", "two"]]
        await pilot.click(RowList, offset=(0, 1))
        assert [row.split()[0] for row in await rows(pilot)] == ["▸", "▾", "9", "8"]
        assert app.heard == []


async def test_sorting_by_each_column_and_backwards() -> None:
    app = Host()
    async with app.run_test(size=(80, 20)) as pilot:
        app.show((run("verse", checkpoint(1, 2.5), checkpoint(2, 1.5), checkpoint(3, 1.9)),))
        app.list.focus()
        await pilot.press("s")
        assert [row.split()[0] for row in await rows(pilot)] == ["▾", "2", "3", "1"]
        await pilot.press("S")
        assert [row.split()[0] for row in await rows(pilot)] == ["▾", "1", "3", "2"]
        assert "▴val" in screen_text(pilot)
        await pilot.click("#headings", offset=(8, 0))
        assert [row.split()[0] for row in await rows(pilot)] == ["▾", "3", "2", "1"]
        assert "▾step" in screen_text(pilot)


async def test_the_filter_narrows_down_while_one_types() -> None:
    app = Host()
    async with app.run_test(size=(80, 20)) as pilot:
        app.show((run("one", checkpoint(5)), run("two", checkpoint(8, 3.0), checkpoint(9, 2.0))))
        app.list.focus()
        await pilot.press("slash", *"two best")
        assert app.query_one("#filter", Input).value == "two best"
        assert [row.split()[:2] for row in await rows(pilot)] == [["▾", "two"], ["9", "2.00★"]]
        await pilot.press(*"xyz")
        assert "nothing has “two bestxyz”" in screen_text(pilot)
        await pilot.press("enter", "escape")
        assert len(await rows(pilot)) == 3 and app.focused is app.list


async def test_ten_thousand_checkpoints_are_shown_and_moved_through_at_once() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        many = run("verse", *(checkpoint(n, 2 + n / 1e5) for n in range(10_000)))
        began = time.perf_counter()
        app.show((many,))
        assert time.perf_counter() - began < 1.0
        app.list.focus()
        began = time.perf_counter()
        await pilot.press("end", "home", "pagedown", "s")
        assert time.perf_counter() - began < 2.0
        assert "10,000 checkpoints" in screen_text(pilot)


# --- in the app, on a real home ---

LOSSES = {100: 2.5, 200: 2.0, 300: 1.5, 400: 1.8}


async def go_to_list(pilot: Pilot[None]) -> None:
    await pilot.press("ctrl+o")
    await pilot.pause()


async def test_deleting_several_and_taking_it_back(make_run: MakeRun, open_app: OpenApp) -> None:
    folder = make_run("verse", LOSSES).folder
    async with open_app(120, 40) as pilot:
        await go_to_list(pilot)
        await pilot.press("down", "down", "space", "down", "space")
        await until(pilot, lambda: "2 marked" in screen_text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "2 checkpoints · " in screen_text(pilot))
        assert [c.step for c in open_run(folder).checkpoints] == [200, 400]
        await until(pilot, lambda: "in the trash" in screen_text(pilot))
        await pilot.press("u")
        await until(pilot, lambda: "4 checkpoints · " in screen_text(pilot))
        assert "in the trash" not in screen_text(pilot)


async def test_a_whole_run_is_deleted_after_asking(make_run: MakeRun, open_app: OpenApp) -> None:
    folder = make_run("verse", LOSSES).folder
    async with open_app(80, 24) as pilot:
        await go_to_list(pilot)
        await pilot.press("x")
        await until(pilot, lambda: "Delete verse and its 4 checkpoints?" in screen_text(pilot))
        await pilot.press("enter")
        await pilot.pause()
        assert folder.exists()
        await pilot.press("x", "down", "enter")
        await until(pilot, lambda: not folder.exists())


async def test_renaming(make_run: MakeRun, open_app: OpenApp) -> None:
    make_run("verse", LOSSES)
    async with open_app(80, 24) as pilot:
        await go_to_list(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "What is verse to be called?" in screen_text(pilot))
        await pilot.press(*["backspace"] * 5, *"poems", "enter")
        await until(pilot, lambda: "▾ poems" in screen_text(pilot))


async def test_a_name_that_is_taken_is_refused(make_run: MakeRun, open_app: OpenApp) -> None:
    make_run("poems")
    make_run("verse", LOSSES)
    async with open_app(80, 24) as pilot:
        await go_to_list(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "What is verse to be called?" in screen_text(pilot))
        await pilot.press(*["backspace"] * 5, *"poems", "enter")
        await until(pilot, lambda: "there is a run 'poems' already" in screen_text(pilot))


async def test_thinning_shows_what_it_frees_first(make_run: MakeRun, open_app: OpenApp) -> None:
    folder = make_run("verse", LOSSES).folder
    async with open_app(80, 24) as pilot:
        await go_to_list(pilot)
        await pilot.press("t")
        await until(pilot, lambda: "2 go, frees" in screen_text(pilot))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "2 checkpoints · " in screen_text(pilot))
        assert [c.step for c in open_run(folder).checkpoints] == [300, 400]


async def test_stars_and_notes(make_run: MakeRun, open_app: OpenApp) -> None:
    make_run("verse", LOSSES)
    async with open_app(99, 30) as pilot:
        await go_to_list(pilot)
        await pilot.press("end", "asterisk")
        await until(pilot, lambda: "starred" in screen_text(pilot))
        await pilot.press("n")
        await until(pilot, lambda: "A note on verse@100:" in screen_text(pilot))
        await pilot.press(*"first", "enter")
        await until(pilot, lambda: "“first”" in screen_text(pilot))


async def test_the_card_tells_of_the_row_under_the_cursor(
    make_run: MakeRun, open_app: OpenApp
) -> None:
    make_run("verse", LOSSES)
    records = [
        {"kind": "eval", "step": step, "val_loss": loss, "whole": False}
        for step, loss in LOSSES.items()
    ]
    records.append({"kind": "sample", "step": 100, "prompt": "To be", "text": " or [not]"})
    make_run("prose", {100: 2.5, 300: 1.5}, records)
    async with open_app(99, 40) as pilot:
        await go_to_list(pilot)
        await pilot.press("home", "slash", *"prose @100", "enter", "down")
        await until(pilot, lambda: "prose@100" in screen_text(pilot))
        await until(pilot, lambda: "To be or [not]" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "2.500 nats = 3.61 bits" in shown and "step-000100.safetensors" in shown
        assert "1 layer · 2 heads · 8 wide · block 16" in shown
        await settle(pilot)


def test_the_card_says_which_step_wrote_the_sample() -> None:
    at = checkpoint(50)
    row = CheckpointRow(run("verse", at), at)
    samples = [SampleLine(step=n, prompt="To", text=" be") for n in (29, 50)]
    own = card(row, Past([], samples, set()), 60, 12).plain
    assert "│ To be" in own and "it wrote" not in own
    other = card(row, Past([], samples[:1], set()), 60, 12).plain
    assert "│ at step 29 it wrote:" in other and "│ To be" in other


def test_how_a_run_was_stopped_is_said_once() -> None:
    status = RunStatus("stopped", step=90, max_steps=5000, message="stopped at step 90")
    stopped = replace(run("verse"), status=status)
    words = card(RunRow(stopped, False, 0), None, 60, 12).plain
    assert "stopped, step 90 of 5,000\n" in words


async def test_only_rows_that_changed_are_drawn_again() -> None:
    drawn: list[int] = []

    class Counted(RowList):
        def render_line(self, y: int) -> Strip:
            drawn.append(y)
            return super().render_line(y)

    words = {"a": Content("one"), "b": Content("two"), "c": Content("three")}

    class Listing(InkApp):
        def compose(self) -> ComposeResult:
            yield Counted("list", lambda key, width: words[key])

    app = Listing()
    async with app.run_test(size=(40, 12)) as pilot:
        found = app.query_one(Counted)
        found.set_rows(list(words), "a")
        await pilot.pause()
        drawn.clear()
        words["b"] = Content.styled("two", "bold")
        found.set_rows(list(words), "a")
        await pilot.pause()
        assert set(drawn) == {1}
