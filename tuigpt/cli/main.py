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
    GPTConfig,
    SampleConfig,
    TrainConfig,
    parse_field,
    train_defaults,
)
from tuigpt.errors import ConfigError, Setting, UserError
from tuigpt.paths import home_dir
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES
from tuigpt.wording import one_line

BAD_INPUT = 2
"""Exit status when the user asked for something that cannot be done as asked."""

_CHECKPOINT = "a file, RUN, RUN@STEP or RUN@best; poet is the built-in model"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"tuigpt: {one_line(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; a `UserError` becomes one line on stderr."""
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()  # here, where a reader that has gone is no error
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output is gone (`| head`); keep Python's exit from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(given: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a generated text may hold any character
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    flags_end = given.index("--") if "--" in given else len(given)
    flags = [_with_hyphens(argument) for argument in given[:flags_end]]
    arguments = [*flags, *given[flags_end:]]
    options = _parser().parse_args(arguments)
    options.arguments = arguments
    try:
        return int(options.run(options))
    except UserError as error:
        print(f"tuigpt: {one_line(error.spelled(_as_flag))}", file=sys.stderr)
        return BAD_INPUT


def _as_flag(setting: Setting) -> str:
    flag = f"--{setting.name.replace('_', '-')}"
    return flag if setting.value is None else f"{flag} {setting.value}"


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
    _add_text(train)
    train.add_argument("--name", help="name of the run (default: from text and preset)")
    train.add_argument("--resume", metavar="RUN", help="go on with a run that was stopped")
    train.add_argument(
        "--from", dest="origin", metavar="CHECKPOINT",
        help="begin with a checkpoint's weights instead of new ones",
    )  # fmt: skip
    train.add_argument(
        "--nproc", default="1", metavar="N",
        help="share each batch among N processes of this machine, such as one for each GPU",
    )  # fmt: skip
    train.add_argument("--log-file", help=argparse.SUPPRESS)
    _add_settings(train)

    inspect = commands.add_parser(
        "inspect", parents=[home], help="tell what a text holds, as train would read it"
    )
    inspect.set_defaults(run=_run_inspect)
    _add_text(inspect)
    inspect.add_argument("--json", action="store_true", help="JSON lines, for programs")
    inspect.add_argument("--fetch", action="store_true", help=argparse.SUPPRESS)
    _add_settings(inspect)

    estimate = commands.add_parser(
        "estimate", parents=[home], help="tell what a training would cost, before it starts"
    )
    estimate.set_defaults(run=_run_estimate)
    _add_text(estimate)
    estimate.add_argument("--json", action="store_true", help="print one JSON object instead")
    _add_settings(estimate)

    generate = commands.add_parser("generate", parents=[home], help="write text from a checkpoint")
    generate.set_defaults(run=_run_generate)
    generate.add_argument("checkpoint", metavar="CHECKPOINT", help=_CHECKPOINT)
    generate.add_argument("--prompt", default="", help="text to go on from")
    generate.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    _add_fields(generate, SampleConfig)
    generate.add_argument(
        "--samples", default="1", metavar="N",
        help="write N texts side by side, with the seeds from --seed on (default 1)",
    )  # fmt: skip
    generate.add_argument(
        "--window", default="sliding", metavar="sliding|rolling",
        help="past the model's context: sliding is the workshop's text, rolling is quick and"
        " endless (default sliding)",
    )  # fmt: skip
    generate.add_argument(
        "--written", default="", metavar="TEXT",
        help="text that stands after the prompt already: go on, or branch off, from there",
    )  # fmt: skip
    generate.add_argument(
        "--verify", action="store_true",
        help="write it again with the plain loop, and compare letter by letter",
    )  # fmt: skip
    generate.add_argument(
        "--card", metavar="FILE", help="verify, then write text and commands to FILE, to submit"
    )
    generate.add_argument(
        "--recited", default="0", metavar="N",
        help="tell which parts of N and more characters are copied from the training text",
    )  # fmt: skip
    generate.add_argument(
        "--probs", metavar="N",
        help="print JSON Lines instead: each token with its probability, rank and N alternatives",
    )  # fmt: skip

    generate.add_argument(
        "--steer", action="store_true",
        help="let lines on standard input, such as temperature 0.3 or top_k 5, change the settings"
        " from the next token on",
    )  # fmt: skip

    score = commands.add_parser(
        "score", parents=[home], help="tell how surprising a text is to a model"
    )
    score.set_defaults(run=_run_score)
    _add_judge(score, "FILE", "a UTF-8 text file, or - for standard input")

    following = commands.add_parser(
        "next", parents=[home], help="show what could come next, as learned and as drawn"
    )
    following.set_defaults(run=_run_next)
    _add_judge(following, None, "")
    following.add_argument("--prompt", default="", help="text to go on from")
    _add_fields(following, SampleConfig, leave_out={"max_new_tokens"})

    recite = commands.add_parser(
        "recite", parents=[home], help="find what a text copies from a model's training text"
    )
    recite.set_defaults(run=_run_recite)
    _add_judge(recite, "FILE", "a UTF-8 text file, or - for standard input")
    recite.add_argument(
        "--at-least", default="20", metavar="N", help="shortest copy that counts (default 20)"
    )

    runs = commands.add_parser("list", parents=[home], help="list runs and their checkpoints")
    runs.set_defaults(run=_run_list)
    runs.add_argument("name", nargs="?", metavar="RUN", help="only this run")
    poet = runs.add_mutually_exclusive_group()
    poet.add_argument(
        "--hide-poet", dest="hide_poet", action="store_true", default=None,
        help="leave the built-in model out of this list and the app's, from now on",
    )  # fmt: skip
    poet.add_argument(
        "--show-poet", dest="hide_poet", action="store_false", default=None,
        help="have it in the lists again",
    )  # fmt: skip

    cache = commands.add_parser(
        "cache", parents=[home], help="show what is kept to save time, or clear it"
    )
    cache.set_defaults(run=_run_cache)
    cache.add_argument("action", nargs="?", choices=["show", "clear"], default="show")

    stop = commands.add_parser("stop", parents=[home], help="ask a run to save and stop")
    stop.set_defaults(run=_run_stop)
    stop.add_argument("name", metavar="RUN")

    ask = commands.add_parser("ask", parents=[home], help="ask something else of a run at work")
    ask.set_defaults(run=_run_ask)
    ask.add_argument("name", metavar="RUN")
    ask.add_argument(
        "action", metavar="ACTION",
        help="pause, resume, sample, checkpoint, stop, discard (stop, and delete the run), or"
        " learning-rate or dropout with the new VALUE",
    )  # fmt: skip
    ask.add_argument("value", nargs="?", metavar="VALUE")
    return parser


