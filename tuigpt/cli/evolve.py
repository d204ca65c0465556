"""`tuigpt evolve`: the same prompt and the same seed at every kept step of a run."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from tuigpt.cli.flags import add_device, add_sample_settings, given_fields
from tuigpt.cli.ink import Ink
from tuigpt.cli.live_line import waiting
from tuigpt.cli.model import note_on_prompt
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.growth import LENGTH, SHORTEST_COPY, new_parts
from tuigpt.runs.header import read_header
from tuigpt.runs.names import find_model
from tuigpt.runs.record import find_corpus
from tuigpt.wording import val_text, visible


def evolve(home: Path, name: str, prompt: str, config: SampleConfig, device: str) -> int:
    """Print what each checkpoint of a run writes, the oldest first.

    In colours, what is new against the checkpoint before is marked.

    Raises:
        UserError: there is no such run, it has no checkpoint, or one cannot be used.
    """
    run = find_model(name, home)
    steps = [checkpoint for checkpoint in run.checkpoints if not checkpoint.problem]
    if not steps:
        raise UserError(f"run {name!r} has no checkpoint yet")
    with waiting("waking the models"):
        from tuigpt.generation.copies import copies
        from tuigpt.generation.decode import TextGenerator, read_prompt
        from tuigpt.generation.judge import open_checkpoint
        from tuigpt.model.device import resolve_device, use_few_threads

        where = resolve_device(device)
    use_few_threads()
    ink = Ink(sys.stdout)
    before: str | None = None
    for number, checkpoint in enumerate(steps):
        loaded = open_checkpoint(checkpoint.path, where)
        read = read_prompt(prompt, loaded.tokenizer)
        if not number:
            note_on_prompt(read, prompt)
        ids = [
            token for tokens in TextGenerator(loaded.model, read.ids, config) for token in tokens
        ]
        text = loaded.tokenizer.decode(ids)
        star = " ★" if checkpoint == run.best else ""
        val = val_text(checkpoint.val_loss, checkpoint.early_val_loss)
        heading = f"step {checkpoint.step:,}  val {val}{star}"
        try:
            corpus = find_corpus(checkpoint.path, read_header(checkpoint.path).corpus)
            share = copies(corpus, text, SHORTEST_COPY, cache_dir(home)).share
            heading += f"  {share:.0%} copied"
        except UserError:  # the text is not on this machine
            pass
        print(f"── {heading}\n{_shown(ink, read.text, text, before)}\n", flush=True)
        before = text
    return 0


def _shown(ink: Ink, prompt: str, text: str, before: str | None) -> str:
    """A text as the stream shows it, with what is new in it marked where there are colours."""
    if not sys.stdout.isatty():
        return (prompt + text).rstrip()
    rows = [visible(prompt)]
    for part, is_new in new_parts(text if before is None else before, text):
        lines = visible(part).split("\n")
        rows.append("\n".join(ink.paint(line, "fresh") if is_new else line for line in lines))
    return "".join(rows).rstrip()


def _add_flags(parser: Parser) -> None:
    parser.add_argument("name", type=filled, metavar="RUN", help="a run, or poet")
    parser.flag("--prompt", default="", metavar="TEXT", help="beginning of each text")
    add_device(parser)
    add_sample_settings(parser)


def _run(options: Namespace) -> int:
    config = SampleConfig(**{"max_new_tokens": LENGTH} | given_fields(options, SampleConfig))
    return evolve(home_dir(options.home), options.name, options.prompt, config, options.device)


COMMANDS = {
    "evolve": Command(
        usage="RUN [--prompt TEXT] [flags]",
        add_flags=_add_flags,
        run=_run,
        examples=('tuigpt evolve poems --prompt "The sea"', "tuigpt evolve poems --seed 7"),
    ),
}
