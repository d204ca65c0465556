"""The training pane: what each state says, and which keys it offers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static
from tui.conftest import InkApp, entry, session
from tui.test_checkpoints_pane import checkpoint

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.runs.folder import Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.history import History
from tuigpt.runs.metrics import AnyLine, EvalLine, EventLine, SampleLine, StepLine
from tuigpt.runs.record import CorpusFacts, RunRecord, TokenizerFacts
from tuigpt.runs.status import ALIVE, RunStatus
from tuigpt.tui import asking as asking_module
from tuigpt.tui import starting as starting_module
from tuigpt.tui.messages import Acknowledged, WatchRun
from tuigpt.tui.panes.training.headline import Headline
from tuigpt.tui.panes.training.pane import TrainingPane
from tuigpt.tui.panes.training.strips import Strips
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.tui.widgets.run_status import RunStatusLine

PLAYS = {"guessing": 4.17, "letters": 3.32, "pairs": 2.48, "triples": 2.07}


def run(state: str = "training", message: str = "", name: str = "verse") -> Run:
    record = RunRecord(
        model=GPTConfig(), train=TrainConfig(), tokenizer=TokenizerFacts("char", 65),
        corpus=CorpusFacts(name="shakespeare", symbols=65), baselines_by_name=PLAYS,
    )  # fmt: skip
    return Run(Path("/runs") / name, record, RunStatus(state=state, message=message), ())


def history(*lines: AnyLine) -> History:
    made = History()
    made.add(sorted(lines, key=lambda line: line.step))
    return made


def step(n: int, loss: float = 2.0) -> StepLine:
    return StepLine(step=n, loss=loss)


def evaluation(n: int, loss: float) -> EvalLine:
    nan = ("val_loss",) if math.isnan(loss) else ()
    return EvalLine(step=n, val_loss=None if nan else loss, nonfinite=nan)


def sample(n: int, text: str) -> SampleLine:
    return SampleLine(step=n, prompt="To be", text=text)


class Host(InkApp):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+n", "new_run", id="train.new-run")]

    def compose(self) -> ComposeResult:
        yield TrainingPane(entry("training"), session())

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def on_mount(self) -> None:
        self.pane.draw_every = 0.0
        self.query_one(LossChart).focus()

    def show(self, run: Run | None, history: History, grown: bool = True) -> None:
        self.pane.session.snapshot = Snapshot((run,) if run else (), None, run, history, grown)
        self.pane.show()

    @property
    def pane(self) -> TrainingPane:
        return self.query_one(TrainingPane)

    @property
    def words(self) -> str:
        return str(self.query_one(Headline).render())

    @property
    def chart(self) -> str:
        chart = self.query_one(LossChart)
        return "\n".join(chart.render_line(y).text for y in range(chart.size.height))

    @property
    def samples(self) -> str:
        return "\n".join(
            str(self.query_one(f"#{part}", Static).render()) for part in ("samples-rule", "sample")
        )

    def on_watch_run(self, event: WatchRun) -> None:
        self.said.append(f"watch {event.name}")

    def on_acknowledged(self, event: Acknowledged) -> None:
        self.said.append(event.text)


async def test_before_there_is_a_run_it_says_how_to_start_one() -> None:
    app = Host()
    async with app.run_test(size=(70, 30)):
        app.show(None, History(), True)
        assert "press ^n" in app.chart and "^n trains a model" in app.words


@pytest.mark.parametrize("state", sorted(ALIVE | {"finished", "stopped", "failed", "lost"}))
async def test_every_state_can_be_shown_before_the_first_step(state: str) -> None:
    app = Host()
    async with app.run_test(size=(70, 30)):
        app.show(run(state, "because"), History(), True)
        assert ("because" in app.words) == (state in ("failed", "lost"))
        assert "verse" in str(app.pane.border_title)


async def test_it_says_what_the_loss_means_and_that_it_memorises() -> None:
    app = Host()
    async with app.run_test(size=(120, 30)):
        app.show(run(), history(step(1), evaluation(0, 4.2), evaluation(1, 2.2)), True)
        assert "common pairs of letters" in app.words and "still learning" in app.words
        assert "val 2.200 ★ = 3.17 bits" in app.words
        later = [step(n, 2.5 - n / 200) for n in range(1, 301)]
        app.show(run(), history(*later, evaluation(100, 1.5), evaluation(300, 2.0)), True)
        first, second = app.words.splitlines()
        assert first.startswith("⚠ memorising: val has risen by 0.50 since step 100")
        assert "step 100" in second and "dropout" in second
        assert "░" in app.chart


async def test_a_loss_that_is_no_number_is_told() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)):
        app.show(run(), history(step(1), step(2, math.nan), evaluation(2, math.nan)), True)
        assert "not a number at step 2" in app.chart
        assert "diverged" in app.words


async def test_the_newest_sample_is_shown_until_an_older_one_is_chosen() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        growing = history(sample(100, " or [not]"), sample(200, "\nto be"))
        app.show(run(), growing, True)
        assert "step 200" in app.samples and "2 of 2" in app.samples
        await pilot.press("tab", "left")
        assert "step 100" in app.samples and "100  To be or [not]" in app.samples
        assert "to be" not in app.samples  # which comes later
        growing.add([sample(300, " three")])
        app.show(run(), growing, True)
        assert "step 100" in app.samples and "1 of 3" in app.samples
        await pilot.press("right", "right", "right")
        assert "To be three" in app.samples
        growing.add([sample(400, " four")])
        app.show(run(), growing, True)
        assert "To be four" in app.samples


async def test_the_share_of_real_words_is_a_small_curve() -> None:
    app = Host()
    async with app.run_test(size=(90, 40)):
        shares = (None, 0.1, 0.5, 0.84)
        lines = [SampleLine(step=n, text="x", real_words=s) for n, s in enumerate(shares, 1)]
        app.show(run(), history(*lines))
        assert "real words 84% ▁▅▇" in app.samples


async def test_where_the_rate_was_changed_and_the_memory_of_a_gpu_are_on_the_strips() -> None:
    app = Host()
    async with app.run_test(size=(90, 40)) as pilot:
        app.screen.add_class("-wide")
        lines = [
            StepLine(step=n, loss=2.0, learning_rate=0.01, gpu_memory=3 << 30) for n in range(1, 99)
        ]
        changed = EventLine(step=50, message="learning rate changed", setting="learning_rate")
        app.show(run(), history(*lines, changed))
        await pilot.pause()
        rate, *_, memory = str(app.query_one(Strips).render()).splitlines()
        assert "│" in rate and "learning rate" in app.chart
        assert memory.split()[0] == "GPU" and "3" in memory and "GB" in memory


async def test_a_sample_asked_for_lands_in_view(asked: list[str]) -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        growing = history(sample(100, " one"), sample(200, " two"))
        app.show(run(), growing, True)
        await pilot.press("tab", "left", "g")
        growing.add([sample(300, " three")])
        app.show(run(), growing, True)
        assert asked == ["sample"] and "To be three" in app.samples


async def test_another_run_has_other_samples_and_a_resumed_one_forgets() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)):
        growing = history(sample(100, " one"), sample(200, " two"))
        app.show(run(), growing, True)
        growing.add([EventLine(step=150, message="resumed at step 150")])
        app.show(run(), growing, True)
        assert "To be one" in app.samples
        app.show(run(name="other"), history(sample(7, " seven")), True)
        assert "To be seven" in app.samples
        app.show(run(name="other"), History(), True)
        assert "To be" not in app.samples


async def test_no_run_any_more() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)):
        app.show(run(), history(step(1), evaluation(1, 2.0), sample(1, " one")), True)
        app.show(None, History(), True)
        assert "No run yet" in app.words and "To be" not in app.samples
        assert "verse" not in str(app.pane.border_title)


async def test_the_cursor_reads_the_curve() -> None:
    app = Host()
    async with app.run_test(size=(120, 30)) as pilot:
        lines = [
            StepLine(step=n, loss=3 - n / 200, learning_rate=0.01, seconds=0.5)
            for n in range(1, 201)
        ]
        app.show(run(), history(*lines, evaluation(100, 2.4), evaluation(200, 2.1)), True)
        await pilot.press("left")
        await pilot.pause()
        assert "step 200" in app.words and "val 2.10" in app.words and "rate 0.01" in app.words
        await pilot.press(*["left"] * 20)
        await pilot.pause()
        assert "step 167" in app.words and "val 2.10 @ 200" in app.words
        await pilot.press("escape")
        await pilot.pause()
        assert "rate" not in app.words


async def test_the_axis_counts_what_is_chosen() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)) as pilot:
        app.show(run(), history(*(StepLine(step=n, loss=2.0, seconds=1.0) for n in range(1, 99))))
        for unit in ("tokens", "time", "step"):
            await pilot.press("x")
            assert app.chart.splitlines()[-1].split()[0] == unit


async def test_smoothing_is_the_users_choice() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)) as pilot:
        noisy = history(*(step(n, 2.0 + (n % 2)) for n in range(1, 500)))
        app.show(run(), noisy)
        smooth = app.chart
        await pilot.press(*["left_square_bracket"] * 9)
        await pilot.pause()
        assert app.chart != smooth and "over 1 updates" in app.said[-1]


async def test_a_finished_run_can_be_replayed() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)) as pilot:
        steps = [step(n) for n in range(1, 500)]
        app.show(run("finished"), history(*steps, evaluation(400, 2.0), sample(450, "or not")))
        assert "or not" in app.samples
        await pilot.press("v")
        for _ in range(200):
            await pilot.pause(0.02)
            if "replay: step" in app.words:
                break
        assert "replay: step" in app.words and "or not" not in app.samples
        await pilot.press("V")
        await pilot.pause()
        assert app.said[-1] == "a replay takes 10 seconds"
        await pilot.press("v")
        await pilot.pause()
        assert "replay" not in app.words


@pytest.mark.parametrize(("key", "name"), [("f7", "curves.csv"), ("f8", "loss_log.json"),
                                           ("f9", "curves.svg")])  # fmt: skip
async def test_the_curves_can_be_taken_along(
    key: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = Host()
    async with app.run_test(size=(90, 30)) as pilot:
        app.show(run("finished"), history(step(1, 3.0), step(100, 2.5), evaluation(100, 2.25)))
        await pilot.press(key)
        await pilot.pause()
    written = (tmp_path / f"verse-{name}").read_text(encoding="utf-8")
    assert str(tmp_path) in app.said[-1]
    if key == "f7":
        assert written.splitlines() == ["step,train_loss,val_loss", "1,3.0,", "100,2.5,2.25"]
    elif key == "f8":
        assert json.loads(written) == {"steps": [1, 100], "train": [3.0, 2.5], "val": [2.25]}
    else:
        assert written.startswith("<svg") and "train" in written
        png = (tmp_path / "verse-curves.png").read_bytes()
        assert png.startswith(b"\x89PNG") and png.endswith(b"IEND\xaeB`\x82")


ALWAYS = {"next_unit", "replay_speed", "smooth(-1)", "smooth(1)", "runs", "replay", "log",
          "save_csv",
          "save_loss_log", "save_chart"}  # fmt: skip
ASKED = {"pause", "unpause", "stop", "sample", "checkpoint", "evaluate", "resume_run"}
WITH_A_CHECKPOINT = {"write", "write_newest", "fork"}
RUNNING = WITH_A_CHECKPOINT | {"pause", "stop", "sample", "checkpoint", "evaluate", "change",
                               "discard"}  # fmt: skip
ENDED = WITH_A_CHECKPOINT | {"again"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What trainers are asked, in place of asking them."""
    asked: list[str] = []

    def refuse(home: Path, arguments: list[str]) -> None:
        asked.append(" ".join(arguments))
        raise OSError("not in a test")

    monkeypatch.setattr(
        asking_module, "request", lambda folder, action, value: asked.append(action)
    )
    monkeypatch.setattr(starting_module, "start", refuse)
    return asked


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ("training", RUNNING),
        ("evaluating", RUNNING),
        ("paused", RUNNING - {"pause"} | {"unpause"}),
        ("stopped", ENDED | {"resume_run"}),
        ("lost", ENDED | {"resume_run"}),
        ("failed", ENDED | {"resume_run"}),
        ("finished", ENDED | {"extend"}),
    ],
)
async def test_only_what_can_be_done_is_offered(
    asked: list[str], state: str, offered: set[str]
) -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        app.show(replace(run(state), checkpoints=(checkpoint(7),)), History(), False)
        actions = [b.action for b in TrainingPane.BINDINGS if isinstance(b, Binding)]
        assert {a for a in actions if app.pane.check_action(a, ())} - ALWAYS == offered
        await pilot.press(*"psgke")
        if "resume_run" in offered:
            await pilot.press("r")
        await pilot.pause()
        assert len(asked) == len(offered & ASKED)


