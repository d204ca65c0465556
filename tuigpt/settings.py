"""What a user has chosen for good: one TOML file, `settings.toml` in their configuration folder.

A flag overrides an environment variable, which overrides this file, which overrides the default.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from platformdirs import user_config_path

from tuigpt.errors import UserError
from tuigpt.files import RECORD_LIMIT, UnreadableFile, Word, read_bytes, read_record, write_output

OLD_FILE = "settings.json"
"""Where a home kept its settings before; what it says holds until the TOML file says it."""

_HEAD = """\
# tuigpt's settings. The app writes what you choose there; comments and unknown keys stay.
# A flag overrides an environment variable, which overrides this file.
"""

_Typed = Annotated[str, msgspec.Meta(max_length=4096)]

Glyphs = Literal["auto", "braille", "blocks", "ascii"]


class LastForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of a new run as it was left.

    Attributes:
        text: what is read, as it was typed; "" for the built-in text.
        preset, length: the size, and how long; "" for the default.
        fields: the settings that were changed, as they were typed.
    """

    text: _Typed = ""
    preset: Word = ""
    length: Word = ""
    fields: dict[Word, _Typed] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are what holds without a file.

    Attributes:
        theme: ink, paper or terminal; "" for what fits the terminal.
        glyphs: what charts are drawn with; auto for what the terminal's font should have.
        pane: the one that the app opens with; "" for the prompt.
        temperature, top_k, length: what the app writes with; None for the defaults.
        hide_poet: leave the built-in model out of every list.
        keep_texts: keep prompts and texts of the app for its next start.
        keys: keys of actions by the action's id, such as `"view.training" = "f3"`; several keys
            with commas between them.
        home: the folder for runs; "" for the usual one.
        new_run: the form as it was left; None where it never was open.
    """

    theme: Annotated[str, msgspec.Meta(max_length=100)] = ""
    glyphs: Glyphs = "auto"
    pane: Annotated[str, msgspec.Meta(max_length=100)] = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None
    length: Annotated[int, msgspec.Meta(ge=1, lt=10**7)] | None = None
    hide_poet: bool = False
    keep_texts: bool = True
    keys: dict[Word, Word] = {}
    home: _Typed = ""
    new_run: LastForm | None = None


def settings_file() -> Path:
    """The file: `TUIGPT_CONFIG` names it, else it is in the user's configuration folder.

    Raises:
        UserError: this account has no folder of its own.
    """
    named = os.environ.get("TUIGPT_CONFIG")
    if named:
        return Path(os.path.expanduser(named))
    try:
        return user_config_path("tuigpt") / "settings.toml"
    except RuntimeError:  # neither HOME nor an entry in the list of accounts
        raise UserError(
            "this account has no home folder: name a file for settings with TUIGPT_CONFIG"
        ) from None


def settings_files(home: Path) -> tuple[Path, ...]:
    """All files that what a home shows may depend on, whether they are there or not."""
    try:
        return settings_file(), home / OLD_FILE
    except UserError:
        return (home / OLD_FILE,)


def read_settings(home: Path) -> Settings:
    """The settings; the default for each one that is not there or cannot be used."""
    return look_at_settings(home)[0]


def look_at_settings(home: Path) -> tuple[Settings, tuple[str, ...]]:
    """The settings, and what in them cannot be used, each in a line that is safe to show.

    Args:
        home: its old settings hold where the file says nothing.
    """
    try:
        content = _content(settings_file())
    except UserError as error:
        return Settings(), (str(error),)
    with suppress(UnreadableFile):
        old = read_record(home / OLD_FILE, _Old)
        content = {"hide_poet": old.hide_poet, "keep_texts": old.keep_texts} | content
    used: dict[str, Any] = {}
    problems = []
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name, value in content.items():
        if name not in kinds:
            problems.append(f"the settings name {name!r}, which this tuigpt does not know")
            continue
        try:
            used[name] = msgspec.convert(value, kinds[name])
        except (msgspec.ValidationError, ValueError) as error:
            problems.append(f"the setting {name} is left out: {error}")
    return Settings(**used), tuple(problems)


def chosen_home() -> str:
    """The folder for runs that was chosen for good, or ""."""
    try:
        home = _content(settings_file()).get("home")
    except UserError:
        return ""
    return home if isinstance(home, str) else ""


def change_settings(**chosen: object) -> None:
    """Set some settings and keep all else in the file, comments and unknown keys included.

    Args:
        chosen: None takes a setting out.

    Raises:
        UserError: the file cannot be read, so the others would be lost, or cannot be written.
    """
    path = settings_file()
    _content(path)  # what cannot be read is never overwritten
    import tomlkit

    try:
        text = read_bytes(path, RECORD_LIMIT).decode()
    except UnreadableFile:
        text = _HEAD
    document = tomlkit.parse(text)
    for name, value in chosen.items():
        if value is None:
            document.pop(name, None)
        else:
            document[name] = value
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # It may be a link to where somebody keeps all of their settings.
        write_output(path, tomlkit.dumps(document).encode())
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


class _Old(msgspec.Struct, frozen=True):
    """`settings.json`; nothing else was ever kept there."""

    hide_poet: bool = False
    keep_texts: bool = True


def _content(path: Path) -> dict[str, Any]:
    """The file as it is; nothing if there is none.

    Raises:
        UserError: it cannot be read, or is not TOML.
    """
    try:
        content = read_bytes(path, RECORD_LIMIT).decode()
        import tomllib  # where there is no file, nobody waits for it

        return tomllib.loads(content)
    except UnreadableFile as error:
        if error.missing:
            return {}
        raise
    except (ValueError, RecursionError) as error:
        reason = f"it is not TOML ({error}); correct it, or delete it"
        raise UnreadableFile(path, reason) from None
