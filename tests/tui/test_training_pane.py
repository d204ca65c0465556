"""The training pane: what each state says, and which keys it offers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from tui.conftest import entry, session
from tui.test_checkpoints_pane import checkpoint

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.runs.folder import Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.metrics import AnyLine, EvalLine, EventLine, History, SampleLine, StepLine
from tuigpt.runs.record import CorpusFacts, RunRecord, TokenizerFacts
from tuigpt.runs.status import ALIVE, RunStatus
from tuigpt.tui import asking as asking_module
from tuigpt.tui.panes.training import pane as training_module
from tuigpt.tui.panes.training.pane import TrainingPane
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.tui.widgets.transcript import Transcript

PLAYS = {"guessing": 4.17, "letters": 3.32, "pairs": 2.48, "triples": 2.07}


def run(state: str = "training", message: str = "", name: str = "verse") -> Run:
    record = RunRecord(
        model=GPTConfig(), train=TrainConfig(), tokenizer=TokenizerFacts("char", 65),
        corpus=CorpusFacts(name="shakespeare", symbols=65), baselines_by_name=PLAYS,
    )  # fmt: skip
    return Run(Path("/runs") / name, record, RunStatus(state=state, message=message), ())


def history(*lines: AnyLine) -> History:
    made = History()
    made.add(lines)
    return made


def step(n: int, loss: float = 2.0) -> StepLine:
    return StepLine(step=n, loss=loss)


def evaluation(n: int, loss: float) -> EvalLine:
    nan = ("val_loss",) if math.isnan(loss) else ()
    return EvalLine(step=n, val_loss=None if nan else loss, nonfinite=nan)


def sample(n: int, text: str) -> SampleLine:
    return SampleLine(step=n, prompt="To be", text=text)


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield TrainingPane(entry("training"), session())

    def on_mount(self) -> None:
        self.pane.focus()

    def show(self, run: Run | None, history: History, grown: bool = True) -> None:
        self.pane.session.snapshot = Snapshot((run,) if run else (), None, run, history, grown)
        self.pane.show()

    @property
    def pane(self) -> TrainingPane:
        return self.query_one(TrainingPane)

    @property
    def words(self) -> str:
        return str(self.query_one("#meaning").render())

    @property
    def chart(self) -> str:
        chart = self.query_one(LossChart)
        return "\n".join(chart.render_line(y).text for y in range(chart.size.height))

    @property
    def samples(self) -> str:
        transcript = self.query_one(Transcript)
        return "\n".join(
            transcript.render_line(y).text.rstrip() for y in range(transcript.size.height)
        )


async def test_before_there_is_a_run_it_says_how_to_start_one() -> None:
    app = Host()
    async with app.run_test(size=(70, 30)):
        app.show(None, History(), True)
        assert "ctrl+n" in " ".join(app.chart.split())


@pytest.mark.parametrize("state", sorted(ALIVE | {"finished", "stopped", "failed", "lost"}))
async def test_every_state_can_be_shown_before_the_first_step(state: str) -> None:
    app = Host()
    async with app.run_test(size=(70, 30)):
        app.show(run(state, "because"), History(), True)
        assert ("because" in app.words) == (state in ("failed", "lost"))
        assert "verse" in str(app.pane.border_title)


async def test_it_says_what_the_loss_means_and_that_it_memorises() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)) as pilot:
        app.show(run(), history(step(1), evaluation(1, 2.5)), True)
        assert "val 2.500 nats = 3.61 bits" in app.words and "in pairs" in app.words
        later = history(evaluation(100, 1.5), step(200), evaluation(200, 2.0))
        app.show(run(), later, True)
        await pilot.pause()
        assert "best, 1.50 at step 100" in app.words and "memorising" in app.words


async def test_a_loss_that_is_no_number_is_told() -> None:
    app = Host()
    async with app.run_test(size=(90, 30)):
        app.show(run(), history(step(1), step(2, math.nan), evaluation(2, math.nan)), True)
        assert "NaN at step 2" in app.chart
        assert "diverged" in app.words


async def test_samples_come_one_below_the_other() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        growing = history(sample(100, " or [not]"))
        app.show(run(), growing, True)
        growing.add([sample(200, "\nto be")])
        app.show(run(), growing, True)
        await pilot.pause()
        text = app.samples
        assert text.index("step 100") < text.index("To be or [not]") < text.index("step 200")
        assert text.count("step 100") == 1


async def test_another_run_has_other_samples() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        app.show(run(), history(sample(100, " one")), True)
        app.show(run(name="other"), history(sample(7, " two")), True)
        await pilot.pause()
        assert "To be two" in app.samples and "To be one" not in app.samples
        app.show(run(name="other"), History(), True)
        await pilot.pause()
        assert "To be" not in app.samples


async def test_a_resumed_run_forgets_the_samples_ahead() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        growing = history(sample(100, " one"), sample(200, " two"))
        app.show(run(), growing, True)
        growing.add([EventLine(step=150, message="resumed at step 150")])
        app.show(run(), growing, True)
        await pilot.pause()
        assert "To be one" in app.samples and "To be two" not in app.samples


async def test_no_run_any_more() -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        app.show(run(), history(step(1), evaluation(1, 2.0), sample(1, " one")), True)
        app.show(None, History(), True)
        await pilot.pause()
        assert app.words == "" and "To be" not in app.samples and "ctrl+n" in app.chart
        assert "verse" not in str(app.pane.border_title)


RUNNING = {"pause", "stop", "sample", "checkpoint", "change", "discard"}


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
    monkeypatch.setattr(training_module, "start", refuse)
    return asked


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ("training", RUNNING),
        ("evaluating", RUNNING),
        ("paused", RUNNING),
        ("stopped", {"resume_run"}),
        ("lost", {"resume_run"}),
        ("failed", {"resume_run"}),
        ("finished", set()),
    ],
)
async def test_only_what_can_be_done_is_offered(
    asked: list[str], state: str, offered: set[str]
) -> None:
    app = Host()
    async with app.run_test(size=(70, 40)) as pilot:
        app.show(replace(run(state), checkpoints=(checkpoint(7),)), History(), False)
        actions = [b.action for b in TrainingPane.BINDINGS if isinstance(b, Binding)]
        assert {a for a in actions if app.pane.check_action(a, ())} == offered
        await pilot.press(*"psgkr")
        await pilot.pause()
        assert len(asked) == len(offered - {"change", "discard"})


async def test_a_run_that_saved_nothing_is_not_to_be_resumed(asked: list[str]) -> None:
    app = Host()
    async with app.run_test(size=(90, 40)) as pilot:
        app.show(run("lost", "because"), History(), False)
        await pilot.press("r")
        assert asked == [] and "ctrl+n starts anew" in app.words


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
        for name in ("show", "refresh"):
            monkeypatch.setattr(app.query_one(LossChart), name, lambda *a: pytest.fail("drawn"))
        app.show(run(), same, False)