async def test_a_finished_run_is_trained_further(asked: list[str]) -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        done = replace(run("finished"), checkpoints=(checkpoint(7),))
        app.show(replace(done, status=RunStatus("finished", step=100, max_steps=100)), History())
        await pilot.press("r")
        await pilot.pause()
        app.screen.query_one(Input).value = "50"
        await pilot.press("enter")
        await pilot.pause()
        verdict = str(app.screen.query_one("#verdict", Static).render())
        assert asked == [] and "more than the 100 it has done" in verdict
        app.screen.query_one(Input).value = "250"
        await pilot.press("enter")
        await pilot.pause()
        assert asked == ["--resume verse --max-steps=250"]


async def test_the_trainers_log_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "trainer.log").write_text("step 1\n\x1b[31mstep 2\n", encoding="utf-8")
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        app.show(replace(run(), folder=tmp_path), History())
        await pilot.press("t")
        await pilot.pause()
        shown = "\n".join(str(s.render()) for s in app.screen.query(Static))
        assert "step 1\n␛[31mstep 2" in shown
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.screen_stack[0]


class StatusApp(InkApp):
    def compose(self) -> ComposeResult:
        yield RunStatusLine(id="run-status")


async def test_an_acknowledgement_stands_in_the_status_line() -> None:
    app = StatusApp()
    async with app.run_test(size=(60, 3)) as pilot:
        line = app.query_one(RunStatusLine)
        line.run_name, line.status = "verse", RunStatus("training", step=413, max_steps=5000)
        line.acknowledge("saved step 413 [b]")
        await pilot.pause()
        assert str(line.render()).endswith("saved step 413 [b]") and "verse" in str(line.render())