def _add_text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT",
        help="text files or folders, joined in this order; or shakespeare, the built-in text"
        " (default), or tinyshakespeare, which is fetched",
    )  # fmt: skip


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", choices=sorted(PRESETS), help=f"size of the model (default {DEFAULT_PRESET})"
    )
    _add_fields(parser, GPTConfig, leave_out={"vocab_size"}, default="the preset's")
    _add_fields(parser, TrainConfig)


def _add_judge(parser: argparse.ArgumentParser, file: str | None, explanation: str) -> None:
    """What the commands share that look at a text with a model."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help=_CHECKPOINT)
    if file:
        parser.add_argument("file", metavar=file, help=explanation)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


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
        flag = f"--{entry.name.replace('_', '-')}"
        if entry.type is bool:
            help_text = entry.metadata["help"]
            parser.add_argument(flag, action="store_const", const="yes", help=help_text)
            continue
        shown = default if default and entry.name != "dropout" else _shown(config, entry)
        parser.add_argument(
            flag,
            dest=entry.name,
            metavar="|".join(RECIPES) if entry.name == "recipe" else _metavar(entry),
            help=f"{entry.metadata['help']} (default {shown})".replace("%", "%%"),
        )


def _metavar(entry: Field[object]) -> str:
    return "N" if entry.type is int else "X" if entry.type is float else "TEXT"


def _shown(config: type, entry: Field[object]) -> str:
    """The default in words; where it depends on the recipe, for each."""
    if config is not TrainConfig or entry.name == "recipe":
        return DEFAULT_RECIPE if entry.name == "recipe" else _value_shown(entry.default)
    values = {}
    for recipe in RECIPES:
        value, on_cuda = (train_defaults(recipe, kind)[entry.name] for kind in ("cpu", "cuda"))
        values[recipe] = _value_shown(value)
        if on_cuda != value:
            values[recipe] += f" (on cuda {_value_shown(on_cuda)})"
    if len(set(values.values())) == 1:
        return values[DEFAULT_RECIPE]
    return ", ".join(f"{recipe}: {value}" for recipe, value in values.items())


def _value_shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else f"{value:g}"


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
    from tuigpt.cli.app import run

    return run(home_dir(options.home))


def _spin_briefly() -> None:
    """Let threads that wait for each other spin only for microseconds before they sleep.

    On two cores with other work, spinning on costs a training most of its speed; sleeping at once
    costs a small model a quarter of it when there is none.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _run_train(options: argparse.Namespace) -> int:
    _spin_briefly()
    nproc = _count("nproc", options.nproc, 1)
    train_fields = given_fields(options, TrainConfig)
    if nproc > 1 and "RANK" not in os.environ:
        from tuigpt.training.nproc import run as run_together

        return run_together(nproc, str(train_fields.get("device", "auto")), options.arguments)

    from tuigpt.training.process import run

    return run(
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


def _run_inspect(options: argparse.Namespace) -> int:
    from tuigpt.cli.inspect import run

    return run(
        home=home_dir(options.home),
        sources=options.text,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=given_fields(options, TrainConfig),
        as_json=options.json,
        fetch=options.fetch,
    )


def _run_estimate(options: argparse.Namespace) -> int:
    _spin_briefly()  # as when training, or times would differ
    from tuigpt.cli.estimate import run

    return run(
        home=home_dir(options.home),
        sources=options.text,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=given_fields(options, TrainConfig),
        as_json=options.json,
    )


def _run_cache(options: argparse.Namespace) -> int:
    from tuigpt.cli.cache import run

    return run(home_dir(options.home), options.action == "clear")


def _run_generate(options: argparse.Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))  # type: ignore[arg-type]
    samples = _count("samples", options.samples, 1)
    recited = _count("recited", options.recited, 0)
    probs = None if options.probs is None else _count("probs", options.probs, 0)

    from tuigpt.cli.generate import Wishes, run

    wishes = Wishes(
        device=options.device,
        samples=samples,
        window=options.window,
        written=_as_typed(options.written),
        verify=options.verify,
        card=options.card,
        recited=recited,
        probs=probs,
        steer=options.steer,
    )
    prompt = _as_typed(options.prompt)
    return run(home_dir(options.home), options.checkpoint, prompt, config, wishes)


