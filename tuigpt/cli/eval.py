"""`tuigpt eval`: how well checkpoints predict one text, in a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tuigpt.cli.flags import add_device, add_json
from tuigpt.cli.model import LONGEST_TEXT, note, open_model, read_text
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.cli.progress import ProgressLine
from tuigpt.errors import UserError
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.header import read_header
from tuigpt.runs.names import find_checkpoint
from tuigpt.runs.record import find_corpus
from tuigpt.wording import file_size, one_line

VAL_FRACTION = 0.1
"""Part of a text that is measured where a checkpoint does not tell its own."""


class Row(msgspec.Struct, frozen=True):
    """How well one checkpoint predicts the text.

    Attributes:
        checkpoint: what it is called.
        characters: that were predicted.
        skipped: that the model does not know; they were left out.
        window, stride: tokens that the model sees at once, and between two windows.
    """

    checkpoint: str
    nats_per_character: float
    bits_per_character: float
    characters: int
    skipped: int
    tokens: int
    window: int
    stride: int


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    text: str
    characters: int
    rows: list[Row]


@dataclass(frozen=True)
class _Text:
    name: str
    content: str


def evaluate(home: Path, arguments: list[str], device: str, as_json: bool) -> int:
    """Print a table of checkpoints and how well each predicts a text.

    Args:
        arguments: checkpoints, and at the end a text; without one, the validation part of the text
            that the first checkpoint was trained on.

    Raises:
        UserError: a checkpoint or the text cannot be found or read.
    """
    *specs, last = arguments
    if specs and not _is_checkpoint(last, home):
        text = _Text(last, read_text(last))
    else:
        specs = arguments
        text = _validation_part(find_checkpoint(specs[0], home), home)
    rows = [_measure(home, spec, text, device) for spec in specs]
    if as_json:
        report = Report(text.name, len(text.content), rows)
        print(msgspec.json.encode(report).decode())
        return 0
    print(f"{one_line(text.name)}: {len(text.content):,} characters")
    width = max(len("checkpoint"), *(len(one_line(row.checkpoint)) for row in rows))
    print(f"{'checkpoint':{width}}  {'nats':>7}  {'bits':>7}  {'skipped':>7}  {'window':>6}")
    best = min(row.nats_per_character for row in rows)
    for row in rows:
        mark = "  ★" if len(rows) > 1 and row.nats_per_character == best else ""
        print(
            f"{one_line(row.checkpoint):{width}}  {row.nats_per_character:7.4f}"
            f"  {row.bits_per_character:7.4f}  {row.skipped:7,}  {row.window:6,}{mark}"
        )
    print(
        "nats and bits per character, over the whole text: each token is predicted once, from at"
        " least half\na window of tokens before it (fewer at the beginning; the first token is not"
        " predicted).\nCharacters that a model does not know are skipped."
    )
    if len({row.skipped for row in rows}) > 1:
        note("they skip different characters: their figures do not compare exactly")
    return 0


def _is_checkpoint(spec: str, home: Path) -> bool:
    if spec.endswith(".safetensors"):
        return True
    try:
        return not find_checkpoint(spec, home).problem
    except UserError:
        return False


def _validation_part(checkpoint: Checkpoint, home: Path) -> _Text:
    """The validation part of the text that a checkpoint was trained on."""
    header = read_header(checkpoint.path)
    corpus = find_corpus(checkpoint.path, header.corpus)
    if not corpus.sha256:
        raise UserError(
            f"{checkpoint.label!r} does not tell which text it was trained on: give a text file"
        )

    from tuigpt.text.named import reopen
    from tuigpt.text.read import scan
    from tuigpt.text.split import train_characters

    with ProgressLine(sys.stderr) as progress:
        text = reopen(corpus, cache=cache_dir(home), progress=progress)
        if text.size > LONGEST_TEXT:
            raise UserError(
                f"{text.name!r} is longer than {file_size(LONGEST_TEXT)}: give a part of it"
            )
        if scan(text, progress).sha256 != corpus.sha256:
            raise UserError(
                f"{text.name!r} has changed since {checkpoint.label!r} was trained on it: give a"
                " text file"
            )
        content = "".join(text.chunks())
    told = header.train.get("val_fraction")
    fraction = float(told) if isinstance(told, int | float) else VAL_FRACTION
    part = content[train_characters(len(content), fraction) :]
    if not part:
        raise UserError(f"{checkpoint.label!r} has no validation part: give a text file")
    return _Text(f"the validation part of {text.name}", part)


def _measure(home: Path, spec: str, text: _Text, device: str) -> Row:
    checkpoint, loaded = open_model(home, spec, device)

    from tuigpt.generation.judge import score

    with ProgressLine(sys.stderr) as progress:
        found = score(
            loaded,
            text.content,
            lambda done, total: progress(f"measuring {checkpoint.label}", done, total),
        )
    if found.nats_per_character is None or found.bits_per_character is None:
        raise UserError(f"{text.name!r} has fewer than two tokens that {spec!r} knows")
    window = loaded.model.config.block_size
    return Row(
        checkpoint=checkpoint.label,
        nats_per_character=found.nats_per_character,
        bits_per_character=found.bits_per_character,
        characters=found.characters,
        skipped=found.left_out,
        tokens=len(found.surprises),
        window=window,
        stride=max(1, window // 2),
    )


def _add_flags(parser: Parser) -> None:
    parser.add_argument(
        "checkpoints", nargs="+", type=filled, metavar="CHECKPOINT",
        help="checkpoints, as for generate; and at the end a text file, or - for standard input"
        " (default: the validation part of the text that the first was trained on)",
    )  # fmt: skip
    add_device(parser)
    add_json(parser)


COMMANDS = {
    "eval": Command(
        usage="CHECKPOINT... [TEXT] [flags]",
        add_flags=_add_flags,
        run=lambda options: evaluate(
            home_dir(options.home), options.checkpoints, options.device, options.json
        ),
        examples=("tuigpt eval poems@best poems@last", "tuigpt eval poems poet other.txt"),
    )
}
