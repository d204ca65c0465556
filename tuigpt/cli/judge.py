"""What a model thinks of text: `tuigpt score`, `tuigpt next` and `tuigpt recite`."""

from __future__ import annotations

import heapq
import sys
from argparse import Namespace
from pathlib import Path

import msgspec

from tuigpt.cli.flags import (
    add_checkpoint,
    add_device,
    add_json,
    add_sample_settings,
    count,
    given_fields,
)
from tuigpt.cli.ink import Ink
from tuigpt.cli.live_line import waiting
from tuigpt.cli.model import (
    choose_checkpoint,
    marked,
    note,
    note_on_prompt,
    open_model,
    read_text,
)
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.protocol import Candidate
from tuigpt.loss import Baselines
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.header import read_header
from tuigpt.runs.record import find_corpus
from tuigpt.story import stage_of
from tuigpt.wording import one_line, symbols_shown

TOP = 10
"""Tokens that `next` shows; the others stand in one line."""

BAR_WIDTH = 20


def score_text(home: Path, spec: str, file: str, device: str, as_json: bool) -> int:
    """Print how surprising a text is to a model.

    Raises:
        UserError: the checkpoint or the text cannot be read, or the model knows too little of it.
    """
    text = read_text(file)
    _, loaded = open_model(home, spec, device)

    from tuigpt.generation.judge import score

    with waiting("measuring the text"):
        found = score(loaded, text)
    if found.dropped:
        unknown = symbols_shown(found.dropped)
        note(f"the model does not know {unknown}: {found.left_out:,} characters left out")
    if found.nats_per_character is None or found.bits_per_character is None:
        raise UserError(f"{file!r} has fewer than two tokens that the model knows")
    if as_json:
        print(msgspec.json.encode(found).decode())
        return 0
    tokenizer = loaded.tokenizer
    baselines = Baselines.of_symbols(loaded.header.corpus.symbols or tokenizer.vocab_size)
    print(
        f"{found.nats_per_character:.4f} nats = {found.bits_per_character:.4f} bits per character,"
        f" perplexity {found.perplexity:.2f}, over {found.characters:,} characters:"
        f" {stage_of(found.nats_per_character, baselines)}"
    )
    ids = tokenizer.encode(found.text)
    for surprise, place in heapq.nlargest(3, zip(found.surprises, range(len(ids)), strict=False)):
        before = one_line(tokenizer.decode(ids[max(0, place - 24) : place + 1]))
        after = one_line(tokenizer.decode(ids[place + 1 : place + 2]))
        print(f"  most surprising: {after!r} after {before!r} ({surprise:.1f} nats)")
    return 0


def next_token(
    home: Path, spec: str, typed_prompt: str, config: SampleConfig, device: str, as_json: bool
) -> int:
    """Print what could come next: as learned, after temperature, after all samplers, picked.

    Raises:
        UserError: the checkpoint cannot be read.
    """
    _, loaded = open_model(home, spec, device)

    from tuigpt.generation import judge
    from tuigpt.generation.decode import read_prompt

    prompt = read_prompt(typed_prompt, loaded.tokenizer)
    note_on_prompt(prompt, typed_prompt)
    found = judge.next_token(loaded, prompt.ids, config, loaded.tokenizer.vocab_size)
    if as_json:
        print(msgspec.json.encode(found).decode())
        return 0
    ranked = list(enumerate(found.top_logprobs, 1))
    shown, others = ranked[:TOP], ranked[TOP:]
    picked = [row for row in others if row[1].token == found.chosen.token]
    others = [row for row in others if row not in picked]
    rows = [(rank, repr(one_line(option.text)), option) for rank, option in [*shown, *picked]]
    width = max(7, *(len(text) for _, text, _ in rows))
    ink = Ink(sys.stdout)
    print(ink.paint(f"rank  {'token':{width}}   learned  tempered  drawn from", "quiet"))
    most = max(candidate.drawn_from for _, candidate in ranked)
    for rank, text, candidate in rows:
        chosen = candidate.token == found.chosen.token
        bar = ink.paint(_bar(candidate.drawn_from / most), "accent")
        mark = ink.paint("  <- picked", "best") if chosen else ""
        row = f"{rank:4}  {text:{width}}  {_shares([candidate])}"
        print(f"{ink.paint(row, 'name') if chosen else row}  {bar}{mark}".rstrip())
    if others:
        shares = _shares([other for _, other in others])
        print(ink.paint(f"      {f'{len(others):,} more':{width}}  {shares}", "quiet"))
    return 0


