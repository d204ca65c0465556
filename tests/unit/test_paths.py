"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuigpt.paths import asset, home_dir, runs_dir, user_path


def test_the_flag_wins_over_the_variable_over_the_platforms_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUIGPT_HOME", str(tmp_path / "variable"))
    assert home_dir(tmp_path / "flag") == tmp_path / "flag"
    assert home_dir(None) == home_dir("") == tmp_path / "variable"
    monkeypatch.setenv("TUIGPT_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home_dir().name == "tuigpt"
    assert home_dir().is_absolute()


def test_a_relative_home_stays_where_it_was_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    home = home_dir("here")
    monkeypatch.chdir("/")
    assert home == tmp_path / "here" and runs_dir(home) == tmp_path / "here" / "runs"


def test_a_tilde_is_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_dir("~/gpt") == tmp_path / "gpt"
    assert user_path("~/a.txt") == tmp_path / "a.txt"
    assert user_path("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")


def test_nothing_is_made_by_asking(tmp_path: Path) -> None:
    runs_dir(home_dir(tmp_path / "home"))
    assert not (tmp_path / "home").exists()


def test_the_built_in_text_is_there() -> None:
    assert asset("shakespeare.txt").stat().st_size > 1_000_000
