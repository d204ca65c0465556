"""`tuigpt export`: a checkpoint becomes files of another program."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from tuigpt.cli.model import choose_checkpoint, note
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.paths import home_dir, user_path
from tuigpt.runs.folder import Checkpoint
from tuigpt.wording import one_line

PROGRAMS = ("workshop", "nanogpt", "huggingface")
"""The names in `tuigpt.model.formats.exporting`, which takes torch to ask."""


def _add_flags(parser: Parser) -> None:
    parser.add_argument(
        "checkpoints", nargs="+", type=filled, metavar="CHECKPOINT",
        help="files, or RUN, RUN@STEP or RUN@best",
    )  # fmt: skip
    parser.flag(
        "--to", required=True, choices=PROGRAMS, metavar="|".join(PROGRAMS),
        help="the program that is to open it; GGUF is not among them, because it has no vocabulary"
        " of characters",
    )  # fmt: skip
    parser.flag(
        "--output", type=filled, metavar="FOLDER",
        help="the new folder (default: named after the checkpoint, in the current folder); of"
        " several checkpoints each has a folder in it",
    )  # fmt: skip


def _run(options: Namespace) -> int:
    home = home_dir(options.home)
    found = [choose_checkpoint(home, spec) for spec in options.checkpoints]
    places = [_folder(checkpoint, options.to) for checkpoint in found]
    if options.output is not None:
        folder = user_path(options.output)
        places = [folder / place for place in places] if len(found) > 1 else [folder]

    from tuigpt.model.formats.exporting import export_checkpoint

    for checkpoint, place in zip(found, places, strict=True):
        if len(found) > 1:
            note(f"exporting {one_line(checkpoint.label)} …")
        exported = export_checkpoint(checkpoint, options.to, place.absolute())
        for file in exported.files:
            print(exported.folder / file)
        for line in exported.notes:
            note(one_line(line))
    return 0


def _folder(checkpoint: Checkpoint, program: str) -> Path:
    return Path(re.sub(r"[^\w.+-]+", "-", f"{checkpoint.label}-{program}"))


COMMANDS = {
    "export": Command(
        usage="CHECKPOINT... --to PROGRAM [--output FOLDER]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt export poems@best --to workshop",
            "tuigpt export poems --to huggingface --output my-gpt2",
        ),
    )
}
