"""The form's pure parts: completing a path, and how long a training takes on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuigpt.config import PRESETS, GPTConfig, TrainConfig
from tuigpt.estimate import Calibration, Reading
from tuigpt.plan.speeds import Device, Expected
from tuigpt.tui.screens.new_run.path_field import completed, nearest, sources_of
from tuigpt.tui.screens.new_run.prospect import Prospect
from tuigpt.tui.screens.new_run.sizes import heading, size_rows

TINY = GPTConfig(**PRESETS["tiny"])


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


class TestSizes:
    def prospect(
        self, seconds: float | None = 60.0, steps: int = 5000, readings: float = 5.0
    ) -> Prospect:
        train = TrainConfig(recipe="fast", max_steps=steps, patience=0)
        expected = None
        if seconds is not None:
            device = Device("cpu", "cpu", 8 << 30)
            expected = Expected(Calibration(seconds / steps, 0.0, 0.0, 0.0), False, device)
        return Prospect(TINY, train, expected, Reading(1, 1, readings, 2.0))

    def row(self, prospect: Prospect, plays: bool = True, width: int = 70) -> str:
        return str(size_rows({"tiny": prospect}, plays, width)[0][1])

    def test_each_row_tells_what_to_expect(self) -> None:
        assert "≈ 60 s" in self.row(self.prospect())
        assert "the shape of a play" in self.row(self.prospect())
        assert "the shape of a play" not in self.row(self.prospect(), plays=False)
        assert "would memorise the text" in self.row(self.prospect(readings=20.0))
        assert "too few steps: 30" in self.row(self.prospect(steps=30))
        assert "…" in self.row(self.prospect(seconds=None))

    @pytest.mark.parametrize("width", [50, 70, 100])
    def test_headings_stand_over_their_columns(self, width: int) -> None:
        row = "  " + self.row(self.prospect(), width=width)
        assert 9 + heading(width).index("writes like") == row.index("words, the shape")
