"""What a text is understood as: its size, its parts, its rarest symbols, what counting reaches."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tuigpt.config import GPTConfig, TrainConfig, bpe_size
from tuigpt.errors import UserError
from tuigpt.estimate import reading
from tuigpt.loss import Baselines
from tuigpt.reports import TextFacts
from tuigpt.text.baselines import baselines
from tuigpt.text.read import ProgressCallback, Scan, Text, silent
from tuigpt.text.split import check_split, train_characters, train_tokens
from tuigpt.text.token_file import learn_tokenizer
from tuigpt.wording import MEMORISES, file_size, one_line, short_count, symbol_shown, times

SHOWN_SYMBOLS, SHOWN_LINES, SHOWN_WIDTH = 10, 3, 200

LARGE_ALPHABET = 1000
"""Symbols above which pairs of bytes are advised: each character would be seen too rarely."""

LARGE_TEXT = 5_000_000
"""Characters from which on pairs of bytes are advised, after the workshop's part 1."""

TRIED_UP_TO = 2_000_000
"""Characters up to which a `bpe` tokenizer is learned to count its tokens; it takes a second."""

MUCH_MEMORY = 256 * 2**20
"""Bytes of logits from which on they are worth a word."""


@dataclass(frozen=True)
class Understood:
    """What a text is understood as.

    Attributes:
        lines: (label, words), in the order in which they are read.
        facts: the same in numbers.
        problem: why no run with these settings can start, or None.
    """

    lines: list[tuple[str, str]]
    facts: TextFacts
    problem: UserError | None


def understand(
    text: Text,
    found: Scan,
    config: TrainConfig,
    model: GPTConfig,
    progress: ProgressCallback = silent,
    *,
    size_is_open: bool = False,
) -> Understood:
    """Describe a text as a training with these settings would take it.

    Args:
        found: what a scan of the text found.
        model: its vocabulary is the text's to decide.
        size_is_open: whether a plan decides how large the model is.
    """
    split = _split(found, config, model.block_size, progress)
    model = replace(model, vocab_size=split.vocab_size)
    counted = baselines(found, config.val_fraction)
    lines = [
        ("text", _size(text, found)),
        *[("note", words) for words in text.notes],
        *[("changed", "; ".join(found.changes)) for _ in found.changes[:1]],
        ("split", split.words),
        ("rarest", _rarest(found)),
        *[("letters", words) for words in _both_forms(found)],
        ("counting", _counting(counted)),
        *[("model", _model(found, split, config, model)) for _ in range(not size_is_open)],
        ("tokens", _advice(found, config)),
        *zip(("begins", "", ""), _first_lines(found), strict=False),
    ]
    facts = TextFacts(
        characters=found.characters,
        lines=found.lines,
        symbols=len(found.symbols),
        sha256=found.sha256,
        train=split.n_train,
        val=split.n_val,
        unit=split.unit,
        train_characters=train_characters(found.characters, config.val_fraction),
        vocab_size=split.vocab_size,
        baselines=counted,
        advised=advised(found),
    )
    return Understood(lines, facts, split.problem)


@dataclass(frozen=True)
class _Split:
    n_train: int
    n_val: int
    unit: str
    vocab_size: int
    problem: UserError | None
    words: str


def _split(found: Scan, config: TrainConfig, block_size: int, progress: ProgressCallback) -> _Split:
    characters = found.characters
    n_train = border = train_characters(characters, config.val_fraction)
    n_val, unit, vocab_size = characters - n_train, "characters", len(found.symbols)
    size = bpe_size(config.tokenizer)
    if size is not None:
        vocab_size = size
        if found.complete and characters <= TRIED_UP_TO:
            tokenizer = learn_tokenizer(config.tokenizer, found, border, progress)
            ids = tokenizer.encode(found.text)
            n_train = train_tokens(ids, tokenizer.token_characters, border)
            n_val, unit, vocab_size = len(ids) - n_train, "tokens", tokenizer.vocab_size
    problem = None
    try:
        check_split(n_train, n_val, block_size, unit)
    except UserError as error:
        problem = error
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
    some = [f"{symbol_shown(found.symbols[i])}×{found.counts[i]:,}" for i in order[:SHOWN_SYMBOLS]]
    once = int((found.counts == 1).sum())
    words = " ".join(some)
    if once > SHOWN_SYMBOLS:
        words += f" …; {once:,} occur once"
    if 2 * int((found.counts <= 2).sum()) > len(found.symbols):
        words += "; most are too rare to be learned"
    return words


def _both_forms(found: Scan) -> Sequence[str]:
    """A word on letters that stand in the text as one character and also as two."""
    both = []
    for letter in found.symbols:
        parts = unicodedata.normalize("NFD", letter)
        if len(parts) == 2 and set(parts) <= set(found.symbols):
            if any(parts in piece for _, piece in found.pieces):
                both.append(f"{letter} = {parts[0]} {symbol_shown(parts[1])}")
    if not both:
        return ()
    more = ", …" if len(both) > SHOWN_SYMBOLS else ""
    return (
        "the model takes one character and two for different letters, and the text has both:"
        f" {', '.join(both[:SHOWN_SYMBOLS])}{more}",
    )


def _counting(counted: Baselines) -> str:
    """What guessing and counting reach, in nats per character."""
    values = " · ".join(f"{name} {nats:.2f}" for name, nats in counted.items())
    return f"{values} nats"


def _model(found: Scan, split: _Split, config: TrainConfig, model: GPTConfig) -> str:
    n_train = train_characters(found.characters, config.val_fraction)
    read = reading(model, config, split.n_train, n_train)
    words = f"{short_count(model.n_params)} parameters"
    if not config.minutes:  # else only a trial tells how many steps
        verdict = f"the model {MEMORISES if read.overfits else 'is too small to memorise it'}"
        words += f"; text read {times(read.epochs)}: {verdict}"
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
