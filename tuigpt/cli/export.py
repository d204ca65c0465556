"""`tuigpt export`: a checkpoint becomes files of another program."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from tuigpt.cli.flags import add_checkpoint
from tuigpt.cli.model import choose_checkpoint, note
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.paths import home_dir, user_path
from tuigpt.wording import one_line

PROGRAMS = ("workshop", "nanogpt", "huggingface")
"""The names in `tuigpt.model.formats.exporting`, which takes torch to ask."""


def _add_flags(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.flag(
        "--to", required=True, choices=PROGRAMS, metavar="|".join(PROGRAMS),
        help="the program that is to open it",
    )  # fmt: skip
    parser.flag(
        "--output", type=filled, metavar="FOLDER",
        help="the new folder (default: named after the checkpoint, in the current folder)",
    )  # fmt: skip


def _run(options: Namespace) -> int:
    checkpoint = choose_checkpoint(home_dir(options.home), options.checkpoint)
    if options.output is None:
        name = re.sub(r"[^\w.+-]+", "-", f"{checkpoint.label}-{options.to}")
        folder = Path.cwd() / name
    else:
        folder = user_path(options.output)

    from tuigpt.model.formats.exporting import export_checkpoint

    exported = export_checkpoint(checkpoint, options.to, folder)
    for file in exported.files:
        print(exported.folder / file)
    for line in exported.notes:
        note(one_line(line))
    return 0


COMMANDS = {
    "export": Command(
        usage="CHECKPOINT --to PROGRAM [--output FOLDER]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt export poems@best --to workshop",
            "tuigpt export poems --to huggingface --output my-gpt2",
        ),
    )
}
