"""What `tuigpt train` shows on a terminal: lines that fit, and what the losses mean."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pyte
import pytest
from conftest import MakeRun

from tuigpt.cli.console import Console
from tuigpt.runs.status import RunStatus
from tuigpt.training.command import Ended
from tuigpt.training.events import Evaluated, Sampled, Stepped

STATUS = RunStatus(
    state="training", max_steps=5000, device="cpu", tokens_per_second=81_234.0, seconds_left=400.0
)


class Screen(io.StringIO):
    """A terminal of so many columns."""

    def __init__(self, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._columns = columns
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)

    def isatty(self) -> bool:
        return True

    @property
    def rows(self) -> list[str]:
        screen = pyte.Screen(self._columns, 60)
        pyte.Stream(screen).feed(self.getvalue().replace("\n", "\r\n"))
        return [row.rstrip() for row in screen.display if row.strip()]


@pytest.fixture
def trained(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """What stands on a terminal of so many columns after a few steps and an end."""

    def run(columns: int, *, to_the_end: bool = False) -> list[str]:
        run = make_run(f"verse-{columns}", {100: 2.5})
        assert run.record is not None
        screen = Screen(columns, monkeypatch)
        console = Console(screen)
        console.begin("verse", run.record, STATUS)
        for step, loss, early in ((0, 4.2, False), (25, 2.2, True), (100, 2.3, False)):
            event = Evaluated(step, loss, loss, 4096, whole=False, early=early)
            console.show(event, replace(STATUS, step=step))
        console.show(
            Sampled(100, "To be", " or not\n\x1b[31m漢字 to be" + " and so on" * 20), STATUS
        )
        after = replace(STATUS, step=1234, train_loss=2.21, val_loss=2.3)
        console.show(Stepped(1234, 2.21, 1e-3, 1.0, 0.05), after)
        if to_the_end:
            console.end(Ended("stopped", run.folder, 1234, "", run.folder / "x.safetensors"))
        return screen.rows

    return run


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_nothing_is_wider_than_the_terminal(
    trained: Callable[[int], list[str]], columns: int
) -> None:
    rows = trained(columns)
    step = next(n for n, row in enumerate(rows) if "1,234/5,000" in row)
    assert "train 2.21" in rows[step] and len(rows) - step <= 3
    assert ("━" in rows[step]) == (columns > 60)
    assert ("tok/s" in rows[step]) == (columns >= 80)
    assert "left" in rows[step] or columns == 40
    sample = [row for row in rows if row.startswith("  │ ")]
    assert len(sample) >= 2 and sample[0] == "  │ To be or not"
    assert all(not row[columns - 1 :].strip() for row in rows)


def test_a_best_loss_is_marked_and_said_in_words(trained: Callable[[int], list[str]]) -> None:
    rows = trained(80)
    assert "step 100  val 2.3000 nats = 3.318 bits per character  ★ best so far" in rows
    assert any("still learning" in row for row in rows)


def test_an_early_loss_is_marked_as_an_estimate(trained: Callable[[int], list[str]]) -> None:
    """As it is everywhere else: a lower one that comes later is not the best so far."""
    assert any(row.startswith("step 25  val ~2.2000 nats") for row in trained(80))


def test_an_end_names_the_best_and_what_to_do_next(
    trained: Callable[..., list[str]],
) -> None:
    text = "\n".join(trained(200, to_the_end=True))
    assert "stopped at step 1,234; saved verse-200@1234: " in text
    assert "★ best: val 2.5000 nats per character, at step 100" in text
    assert "write with: tuigpt generate verse-200@best " in text
    assert "resume with: tuigpt train --resume=verse-200" in text
    assert "tok/s" not in text  # the live lines are gone


def test_no_color_means_none(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run("verse")
    assert run.record is not None
    screen = Screen(80, monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    Console(screen).begin("verse", run.record, STATUS)
    assert "\x1b[" not in screen.getvalue() and "Ctrl-C saves and stops." in screen.getvalue()
