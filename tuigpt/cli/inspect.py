"""`tuigpt inspect`: what a text is understood as, before anything is trained on it."""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from argparse import SUPPRESS, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuigpt.cli.flags import add_settings, add_text, given_fields
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.progress import ProgressLine, end_cleanly_on_signals, progress_text
from tuigpt.config import DEFAULT_PRESET, PRESETS, GPTConfig, TrainConfig, bpe_size, train_settings
from tuigpt.errors import UserError
from tuigpt.estimate import reading
from tuigpt.loss import Baselines
from tuigpt.paths import cache_dir, home_dir
from tuigpt.text.baselines import baselines
from tuigpt.text.detect import OfferError
from tuigpt.text.named import BUILT_IN, NotFetched, open_text
from tuigpt.text.read import Progress, Scan, Text, scan
from tuigpt.text.split import check_split, train_characters, train_tokens
from tuigpt.text.token_file import learn_tokenizer
from tuigpt.wording import file_size, one_line, short_count, times, visible

REPORT_EVERY = 0.2
"""Least seconds between two progress lines for the app."""

SHOWN_SYMBOLS, SHOWN_LINES, SHOWN_WIDTH = 10, 3, 200

LARGE_ALPHABET = 1000
"""Symbols above which pairs of bytes are advised: each character would be seen too rarely."""

LARGE_TEXT = 5_000_000
"""Characters from which on pairs of bytes are advised, after the workshop's part 1."""

TRIED_UP_TO = 2_000_000
"""Characters up to which a `bpe` tokenizer is learned to count its tokens; it takes a second."""

MUCH_MEMORY = 256 * 2**20


@dataclass(frozen=True)
class Report:
    """What is told of a text.

    Attributes:
        lines: (label, words), in the order in which they are read.
        problem: why no run with these settings can start, or "".
        facts: the same in numbers.
    """

    lines: list[tuple[str, str]]
    problem: str
    facts: dict[str, Any]


def run(
    home: Path,
    sources: list[str],
    preset: str | None,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    as_json: bool,
    fetch: bool,
) -> int:
    """Read a text as `tuigpt train` would with the same arguments, and tell what it holds.

    Args:
        as_json: write JSON lines for the app: any number of `progress`, then one of `report` and
            `problem`. A problem that the user could agree to has an `offer`: the arguments that
            say so, and words for them.
        fetch: with `as_json`, whether the network may be used; else it always may.

    Raises:
        UserError: the text cannot be read, or no run with these settings can start.
    """
    end_cleanly_on_signals()
    if not as_json:
        report = _report(home, sources, preset, model_fields, train_fields, fetch=True)
        for label, words in report.lines:
            print(f"{label:>9}  {words}")
        if report.problem:
            raise UserError(report.problem)
        return 0
    try:
        report = _report(home, sources, preset, model_fields, train_fields, fetch, _JsonProgress())
    except UserError as error:
        _send("problem", message=str(error), offer=_offer(error))
        return 2
    _send("report", lines=report.lines, problem=report.problem, facts=report.facts)
    return 0


def _send(kind: str, **values: Any) -> None:
    print(json.dumps({"kind": kind} | values, ensure_ascii=True), flush=True)


def _offer(error: UserError) -> dict[str, Any] | None:
    match error:
        case OfferError() if error.offer:
            return {"arguments": [f"--encoding={error.offer}"], "words": f"read as {error.offer}"}
        case NotFetched():
            return {"arguments": ["--fetch"], "words": "fetch it now"}
    return None


class _JsonProgress:
    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REPORT_EVERY
            _send("progress", words=progress_text(what, done, total))


def _report(
    home: Path,
    sources: list[str],
    preset: str | None,
    model_fields: dict[str, Any],
    train_fields: dict[str, Any],
    fetch: bool,
    progress: Progress | None = None,
) -> Report:
    config = train_settings(train_fields)
    shape = GPTConfig(**{**PRESETS[preset or DEFAULT_PRESET], **model_fields})
    with ProgressLine(sys.stderr) as line:
        tell = progress or line
        text = open_text(
            sources or [BUILT_IN], config.encoding, cache=cache_dir(home), fetch=fetch,
            progress=tell,
        )  # fmt: skip
        found = scan(text, tell)
        split = _split(found, config, shape.block_size, tell)
        rulers = baselines(found, config.val_fraction)
    model = replace(shape, vocab_size=split.vocab_size)
    lines = [
        ("text", _size(text, found)),
        *[("changed", "; ".join(found.changes)) for _ in found.changes[:1]],
        ("split", split.words),
        ("rarest", _rarest(found)),
        ("counting", _counting(rulers)),
        ("model", _model(found, split, config, model)),
        ("tokens", _advice(found, config)),
        *zip(("begins", "", ""), _first_lines(found), strict=False),
    ]
    facts = {
        "characters": found.characters,
        "lines": found.lines,
        "symbols": len(found.symbols),
        "sha256": found.sha256,
        "train": split.n_train,
        "val": split.n_val,
        "unit": split.unit,
        "train_characters": train_characters(found.characters, config.val_fraction),
        "vocab_size": split.vocab_size,
        "baselines": dict(rulers.items()),
        "parameters": model.n_params,
        "advised": advised(found),
    }
    return Report(lines, split.problem, facts)


@dataclass(frozen=True)
class _Split:
    n_train: int
    n_val: int
    unit: str
    vocab_size: int
    problem: str
    words: str


