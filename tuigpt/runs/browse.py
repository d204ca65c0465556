"""What a list of checkpoints tells of each, how it is sorted, and what is found in it.

The shell and the app list the same in the same order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.wording import short_count


def gap(checkpoint: Checkpoint) -> float | None:
    """How far val lies above train, in nats per character: what was memorised."""
    if checkpoint.val_loss is None or checkpoint.train_loss is None:
        return None
    return checkpoint.val_loss - checkpoint.train_loss


def kept_as(run: Run, checkpoint: Checkpoint) -> str:
    """Why a checkpoint is kept, in words, or "" for one that only tells how the run grew up."""
    reasons = (
        ("best", checkpoint == run.best),
        ("last", checkpoint == run.last),
        ("starred", checkpoint.step in run.marks.stars),
    )
    words = ", ".join(word for word, holds in reasons if holds)
    every = run.record.train.checkpoint_interval if run.record else 0
    if not words and every and checkpoint.step and checkpoint.step % every == 0:
        return f"every {every:,}"
    return words


def facts_of(run: Run) -> str:
    """A run's size and text: 438k · shakespeare."""
    if run.record is None:
        return ""
    return f"{short_count(run.record.model.n_params)} · {run.record.corpus.name or 'a text'}"


def state_of(run: Run) -> str:
    """A run's state in a few words."""
    if run.built_in:
        return "built in"
    status = run.status
    if run.problem:
        return "damaged"
    if status.state in ("finished", "preparing"):
        return status.state
    return f"{status.state} at {status.step:,}"


def _kept_place(run: Run, checkpoint: Checkpoint) -> float | None:
    reason = re.match(r"\w+", kept_as(run, checkpoint))
    return ("best", "last", "starred", "every").index(reason[0]) if reason else None


_Key = Callable[[Run, Checkpoint], float | None]

SORTS: dict[str, tuple[str, _Key]] = {
    "step": ("newest step first", lambda run, c: -c.step),
    "val": (
        "lowest val first",
        lambda run, c: c.early_val_loss if c.val_loss is None else c.val_loss,
    ),
    "train": ("lowest train first", lambda run, c: c.train_loss),
    "gap": ("smallest gap first", lambda run, c: gap(c)),
    "kept": ("best, last and starred first", _kept_place),
    "size": ("largest first", lambda run, c: -c.size),
    "age": ("youngest first", lambda run, c: -c.modified),
}
"""By what checkpoints can be sorted: in words, and the value of which the lowest comes first."""


def sort_checkpoints(
    run: Run, checkpoints: Sequence[Checkpoint], by: str = "step", backwards: bool = False
) -> list[Checkpoint]:
    """Checkpoints of a run in the order of a column; those without a value come last."""
    return sorted(checkpoints, key=lambda c: _place(SORTS[by][1](run, c), backwards))


def sort_runs(runs: Sequence[Run], by: str = "step", backwards: bool = False) -> list[Run]:
    """Runs in the order of what is best in them by a column; by step, age and kept as they come.

    Args:
        runs: newest first.
    """
    if by in ("step", "age", "kept"):
        return list(reversed(runs)) if backwards else list(runs)

    def place(run: Run) -> tuple[bool, float]:
        if by == "size":
            return _place(-sum(c.size for c in run.checkpoints), backwards)
        values = [v for c in run.checkpoints if (v := SORTS[by][1](run, c)) is not None]
        finite = [value for value in values if math.isfinite(value)]
        return _place(min(finite, default=None), backwards)

    return sorted(runs, key=place)


def _place(value: float | None, backwards: bool) -> tuple[bool, float]:
    if value is None or not math.isfinite(value):
        return True, 0.0
    return False, -value if backwards else value


def find(run: Run, words: str) -> tuple[Checkpoint, ...] | None:
    """What a filter leaves of a run: all of it where its own facts have every word, else the
    checkpoints that have; None where nothing does.

    Args:
        words: each must occur in what the list tells, in any letter case.
    """
    wanted = words.lower().split()
    own = f"{run.name} {facts_of(run)} {state_of(run)} {run.marks.note}".lower()
    if all(word in own for word in wanted):
        return run.checkpoints
    found = tuple(c for c in run.checkpoints if _has(run, c, own, wanted))
    return found or None


def _has(run: Run, checkpoint: Checkpoint, own: str, wanted: Sequence[str]) -> bool:
    note = run.marks.notes.get(checkpoint.step, "")
    text = f"{own} @{checkpoint.step} {kept_as(run, checkpoint)} {note} {checkpoint.problem}"
    return all(word in text.lower() for word in wanted)
