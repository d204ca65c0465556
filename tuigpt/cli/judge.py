"""What a model thinks of text: `tuigpt score`, `tuigpt next` and `tuigpt recite`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tuigpt.cli.flags import (
    add_checkpoint,
    add_device,
    add_json,
    add_sample_settings,
    count,
    given_fields,
)
from tuigpt.cli.generate import note, note_on_prompt
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.decode import read_prompt, refuse_broken_weights
from tuigpt.generation.logprobs import Score, next_token, surprises
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.device import resolve_device
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.names import find_checkpoint
from tuigpt.text.copies import find_copies_of_training, share_copied
from tuigpt.text.read import open_files
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.wording import meaning_of_loss, one_line


def run_score(home: Path, spec: str, file: str, device: str, as_json: bool) -> int:
    """Print how surprising a text is to a model.

    Raises:
        UserError: the checkpoint or the text cannot be read, or the model knows too little of it.
    """
    model, tokenizer, header = _open(home, spec, device)
    text = _read(file)
    prompt = read_prompt(text, tokenizer)
    lost = sum(c in prompt.dropped for c in text)
    if prompt.dropped:
        note(f"the model does not know {one_line(prompt.dropped)!r}: {lost:,} characters left out")
    if len(prompt.ids) < 2:
        raise UserError(f"{file!r} has fewer than two tokens that the model knows")
    nats = torch.cat(list(surprises(model, prompt.ids)))
    characters = int(tokenizer.token_characters[prompt.ids[1:].numpy()].sum())
    score = Score(float(nats.double().sum()), len(nats), characters)
    if as_json:
        record: dict[str, Any] = {
            "characters": score.characters,
            "left_out": lost,
            "nats_per_character": score.nats_per_character,
            "bits_per_character": score.bits_per_character,
            "perplexity": score.perplexity,
            "text": prompt.text,
            "surprises": [round(n, 4) for n in nats.tolist()],
        }
        print(json.dumps(record))
        return 0
    symbols = (header.get("corpus") or {}).get("symbols") or tokenizer.vocab_size
    print(
        f"{score.nats_per_character:.4f} nats = {score.bits_per_character:.4f} bits per character,"
        f" perplexity {score.perplexity:.2f}, over {score.characters:,} characters:"
        f" {meaning_of_loss(score.nats_per_character, symbols)}"
    )
    worst = torch.topk(nats, min(3, len(nats)))
    for surprise, place in zip(worst.values.tolist(), worst.indices.tolist(), strict=True):
        before = one_line(tokenizer.decode(prompt.ids[max(0, place - 24) : place + 1].tolist()))
        after = one_line(tokenizer.decode([int(prompt.ids[place + 1])]))
        print(f"  most surprising: {after!r} after {before!r} ({surprise:.1f} nats)")
    return 0


def run_next(
    home: Path, spec: str, prompt_text: str, config: SampleConfig, device: str, as_json: bool
) -> int:
    """Print what could come next: as learned, after temperature, after all samplers, picked.

    Raises:
        UserError: the checkpoint cannot be read.
    """
    model, tokenizer, _ = _open(home, spec, device)
    prompt = read_prompt(prompt_text, tokenizer)
    note_on_prompt(prompt, prompt_text)
    seen = next_token(model, prompt, config, tokenizer.vocab_size)
    if as_json:
        record = asdict(seen)
        for option in (record["chosen"], *record["likeliest"]):
            option["text"] = tokenizer.decode([option["token"]])
        print(json.dumps(record))
        return 0
    print("rank  token    learned  tempered  drawn from")
    for rank, option in enumerate(seen.likeliest, 1):
        mark = "  <- picked" if option.token == seen.chosen.token else ""
        text = repr(one_line(tokenizer.decode([option.token])))
        shares = f"{option.learned:8.2%}  {option.tempered:8.2%}  {option.drawn_from:10.2%}"
        print(f"{rank:4}  {text:7}  {shares}{mark}")
    return 0


def run_recite(home: Path, spec: str, file: str, at_least: int, as_json: bool) -> int:
    """Print which parts of a text stand in the text that a model was trained on.

    Raises:
        UserError: the checkpoint or one of the texts cannot be read.
    """
    checkpoint = find_checkpoint(spec, home)
    _, _, header = load_checkpoint(checkpoint.path, torch.device("cpu"))
    text = _read(file)
    copies = find_copies_of_training(header, text, at_least, cache_dir(home))
    share = share_copied(copies, len(text))
    if as_json:
        print(json.dumps({"share": share, "copies": [asdict(copy) for copy in copies]}))
        return 0
    name = header["corpus"].get("name", "")
    print(f"{share:.1%} stands in {name!r}, in copies of {at_least} and more characters")
    for copy in copies:
        part = one_line(text[copy.start : copy.start + copy.length])
        print(f"  {copy.length:,} characters at line {copy.line:,}: {part!r}")
    return 0


def _open(home: Path, spec: str, device: str) -> tuple[GPT, Tokenizer, dict[str, Any]]:
    loaded = load_checkpoint(find_checkpoint(spec, home).path, resolve_device(device))
    refuse_broken_weights(loaded[0])
    return loaded


def _read(file: str) -> str:
    """The characters of a text file, read as a training text is; `-` is standard input."""
    if file != "-":
        return "".join(open_files(file, [file]).chunks())
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


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
    _add_score_flags(parser)
    parser.flag(
        "--at-least", default="20", metavar="N", help="shortest copy that counts (default 20)"
    )


def _score(options: Namespace) -> int:
    home = home_dir(options.home)
    return run_score(home, options.checkpoint, options.file, options.device, options.json)


def _next(options: Namespace) -> int:
    config = SampleConfig(**given_fields(options, SampleConfig))
    home = home_dir(options.home)
    return run_next(home, options.checkpoint, options.prompt, config, options.device, options.json)


def _recite(options: Namespace) -> int:
    at_least = count("at-least", options.at_least, 1)
    home = home_dir(options.home)
    return run_recite(home, options.checkpoint, options.file, at_least, options.json)


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
