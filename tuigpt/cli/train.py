"""`tuigpt train`: the trainer, whether a person or the app starts it."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace

from tuigpt.cli.flags import add_essentials, add_settings, add_text, count, given_fields
from tuigpt.cli.live_line import waiting
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.paths import home_dir


def _add_flags(parser: Parser) -> None:
    add_text(parser)
    first = add_essentials(parser)
    parser.flag(
        "--name", group=first, type=filled, help="name of the run (default: from text and preset)"
    )
    run = parser.add_argument_group("run")
    parser.flag(
        "--resume", group=run, type=filled, metavar="RUN",
        help="resume a run that was stopped, or one that is finished with more steps",
    )  # fmt: skip
    parser.flag(
        "--from", group=run, type=filled, dest="origin", metavar="CHECKPOINT",
        help="begin with a checkpoint's weights instead of new ones",
    )  # fmt: skip
    parser.flag(
        "--nproc", group=run, default="1", metavar="N",
        help="share each batch among N processes of this machine, such as one for each GPU",
    )  # fmt: skip
    parser.flag(
        "--json", group=run, action="store_true",
        help="print JSON Lines for programs instead (docs/formats.md says which)",
    )  # fmt: skip
    parser.flag("--log-file", help=SUPPRESS)
    add_settings(parser)


def _run(options: Namespace) -> int:
    nproc = count("nproc", options.nproc, 1)
    train_fields = given_fields(options, TrainConfig)
    if nproc > 1 and "RANK" not in os.environ:
        from tuigpt.training.nproc import run as run_together

        return run_together(nproc, str(train_fields.get("device", "auto")), options.arguments)

    with waiting("starting"):
        from tuigpt.cli.console import Console
        from tuigpt.cli.events import Events
        from tuigpt.training.command import TrainCommand
        from tuigpt.training.process import run

    command = TrainCommand(
        home=home_dir(options.home),
        sources=options.text,
        name=options.name,
        resume=options.resume,
        origin=options.origin,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=train_fields,
        log_file=options.log_file,
    )
    return run(command, (Events if options.json else Console)(sys.stdout))


COMMANDS = {
    "train": Command(
        usage="[TEXT …] [flags]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt train                               # Shakespeare, for five minutes",
            "tuigpt train poems.txt --minutes 15        # the best that they can make",
            "tuigpt train --resume poems                # after a stop",
            "tuigpt train more.txt --from poems@best    # a new run from its weights",
        ),
    )
}