def _split(found: Scan, config: TrainConfig, block_size: int, progress: Progress) -> _Split:
    characters = found.characters
    n_train = border = train_characters(characters, config.val_fraction)
    n_val, unit, vocab_size, problem = characters - n_train, "characters", len(found.symbols), ""
    size = bpe_size(config.tokenizer)
    if size is not None:
        vocab_size = size
        if found.whole and characters <= TRIED_UP_TO:
            tokenizer = learn_tokenizer(config.tokenizer, found, border, progress)
            ids = tokenizer.encode(found.text)
            n_train = train_tokens(ids, tokenizer.token_characters, border)
            n_val, unit, vocab_size = len(ids) - n_train, "tokens", tokenizer.vocab_size
    try:
        check_split(n_train, n_val, block_size, unit)
    except UserError as error:
        problem = str(error)
    words = f"{n_train:,} {unit} to train on, " + (
        f"{n_val:,} for validation" if n_val else "no validation"
    )
    if unit == "tokens":
        words += f"; a token is {characters / max(1, n_train + n_val):.1f} characters"
    return _Split(n_train, n_val, unit, vocab_size, problem, words)


def _size(text: Text, found: Scan) -> str:
    files = f" in {len(text.files):,} files" if len(text.files) > 1 else ""
    lines = "1 line" if found.lines == 1 else f"{found.lines:,} lines"
    return f"{found.characters:,} characters on {lines}{files}, {len(found.symbols):,} symbols"


def _rarest(found: Scan) -> str:
    order = sorted(range(len(found.symbols)), key=lambda i: (int(found.counts[i]), i))
    some = [f"{_symbol(found.symbols[i])}×{found.counts[i]:,}" for i in order[:SHOWN_SYMBOLS]]
    once = int((found.counts == 1).sum())
    words = " ".join(some)
    if once > SHOWN_SYMBOLS:
        words += f" …; {once:,} occur once"
    if 2 * int((found.counts <= 2).sum()) > len(found.symbols):
        words += "; most are too rare to be learned"
    return words


def _symbol(symbol: str) -> str:
    """One symbol so that it can be seen, and stays where it is put."""
    if symbol == " ":
        return "space"
    if symbol in "\n\t":
        return {"\n": "⏎", "\t": "⇥"}[symbol]
    category = unicodedata.category(symbol)
    if category in ("Cf", "Cn", "Co", "Zs", "Zl", "Zp"):
        return f"U+{ord(symbol):04X}"
    return f"◌{symbol}" if category.startswith("M") else visible(symbol)


def _counting(rulers: Baselines) -> str:
    """What guessing and counting reach, in nats per character."""
    values = " · ".join(f"{name} {nats:.2f}" for name, nats in rulers.items())
    return f"{values} nats"


def _model(found: Scan, split: _Split, config: TrainConfig, model: GPTConfig) -> str:
    n_train = train_characters(found.characters, config.val_fraction)
    plan = reading(model, config, split.n_train, n_train)
    words = f"{short_count(model.n_params)} parameters"
    if not config.minutes:  # else only a trial tells how many steps
        verdict = "it will be memorised" if plan.overfits else "too much to memorise"
        words += f"; text read {times(plan.epochs)}: {verdict}"
    alphabet = model.vocab_size * model.n_embd
    if alphabet > 0.3 * model.n_params:
        words += f"; {short_count(alphabet)} parameters are for the alphabet"
    logits = 4 * config.batch_size * model.block_size * model.vocab_size
    if logits > MUCH_MEMORY:
        words += f"; each step holds {file_size(logits)} of logits"
    return words


def advised(found: Scan) -> str:
    """The tokenizer that suits a text."""
    if found.characters >= LARGE_TEXT:
        return "bpe:4096"
    return "bpe:2048" if len(found.symbols) > LARGE_ALPHABET else "char"


def _advice(found: Scan, config: TrainConfig) -> str:
    best = advised(found)
    if best == "char":
        why = "a small text with a small alphabet"
    elif found.characters >= LARGE_TEXT:
        why = "a large text"
    else:
        why = "a large alphabet"
    chosen = f", but {config.tokenizer} is chosen" if config.tokenizer != best else ""
    return f"{best} suits {why}{chosen}"


def _first_lines(found: Scan) -> Sequence[str]:
    front = found.pieces[0][1][: SHOWN_LINES * 10 * SHOWN_WIDTH]
    lines = [line for line in front.split("\n") if line.strip()][:SHOWN_LINES]
    return [one_line(line[:SHOWN_WIDTH].replace("\t", " ")) for line in lines]


def _add_flags(parser: Parser) -> None:
    add_text(parser)
    parser.flag("--json", action="store_true", help="JSON lines, for programs")
    parser.flag("--fetch", action="store_true", help=SUPPRESS)
    add_settings(parser)


def _run(options: Namespace) -> int:
    return run(
        home=home_dir(options.home),
        sources=options.text,
        preset=options.preset,
        model_fields=given_fields(options, GPTConfig),
        train_fields=given_fields(options, TrainConfig),
        as_json=options.json,
        fetch=options.fetch,
    )


COMMANDS = {
    "inspect": Command(
        usage="[TEXT …] [flags of train]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt inspect poems.txt",
            "tuigpt inspect poems.txt --tokenizer bpe:1024",
        ),
    )
}
