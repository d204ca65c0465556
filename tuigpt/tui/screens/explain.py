"""Four short pages that explain the words of the app with the numbers of one run."""

from __future__ import annotations

from dataclasses import dataclass

from tuigpt.loss import bits
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.wording import loss_text, one_line, short_count


@dataclass(frozen=True)
class Page:
    """A page of help.

    Attributes:
        title: what it explains.
        words: paragraphs, which are wrapped where they are shown; no markup.
    """

    title: str
    words: str


def explanations(run: Run | None, checkpoint: Checkpoint | None) -> list[Page]:
    """A token, a checkpoint, a loss, nats and bits; of this run and its checkpoint if they are.

    Args:
        run: the one that is watched, or the poet.
        checkpoint: the one that writes.
    """
    return [_token(checkpoint), _checkpoint(checkpoint), _loss(run), _nats(run)]


def _token(checkpoint: Checkpoint | None) -> Page:
    words = (
        "A token is what a model reads and writes in one go: here one character, or with byte-pair"
        " encoding a frequent group of characters such as “the”. A model knows a fixed number of"
        " tokens, its vocabulary, and to write it draws one token after the other."
    )
    if checkpoint is not None:
        words += (
            f"\n\n{one_line(checkpoint.label)} knows {checkpoint.vocab_size:,} tokens. At every"
            f" place it gives each of the {checkpoint.vocab_size:,} a probability; temperature and"
            " top-k decide how daring the draw among them is."
        )
    return Page("a token", words)


def _checkpoint(checkpoint: Checkpoint | None) -> Page:
    words = (
        "A checkpoint is the model as it was at one step of its training, in one file: all of its"
        " numbers, its vocabulary and what it learned from. It can write, be sent to a friend, and"
        " be trained further. ★ marks the one with the lowest val loss of its run: usually the best"
        " writer, and not always the last."
    )
    if checkpoint is not None:
        words += (
            f"\n\nThe one that writes now is {one_line(checkpoint.label)}: the"
            f" {short_count(checkpoint.n_params)} numbers that training had reached after"
            f" {checkpoint.step:,} steps."
        )
    return Page("a checkpoint", words)


def _loss(run: Run | None) -> Page:
    words = (
        "The loss says how surprised the model is by each next character: 0 would be never, a high"
        " loss means that the text is news to it. train is the loss on the text it studies, val the"
        " loss on a part of the text that it never sees. When train falls and val rises, the model"
        " has begun to memorise the text."
    )
    if run is not None and run.record is not None and run.record.baselines:
        levels = ", ".join(
            f"{name} {loss_text(nats)}" for name, nats in run.record.baselines.items()
        )
        words += (
            f"\n\nWhat counting alone reaches on the text of {one_line(run.name)}: {levels}. Below"
            " a level, the model knows more than those counts."
        )
    best = run.best if run is not None else None
    if run is not None and best is not None and best.val_loss is not None:
        words += f" Its lowest val was {loss_text(best.val_loss)}, at step {best.step:,}."
    return Page("a loss", words)


def _nats(run: Run | None) -> Page:
    words = (
        "Nats and bits are two units of one surprise, as inches and centimetres are of one length:"
        " a nat is 1.44 bits. One bit is the surprise of a tossed coin; a loss of b bits means that"
        " a compressor with this model would need b bits for each character."
    )
    best = run.best if run is not None else None
    if run is not None and best is not None and best.val_loss is not None:
        nats = best.val_loss
        choices = 2.718281828**nats
        words += (
            f"\n\nThe best of {one_line(run.name)} is at {nats:.2f} nats = {bits(nats):.2f} bits a"
            f" character: as unsure as if it chose among {choices:.1f} equally likely characters."
        )
    return Page("nats and bits", words)