def _shares(candidates: list[Candidate]) -> str:
    learned = sum(candidate.learned for candidate in candidates)
    tempered = sum(candidate.tempered for candidate in candidates)
    drawn_from = sum(candidate.drawn_from for candidate in candidates)
    return f"{learned:8.2%}  {tempered:8.2%}  {drawn_from:10.2%}"


def _bar(share: float) -> str:
    eighths = round(8 * BAR_WIDTH * share)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def recite(home: Path, spec: str, file: str, at_least: int, as_json: bool) -> int:
    """Print a text with the parts marked that stand in the text that a model was trained on.

    Raises:
        UserError: the checkpoint or one of the texts cannot be read.
    """
    from tuigpt.generation.copies import copies

    checkpoint = choose_checkpoint(home, spec)
    corpus = find_corpus(checkpoint.path, read_header(checkpoint.path).corpus)
    text = read_text(file)
    with waiting("looking for copies"):
        found = copies(corpus, text, at_least, cache_dir(home))
    if as_json:
        print(msgspec.json.encode(found).decode())
        return 0
    print(
        f"{found.share:.1%} stands in {one_line(found.corpus)!r},"
        f" in copies of {at_least} and more characters"
    )
    if found.copies:
        print(f"\n{marked(text, found, sys.stdout)}\n")
        print("⟦…⟧ line " + ", ".join(f"{copy.line:,}" for copy in found.copies))
    return 0


def _add_file(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=filled, help="a UTF-8 text file, or - for standard input"
    )


def _add_score_flags(parser: Parser) -> None:
    add_checkpoint(parser)
    _add_file(parser)
    add_device(parser)
    add_json(parser)


def _add_next_flags(parser: Parser) -> None:
    add_checkpoint(parser)
    parser.flag("--prompt", default="", metavar="TEXT", help="text to continue")
    add_device(parser)
    add_json(parser)
    add_sample_settings(parser, leave_out={"max_new_tokens"})


def _add_recite_flags(parser: Parser) -> None:
    add_checkpoint(parser)
    _add_file(parser)
    add_json(parser)
    parser.flag(
        "--at-least", default="20", metavar="N", help="shortest copy that counts (default 20)"
    )


def _score(options: Namespace) -> int:
    home = home_dir(options.home)
    return score_text(home, options.checkpoint, options.file, options.device, options.json)


def _next(options: Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))
    home = home_dir(options.home)
    return next_token(
        home, options.checkpoint, options.prompt, config, options.device, options.json
    )


def _recite(options: Namespace) -> int:
    at_least = count("at-least", options.at_least, 1)
    home = home_dir(options.home)
    return recite(home, options.checkpoint, options.file, at_least, options.json)


COMMANDS = {
    "next": Command(
        usage="CHECKPOINT [flags]",
        add_flags=_add_next_flags,
        run=_next,
        examples=('tuigpt next poet --prompt "ROMEO"',),
    ),
    "score": Command(
        usage="CHECKPOINT FILE [flags]",
        add_flags=_add_score_flags,
        run=_score,
        examples=("tuigpt score poems@best other.txt",),
    ),
    "recite": Command(
        usage="CHECKPOINT FILE [flags]",
        add_flags=_add_recite_flags,
        run=_recite,
        examples=("tuigpt generate poems | tuigpt recite poems -",),
    ),
}
