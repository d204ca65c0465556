"""`tuigpt generate`: text from a checkpoint, streamed to standard output."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.flags import add_checkpoint, add_device, add_sample_settings, count, given_fields
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.steering import Steering, report, standard_input
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.files import write_atomic
from tuigpt.generation.card import card, file_sha256, tuigpt_command, workshop_command
from tuigpt.generation.decode import (
    Prompt,
    Writer,
    first_difference,
    read_prompt,
    refuse_broken_weights,
)
from tuigpt.generation.logprobs import insight
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.device import resolve_device, type_name
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.names import find_checkpoint
from tuigpt.text.copies import find_copies_of_training, share_copied
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.wording import one_line, visible

DIFFERENT = 1
"""Exit status when the reference text is another one."""


@dataclass(frozen=True)
class Wishes:
    """What is asked for besides the text.

    Attributes:
        device: its name.
        samples: number of texts.
        window: "sliding" or "rolling".
        written: text that stands after the prompt already; its places keep their draws.
        verify: whether to compare with the plain loop.
        card: file for a submission, or None.
        recited: shortest copy from the corpus to report, 0 = do not look.
        probs: how many alternatives to report for each token as JSON Lines, None = plain text.
        steer: whether lines on standard input change the settings.
    """

    device: str = "auto"
    samples: int = 1
    window: str = "sliding"
    written: str = ""
    verify: bool = False
    card: str | None = None
    recited: int = 0
    probs: int | None = None
    steer: bool = False


def run(home: Path, spec: str, prompt_text: str, config: SampleConfig, wishes: Wishes) -> int:
    """Print the prompt as the model read it, then new text as it is drawn.

    Notes go to stderr, so that a pipe gets nothing but the text.

    Raises:
        UserError: there is no such checkpoint or device, the checkpoint is broken, or the wishes
            do not go together.
    """
    _refuse_contradictions(wishes)
    steering = Steering(standard_input()) if wishes.steer else None
    # One position at a time is too little work to share among many threads.
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))
    checkpoint = find_checkpoint(spec, home)
    model, tokenizer, header = load_checkpoint(checkpoint.path, resolve_device(wishes.device))
    refuse_broken_weights(model)
    prompt = read_prompt(prompt_text, tokenizer)
    note_on_prompt(prompt, prompt_text)
    given = _given(wishes.written, tokenizer)
    writer = Writer(
        model, prompt.ids, config, samples=wishes.samples, window=wishes.window, given=given
    )
    size, length = model.config.block_size, len(prompt.ids) + len(given)
    if length > size:
        note(f"the model sees the last {size} of {length:,} tokens")
    if config.top_k >= tokenizer.vocab_size:
        note(f"--top-k {config.top_k}: the model knows {tokenizer.vocab_size}, so it is off")
    if wishes.window == "rolling" and length + config.max_new_tokens - len(given) > size + 1:
        note(f"a rolling window: past {size} tokens this is not the workshop's text")

    try:
        texts = _write(writer, prompt, given, tokenizer, wishes, steering)
    finally:  # also of a text that was cut short
        for line in report(writer.changes):
            note(line)
    if writer.rolled_in is not None:
        note(
            f"past {size} tokens it was computed in {type_name(writer.rolled_in)}, which is"
            " fastest here"
        )
    if wishes.recited:
        name = str((header.get("corpus") or {}).get("name", ""))
        for ids in texts:
            text = tokenizer.decode(ids)
            copies = find_copies_of_training(header, text, wishes.recited, cache_dir(home))
            share = share_copied(copies, len(text))
            note(
                f"{share:.0%} stands in {name!r}, in copies of {wishes.recited} and more characters"
            )
            for copy in copies:
                part = one_line(text[copy.start : copy.start + copy.length])
                note(f"  line {copy.line:,}: {part!r}")
    if not (wishes.verify or wishes.card):
        return 0
    if model.lm_head.weight.device.type != "cpu":
        model = load_checkpoint(checkpoint.path, torch.device("cpu"))[0]
    for number, ids in enumerate(texts):
        alone = replace(config, seed=(config.seed + number) % 2**63)
        if not _verified(model, prompt, alone, ids):
            return DIFFERENT
    if wishes.card:
        text = prompt.text + tokenizer.decode(texts[0])
        _write_card(Path(wishes.card), text, checkpoint, prompt, config, tokenizer.vocab_size)
    return 0


def note(message: str) -> None:
    """Tell the user something that is not part of the output."""
    print(f"tuigpt: {message}", file=sys.stderr)


def note_on_prompt(prompt: Prompt, typed: str) -> None:
    """Tell where the prompt is not what the user typed."""
    if prompt.dropped:
        note(f"the model does not know {one_line(prompt.dropped)!r}: left out of the prompt")
    if len(prompt.dropped) == len(set(typed)):
        note(f"nothing to go on from: started with {prompt.text!r}")


def _refuse_contradictions(wishes: Wishes) -> None:
    if wishes.card and wishes.samples != 1:
        raise UserError("--card is for one text, but --samples asks for more; pick one by its seed")
    for name, used in (
        ("--window rolling", wishes.window == "rolling"),
        ("--written", wishes.written),
        ("--steer", wishes.steer),
    ):
        if used and (wishes.verify or wishes.card):
            raise UserError(f"{name} writes another text than the workshop's: nothing to verify")


def _given(written: str, tokenizer: Tokenizer) -> list[int]:
    kept, dropped = tokenizer.split_unknown(written)
    if dropped:
        raise UserError(f"--written holds what the model does not know: {one_line(dropped)!r}")
    return [int(token) for token in tokenizer.encode(kept)]


def _write(
    writer: Writer,
    prompt: Prompt,
    given: list[int],
    tokenizer: Tokenizer,
    wishes: Wishes,
    steering: Steering | None,
) -> list[list[int]]:
    """Put the texts out as they come, and give their ids: what was given, and what is new."""
    shown = visible if sys.stdout.isatty() else str
    beginning = prompt.text + tokenizer.decode(given)
    texts: list[list[int]] = [list(given) for _ in range(wishes.samples)]
    streamed = wishes.samples == 1 and wishes.probs is None
    stream = tokenizer.stream()
    if streamed:
        _put(shown(beginning))
    try:
        while True:
            for complaint in steering.apply(writer) if steering else ():
                note(complaint)
            tokens = next(writer, None)
            if tokens is None:
                break
            for ids, token in zip(texts, tokens, strict=True):
                ids.append(token)
            if streamed:
                _put(shown(stream.push(tokens)))
            elif wishes.probs is not None:
                assert writer.logits is not None
                for sample, token in enumerate(tokens):
                    seen = insight(writer.logits[sample], token, writer.config, wishes.probs)
                    place = {"sample": sample, "at": writer.written - 1}
                    _put(json.dumps(place | _named(asdict(seen), tokenizer)) + "\n")
    finally:
        if streamed:
            _put(shown(stream.flush()) + "\n")
    if wishes.samples > 1 and wishes.probs is None:
        for number, ids in enumerate(texts):
            seed = (writer.config.seed + number) % 2**63
            heading = "" if number == 0 else "\n"
            _put(f"{heading}--- seed {seed}\n{shown(prompt.text + tokenizer.decode(ids))}\n")
    return texts


def _named(record: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """An insight's record with the text beside each token."""
    for option in (record["chosen"], *record["likeliest"]):
        option["text"] = tokenizer.decode([option["token"]])
    return record