def _run_score(options: argparse.Namespace) -> int:
    from tuigpt.cli.judge import run_score

    home = home_dir(options.home)
    return run_score(home, options.checkpoint, options.file, options.device, options.json)


def _run_next(options: argparse.Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))  # type: ignore[arg-type]

    from tuigpt.cli.judge import run_next

    home = home_dir(options.home)
    return run_next(home, options.checkpoint, options.prompt, config, options.device, options.json)


def _run_recite(options: argparse.Namespace) -> int:
    at_least = _count("at-least", options.at_least, 1)

    from tuigpt.cli.judge import run_recite

    return run_recite(
        home_dir(options.home), options.checkpoint, options.file, at_least, options.json
    )


def _as_typed(text: str) -> str:
    """A text from the command line as UTF-8, also where the locale made Python read it as ASCII."""
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        return text


def _count(name: str, text: str, at_least: int) -> int:
    """Read a whole number that is no field of a configuration."""
    if not text.strip().isdecimal() or int(text) < at_least:
        raise ConfigError(name, text, f"a whole number, {at_least} or more")
    return int(text)


def _run_list(options: argparse.Namespace) -> int:
    from tuigpt.cli.list_runs import run

    return run(home_dir(options.home), options.name, options.hide_poet)


def _run_stop(options: argparse.Namespace) -> int:
    from tuigpt.cli.ask import run

    return run(home_dir(options.home), options.name, "stop")


def _run_ask(options: argparse.Namespace) -> int:
    from tuigpt.cli.ask import run

    return run(home_dir(options.home), options.name, options.action, options.value)