async def test_what_was_begun_is_over_when_the_state_says_so() -> None:
    app = StatusApp()
    async with app.run_test(size=(80, 3)) as pilot:
        line = app.query_one(RunStatusLine)
        facts = RunStatus("training", step=413, max_steps=5000, val_loss=2.5, seconds_left=180)
        line.run_name, line.status = "shakespeare-tiny-1", facts
        line.acknowledge("finishing the step and saving …")
        await pilot.pause()
        shown = str(line.render())
        assert all(word in shown for word in ("shakespeare", "413/5,000", "finishing", "val ~2.50"))
        line.status = replace(facts, state="sampling")  # which is still a training
        assert "finishing" in str(line.render())
        line.status = replace(facts, state="stopped", message="stopped at step 413")
        assert "finishing" not in str(line.render()) and "at step" not in str(line.render())


async def test_without_a_checkpoint_it_says_why_nothing_writes() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        app.show(run(), History())
        await pilot.press("w", "W")
        await pilot.pause()
        assert app.said == ["no checkpoint to write with yet: k saves one"]
        ended = replace(run("stopped"), checkpoints=(checkpoint(100), checkpoint(144, None)))
        app.show(ended, History())
        await pilot.pause()
        assert "w writes with 100 ★, W with 144" in app.words


async def test_a_run_that_saved_nothing_is_not_to_be_resumed(asked: list[str]) -> None:
    app = Host()
    async with app.run_test(size=(90, 40)) as pilot:
        app.show(run("lost", "because"), History(), False)
        await pilot.press("r")
        assert asked == [] and "starts anew" in app.words


