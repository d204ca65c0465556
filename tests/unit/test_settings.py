"""What a user has chosen for good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.settings import SETTINGS_FILE, Settings, change_setting, read_settings


def test_nothing_is_chosen_in_a_home_that_is_not_there(home: Path) -> None:
    assert read_settings(home) == Settings() and not home.exists()


def test_others_stay_also_unknown_ones(home: Path) -> None:
    change_setting(home, "hide_poet", True)
    change_setting(home, "from a newer tuigpt", {"a": [1]})
    assert read_settings(home) == Settings(hide_poet=True)
    change_setting(home, "hide_poet", False)
    assert json.loads((home / SETTINGS_FILE).read_text()) == {
        "hide_poet": False,
        "from a newer tuigpt": {"a": [1]},
    }


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\0", "[" * 100_000])
def test_a_broken_file_counts_as_none_and_is_never_overwritten(home: Path, content: str) -> None:
    home.mkdir()
    (home / SETTINGS_FILE).write_text(content)
    assert read_settings(home) == Settings()
    with pytest.raises(UserError, match="cannot read .*settings.json': .*, or delete it"):
        change_setting(home, "hide_poet", True)
    assert (home / SETTINGS_FILE).read_text() == content


def test_a_value_of_another_type_is_not_believed(home: Path) -> None:
    change_setting(home, "hide_poet", "yes")
    assert read_settings(home) == Settings()
    change_setting(home, "hide_poet", True)
    assert read_settings(home).hide_poet


def test_a_link_to_where_somebody_keeps_all_settings_stays_one(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "mine.json").write_text("{}")
    (home / SETTINGS_FILE).symlink_to(tmp_path / "mine.json")
    change_setting(home, "hide_poet", True)
    assert (home / SETTINGS_FILE).is_symlink() and "true" in (tmp_path / "mine.json").read_text()


def test_a_home_that_cannot_be_written_is_told(home: Path) -> None:
    home.write_text("in the way")
    with pytest.raises(UserError, match="settings.json"):
        change_setting(home, "one", True)
