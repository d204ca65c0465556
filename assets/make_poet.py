"""Write the built-in model's three files from a checkpoint of a run.

Usage::

    python assets/make_poet.py RUN_FOLDER STEP

`poet.safetensors` is the checkpoint with its weights rounded to bfloat16, `poet-run.json` and
`poet-metrics.jsonl` are the run's record and log. Names of machines and paths on them are left
out. What rounding costs is printed: the loss over the whole validation part before and after.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import torch
from safetensors.torch import load_file, save

from tuigpt.errors import UserError
from tuigpt.files import read_safetensors_metadata, to_json, write_atomic
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.device import resolve_device
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir, home_dir
from tuigpt.runs.folder import POET, checkpoint_path, open_run
from tuigpt.runs.header import HEADER
from tuigpt.runs.record import RUN_FILE, read_run_record
from tuigpt.text.named import BUILT_IN, open_text
from tuigpt.text.read import scan, silent
from tuigpt.training.batches import Corpus
from tuigpt.training.prepare import ReadText, make_corpus
from tuigpt.wording import file_size, short_count

LARGEST = 16_000_000
"""Bytes that the model's file may have."""

MACHINE = frozenset({"host", "hostname", "pid", "user"})
"""Keys that tell of the machine and of nothing else."""

OWN_WORDS = frozenset({"model", "tokenizer", "train"})
"""Entries that hold no paths, though a token or a prompt may look like one."""


def make(folder: Path, step: int, to: Path, device: torch.device) -> None:
    """Write the three files, and print what they hold.

    Args:
        folder: the run's.
        step: of the checkpoint that is taken.
        to: folder that gets the files.

    Raises:
        UserError: the checkpoint cannot be had or was not measured, learned from another text
            than the built-in one, or is too large. Nothing is written then.
    """
    run = open_run(folder)
    source = checkpoint_path(folder, step)
    model, tokenizer, header = load_checkpoint(source, device)
    if header.val_loss is None:
        raise UserError(f"step {step:,} was not measured in training: take one that was")
    text = open_text([BUILT_IN], cache=cache_dir(home_dir()))
    read = ReadText(text, scan(text))
    if read.scan.sha256 != header.corpus.sha256:
        raise UserError(f"{str(source)!r} learned from another text than {BUILT_IN!r}")

    rounded = {name: tensor.bfloat16() for name, tensor in load_file(source).items()}
    about = portable(json.loads(read_safetensors_metadata(source)[HEADER])) | {"run": POET}
    content = save(rounded, {HEADER: to_json(about)})
    if len(content) > LARGEST:
        raise UserError(f"it has {file_size(len(content))}: at most {file_size(LARGEST)} may ship")
    log = run.metrics.read_bytes()
    poet = to / f"{POET}.safetensors"
    write_atomic(poet, content)
    record = portable(json.loads((folder / RUN_FILE).read_bytes())) | {"name": POET}
    write_atomic(to / f"{POET}-run.json", (to_json(record) + "\n").encode())
    write_atomic(to / f"{POET}-metrics.jsonl", log[: log.rfind(b"\n") + 1])
    count = short_count(model.config.n_params)
    print(f"{poet}: step {step:,}, {count} parameters, {file_size(len(content))}")

    config = read_run_record(folder).train
    corpus = make_corpus(
        read, tokenizer, config, model.config.block_size, device, cache_dir(home_dir()), silent
    )
    before = val_loss(model, corpus, config.batch_size)
    after = val_loss(load_checkpoint(poet, device)[0], corpus, config.batch_size)
    print(
        f"val loss over all {corpus.n_val:,} tokens, in nats per character: float32 {before:.5f},"
        f" bfloat16 {after:.5f} ({after - before:+.5f})"
    )


def portable(record: dict[str, Any]) -> dict[str, Any]:
    """A header or a run's record as it may ship: the text by its name, no machine, no path."""
    named = {"name": BUILT_IN, "path": BUILT_IN, "sources": [BUILT_IN]}
    kept = {key: value for key, value in record.items() if key in OWN_WORDS}
    shipped: dict[str, Any] = _without_machine(record | {"corpus": record["corpus"] | named})
    return shipped | kept


def _without_machine(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_machine(v) for k, v in value.items() if k not in MACHINE}
    if isinstance(value, list):
        return [_without_machine(entry) for entry in value]
    for kind in (PurePosixPath, PureWindowsPath):
        if isinstance(value, str) and kind(value).is_absolute():
            return kind(value).name
    return value


@torch.inference_mode()
def val_loss(model: GPT, corpus: Corpus, batch_size: int) -> float:
    """Mean loss over the whole validation part, in nats per character."""
    total, characters = 0.0, 0
    for inputs, targets in corpus.val_batches(batch_size):
        total += float(model(inputs, targets)[1]) * targets.numel()
        characters += int(corpus.token_characters[targets].sum())
    return total / characters


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write the built-in model's files.")
    parser.add_argument("folder", metavar="RUN_FOLDER", type=Path)
    parser.add_argument("step", metavar="STEP", type=int)
    parser.add_argument("--to", metavar="FOLDER", type=Path, default=Path(__file__).parent)
    parser.add_argument("--device", default="auto", help="where the losses are measured")
    options = parser.parse_args(arguments)
    try:
        make(options.folder, options.step, options.to, resolve_device(options.device))
    except (UserError, OSError) as error:
        print(f"make_poet: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
