"""`tuigpt generate`: text from a checkpoint, streamed to standard output."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tuigpt.cli.flags import add_checkpoint, add_device, add_sample_settings, count, given_fields
from tuigpt.cli.live_line import waiting
from tuigpt.cli.model import marked, note, note_on_prompt, open_model
from tuigpt.cli.parser import Command, Parser
from tuigpt.config import SampleConfig
from tuigpt.errors import Setting, UserError
from tuigpt.files import write_output
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.record import find_corpus
from tuigpt.wording import one_line, symbols_shown, visible

if TYPE_CHECKING:
    from tuigpt.generation.decode import Prompt, TextGenerator
    from tuigpt.model.checkpoint import LoadedCheckpoint
    from tuigpt.text.tokenizer import Tokenizer

DIFFERENT = 1
"""Exit status when the reference text is another one."""


@dataclass(frozen=True)
class GenerateOptions:
    """What is asked for besides the text.

    Attributes:
        device: its name.
        samples: number of texts.
        window: "sliding" or "rolling".
        written: text that stands after the prompt already; its tokens keep their draws.
        verify: whether to compare with the plain loop.
        card: file for a submission, or None.
        recited: shortest copy from the corpus to report, 0 = report none.
        logprobs: how many alternatives to report for each token as JSON Lines, None = plain text.
    """

    device: str = "auto"
    samples: int = 1
    window: str = "sliding"
    written: str = ""
    verify: bool = False
    card: str | None = None
    recited: int = 0
    logprobs: int | None = None


def generate(
    home: Path, spec: str, typed_prompt: str, config: SampleConfig, options: GenerateOptions
) -> int:
    """Print the prompt as the model read it, then new text as it is drawn.

    Notes go to stderr, so that a pipe gets nothing but the text.

    Raises:
        UserError: there is no such checkpoint or device, the checkpoint is broken, or the options
            do not go together.
    """
    _refuse_contradictions(options)
    checkpoint, loaded = open_model(home, spec, options.device)

    from tuigpt.generation.decode import TextGenerator, read_prompt
    from tuigpt.model.device import use_few_threads

    use_few_threads()
    tokenizer = loaded.tokenizer
    prompt = read_prompt(typed_prompt, tokenizer)
    note_on_prompt(prompt, typed_prompt)
    forced_ids = _forced_ids(options.written, tokenizer)
    generator = TextGenerator(
        loaded.model,
        prompt.ids,
        config,
        samples=options.samples,
        window=options.window,
        forced_ids=forced_ids,
    )
    size, length = loaded.model.config.block_size, len(prompt.ids) + len(forced_ids)
    if length > size:
        note(f"the model sees the last {size} of {length:,} tokens")
    if config.top_k >= tokenizer.vocab_size:
        note(f"--top-k {config.top_k}: the model knows {tokenizer.vocab_size}, so it is off")
    if options.window == "rolling" and length + config.max_new_tokens - len(forced_ids) > size + 1:
        note(f"a rolling window: past {size} tokens this is not the workshop's text")

    texts = _write(generator, prompt, forced_ids, tokenizer, options)
    if options.recited:
        for ids in texts:
            _report_copies(
                checkpoint.path, loaded, tokenizer.decode(ids), options.recited, cache_dir(home)
            )
    if options.verify or options.card:
        for number, ids in enumerate(texts):
            alone = replace(config, seed=_seed(config, number))
            if not _verified(loaded, prompt, alone, ids):
                return DIFFERENT
    if options.card:
        text = prompt.text + tokenizer.decode(texts[0])
        path, vocab_size = Path(options.card), tokenizer.vocab_size
        _write_card(path, text, checkpoint, home, prompt, config, vocab_size)
    return 0


def _refuse_contradictions(options: GenerateOptions) -> None:
    if options.card and options.samples != 1:
        raise UserError(
            Setting("card"), " is for one text, but ", Setting("samples"),
            " asks for more; pick one by its seed",
        )  # fmt: skip
    for setting, used in (
        (Setting("window", "rolling"), options.window == "rolling"),
        (Setting("written"), options.written),
    ):
        if used and (options.verify or options.card):
            raise UserError(setting, " writes another text than the workshop's: nothing to verify")


def _forced_ids(written: str, tokenizer: Tokenizer) -> list[int]:
    kept, dropped = tokenizer.split_unknown(written)
    if dropped:
        raise UserError(
            Setting("written"), f" holds what the model does not know: {symbols_shown(dropped)}"
        )
    return [int(token) for token in tokenizer.encode(kept)]


def _seed(config: SampleConfig, sample: int) -> int:
    return (config.seed + sample) % 2**63


def _write(
    generator: TextGenerator,
    prompt: Prompt,
    forced_ids: list[int],
    tokenizer: Tokenizer,
    options: GenerateOptions,
) -> list[list[int]]:
    """Put the texts out as they come, and give their tokens, forced ones included."""
    shown = visible if sys.stdout.isatty() else str
    texts: list[list[int]] = [list(forced_ids) for _ in range(options.samples)]
    streamed = options.samples == 1 and options.logprobs is None
    stream = tokenizer.stream()
    if streamed:
        _put(shown(prompt.text + tokenizer.decode(forced_ids)))
    try:
        for tokens in generator:
            for ids, token in zip(texts, tokens, strict=True):
                ids.append(token)
            if streamed:
                _put(shown(stream.push(tokens)))
            elif options.logprobs is not None:
                _put_logprobs(generator, tokens, tokenizer, options.logprobs)
    finally:
        if streamed:
            _put(shown(stream.flush()) + "\n")
    if options.samples > 1 and options.logprobs is None:
        for number, ids in enumerate(texts):
            heading = "" if number == 0 else "\n"
            heading += f"--- seed {_seed(generator.config, number)}\n"
            _put(f"{heading}{shown(prompt.text + tokenizer.decode(ids))}\n")
    return texts


def _put_logprobs(
    generator: TextGenerator, tokens: list[int], tokenizer: Tokenizer, top: int
) -> None:
    from tuigpt.generation.logprobs import logprobs

    assert generator.logits is not None
    for sample, token in enumerate(tokens):
        found = logprobs(generator.logits[sample], token, generator.config, top, tokenizer)
        place = {"sample": sample, "at": generator.written - 1}
        _put(json.dumps(place | msgspec.to_builtins(found)) + "\n")


def _report_copies(
    path: Path, loaded: LoadedCheckpoint, text: str, at_least: int, cache: Path
) -> None:
    from tuigpt.generation.copies import copies

    with waiting("looking for copies"):
        found = copies(find_corpus(path, loaded.header.corpus), text, at_least, cache)
    note(
        f"{found.share:.0%} stands in {one_line(found.corpus)!r}, in copies of {at_least} and more"
        " characters"
    )
    if sys.stderr.isatty():
        if found.copies:
            print(f"\n{marked(text, found, sys.stderr)}\n", file=sys.stderr)
        return
    for copy in found.copies:
        part = one_line(text[copy.start : copy.start + copy.length])
        note(f"  line {copy.line:,}: {part!r}")


def _verified(
    loaded: LoadedCheckpoint, prompt: Prompt, config: SampleConfig, ids: list[int]
) -> bool:
    from tuigpt.generation.judge import verify

    with waiting("writing it again with the plain loop"):
        place = verify(loaded, prompt.ids, config, ids)
    if place is None:
        note(f"verified, seed {config.seed}: the plain loop writes the same {len(ids):,} tokens")
        return True
    note(f"seed {config.seed}: the plain loop writes another text from token {place + 1:,} on")
    return False


def _write_card(
    path: Path,
    text: str,
    checkpoint: Checkpoint,
    home: Path,
    prompt: Prompt,
    config: SampleConfig,
    vocab_size: int,
) -> None:
    from tuigpt.generation.card import card, file_sha256, tuigpt_command, workshop_command

    command = tuigpt_command(checkpoint, home, prompt.text, config)
    theirs = workshop_command(f"{checkpoint.path.stem}.pt", prompt.text, config, vocab_size)
    try:
        sha256 = file_sha256(checkpoint.path)
        content = card(text, command, theirs, checkpoint.path, sha256)
        write_output(path, content.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    note(f"wrote {str(path)!r}")


def _put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _add_flags(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.flag("--prompt", default="", metavar="TEXT", help="text to continue")
    parser.flag(
        "--written", default="", metavar="TEXT",
        help="text that stands after the prompt already: continue, or branch off, from there",
    )  # fmt: skip
    parser.flag(
        "--samples", default="1", metavar="N",
        help="write N texts side by side, with the seeds from --seed on (default 1)",
    )  # fmt: skip
    parser.flag(
        "--window", default="sliding", metavar="sliding|rolling",
        help="past the model's context: sliding is the workshop's text, rolling is quick and"
        " endless (default sliding)",
    )  # fmt: skip
    add_device(parser)
    add_sample_settings(parser)
    checks = parser.add_argument_group("checks and reports")
    parser.flag(
        "--verify", group=checks, action="store_true",
        help="write it again with the plain loop, and compare token by token",
    )  # fmt: skip
    parser.flag(
        "--card", group=checks, metavar="FILE",
        help="verify, then write text and commands to FILE, to submit",
    )  # fmt: skip
    parser.flag(
        "--recited", group=checks, default="0", metavar="N",
        help="report which parts of N and more characters are copied from the training text",
    )  # fmt: skip
    parser.flag(
        "--logprobs", "--probs", group=checks, metavar="N",
        help="print JSON Lines instead: each token with its probability, rank and N alternatives",
    )  # fmt: skip


def _run(options: Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))
    asked = GenerateOptions(
        device=options.device,
        samples=count("samples", options.samples, 1),
        window=options.window,
        written=options.written,
        verify=options.verify,
        card=options.card,
        recited=count("recited", options.recited, 0),
        logprobs=None if options.logprobs is None else count("logprobs", options.logprobs, 0),
    )
    return generate(home_dir(options.home), options.checkpoint, options.prompt, config, asked)


COMMANDS = {
    "generate": Command(
        usage="CHECKPOINT [flags]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            'tuigpt generate poet --prompt "To be"',
            "tuigpt generate poems@best --temperature 0.5 --seed 7",
            "tuigpt generate poems --samples 20",
        ),
    )
}
