"""What a user has chosen for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.files import read_json
from tuigpt.settings import SETTINGS_FILE, change_setting, read_settings


def test_nothing_is_chosen_in_a_home_that_is_not_there(home: Path) -> None:
    assert read_settings(home) == {} and not home.exists()


def test_others_stay_also_unknown_ones(home: Path) -> None:
    change_setting(home, "one", True)
    change_setting(home, "from a newer tuigpt", {"a": [1]})
    change_setting(home, "one", False)
    assert read_settings(home) == {"one": False, "from a newer tuigpt": {"a": [1]}}
    assert read_json(home / SETTINGS_FILE) == read_settings(home)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\0"])
def test_a_broken_file_counts_as_none_and_is_never_overwritten(home: Path, content: str) -> None:
    home.mkdir()
    (home / SETTINGS_FILE).write_text(content)
    assert read_settings(home) == {}
    with pytest.raises(UserError, match="cannot read .*settings.json': .*; mend it, or delete it"):
        change_setting(home, "one", True)
    assert (home / SETTINGS_FILE).read_text() == content


def test_a_home_that_cannot_be_written_is_told(home: Path) -> None:
    home.write_text("in the way")
    with pytest.raises(UserError, match="settings.json"):
        change_setting(home, "one", True)
