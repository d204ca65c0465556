"""The form of a new run shows what its text holds, and takes up what it offers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Input, Label, Static

from tuigpt.estimate import Calibration, Memory
from tuigpt.reports import CostReport, to_line
from tuigpt.tui import app as app_module
from tuigpt.tui.screens.new_run import cost
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.screens.new_run.text_preview import TextPreview

CHAT = "[red]Ana[/]: see you 😀 [link=\n" * 200
PATIENCE = 1500
"""Most looks, 20 ms apart; a process starts in between."""


class Host(App[None]):
    CSS_PATH = Path(app_module.__file__).parent / "app.tcss"

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.home = home

    def on_mount(self) -> None:
        self.push_screen(NewRun(self.home))


@asynccontextmanager
async def form(
    home: Path, text: str = "", size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Pilot[None]]:
    async with Host(home).run_test(size=size) as pilot:
        await pilot.pause()
        if text:
            pilot.app.screen.query_one("#text", Input).value = text
        yield pilot


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    for _ in range(PATIENCE):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"never so; the preview says {preview(pilot)!r}")


def preview(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one(TextPreview).query_one(Static).render())


def verdict(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#verdict", Static).render())


def costs(pilot: Pilot[None]) -> list[str]:
    return str(pilot.app.screen.query_one(cost.Cost).render()).splitlines()


TIMED = CostReport(
    parameters={"total": 1},
    memory=Memory(1, 1, 1, 1, 1),
    device="cpu",
    device_type="cpu",
    device_memory=1,
    max_steps=1,
    step_flops=1,
    step_tokens=1,
    tokens=1,
    epochs=1.0,
    parameters_per_character=1.0,
    overfits=False,
    train_tokens=1,
    train_characters=1,
    calibration=Calibration(0.25, 1.0, 0.5, 3.0),
    seconds=1.0,
    problem="",
)


def as_told(**changes: object) -> str:
    """What the timing prints."""
    return to_line(msgspec.structs.replace(TIMED, **changes))


@pytest.fixture(autouse=True)
def timing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another program in the place of `tuigpt estimate`; it is given the arguments."""

    def replace_by(program: str) -> None:
        monkeypatch.setattr(cost, "ESTIMATE", (sys.executable, "-c", program))

    replace_by(f"print({as_told()!r})")
    return replace_by


