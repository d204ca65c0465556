"""The command line: one command, `tuigpt`, with sub-commands.

Each sub-command's module is imported only when it is called, so that `tuigpt --help` and the
app's first frame wait for neither torch nor numpy.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import NoReturn

from tuigpt import __version__
from tuigpt.config import (
    DEFAULT_PRESET,
    PRESETS,
    RECIPES,
    GPTConfig,
    SampleConfig,
    TrainConfig,
    UserError,
    parse_field,
)
from tuigpt.paths import home_dir

BAD_INPUT = 2
"""Exit status when the user asked for something that cannot be done as asked."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"tuigpt: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; a `UserError` becomes one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a generated text may hold any character
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args([_with_hyphens(argument) for argument in given])
    try:
        return int(options.run(options))
    except UserError as error:
        print(f"tuigpt: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output is gone (`| head`); keep Python's exit from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _with_hyphens(argument: str) -> str:
    """Let the workshop's spelling `--max_new_tokens` stand for `--max-new-tokens`."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else argument


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tuigpt",
        description="Train a small GPT in the terminal, watch it learn, prompt it.",
        epilog="Without a command, tuigpt opens the app.",
    )
    parser.add_argument("--version", action="version", version=f"tuigpt {__version__}")
    parser.set_defaults(run=_run_app)
    home = _Parser(add_help=False)
    home.add_argument(
        "--home", default=argparse.SUPPRESS, metavar="FOLDER",
        help="where runs are kept (else $TUIGPT_HOME, else the user's data folder)",
    )  # fmt: skip
    parser.add_argument("--home", default=None, metavar="FOLDER", help="where runs are kept")
    commands = parser.add_subparsers(title="commands", parser_class=_Parser, metavar="")

    train = commands.add_parser("train", parents=[home], help="train a model on a text")
    train.set_defaults(run=_run_train)
    train.add_argument(
        "text", nargs="*", metavar="TEXT",
        help="text files or folders, joined in this order; or shakespeare, the built-in text"
        " (default), or tinyshakespeare, which is fetched",
    )  # fmt: skip
    train.add_argument("--name", help="name of the run (default: from text and preset)")
    train.add_argument("--resume", metavar="RUN", help="go on with a run that was stopped")
    train.add_argument(
        "--preset", choices=sorted(PRESETS), help=f"size of the model (default {DEFAULT_PRESET})"
    )
    train.add_argument("--log-file", help=argparse.SUPPRESS)
    _add_fields(train, GPTConfig, leave_out={"vocab_size"}, default="the preset's")
    _add_fields(train, TrainConfig)

    generate = commands.add_parser("generate", parents=[home], help="write text from a checkpoint")
    generate.set_defaults(run=_run_generate)
    generate.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="a file, RUN, RUN@STEP or RUN@best"
    )
    generate.add_argument("--prompt", default="", help="text to go on from")
    generate.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    _add_fields(generate, SampleConfig)

    runs = commands.add_parser("list", parents=[home], help="list runs and their checkpoints")
    runs.set_defaults(run=_run_list)
    runs.add_argument("name", nargs="?", metavar="RUN", help="only this run")

    stop = commands.add_parser("stop", parents=[home], help="ask a run to save and stop")
    stop.set_defaults(run=_run_stop)
    stop.add_argument("name", metavar="RUN")
    return parser


def _add_fields(
    parser: argparse.ArgumentParser,
    config: type[GPTConfig] | type[TrainConfig] | type[SampleConfig],
    leave_out: set[str] | None = None,
    default: str | None = None,
) -> None:
    """One flag for each field of a configuration, by its own name; unset flags are None."""
    for entry in fields(config):
        if entry.name in (leave_out or ()):
            continue
        shown = default if default and entry.name != "dropout" else _shown(entry)
        parser.add_argument(
            f"--{entry.name.replace('_', '-')}",
            dest=entry.name,
            metavar="|".join(RECIPES) if entry.name == "recipe" else _metavar(entry),
            help=f"{entry.metadata['help']} (default {shown})".replace("%", "%%"),
        )


def _metavar(entry: Field[object]) -> str:
    return "N" if entry.type is int else "X" if entry.type is float else "TEXT"


def _shown(entry: Field[object]) -> str:
    return repr(entry.default) if isinstance(entry.default, str) else f"{entry.default:g}"


def given_fields(options: argparse.Namespace, config: type) -> dict[str, object]:
    """The fields of a configuration that the user gave, read to their types.

    Raises:
        ConfigError: a value is not of its field's type.
    """
    return {
        entry.name: parse_field(config, entry.name, text)
        for entry in fields(config)
        if (text := getattr(options, entry.name, None)) is not None
    }


def _run_app(options: argparse.Namespace) -> int:
    from tuigpt.commands.app import run

    return run(home_dir(options.home))


def _run_train(options: argparse.Namespace) -> int:
    from tuigpt.commands.train import run

    return run(
        home=home_dir(options.home),
        sources=options.text,
        name=options.name,
        resume=options.resume,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=given_fields(options, TrainConfig),
        log_file=options.log_file,
    )


def _run_generate(options: argparse.Namespace) -> int:
    from tuigpt.commands.generate import run

    config = SampleConfig(**given_fields(options, SampleConfig))  # type: ignore[arg-type]
    return run(home_dir(options.home), options.checkpoint, options.prompt, config, options.device)


def _run_list(options: argparse.Namespace) -> int:
    from tuigpt.commands.list_runs import run

    return run(home_dir(options.home), options.name)


def _run_stop(options: argparse.Namespace) -> int:
    from tuigpt.commands.stop import run

    return run(home_dir(options.home), options.name)
