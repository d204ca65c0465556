"""All that there is to tell of one checkpoint, for the details card and `tuigpt show`."""

from __future__ import annotations

from tuigpt.files import UnreadableFile
from tuigpt.loss import bits, is_measured
from tuigpt.runs.browse import kept_as
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.header import Header, read_header
from tuigpt.wording import file_size, loss_text, short_count, val_text

Facts = list[tuple[str, str]]


def describe(checkpoint: Checkpoint, run: Run | None) -> Facts:
    """Name and value of each fact, in the order in which they are of interest.

    Args:
        run: that it belongs to, if it is known.
    """
    facts: Facts = [("checkpoint", checkpoint.label)]
    if run is not None:
        if words := kept_as(run, checkpoint):
            facts.append(("kept", words))
        if words := run.marks.notes.get(checkpoint.step, ""):
            facts.append(("note", words))
    try:
        header = None if checkpoint.problem else read_header(checkpoint.path)
        problem = checkpoint.problem
    except UnreadableFile as error:
        header, problem = None, error.reason
    if header is not None:
        facts += _of_header(header)
    else:
        facts.append(("cannot be opened", problem))
    facts.append(("file", f"{file_size(checkpoint.size)}, {checkpoint.path}"))
    return facts


def loss_in_words(nats: float | None) -> str:
    """A loss per character in both units: 1.940 nats = 2.80 bits."""
    if nats is None or not is_measured(nats):
        return loss_text(nats)
    return f"{nats:.3f} nats = {bits(nats):.2f} bits"


def sizes_in_words(header: Header) -> str:
    """2 layers · 2 heads · 128 wide · block 64."""
    model = header.model
    layers, heads = model.n_layer, model.n_head
    return (
        f"{layers} layer{'s' * (layers > 1)} · {heads} head{'s' * (heads > 1)}"
        f" · {model.n_embd} wide · block {model.block_size}"
    )


def _of_header(header: Header) -> Facts:
    corpus, train = header.corpus, header.train
    kind = str(header.tokenizer.get("type", "?"))[:40]
    text = corpus.name or "not known"
    if corpus.characters:
        text += f" · {corpus.characters:,} characters"
    if corpus.sha256:
        text += f" · sha256 {corpus.sha256}"
    facts = [
        ("model", f"{short_count(header.model.n_params)} parameters · {sizes_in_words(header)}"),
        ("tokenizer", f"{kind}, {header.model.vocab_size:,} symbols"),
        ("text", text),
    ]
    losses = {
        "val": header.val_nats_per_character,
        "whole val": header.whole_val_nats_per_character,
        "train": header.train_nats_per_character,
    }
    measured = [
        (name, f"{loss_in_words(nats)} a character")
        for name, nats in losses.items()
        if nats is not None
    ]
    estimate = header.early_val_nats_per_character
    if header.val_nats_per_character is None and estimate is not None:
        guess = f"{val_text(None, estimate)} nats a character, estimated from little text"
        measured.insert(0, ("val", guess))
    facts = [*measured, *facts]
    settings = ("recipe", "learning_rate", "batch_size", "dropout", "seed", "max_steps")
    words = [f"{name.replace('_', ' ')} {train[name]}" for name in settings if name in train]
    if words:
        facts.append(("training", " · ".join(words)))
    if header.created:
        facts.append(("written", header.created))
    if header.versions:
        facts.append(("by", ", ".join(f"{k} {v}" for k, v in header.versions.items())))
    return facts
