"""`tuigpt import`: models of other programs become a run."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace

from tuigpt.cli.model import note
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.cli.progress import ProgressLine
from tuigpt.paths import cache_dir, home_dir, user_path
from tuigpt.wording import one_line


def _add_flags(parser: Parser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=filled, metavar="PATH",
        help="checkpoints of one training: the workshop's or nanoGPT's .pt files, a folder of them,"
        " or a folder with Hugging Face's GPT-2; a loss_log.json beside them becomes the curve",
    )  # fmt: skip
    parser.flag(
        "--name", type=filled, metavar="RUN",
        help="what the new run is called (default: after the folder)",
    )  # fmt: skip
    vocabulary = parser.add_mutually_exclusive_group()
    parser.flag(
        "--text", group=vocabulary, type=filled, metavar="TEXT",
        help="the text that it was trained on: its characters are the vocabulary where the files"
        " hold none, and recite finds what is copied from it",
    )  # fmt: skip
    parser.flag(
        "--meta", group=vocabulary, type=filled, metavar="FILE",
        help="nanoGPT's meta.pkl (default: the one beside ckpt.pt)",
    )  # fmt: skip


def _run(options: Namespace) -> int:
    home = home_dir(options.home)

    from tuigpt.model.formats.importing import import_models

    with ProgressLine(sys.stderr) as progress:
        imported = import_models(
            [user_path(path) for path in options.paths],
            home,
            cache=cache_dir(home),
            name=options.name,
            text=options.text,
            meta=None if options.meta is None else user_path(options.meta),
            progress=progress,
        )
    for line in imported.notes:
        note(one_line(line))
    steps = imported.steps
    count = "1 checkpoint" if len(steps) == 1 else f"{len(steps):,} checkpoints"
    span = f"step {steps[0]:,}" if len(steps) == 1 else f"steps {steps[0]:,} to {steps[-1]:,}"
    curve = ", with their loss_log.json" if imported.curve else ""
    print(f"{imported.run}: {count} of {imported.program} ({span}){curve}")
    print(f"write with it: tuigpt generate {shlex.quote(imported.run)}")
    return 0


COMMANDS = {
    "import": Command(
        usage="PATH... [--name RUN] [--text TEXT | --meta FILE]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt import checkpoint_*.pt --name workshop",
            "tuigpt import out/ckpt.pt --meta data/shakespeare_char/meta.pkl",
            "tuigpt import my-gpt2/",
        ),
    )
}
