"""What a text copies from a model's training text: once, for the generator process and the shell.

The weights are not needed for it, so neither is torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.generation.protocol import Copies, Copy, TextFacts, Unseen
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.copies import (
    OnProgress,
    find_copies,
    find_copies_of_training,
    share_copied,
    training_text,
)
from tuigpt.text.words import WordSearch, words_of

UNSEEN_CHARACTERS = 500
"""Characters that are read of a validation part: about as many as a model's texts are long."""


def copies(
    corpus: CorpusFacts,
    text: str,
    at_least: int,
    cache: Path,
    progress: OnProgress = lambda done, total: None,
) -> Copies:
    """Which parts of a text stand in the text that a checkpoint's model was trained on.

    Args:
        corpus: of that text (see `find_corpus`).
        at_least: shortest copy that counts, in characters.
        cache: folder with the texts that were fetched.
        progress: called with the characters of that text read so far, and all of them.

    Raises:
        UserError: the checkpoint does not name its text, or the text is gone or has changed.
    """
    spans = find_copies_of_training(corpus, text, at_least, cache, progress)
    return Copies(
        corpus=corpus.name,
        share=share_copied(spans, len(text)),
        copies=[Copy(span.start, span.length, span.place, span.line) for span in spans],
    )


def compare(
    corpus: CorpusFacts,
    texts: Sequence[str],
    at_least: int,
    cache: Path,
    progress: OnProgress = lambda done, total: None,
) -> list[TextFacts]:
    """How much of each text is copied, and how many of its words are real, in one reading.

    Args:
        corpus: of the text that the model was trained on (see `find_corpus`).
        at_least: shortest copy that counts, in characters.
        cache: folder with the texts that were fetched.
        progress: called with the characters of that text read so far, and all of them.

    Raises:
        UserError: the checkpoint does not name its text, or the text is gone or has changed.
    """
    words = [words_of(text) for text in texts]
    search = WordSearch(word for each in words for word in each)
    # Joined by what is in no text, so that no copy reaches from one into the next.
    joined = "\0".join(text.replace("\0", " ") for text in texts)
    spans = find_copies(joined, at_least, search.through(training_text(corpus, cache, progress)))
    facts, start = [], 0
    for text, own in zip(texts, words, strict=True):
        inside = [span for span in spans if start <= span.start < start + len(text)]
        real = sum(word in search.found for word in own)
        facts.append(TextFacts(share_copied(inside, len(text)), real / len(own) if own else None))
        start += len(text) + 1
    return facts


def unseen(
    corpus: CorpusFacts, cache: Path, progress: OnProgress = lambda done, total: None
) -> Unseen:
    """The beginning of the validation part, from its first whole line on.

    Args:
        corpus: of the text that the model was trained on (see `find_corpus`).
        cache: folder with the texts that were fetched.
        progress: called with the characters of that text read so far, and all of them.

    Raises:
        UserError: nothing was kept for validation, or the text is gone or has changed.
    """
    if not (corpus.train_characters and corpus.val_characters):
        raise UserError("this checkpoint does not say where its validation text begins")
    # A character before it, to see whether it begins with a whole line.
    start, before, found = corpus.train_characters - 1, 0, ""
    for chunk in training_text(corpus, cache, progress):  # to the end, which checks it
        wanted = 2 * UNSEEN_CHARACTERS - len(found)
        found += chunk[max(0, start - before) :][:wanted]
        before += len(chunk)
    line = found.find("\n") + 1
    if line > UNSEEN_CHARACTERS or not found[line:].strip():
        line = 1
    return Unseen(corpus.name, found[line:][:UNSEEN_CHARACTERS])
