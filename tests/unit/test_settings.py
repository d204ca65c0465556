"""What a user has chosen for good."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.files import write_json
from tuigpt.settings import (
    OLD_FILE,
    LastForm,
    Settings,
    change_settings,
    chosen_home,
    look_at_settings,
    read_settings,
    settings_file,
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config" / "settings.toml"
    monkeypatch.setenv("TUIGPT_CONFIG", str(path))
    return path


def written(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_nothing_is_chosen_without_a_file(file: Path, home: Path) -> None:
    assert read_settings(home) == Settings() and not file.parent.exists() and not home.exists()


def test_what_is_chosen_is_kept(file: Path, home: Path) -> None:
    change_settings(theme="paper", temperature=0.7, keys={"view.training": "f3"})
    change_settings(top_k=7)
    assert read_settings(home) == Settings(
        theme="paper", temperature=0.7, top_k=7, keys={"view.training": "f3"}
    )
    change_settings(theme=None)
    assert read_settings(home).theme == "" and read_settings(home).top_k == 7


def test_a_home_is_chosen_and_the_form_kept(file: Path, home: Path) -> None:
    assert chosen_home() == ""
    change_settings(home="/data/runs", new_run={"text": "a.txt", "fields": {"seed": "7"}})
    assert chosen_home() == "/data/runs"
    assert read_settings(home).new_run == LastForm(text="a.txt", fields={"seed": "7"})
    written(file, "home = 3")
    assert chosen_home() == ""


def test_comments_and_what_a_newer_tuigpt_wrote_stay(file: Path, home: Path) -> None:
    written(file, '# mine\ntheme = "ink" # dark\nfrom_a_newer_one = [1]\n[keys]\n"a.b" = "f9"\n')
    change_settings(theme="paper", hide_poet=True)
    text = file.read_text(encoding="utf-8")
    assert "# mine" in text and "# dark" in text and "from_a_newer_one = [1]" in text
    assert tomllib.loads(text)["hide_poet"] is True
    settings, problems = look_at_settings(home)
    assert settings == Settings(theme="paper", hide_poet=True, keys={"a.b": "f9"})
    assert problems == ("the settings name 'from_a_newer_one', which this tuigpt does not know",)


def test_one_value_that_cannot_be_used_spoils_no_other(file: Path, home: Path) -> None:
    written(file, 'temperature = 9.0\nhide_poet = "yes"\ntop_k = 5\nglyphs = "runes"\n')
    settings, problems = look_at_settings(home)
    assert settings == Settings(top_k=5)
    assert [problem.split()[2] for problem in problems] == ["temperature", "hide_poet", "glyphs"]


@pytest.mark.parametrize("text", ["{", "= 1", "a = 1\na = 2", "\0", "a = " + "[" * 10_000])
def test_a_broken_file_counts_as_none_and_is_never_overwritten(
    file: Path, home: Path, text: str
) -> None:
    written(file, text)
    settings, problems = look_at_settings(home)
    assert settings == Settings() and "settings.toml" in problems[0]
    with pytest.raises(UserError, match="cannot read .*settings.toml': .*, or delete it"):
        change_settings(hide_poet=True)
    assert file.read_text() == text


def test_an_old_home_keeps_its_choice_until_it_is_made_anew(file: Path, home: Path) -> None:
    home.mkdir()
    write_json(home / OLD_FILE, {"hide_poet": True})
    assert read_settings(home).hide_poet
    change_settings(hide_poet=False)
    assert not read_settings(home).hide_poet


def test_a_link_to_where_somebody_keeps_all_settings_stays_one(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    (tmp_path / "mine.toml").write_text("")
    file.symlink_to(tmp_path / "mine.toml")
    change_settings(hide_poet=True)
    assert file.is_symlink() and "true" in (tmp_path / "mine.toml").read_text()


def test_a_folder_that_cannot_be_written_is_told(file: Path, tmp_path: Path) -> None:
    file.parent.write_text("in the way")
    with pytest.raises(UserError, match="settings.toml"):
        change_settings(theme="ink")


def test_it_is_in_the_users_configuration_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TUIGPT_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings_file() == tmp_path / "tuigpt" / "settings.toml"
