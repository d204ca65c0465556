"""What a text copies from a model's training text: once, for the generator process and the shell.

The weights are not needed for it, so neither is torch.
"""

from __future__ import annotations

from pathlib import Path

from tuigpt.generation.protocol import Copies, Copy
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.copies import find_copies_of_training, share_copied


def copies(corpus: CorpusFacts, text: str, at_least: int, cache: Path) -> Copies:
    """Which parts of a text stand in the text that a checkpoint's model was trained on.

    Args:
        corpus: of that text (see `find_corpus`).
        at_least: shortest copy that counts, in characters.
        cache: folder with the texts that were fetched.

    Raises:
        UserError: the checkpoint does not name its text, or the text is gone or has changed.
    """
    spans = find_copies_of_training(corpus, text, at_least, cache)
    return Copies(
        corpus=corpus.name,
        share=share_copied(spans, len(text)),
        copies=[Copy(span.start, span.length, span.place, span.line) for span in spans],
    )
