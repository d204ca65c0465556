"""What a user has chosen for good, kept in the home: `settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tuigpt.errors import UserError
from tuigpt.files import RECORD_LIMIT, UnreadableFile, read_bytes, read_record, write_output

SETTINGS_FILE = "settings.json"


class Settings(msgspec.Struct, frozen=True):
    """Attributes:
    hide_poet: leave the built-in model out of every list.
    keep_texts: keep prompts and texts of the app for its next start.
    """

    hide_poet: bool = False
    keep_texts: bool = True


def read_settings(home: Path) -> Settings:
    """The settings; the defaults where there is no file, or one that cannot be read."""
    try:
        return read_record(home / SETTINGS_FILE, Settings)
    except UnreadableFile:
        return Settings()


def change_setting(home: Path, name: str, value: object) -> None:
    """Set one setting and keep all others, also those that this tuigpt does not know.

    Raises:
        UserError: the file cannot be read, so the others would be lost, or cannot be written.
    """
    path = home / SETTINGS_FILE
    settings: dict[str, Any] = {}
    try:
        content = read_bytes(path, RECORD_LIMIT)
        settings = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except UnreadableFile as error:
        if not error.missing:
            raise
    except (ValueError, RecursionError):
        reason = "it is not JSON, or no object; correct it, or delete it"
        raise UnreadableFile(path, reason) from None
    try:
        home.mkdir(parents=True, exist_ok=True)
        # It may be a link to where somebody keeps all of their settings.
        write_output(path, msgspec.json.encode(settings | {name: value}) + b"\n")
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