def write(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


async def test_the_text_is_shown_as_it_is_understood(home: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "a [b].txt", b"\xef\xbb\xbf" + CHAT.encode())
    async with form(home, path) as pilot:
        await until(pilot, lambda: "characters on 200 lines" in preview(pilot))
        shown = preview(pilot)
        assert "byte order mark dropped" in shown
        assert "[red]Ana[/]: see you 😀 [link=" in shown
        assert "guessing" in shown and "pairs" in shown


async def test_another_choice_reads_the_text_anew(home: Path, tmp_path: Path) -> None:
    async with form(home, write(tmp_path, "a.txt", CHAT.encode())) as pilot:
        await until(pilot, lambda: "for validation" in preview(pilot))
        pilot.app.screen.query_one("#val_fraction", Input).value = "0"
        await until(pilot, lambda: "no validation" in preview(pilot))
        pilot.app.screen.query_one("#text", Input).value = str(tmp_path / "gone.txt")
        await until(pilot, lambda: "no text at" in preview(pilot))


async def test_an_encoding_is_offered_and_agreed_to_by_a_key(home: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "old.txt", "naïve café “fine”\n".encode("cp1252") * 100)
    async with form(home, path) as pilot:
        await until(pilot, lambda: verdict(pilot) == "ctrl+y  read as cp1252")
        assert "is not UTF-8" in preview(pilot)
        await pilot.press("ctrl+y")
        assert pilot.app.screen.query_one("#encoding", Input).value == "cp1252"
        await until(pilot, lambda: "read as cp1252" in preview(pilot))
        assert "naïve café “fine”" in preview(pilot)


async def test_nothing_is_fetched_before_the_user_agrees(home: Path) -> None:
    async with form(home, "tinyshakespeare") as pilot:
        await until(pilot, lambda: verdict(pilot) == "ctrl+y  fetch it now")
        assert not (home / "cache").exists()


async def test_too_short_is_said_with_both_sizes(home: Path, tmp_path: Path) -> None:
    async with form(home, write(tmp_path, "a.txt", b"to be or not\n" * 76)) as pilot:
        await until(pilot, lambda: "too short" in verdict(pilot))
        assert "889 characters to train on and 99 for validation" in verdict(pilot)
        assert "988 characters" in preview(pilot)


async def test_several_texts_have_a_semicolon_between(home: Path, tmp_path: Path) -> None:
    paths = [write(tmp_path, name, CHAT.encode()) for name in ("1.txt", "2.txt")]
    async with form(home, " ; ".join(paths)) as pilot:
        await until(pilot, lambda: "in 2 files" in preview(pilot))
    semicolon = write(tmp_path, "one;two.txt", CHAT.encode())
    async with form(home, semicolon) as pilot:
        await until(pilot, lambda: "on 200 lines," in preview(pilot))


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (160, 45)])
async def test_every_part_of_the_form_is_in_reach(
    home: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = write(tmp_path, "old.txt", "naïve café “fine”\n".encode("cp1252") * 100)
    async with form(home, path, size) as pilot:
        await until(pilot, lambda: verdict(pilot).startswith("ctrl+y"))
        shown = pilot.app.screen.region
        for part in (*pilot.app.screen.query(Input), *pilot.app.screen.query(Button)):
            part.scroll_visible(animate=False)
            await pilot.pause()
            assert shown.contains_region(part.region) and part.region.height, part
        assert pilot.app.screen.query_one(TextPreview).region.height >= 3
        for label in pilot.app.screen.query("#fields Label").results(Label):
            assert label.region.width >= cell_len(str(label.render())), label


async def test_a_wrong_setting_is_said_instead(home: Path) -> None:
    async with form(home) as pilot:
        pilot.app.screen.query_one("#tokenizer", Input).value = "bpe:7"
        await pilot.pause()
        assert "tokenizer is 'bpe:7'" in verdict(pilot)
        assert pilot.app.screen.query_one("#tokenizer", Input).has_class("wrong")


async def test_fields_left_alone_follow_the_recipe(tmp_path: Path) -> None:
    async with form(tmp_path) as pilot:
        fields = {
            name: pilot.app.screen.query_one(f"#{name}", Input)
            for name in ("recipe", "learning_rate", "batch_size")
        }
        assert fields["recipe"].value == "fast"
        fast_rate = fields["learning_rate"].value
        fields["batch_size"].value = "7"
        fields["recipe"].value = "workshop"
        await until(pilot, lambda: fields["learning_rate"].value == "0.001")
        assert fields["batch_size"].value == "7"
        fields["recipe"].value = "fast"
        await until(pilot, lambda: fields["learning_rate"].value == fast_rate)


async def test_fields_left_alone_follow_the_device(
    home: Path, tmp_path: Path, timing: Callable[[str], None]
) -> None:
    given = tmp_path / "given.txt"
    told = as_told(device="cuda (a GPU)", device_type="cuda")
    timing(f"import sys; print(*sys.argv[1:], file=open({str(given)!r}, 'a')); print({told!r})")
    async with form(home) as pilot:
        batch_size = pilot.app.screen.query_one("#batch_size", Input)
        await until(pilot, lambda: "a step on cuda (a GPU)" in costs(pilot)[1])
        assert batch_size.value == "64"
        assert "--batch-size" not in given.read_text()  # the trainer knows by itself
        batch_size.value = "16"
        await until(pilot, lambda: "--batch-size=16" in given.read_text())
        await until(pilot, lambda: "a step on cuda" in costs(pilot)[1])
        assert batch_size.value == "16"


async def test_the_cost_is_reckoned_at_once_and_then_timed(home: Path, tmp_path: Path) -> None:
    async with form(home) as pilot:
        assert costs(pilot)[0].split("  ")[-1].startswith("about 438k parameters · ")
        await until(pilot, lambda: "min in all" in costs(pilot)[1])
        first, second = costs(pilot)
        assert "438k parameters · 79.4 MB or more · text read 4.8 times" in first
        assert "22 min in all: 0.25 s a step on cpu" in second
        pilot.app.screen.query_one("#max_steps", Input).value = "100"
        await until(pilot, lambda: "30 s in all: 0.25 s a step on cpu" in costs(pilot)[1])
        pilot.app.screen.query_one("#batch_size", Input).value = "8"
        await until(pilot, lambda: "0.25 s" not in costs(pilot)[1])  # it is another step now
        await until(pilot, lambda: "0.25 s" in costs(pilot)[1])
        pilot.app.screen.query_one("#batch_size", Input).value = "no"
        await until(pilot, lambda: costs(pilot) == [])


async def test_minutes_become_steps_once_a_step_is_timed(home: Path) -> None:
    async with form(home) as pilot:
        pilot.app.screen.query_one("#minutes", Input).value = "5"
        await until(pilot, lambda: "text read" not in costs(pilot)[0])  # nobody knows yet
        await until(
            pilot, lambda: re.search(r"[\d,]+ steps in \w.* in all: 0.25 s", costs(pilot)[1])
        )
        await until(pilot, lambda: "text read" in costs(pilot)[0])
        pilot.app.screen.query_one("#max_steps", Input).value = "100"
        await until(pilot, lambda: "both tell the length" in verdict(pilot))
        assert pilot.app.screen.query_one("#minutes", Input).has_class("wrong")


async def test_too_little_memory_is_said_before_anything_starts(
    home: Path, timing: Callable[[str], None]
) -> None:
    problem = "this needs at least 40 [GB] of memory, but cpu has 8 GB: try a smaller model"
    timing(f"print({as_told(problem=problem, calibration=None)!r})")
    async with form(home, size=(160, 45)) as pilot:
        await until(pilot, lambda: problem in costs(pilot)[1])
    timing("import sys; sys.exit('tuigpt: the disk is [full')")
    async with form(home) as pilot:
        await until(pilot, lambda: "the disk is [full" in costs(pilot)[1])


async def test_a_timing_ends_with_its_settings_and_with_the_form(
    home: Path, tmp_path: Path, timing: Callable[[str], None]
) -> None:
    started = tmp_path / "started"
    started.mkdir()
    timing(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(started)!r}, str(os.getpid())).touch()\n"
        "time.sleep(600)"
    )
    async with form(home) as pilot:
        await until(pilot, lambda: len(list(started.iterdir())) == 1)
        assert "timing a few steps" in costs(pilot)[1]
        (first,) = (int(path.name) for path in started.iterdir())
        pilot.app.screen.query_one("#block_size", Input).value = "32"
        await until(pilot, lambda: len(list(started.iterdir())) == 2)
        await until(pilot, lambda: not is_running(first))
        (second,) = {int(path.name) for path in started.iterdir()} - {first}
        await pilot.press("escape")
        await until_ended(pilot, second)


async def test_overfitting_is_foreseen(home: Path, tmp_path: Path) -> None:
    async with form(home, write(tmp_path, "a.txt", CHAT.encode())) as pilot:
        await until(pilot, lambda: verdict(pilot).startswith("it will overfit: 80 parameters a"))
        assert pilot.app.screen.query_one("#verdict").has_class("doubtful")
        pilot.app.screen.query_one("#max_steps", Input).value = "10"
        await until(pilot, lambda: verdict(pilot) == "")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_ended(pilot: Pilot[None], pid: int) -> None:
    for _ in range(PATIENCE):
        if not is_running(pid):
            return
        await pilot.pause(0.02)
    raise AssertionError("the process of the form is still there")
