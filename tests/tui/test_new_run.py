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
from conftest import MakeRun
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Button, Input, Label, Static
from tui.conftest import InkApp, screen_text, settle, with_fake_writer

from tuigpt.config import PRESETS, GPTConfig, TrainConfig, train_defaults
from tuigpt.estimate import Calibration, Memory
from tuigpt.plan.speeds import SPEEDS_FILE
from tuigpt.reports import CostReport, to_line
from tuigpt.runs.record import CorpusFacts, PlanFacts, RunRecord, TokenizerFacts, read_run_record
from tuigpt.settings import change_settings, read_settings
from tuigpt.tui import app as app_module
from tuigpt.tui.app import TuigptApp
from tuigpt.tui.screens.new_run import cost
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.tui.screens.new_run.remembered import OLD_FORM_FILE
from tuigpt.tui.screens.new_run.text_preview import TextPreview

CHAT = "[red]Ana[/]: see you 😀 [link=\n" * 200
PATIENCE = 1500
"""Most looks, 20 ms apart; a process starts in between."""


class Host(InkApp):
    CSS_PATH = Path(app_module.__file__).parent / "app.tcss"

    def __init__(self, home: Path, like: RunRecord | None = None) -> None:
        super().__init__()
        self.home = home
        self.like = like

    def on_mount(self) -> None:
        self.push_screen(NewRun(self.home, self.like))


@asynccontextmanager
async def form(
    home: Path, text: str = "", size: tuple[int, int] = (80, 24), *, first: bool = False
) -> AsyncIterator[Pilot[None]]:
    """The form; where it was never left, it opens as it was with a number of steps of tiny.

    Args:
        first: open it as on the first day instead.
    """
    if not first and read_settings(home).new_run is None:
        change_settings(new_run={"preset": "tiny", "length": "steps"})
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
    """All that the form tells of the text, in short and in full."""
    screen = pilot.app.screen
    parts = (screen.query_one(TextPreview), screen.query_one("#whole", Static))
    return "\n".join(str(part.render()) for part in parts)


def field(pilot: Pilot[None], name: str) -> Input:
    return pilot.app.screen.query_one(f"#for-{name}", Input)


def rows(pilot: Pilot[None], name: str) -> list[str]:
    """The answers to a question, as they are shown."""
    return str(pilot.app.screen.query_one(f"#{name}", Radio).render()).splitlines()


