"""The form's pure parts: completing a path, and how long a training takes on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tuigpt.config import PRESETS, GPTConfig, TrainConfig
from tuigpt.estimate import Calibration, Memory
from tuigpt.paths import cache_dir
from tuigpt.reports import CostReport
from tuigpt.tui.screens.new_run.path_field import completed, nearest, sources_of
from tuigpt.tui.screens.new_run.sizes import Size, heading, size_rows
from tuigpt.tui.screens.new_run.speeds import SPEEDS_FILE, Speeds

TINY = GPTConfig(**PRESETS["tiny"])
TRAIN = TrainConfig(recipe="fast", batch_size=16)
REPORT = CostReport(
    parameters={"total": 1}, memory=Memory(1, 1, 1, 1, 1), device="cpu", device_type="cpu",
    device_memory=8 << 30, max_steps=1, step_flops=1, step_tokens=1, tokens=1, epochs=1.0,
    parameters_per_character=1.0, overfits=False, train_tokens=1000, train_characters=1000,
    calibration=Calibration(0.25, 1.0, 0.5, 3.0), seconds=1.0, problem="",
)  # fmt: skip


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poems").mkdir()
    for name in ("poems/verse.txt", "notes.txt", "novel.txt", ".hidden.txt"):
        (tmp_path / name).touch()
    return tmp_path


class TestPaths:
    @pytest.mark.parametrize(
        ("typed", "whole"),
        [
            ("not", "notes.txt"), ("no", "notes.txt"), ("po", "poems/"), ("x", None),
            ("poems/v", "poems/verse.txt"), ("", None), ("notes.txt", None), (".", None),
            ("poems/", None), ("a\0", None), ("nov;not", "nov;notes.txt"),
            ("novel.txt; po", "novel.txt; poems/"),
        ],
    )  # fmt: skip
    def test_a_path_is_completed(self, texts: Path, typed: str, whole: str | None) -> None:
        assert completed(typed) == whole

    @pytest.mark.parametrize(
        ("path", "like"),
        [("nots.txt", "notes.txt"), ("notes", "notes.txt"), ("poems/verze.txt", "poems/verse.txt"),
         ("elephants", None), ("nowhere/notes.txt", None), ("", None)],
    )  # fmt: skip
    def test_the_nearest_name_is_found(self, texts: Path, path: str, like: str | None) -> None:
        assert nearest(path) == like

    def test_a_semicolon_separates_unless_it_is_in_a_name(self, texts: Path) -> None:
        (texts / "a;b").touch()
        assert sources_of(" a.txt ; b ;") == ["a.txt", "b"]
        assert sources_of("a;b") == ["a;b"]
        assert sources_of("  ") == []


class TestSpeeds:
    def test_nothing_is_known_before_a_trial(self, home: Path) -> None:
        assert Speeds(home).expected(TINY, TRAIN, 1000) is None

    def test_what_a_trial_told_is_kept(self, home: Path) -> None:
        Speeds(home).keep(TINY, TRAIN, REPORT)
        found = Speeds(home).expected(TINY, replace(TRAIN, max_steps=7), 1000)
        assert found is not None and found.measured
        assert found.calibration == REPORT.calibration and found.device == "cpu"

    def test_another_size_is_reckoned_from_the_nearest(self, home: Path) -> None:
        speeds = Speeds(home)
        speeds.keep(TINY, TRAIN, REPORT)
        small = GPTConfig(**PRESETS["small"])
        slow = msgspec.structs.replace(REPORT, calibration=Calibration(5.0, 1.0, 0.5, 3.0))
        one = speeds.expected(small, TRAIN, 1000)
        assert one is not None and not one.measured
        assert 1.0 < one.calibration.step_seconds < 3.0
        speeds.keep(small, TRAIN, slow)
        medium = speeds.expected(GPTConfig(**PRESETS["medium"]), TRAIN, 1000)
        assert medium is not None and medium.calibration.step_seconds > 5.0

    def test_a_file_that_cannot_be_written_costs_nothing_else(self, home: Path) -> None:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.write_text("a file in the place of the home")
        speeds = Speeds(home)
        speeds.keep(TINY, TRAIN, REPORT)
        assert speeds.expected(TINY, TRAIN, 1000) is not None

    def test_the_file_stays_small(self, home: Path) -> None:
        speeds = Speeds(home)
        for block_size in range(1, 100):
            speeds.keep(replace(TINY, block_size=block_size), TRAIN, REPORT)
        assert (cache_dir(home) / SPEEDS_FILE).stat().st_size < 40_000
        assert Speeds(home).newest is not None


class TestSizes:
    def size(
        self, seconds: float | None = 60.0, steps: int = 5000, memorises: bool = False
    ) -> Size:
        return Size(438_000, seconds, False, steps, memorises)

    def row(self, size: Size, plays: bool = True, width: int = 70) -> str:
        return str(size_rows({"tiny": size}, plays, width)[0][1])

    def test_each_row_tells_what_to_expect(self) -> None:
        assert "≈ 60 s" in self.row(self.size())
        assert "the shape of a play" in self.row(self.size())
        assert "the shape of a play" not in self.row(self.size(), plays=False)
        assert "would memorise the text" in self.row(self.size(memorises=True))
        assert "only 30 steps" in self.row(self.size(steps=30))
        assert "…" in self.row(self.size(seconds=None))

    @pytest.mark.parametrize("width", [50, 70, 100])
    def test_headings_stand_over_their_columns(self, width: int) -> None:
        row = "  " + self.row(self.size(), width=width)
        assert 9 + heading(width).index("writes like") == row.index("words, the shape")
