"""What the pane tells: how to begin, how it works, and what is new (for keys see `tui.keys`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuigpt.tui.session import Session

NO_CHECKPOINT = (
    "No model is open yet. Train one with {train.new-run}: its first checkpoint opens here by"
    " itself. Or choose one in the checkpoints, {view.checkpoints}."
)
NO_MODEL = "no model is open yet: train one with {train.new-run}"
READY = "Type a beginning, such as ROMEO: and press enter. The model goes on from there."
POET_PROMPT = "ROMEO:"
"""What the poet begins with where nothing is typed."""

POET_READY = (
    "The poet is open: a model that comes with tuigpt and has learned from Shakespeare's plays."
    " Type a beginning and press enter, or enter alone for ROMEO: and it goes on from there."
    " {train.new-run} trains a model of your own."
)

HELP = """\
Type the beginning of a text and press [b]enter[/b]: the open model continues it. [b]esc[/b] stops \
it and keeps what is written; [b]tab[/b] goes from the prompt to temperature, top-k, length, seed \
and the texts.

[b]next[/b]         what could come next, and how likely each is; the sliders change it at once, \
also while a text is being written.
[b]temperature[/b]  0 always takes the likeliest token, 1 draws as learned, more is wilder.
[b]top-k[/b]        only the k likeliest tokens may be drawn; 0 is off.
[b]top-p, min-p[/b] with [b]{generate.finer}[/b]: two more ways to leave out what is unlikely.
[b]length[/b]       in tokens; left empty, it writes until it is stopped.
[b]seed[/b]         the same seed, settings and checkpoint write the same text again. Left empty, \
each text gets a seed of its own, which its rule tells.
[b]samples[/b]      more than one are written at once, with seeds in a row, to be compared.

A text longer than the model's context is written with a rolling window, which is fast; \
[b]{generate.window}[/b] chooses the exact one, which reads the whole context again for each \
token."""


def newer_weights(session: Session) -> str:
    """What there is to say of newer weights, and the key that goes with it."""
    if session.following:
        newest, ends = session.checkpoint, " · {generate.follow} ends that"
        if newest is None or newest.run != session.following:
            return f"follows {session.following}, which has saved nothing yet{ends}"
        return f"follows {newest.run}: its newest step writes, {newest.step:,}{ends}"
    if session.offer:
        keys = "{generate.open-newer} opens it, {generate.follow} follows the run"
        return f"{session.offer.label} is new: {keys}"
    return ""