async def test_pause_again_resumes(asked: list[str]) -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        for state in ("training", "paused"):
            app.show(run(state), History(), False)
            await pilot.press("p")
        assert asked == ["pause", "resume"]


async def test_an_unchanged_run_is_not_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Host()
    async with app.run_test(size=(70, 40)):
        same = history(step(1), evaluation(1, 2.0))
        app.show(run(), same, True)
        monkeypatch.setattr(app.query_one(LossChart), "refresh", lambda *a: pytest.fail("drawn"))
        app.show(run(), same, False)


async def test_the_end_of_a_long_log_is_shown_as_soon_as_it_is_read() -> None:
    app = Host()
    async with app.run_test(size=(100, 40)) as pilot:
        app.pane.draw_every = math.inf
        long = history(*(step(n) for n in range(1, 101)))
        for last, reading in ((100, True), (1000, False)):
            long.add([step(n) for n in range(101, last + 1)])
            app.pane.session.snapshot = Snapshot((run(),), None, run(), long, True, reading)
            app.pane.show()
            await pilot.pause()
            assert f"{last:,}" in app.chart.splitlines()[-1]


async def test_other_runs_are_chosen_to_be_laid_over_the_chart_or_watched(tmp_path: Path) -> None:
    app = Host()
    other = replace(run("finished", name="older"), folder=tmp_path / "older")
    other.folder.mkdir()
    lines = [{"kind": "eval", "step": n, "val_loss": 2.5} for n in range(0, 200, 10)]
    other.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with app.run_test(size=(100, 40)) as pilot:
        now = history(*(step(n) for n in range(1, 200)))
        app.pane.session.snapshot = Snapshot((run(), other), None, run(), now, True)
        app.pane.show()
        await pilot.press("o", "down", "space", "escape")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "a older" in app.chart.splitlines()[0]
        await pilot.press("x", "x")  # also along another axis and back
        assert "a older" in app.chart
        await pilot.press("o", "down", "enter")
        await pilot.pause()
        assert app.said[-1] == "watch older"
