"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuigpt import paths
from tuigpt.errors import UserError
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


def test_an_account_without_a_home_folder_is_told_what_to_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(name: str) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TUIGPT_HOME", raising=False)
    monkeypatch.setattr(paths, "user_data_path", nowhere)
    with pytest.raises(UserError, match="name a folder for runs with home or with TUIGPT_HOME"):
        home_dir()
    assert home_dir("/x") == Path("/x")


def test_a_current_folder_that_is_gone_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UserError, match="the current folder is gone"):
        home_dir("here")
    monkeypatch.chdir(tmp_path)
