"""From what a user calls a text to the corpus that a trainer draws from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from tuigpt.config import TrainConfig
from tuigpt.errors import Setting, UserError
from tuigpt.model.device import allow_tf32, resolve_device
from tuigpt.plan.choose import Asked
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import facts_of, open_text, reopen
from tuigpt.text.read import ProgressCallback, Scan, Text, scan
from tuigpt.text.split import check_split, train_characters
from tuigpt.text.token_file import encode, learn_tokenizer
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.wording import symbols_shown


@dataclass(frozen=True)
class ReadText:
    """A text that was read once, from its beginning to its end."""

    text: Text
    scan: Scan

    def facts(self) -> CorpusFacts:
        """What a run and its checkpoints tell of their text."""
        return facts_of(self.text, self.scan)


def settings_and_device(asked: Asked, local_rank: int = 0) -> tuple[TrainConfig, torch.device]:
    """The settings as far as they are known, and the device for them, which is made ready.

    Args:
        local_rank: which of this machine's processes asks.

    Raises:
        UserError: a value cannot work, or the device is absent.
    """
    device = resolve_device(asked.train.get("device", "auto"), local_rank)
    allow_tf32(device)
    return asked.settings(device.type), device


def read(
    sources: list[str], config: TrainConfig, cache: Path, progress: ProgressCallback
) -> ReadText:
    """Find and read the text of a new run.

    Raises:
        UserError: there is none, or it is none.
    """
    text = open_text(sources, config.encoding, cache=cache, progress=progress)
    return ReadText(text, scan(text, progress))


def read_again(
    run_name: str,
    facts: CorpusFacts,
    sources: list[str],
    cache: Path,
    progress: ProgressCallback,
) -> ReadText:
    """Find and read the text of a run that is resumed.

    Args:
        sources: where the text is now; none is where it was.

    Raises:
        UserError: it is gone, or has changed.
    """
    try:
        text = reopen(facts, cache=cache, progress=progress, moved_to=sources)
    except UserError as error:
        raise UserError(
            f"run {run_name!r} cannot be resumed without its text: ", *error.parts,
            "" if sources else "; if it has moved, say where it is now",
        ) from None  # fmt: skip
    found = scan(text, progress)
    if found.sha256 != facts.sha256:
        changed = "is another one" if sources else "has changed"
        raise UserError(
            f"run {run_name!r} cannot be resumed: its text {text.sources[0]!r} {changed}"
            f" ({facts.characters:,} characters then, {found.characters:,} now)"
        )
    return ReadText(text, found)


def make_tokenizer(
    read: ReadText, config: TrainConfig, block_size: int, progress: ProgressCallback
) -> Tokenizer:
    """The tokenizer of a new run.

    Raises:
        UserError: the text is too short for it.
    """
    characters = read.scan.characters
    n_train = train_characters(characters, config.val_fraction)
    if config.tokenizer == "char":  # known before a long text is encoded
        check_split(n_train, characters - n_train, block_size)
    return learn_tokenizer(config.tokenizer, read.scan, n_train, progress)


def require_known(read: ReadText, tokenizer: Tokenizer, label: str) -> None:
    """Refuse a text that a checkpoint's tokenizer cannot read.

    Raises:
        UserError: names the characters that it does not know.
    """
    _, unknown = tokenizer.split_unknown(read.scan.symbols)
    if unknown:
        shown = symbols_shown(unknown)
        raise UserError(
            f"{read.text.name!r} has characters that ",
            Setting("from", label),
            f" does not know: {shown}; train a new model on it, or leave them out",
        )


def make_corpus(
    read: ReadText,
    tokenizer: Tokenizer,
    config: TrainConfig,
    block_size: int,
    device: torch.device,
    cache: Path,
    progress: ProgressCallback,
) -> Corpus:
    """Encode a text, or take its tokens from the cache.

    Raises:
        UserError: it is too short, has changed meanwhile, or does not fit on the disk.
    """
    ids = encode(read.text, read.scan, tokenizer, Cache(cache), progress)
    n_train = train_characters(read.scan.characters, config.val_fraction)
    return Corpus(ids, tokenizer, n_train, block_size, device)


def corpus_facts(read: ReadText, corpus: Corpus, config: TrainConfig) -> CorpusFacts:
    """`ReadText.facts` with the sizes of the two parts."""
    n_train = train_characters(read.scan.characters, config.val_fraction)
    return msgspec.structs.replace(
        read.facts(),
        train_tokens=corpus.n_train,
        val_tokens=corpus.n_val,
        train_characters=n_train,
        val_characters=read.scan.characters - n_train,
    )