def verdict(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#verdict", Static).render())


def costs(pilot: Pilot[None]) -> list[str]:
    return str(pilot.app.screen.query_one(cost.Cost).render()).splitlines()


TIMED = CostReport(
    parameters={"total": 1},
    memory=Memory(1, 1, 1, 1, 1),
    device="cpu",
    device_type="cpu",
    device_memory=8 << 30,
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
    plan="",
    compiling="",
    problem="",
)


def as_told(**changes: object) -> str:
    """What the timing prints."""
    return to_line(msgspec.structs.replace(TIMED, **changes))


def keeping(told: str) -> str:
    """A program that tells this, and keeps it for the form as `tuigpt estimate` does."""
    folder = str(Path(__file__).parent)
    return f"import sys; sys.path.append({folder!r}); import fake_estimate as f; f.main({told!r})"


@pytest.fixture(autouse=True)
def timing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another program in the place of `tuigpt estimate`; it is given the arguments."""

    def replace_by(program: str) -> None:
        monkeypatch.setattr(cost, "ESTIMATE", (sys.executable, "-c", program))

    replace_by(keeping(as_told()))
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
        field(pilot, "val_fraction").value = "0"
        await until(pilot, lambda: "no validation" in preview(pilot))
        pilot.app.screen.query_one("#text", Input).value = str(tmp_path / "gone.txt")
        await until(pilot, lambda: "no text at" in verdict(pilot))


async def test_an_encoding_is_offered_and_agreed_to_by_a_key(home: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "old.txt", "naïve café “fine”\n".encode("cp1252") * 100)
    async with form(home, path) as pilot:
        await until(pilot, lambda: verdict(pilot).endswith("^y  read as cp1252"))
        assert "is not UTF-8" in verdict(pilot)
        await pilot.press("ctrl+y")
        assert field(pilot, "encoding").value == "cp1252"
        await until(pilot, lambda: "read as cp1252" in preview(pilot))
        assert "naïve café “fine”" in preview(pilot)


async def test_nothing_is_fetched_before_the_user_agrees(home: Path) -> None:
    async with form(home, "tinyshakespeare") as pilot:
        await until(pilot, lambda: verdict(pilot).endswith("^y  fetch it now"))
        assert not (home / "cache").exists()


async def test_too_short_is_said_with_both_sizes(home: Path, tmp_path: Path) -> None:
    async with form(home, write(tmp_path, "a.txt", b"to be or not\n" * 76)) as pilot:
        await until(pilot, lambda: "too short" in verdict(pilot))
        assert "889 characters to train on and 99 for validation" in verdict(pilot)
        assert "988 characters" in preview(pilot)


async def test_the_nearest_name_is_offered_for_one_that_is_none(home: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "notes.txt", CHAT.encode())
    async with form(home, str(tmp_path / "nots.txt")) as pilot:
        await until(pilot, lambda: f"^y  take {path}" in verdict(pilot))
        await pilot.press("ctrl+y")
        assert pilot.app.screen.query_one("#text", Input).value == path
        await until(pilot, lambda: "on 200 lines" in preview(pilot))


async def test_tab_completes_a_path_and_then_goes_on(home: Path, tmp_path: Path) -> None:
    (tmp_path / "poems").mkdir()
    path = write(tmp_path / "poems", "verse [1].txt", CHAT.encode())
    async with form(home, f"{tmp_path}/p") as pilot:
        text = pilot.app.screen.query_one("#text", Input)
        await pilot.press("end", "o", "tab")
        assert text.value == f"{tmp_path}/poems/"
        await pilot.press("v", "tab")
        assert text.value == path
        await pilot.press("tab")
        assert pilot.app.focused is pilot.app.screen.query_one("#preset")


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
        await until(pilot, lambda: "^y" in verdict(pilot))
        await pilot.press("f2")
        await pilot.pause()
        screen = pilot.app.screen
        shown = screen.query_one("#questions").region
        for part in (*screen.query(Input), *screen.query(Radio), screen.query_one("#more")):
            part.scroll_visible(animate=False)
            await pilot.pause()
            assert shown.overlaps(part.region) and part.region.height, part
            for always in (*screen.query("#buttons Button"), screen.query_one("#verdict")):
                assert screen.query_one("#foot").region.contains_region(always.region), always
        for label in screen.query("#fields Label").results(Label):
            assert label.region.width >= cell_len(str(label.render())), label


async def test_a_wrong_setting_is_said_until_it_is_changed(home: Path) -> None:
    async with form(home) as pilot:
        field(pilot, "block_size").value = "-7"
        await pilot.pause()
        assert "block size is -7" in verdict(pilot)
        assert field(pilot, "block_size").has_class("wrong")
        await pilot.press("f2", "f2", "down")
        assert "block size is -7" in verdict(pilot)
        field(pilot, "block_size").value = "64"
        await pilot.pause()
        assert verdict(pilot) == "" and not field(pilot, "block_size").has_class("wrong")


async def test_fields_left_alone_follow_the_recipe(tmp_path: Path) -> None:
    async with form(tmp_path) as pilot:
        rate, batch = field(pilot, "learning_rate"), field(pilot, "batch_size")
        fast_rate = rate.value
        batch.value = "7"
        await pilot.press("f2")
        recipe = pilot.app.screen.query_one("#for-recipe", Radio)
        recipe.focus()
        await pilot.press("right")
        assert recipe.chosen == "workshop"
        await until(pilot, lambda: rate.value == "0.001")
        assert batch.value == "7"
        await pilot.press("left")
        await until(pilot, lambda: rate.value == fast_rate)


async def test_fields_left_alone_follow_the_device(
    home: Path, tmp_path: Path, timing: Callable[[str], None]
) -> None:
    given = tmp_path / "given.txt"
    told = as_told(device="cuda (a GPU)", device_type="cuda")
    seen = f"import sys; print(*sys.argv[1:], file=open({str(given)!r}, 'a'))"
    timing(f"{seen}; {keeping(told)}")
    async with form(home) as pilot:
        batch_size = field(pilot, "batch_size")
        await until(pilot, lambda: "each on cuda (a GPU)" in costs(pilot)[1])
        assert batch_size.value == "64"
        assert "--batch-size" not in given.read_text()  # the trainer knows by itself
        batch_size.value = "16"
        await until(pilot, lambda: "--batch-size=16" in given.read_text())
        assert batch_size.value == "16"


async def test_every_size_is_reckoned_once_one_is_timed(home: Path) -> None:
    async with form(home) as pilot:
        await until(pilot, lambda: "timing a few steps" in costs(pilot)[1])
        await until(pilot, lambda: "measured" in costs(pilot)[1])
        first, second = costs(pilot)
        assert first.startswith("438k parameters · reads the text 4.8 times · 79.4 MB")
        assert "22 min: 5,000 steps, 0.25 s each on cpu" in second
        assert [row.split()[:4] for row in rows(pilot, "preset")] == [
            ["○", "auto", "2×128", "438k"], ["●", "tiny", "2×128", "438k"],
            ["○", "small", "4×256", "3.2M"], ["○", "medium", "6×384", "10.8M"],
            ["○", "large", "8×512", "25.4M"],
        ]  # fmt: skip
        assert " 22 min " in rows(pilot, "preset")[1]
        assert "≈" in rows(pilot, "preset")[2]  # nobody has timed that
        field(pilot, "max_steps").value = "100"
        await until(pilot, lambda: " s: 100 steps" in costs(pilot)[1])
        field(pilot, "batch_size").value = "8"
        await until(pilot, lambda: "about" in costs(pilot)[1])  # it is another step now
        await until(pilot, lambda: "0.25 s each" in costs(pilot)[1])
    async with form(home) as pilot:  # what was timed is known at once the next time
        assert " 22 min " in rows(pilot, "preset")[1] and "≈" in rows(pilot, "preset")[2]


async def test_a_time_gets_a_plan(home: Path) -> None:
    async with form(home, first=True, size=(100, 30)) as pilot:
        await until(pilot, lambda: "expected" in rows(pilot, "preset")[0])
        assert re.search("● auto .+ val 1.[0-9]+ ± 0.05 expected", rows(pilot, "preset")[0])
        plan, took = costs(pilot)
        found = re.search(r"context (\d+) · batch (\d+) · weight decay 0", plan)
        assert found and re.search("^5 min: [0-9,]+ steps", took)
        # The fields that were left alone tell what the plan takes.
        shown = [field(pilot, name).value for name in ("block_size", "batch_size")]
        assert shown == [found[1], found[2]]
        field(pilot, "block_size").value = "32"
        await until(pilot, lambda: "context 32 " in costs(pilot)[0])
        assert "New run: shakespeare-5min" in screen_text(pilot)
        await pilot.press("tab", "down")
        assert "● tiny" in rows(pilot, "preset")[1]
        await until(pilot, lambda: "New run: shakespeare-tiny" in screen_text(pilot))
        await pilot.press("up", "tab", "left")
        assert "tiny; with a time, what suits it" in rows(pilot, "preset")[0]


async def test_a_run_that_was_planned_is_planned_again(home: Path) -> None:
    chosen = ["n_layer", "n_head", "n_embd", "batch_size", "weight_decay", "eval_interval"]
    record = RunRecord(
        name="old", model=GPTConfig(vocab_size=65, block_size=96, n_layer=4, n_head=4, n_embd=128),
        train=TrainConfig(**{**train_defaults("fast"), "batch_size": 8, "minutes": 7.0}),
        tokenizer=TokenizerFacts("char", 65), corpus=CorpusFacts(name="b", sources=["/a/b.txt"]),
        plan=PlanFacts(7.0, chosen, 1.5, 0.04, "4 layers", "the best"),
    )  # fmt: skip
    async with Host(home, record).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "● auto" in rows(pilot, "preset")[0]
        assert "● 7 min" in rows(pilot, "duration")[0]
        assert field(pilot, "block_size").value == "96"  # that was asked for
        assert field(pilot, "batch_size").value == "16"


async def test_minutes_become_steps_once_a_step_is_timed(home: Path) -> None:
    async with form(home) as pilot:
        pilot.app.screen.query_one("#duration").focus()
        await pilot.press("right")
        assert "● 5 min" in rows(pilot, "duration")[0]
        await until(pilot, lambda: re.search(r"min: 1,\d\d\d steps, 0.25 s each", costs(pilot)[1]))
        await until(pilot, lambda: "reads the text" in costs(pilot)[0])


async def test_too_little_memory_is_said_before_anything_starts(
    home: Path, timing: Callable[[str], None]
) -> None:
    problem = "this needs at least 40 [GB] of memory, but cpu has 8 GB: try a smaller model"
    timing(f"print({as_told(problem=problem, calibration=None)!r})")
    async with form(home, size=(160, 45)) as pilot:
        await until(pilot, lambda: problem in verdict(pilot))
    timing("import sys; sys.exit('tuigpt: the disk is [full')")
    async with form(home) as pilot:
        await until(pilot, lambda: "the disk is [full" in verdict(pilot))


async def test_a_finished_run_can_be_trained_again_with_other_settings(
    home: Path, make_run: MakeRun
) -> None:
    make_run("verse", {10: 2.0}, [], state="finished", step=10, max_steps=10)
    app = TuigptApp(home, panes=with_fake_writer(), strict=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+t", "a")
        await until(pilot, lambda: isinstance(app.screen, NewRun))
        record = read_run_record(home / "runs" / "verse")
        assert field(pilot, "block_size").value == str(record.model.block_size)
        assert field(pilot, "max_steps").value == str(record.train.max_steps)
        await pilot.press("escape")


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
        field(pilot, "block_size").value = "32"
        await until(pilot, lambda: len(list(started.iterdir())) == 2)
        await until(pilot, lambda: not is_running(first))
        (second,) = {int(path.name) for path in started.iterdir()} - {first}
        await pilot.press("escape")
        await until_ended(pilot, second)


async def test_what_is_typed_at_once_reaches_the_path(home: Path) -> None:
    async with form(home) as pilot:
        await pilot.press(*"s/m short.txt")
        assert pilot.app.screen.query_one("#text", Input).value == "s/m short.txt"
        assert "● your file or folder" in str(pilot.app.screen.query_one("#own-mark").render())


async def test_arrows_choose_a_text_and_letters_name_another(home: Path) -> None:
    async with form(home) as pilot:
        screen = pilot.app.screen
        path, start = screen.query_one("#text", Input), screen.query_one("#start", Button)
        await pilot.press("up", "down", "ctrl+s")
        assert "● your file" in str(screen.query_one("#own-mark").render())
        assert verdict(pilot).startswith("✗ type the path")
        await pilot.press("m", ".", "t")
        assert "Start training on m  ^s" in str(start.label)
        await pilot.press("up")
        assert "● Shakespeare" in rows(pilot, "source")[0]
        assert "Start training on shakespeare  ^s" in str(start.label)
        assert path.value == "m.t"  # it is kept while another text is chosen
        await pilot.press("down")
        assert "Start training on m  ^s" in str(start.label)
        await pilot.press("up", "x")
        assert path.value == "x" and "● your file" in str(screen.query_one("#own-mark").render())
        await pilot.press("down")
        assert screen.focused is screen.query_one("#preset")


async def test_the_question_that_has_the_focus_is_marked(home: Path) -> None:
    async with form(home) as pilot:
        for name in ("source", "preset", "duration"):
            asked = pilot.app.screen.query(".question.-asked")
            assert [question.id for question in asked] == [f"asks-{name}"]
            assert re.search("│ +┃ ●", screen_text(pilot)), name
            await pilot.press("tab")


async def test_digits_change_the_number_that_is_chosen(home: Path) -> None:
    async with form(home) as pilot:
        await pilot.press("tab", "tab", *"400")
        assert "● 400 steps" in rows(pilot, "duration")[0]
        assert field(pilot, "max_steps").value == "400"
        await pilot.press("backspace")
        assert "● 40 steps" in rows(pilot, "duration")[0]
        await pilot.press("right", *"90")
        assert "● 90 min" in rows(pilot, "duration")[0]
        assert field(pilot, "minutes").value == "90"
        await pilot.press("left", "left", "7")
        assert "● 7 steps" in rows(pilot, "duration")[0]


async def test_a_length_that_is_typed_among_the_settings_is_chosen(home: Path) -> None:
    async with form(home, first=True) as pilot:
        await pilot.press("f2")
        for name, chosen in (
            ("max_steps", "● 70 steps"),
            ("minutes", "● 70 min"),
            ("patience", "● until val"),
            ("max_steps", "● until val"),  # the most steps belong to it, too
        ):
            typed = field(pilot, name)
            typed.value = ""
            typed.focus()
            await pilot.press("7", "0")
            assert chosen in rows(pilot, "duration")[0], name


async def test_a_click_beside_a_setting_goes_to_it_and_typing_shows_it(home: Path) -> None:
    async with form(home) as pilot:
        await pilot.press("f2")
        await pilot.pause()
        screen = pilot.app.screen
        seed = field(pilot, "seed")
        seed.scroll_visible(animate=False)
        await pilot.pause()
        await pilot.click("#for-seed", offset=(-10, 0))
        assert screen.focused is seed
        questions = screen.query_one("#questions")
        questions.scroll_home(animate=False)
        await pilot.pause()
        assert not questions.region.overlaps(seed.region)
        await pilot.press("7")
        await pilot.pause()
        assert questions.region.contains_region(seed.region) and seed.value == "7"


async def test_a_text_of_before_is_offered_once_and_leaves_room(
    home: Path, make_run: MakeRun, tmp_path: Path
) -> None:
    paths = [write(tmp_path, name, CHAT.encode()) for name in ("a.txt", "b.txt")]
    for path in paths:
        run = make_run(Path(path).stem, {10: 2.0}, []).folder / "run.json"
        run.write_text(run.read_text().replace("verse.txt", path))
    async with form(home, paths[0]) as pilot:
        await until(pilot, lambda: len(rows(pilot, "source")) > 1)
        assert paths[0] not in "".join(rows(pilot, "source"))
        screen = pilot.app.screen
        more = screen.query_one("#more")
        assert screen.query_one("#questions").region.contains_region(more.region)


async def test_enter_chooses_and_starts_nothing(home: Path) -> None:
    async with form(home) as pilot:
        await pilot.press("up", "down", "enter")
        await pilot.pause()
        await pilot.press("down", "enter", "right", "right", "enter")
        assert "● small" in rows(pilot, "preset")[2]
        assert "● 15 min" in rows(pilot, "duration")[0]
        assert isinstance(pilot.app.screen, NewRun)
        assert not (home / "runs").exists()


async def test_a_click_chooses(home: Path) -> None:
    async with form(home) as pilot:
        await pilot.click("#preset", offset=(8, 2))
        assert "● small" in rows(pilot, "preset")[2]
        await pilot.click("#duration", offset=(rows(pilot, "duration")[0].index("15 min"), 0))
        assert "● 15 min" in rows(pilot, "duration")[0]
        await pilot.click("#own-mark")
        assert pilot.app.focused is pilot.app.screen.query_one("#text")


async def test_it_opens_as_it_was_left(home: Path, tmp_path: Path) -> None:
    home.mkdir(exist_ok=True)
    path = write(tmp_path, "a.txt", CHAT.encode())
    async with form(home, path) as pilot:
        field(pilot, "seed").value = "7"
        await pilot.press("tab", "down", "tab", "right", "escape")
    async with form(home) as pilot:
        assert pilot.app.screen.query_one("#text", Input).value == path
        assert field(pilot, "seed").value == "7"
        assert "● small" in rows(pilot, "preset")[2]
        assert "● 5 min" in rows(pilot, "duration")[0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"preset": "huge", "fields": {"x": "1"}, "timings": [{}]}',
        b'{"fields": {"recipe": "slow", "tokenizer": "bpe:0"}, "timings": 3}',
    ],
)
async def test_a_damaged_memory_does_no_harm(home: Path, content: bytes) -> None:
    home.mkdir(exist_ok=True)
    for name in (OLD_FORM_FILE, f"cache/{SPEEDS_FILE}"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(content)
    async with form(home, first=True) as pilot:
        assert "● auto" in rows(pilot, "preset")[0]
        assert "● 5 min" in rows(pilot, "duration")[0]
        assert verdict(pilot) == ""


async def test_it_is_filled_as_for_a_run_like_another(home: Path) -> None:
    record = RunRecord(
        name="old", preset="small", model=GPTConfig(**PRESETS["small"], block_size=64),
        train=TrainConfig(recipe="workshop", max_steps=700, patience=4, tokenizer="bpe:300"),
        tokenizer=TokenizerFacts("bpe:300", 300),
        corpus=CorpusFacts(name="b", sources=["/a/b.txt", "/c.txt"]),
    )  # fmt: skip
    async with Host(home, record).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert pilot.app.screen.query_one("#text", Input).value == "/a/b.txt; /c.txt"
        assert "● small" in rows(pilot, "preset")[2]
        assert "● until val stops falling" in "\n".join(rows(pilot, "duration"))
        values = {n: field(pilot, n).value for n in ("max_steps", "patience", "block_size")}
        assert values == {"max_steps": "700", "patience": "4", "block_size": "64"}
        assert pilot.app.screen.query_one("#for-tokenizer", Radio).chosen == "bpe:300"


async def test_overfitting_is_foreseen(home: Path, tmp_path: Path) -> None:
    async with form(home, write(tmp_path, "a.txt", CHAT.encode())) as pilot:
        expected = "it would memorise the text: 80 parameters a"
        await until(pilot, lambda: verdict(pilot).startswith(expected))
        assert pilot.app.screen.query_one("#verdict").has_class("doubtful")
        field(pilot, "max_steps").value = "10"
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
