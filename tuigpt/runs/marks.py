"""What a user has marked in a run: stars and notes, kept beside the checkpoints in `marks.json`.

A checkpoint that exists is never written again, so its marks cannot stand in its header.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.errors import UserError
from tuigpt.files import Count, UnreadableFile, Word, read_record, write_json

MARKS_FILE = "marks.json"

LONGEST_NOTE = 500
"""Characters."""


class Marks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Attributes:
    stars: steps that are starred; thinning spares them.
    notes: by step.
    note: of the run as a whole.
    """

    stars: Annotated[list[Count], msgspec.Meta(max_length=10_000)] = []
    notes: Annotated[dict[Count, Word], msgspec.Meta(max_length=10_000)] = {}
    note: Word = ""


def read_marks(folder: Path) -> Marks:
    """A run's marks; none where there is no file, or one that cannot be read."""
    try:
        return read_record(folder / MARKS_FILE, Marks)
    except UnreadableFile:
        return Marks()


def star(folder: Path, steps: list[int], starred: bool) -> None:
    """Star checkpoints of a run, or take their stars away.

    Raises:
        UserError: it cannot be written down.
    """
    marks = _to_change(folder)
    stars = set(marks.stars) | set(steps) if starred else set(marks.stars) - set(steps)
    _write(folder, msgspec.structs.replace(marks, stars=sorted(stars)))


def note(folder: Path, step: int | None, text: str) -> None:
    """Note something on a checkpoint, or on the run where `step` is None; "" takes it away.

    Raises:
        UserError: it cannot be written down.
    """
    marks, text = _to_change(folder), text[:LONGEST_NOTE]
    if step is None:
        marks = msgspec.structs.replace(marks, note=text)
    else:
        notes = {at: words for at, words in (marks.notes | {step: text}).items() if words}
        marks = msgspec.structs.replace(marks, notes=notes)
    _write(folder, marks)


def _to_change(folder: Path) -> Marks:
    """The marks as they are. A file that cannot be read is not replaced: it may hold more."""
    try:
        return read_record(folder / MARKS_FILE, Marks)
    except UnreadableFile as error:
        if error.missing:
            return Marks()
        raise


def _write(folder: Path, marks: Marks) -> None:
    try:
        write_json(folder / MARKS_FILE, marks)
    except OSError as error:
        path = str(folder / MARKS_FILE)
        raise UserError(f"cannot write {path!r}: {error.strerror or error}") from None
