"""In what two checkpoints differ, as their headers tell it."""

from __future__ import annotations

from dataclasses import asdict

from tuigpt.runs.describe import loss_in_words
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.header import Header, read_header
from tuigpt.wording import short_count, val_text

Difference = tuple[str, str, str]
"""The name of a fact, and its value in each of the two."""

_OF_THE_MACHINE = ("device", "precision", "compile", "micro_batch_size", "encoding", "minutes")
"""Settings that decide where and how long a training computes, not what it learns."""

_NAMES = {"n_layer": "layers", "n_head": "heads", "n_embd": "width", "block_size": "block"}


def differences(left: Checkpoint, right: Checkpoint) -> tuple[list[Difference], list[str]]:
    """What differs between two checkpoints, the most telling first.

    Returns:
        the differences, and the names of the facts that are the same.

    Raises:
        UnreadableFile: one of them cannot be read.
    """
    facts = [_facts(read_header(checkpoint.path)) for checkpoint in (left, right)]
    for one, checkpoint in zip(facts, (left, right), strict=True):
        one["val"] = loss_in_words(checkpoint.val_loss)
        if checkpoint.val_loss is None and checkpoint.early_val_loss is not None:
            one["val"] = f"{val_text(None, checkpoint.early_val_loss)} nats, estimated"
    names = list(dict.fromkeys(name for one in facts for name in one))
    pairs = [(name, facts[0].get(name, "–"), facts[1].get(name, "–")) for name in names]
    same = [name for name, a, b in pairs if a == b]
    # That neither was measured is nothing that they have in common.
    told = [name for name in same if facts[0].get(name) != "–"]
    return [pair for pair in pairs if pair[0] not in same], told


def _facts(header: Header) -> dict[str, str]:
    model, train = asdict(header.model), dict(header.train)
    size = model.pop("vocab_size")
    kind = str(train.pop("tokenizer", header.tokenizer.get("type", "?")))
    for name in _OF_THE_MACHINE:
        train.pop(name, None)
    facts = {
        "step": f"{header.step:,}",
        "val": "",
        "train": loss_in_words(header.train_nats_per_character),
        "parameters": short_count(header.model.n_params),
        "text": header.corpus.name or "not known",
        "sha256": header.corpus.sha256[:12] or "not known",
        "tokenizer": f"{kind}, {size:,} tokens",
    }
    settings = {**train, **model}
    facts |= {
        _NAMES.get(name, name.replace("_", " ")): _shown(value) for name, value in settings.items()
    }
    return facts


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
