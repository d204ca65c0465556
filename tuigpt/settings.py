"""What a user has chosen for good, kept in the home: `settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tuigpt.errors import UserError
from tuigpt.files import read_json, write_json

SETTINGS_FILE = "settings.json"


def read_settings(home: Path) -> dict[str, Any]:
    """The settings by name; none where there is no file, or one that cannot be read."""
    try:
        return read_json(home / SETTINGS_FILE)
    except (OSError, ValueError):
        return {}


def change_setting(home: Path, name: str, value: object) -> None:
    """Set one setting and keep all others, also those that this tuigpt does not know.

    Raises:
        UserError: the file cannot be read, so the others would be lost, or cannot be written.
    """
    path = home / SETTINGS_FILE
    try:
        settings = read_json(path)
    except FileNotFoundError:
        settings = {}
    except ValueError as error:
        raise UserError(f"cannot read {str(path)!r}: {error}; mend it, or delete it") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    try:
        home.mkdir(parents=True, exist_ok=True)
        write_json(path, settings | {name: value})
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