def _verified(model: GPT, prompt: Prompt, config: SampleConfig, ids: list[int]) -> bool:
    place = first_difference(model, prompt.ids, config, ids)
    if place is None:
        note(f"verified, seed {config.seed}: the plain loop writes the same {len(ids):,} tokens")
        return True
    note(f"seed {config.seed}: the plain loop writes another text from token {place + 1:,} on")
    return False


def _write_card(
    path: Path,
    text: str,
    checkpoint: Checkpoint,
    prompt: Prompt,
    config: SampleConfig,
    vocab_size: int,
) -> None:
    name = checkpoint.label if checkpoint.run else checkpoint.path.name
    command = tuigpt_command(name, prompt.text, config)
    theirs = workshop_command(f"{checkpoint.path.stem}.pt", prompt.text, config, vocab_size)
    try:
        sha256 = file_sha256(checkpoint.path)
        content = card(text, command, theirs, checkpoint.path, sha256)
        write_atomic(path, content.encode("utf-8", "backslashreplace"))
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
        help="write it again with the plain loop, and compare letter by letter",
    )  # fmt: skip
    parser.flag(
        "--card", group=checks, metavar="FILE",
        help="verify, then write text and commands to FILE, to submit",
    )  # fmt: skip
    parser.flag(
        "--recited", group=checks, default="0", metavar="N",
        help="tell which parts of N and more characters are copied from the training text",
    )  # fmt: skip
    parser.flag(
        "--probs", group=checks, metavar="N",
        help="print JSON Lines instead: each token with its probability, rank and N alternatives",
    )  # fmt: skip
    parser.flag(
        "--steer", group=checks, action="store_true",
        help="let lines on standard input, such as temperature 0.3 or top_k 5, change the settings"
        " from the next token on",
    )  # fmt: skip


def _run(options: Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))
    wishes = Wishes(
        device=options.device,
        samples=count("samples", options.samples, 1),
        window=options.window,
        written=options.written,
        verify=options.verify,
        card=options.card,
        recited=count("recited", options.recited, 0),
        probs=None if options.probs is None else count("probs", options.probs, 0),
        steer=options.steer,
    )
    return run(home_dir(options.home), options.checkpoint, options.prompt, config, wishes)


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
