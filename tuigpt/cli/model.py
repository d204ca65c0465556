"""What the commands that use a model share: waking it, reading texts for it, and notes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tuigpt.cli.ink import Ink
from tuigpt.cli.live_line import waiting
from tuigpt.errors import UserError
from tuigpt.generation.protocol import Copies
from tuigpt.runs.folder import Checkpoint, open_run
from tuigpt.runs.names import find_checkpoint, passed_over
from tuigpt.wording import file_size, symbols_shown, visible, with_line_feeds

if TYPE_CHECKING:
    from tuigpt.generation.decode import Prompt
    from tuigpt.model.checkpoint import LoadedCheckpoint

LONGEST_TEXT = 32_000_000
"""Bytes of the longest text that is judged; all of it is held in memory, several times."""


def note(message: str) -> None:
    """Tell the user something that is not part of the output."""
    print(f"tuigpt: {message}", file=sys.stderr)


def note_on_prompt(prompt: Prompt, typed: str) -> None:
    """Tell where the prompt is not what the user typed."""
    if prompt.dropped:
        note(f"the model does not know {symbols_shown(prompt.dropped)}: left out of the prompt")
    if len(prompt.dropped) == len(set(typed)):
        note(f"no prompt to continue: started with {prompt.text!r}")


def choose_checkpoint(home: Path, spec: str) -> Checkpoint:
    """The checkpoint that the user names; a note says when newer ones are broken.

    Raises:
        UserError: there is none.
    """
    found = find_checkpoint(spec, home)
    if passed_over(spec, home) is not None:
        note(f"took {found.run}, not the file of that name, which is ./{spec}")
    name, _, which = spec.partition("@")
    if found.run == name and which in ("", "last") and not found.built_in:
        for other in open_run(found.path.parent.parent).checkpoints:
            if other.problem and other.step > found.step:
                note(f"{other.label} cannot be opened ({other.problem}): took {found.label}")
    return found


def open_model(home: Path, spec: str, device: str) -> tuple[Checkpoint, LoadedCheckpoint]:
    """Find a checkpoint and load it.

    Raises:
        UserError: there is no such checkpoint or device, or the checkpoint is broken.
    """
    found = choose_checkpoint(home, spec)
    with waiting("waking the model"):
        from tuigpt.generation.judge import open_checkpoint
        from tuigpt.model.device import resolve_device

        return found, open_checkpoint(found.path, resolve_device(device))


def marked(text: str, found: Copies, stream: TextIO) -> str:
    """A text with each copy between brackets, and coloured where the stream has colours."""
    ink = Ink(stream)
    shown = visible if stream.isatty() else str
    parts, end = [], 0
    for copy in found.copies:
        start, stop = copy.start, copy.start + copy.length
        rows = shown(text[start:stop]).split("\n")
        parts += [
            shown(text[end:start]), "⟦", "\n".join(ink.paint(row, "copy") for row in rows), "⟧",
        ]  # fmt: skip
        end = stop
    return "".join([*parts, shown(text[end:])]).strip("\n")


def read_text(file: str) -> str:
    """The characters of a text file, read as a training text is; `-` is standard input.

    Raises:
        UserError: it cannot be read, or is too long to be judged at once.
    """
    if file != "-":
        from tuigpt.text.read import open_files

        text = open_files(file, [file])
        if text.size > LONGEST_TEXT:
            raise _too_long(file)
        return "".join(text.chunks())
    content = sys.stdin.buffer.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise _too_long("standard input")
    return with_line_feeds(content.decode("utf-8", "replace"))


def _too_long(name: str) -> UserError:
    return UserError(f"{name} is longer than {file_size(LONGEST_TEXT)}: judge it in parts")
