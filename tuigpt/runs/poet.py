"""The poet: the model that ships with tuigpt, as a finished run without a folder of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import UnreadableFile, read_record
from tuigpt.paths import asset
from tuigpt.runs.folder import POET, Run, is_run, read_checkpoint
from tuigpt.runs.record import RunRecord
from tuigpt.runs.status import RunStatus
from tuigpt.settings import change_settings, read_settings


def open_poet() -> Run:
    """The built-in model, as a finished run of one checkpoint.

    Raises:
        UserError: this installation lacks it, or its files are broken.
    """
    path, about = poet_files()
    try:
        checkpoint = replace(read_checkpoint(path, run=POET), built_in=True)
        record = read_record(about, RunRecord)
    except OSError as error:
        raise _missing_poet(str(error.filename)) from None
    except UnreadableFile as error:
        if error.missing:
            raise _missing_poet(str(error.path)) from None
        raise _broken_poet(about, error.reason) from None
    if checkpoint.problem:
        raise _broken_poet(path, checkpoint.problem)
    status = RunStatus("finished", checkpoint.step, checkpoint.step)
    return Run(path.with_suffix(""), record, status, (checkpoint,), built_in=True)


def poet_files() -> tuple[Path, Path]:
    """Its checkpoint and its record, whether they are there or not."""
    return asset(f"{POET}.safetensors"), asset(f"{POET}-run.json")


def _missing_poet(path: str) -> UserError:
    return UserError(
        f"the built-in {POET} is not in this installation, {path!r} is missing: install tuigpt"
        " anew, or train a model with `tuigpt train`"
    )


def _broken_poet(path: Path, reason: str) -> UserError:
    return UserError(
        f"the built-in {POET} cannot be opened, {str(path)!r}: {reason}; install tuigpt anew"
    )


def listed_poet(home: Path) -> Run | None:
    """The built-in model, where lists show it.

    Left out are one that the user hid, one that cannot be opened, and one whose name an older
    home has given to a run: the run keeps the name.
    """
    if poet_is_hidden(home) or is_run(POET, home):
        return None
    try:
        return open_poet()
    except UserError:
        return None


def poet_is_hidden(home: Path) -> bool:
    """Whether the user wants no list to show the built-in model."""
    return read_settings(home).hide_poet


def hide_poet(hidden: bool) -> None:
    """Leave the built-in model out of every list from now on, or have it back.

    Raises:
        UserError: the settings cannot be written.
    """
    change_settings(hide_poet=hidden)
