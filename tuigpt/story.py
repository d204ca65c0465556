"""What the losses of a run mean, in words that hold for any text: rules, without a screen.

The same sentences stand above the app's chart, end the shell's `train` and are milestones in a
run's log. A stage is that of the *best* val loss so far: a model that has begun to memorise has not
forgotten what letters are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tuigpt.loss import Baselines, can_be_best

MEMORISING_ABOVE = 0.03
"""How far val must lie above its best, in nats, before we speak of memorising."""

WORSE_THAN_GUESSING = 0.5
"""How far a loss must lie above that of guessing, in nats, before we call it worse."""

EARLY_MARGIN = 0.1
"""How far an evaluation on little text may be off, in nats."""

FLAT_BELOW, FLAT_SHARE, FLAT_POINTS = 0.005, 0.3, 5
"""A run is flat if over its last share of steps, and as many evaluations, val fell by less."""

SHAKESPEARE = (
    (1.8, "first recognisable words"),
    (1.45, "recognisable words, the shape of a play"),
    (1.2, "whole phrases, names and verse that hold together"),
    (0.0, "fluent verse"),
)
"""Lowest loss of each stage below triples on Shakespeare's plays, nats per character.

Source: part 3 of the workshop "Train Your Own LLM From Scratch"."""

STAGES = {
    "guessing": "nothing learned yet: every character is as likely as any other",
    "letters": "it is learning how often each letter comes",
    "pairs": "it knows its letters, and is learning which follows which",
    "triples": "it knows common pairs of letters, and is learning triples",
    "": "it sees further back than triples of letters",
}
"""What is being learned before each baseline is passed; the last one is for when all are."""


class Mood(StrEnum):
    """The state of a model's learning; each front end has one colour for each."""

    WAITING = "waiting"
    LEARNING = "learning"
    FLAT = "flat"
    MEMORISING = "memorising"
    WORSE = "worse"
    DIVERGED = "diverged"


class Evaluation(NamedTuple):
    """One evaluation of a run.

    Attributes:
        step: number of updates done.
        val: loss on the validation part, nats per character.
        train: loss on the training part around this step, smoothed, or None where it is unknown.
        early: whether it measured little text, before the regular evaluations begin.
    """

    step: int
    val: float
    train: float | None = None
    early: bool = False

    def is_below(self, level: float) -> bool:
        """Whether the loss is below a level, beyond what little text may mislead by."""
        return self.val < level - EARLY_MARGIN * self.early


@dataclass(frozen=True)
class Story:
    """What is to be said of a run.

    Attributes:
        mood: the state in one word.
        stage: what the model can do by now.
        verdict: whether it still learns, and if not, since when and by how much.
        advice: what can be done, or "".
        best: the evaluation with the lowest val of those that can be the best, or None.
        estimate: the newest val while only early evaluations tell of the trained model, or None.
        gap: val minus train of the newest evaluation, or None.
        memorising_from: the step of the best evaluation once the model memorises, else None.
    """

    mood: Mood
    stage: str
    verdict: str
    advice: str = ""
    best: Evaluation | None = None
    estimate: float | None = None
    gap: float | None = None
    memorising_from: int | None = None


def stage_of(loss: float, baselines: Baselines, shakespeare: bool = False) -> str:
    """What a loss says about what a model has learned.

    Args:
        loss: nats per character.
        baselines: of the text that it is measured on.
        shakespeare: whether the text is of Shakespeare's plays, whose further stages are known.
    """
    if not math.isfinite(loss):
        return "not a number: the model has diverged"
    guessing = baselines.guessing
    if guessing is not None and loss > guessing + WORSE_THAN_GUESSING:
        return "worse than guessing"
    # Within a twentieth of guessing nothing is learned that one could see.
    if guessing is not None and loss > 0.95 * guessing:
        return STAGES["guessing"]
    measured = [(name, value) for name, value in baselines.items() if name != "guessing"]
    for name, value in measured:
        if loss >= value:
            return STAGES[name]
    if shakespeare:
        return next(words for lowest, words in SHAKESPEARE if loss >= lowest)
    if measured and measured[-1][0] == "triples":
        below = 1 - loss / measured[-1][1]
        return f"{STAGES['']}: {below:.0%} below them"
    return STAGES[""] if measured else "it has left guessing behind"


def milestones(evaluations: Sequence[Evaluation], baselines: Baselines) -> list[tuple[int, str]]:
    """The step of the first evaluation below each baseline, with the baseline's name."""
    return [
        (evaluation.step, name)
        for name, value in baselines.items()
        if name != "guessing"
        and (evaluation := next((e for e in evaluations if e.is_below(value)), None)) is not None
    ]


class Milestones:
    """Tells of each baseline once, when an evaluation is below it for the first time."""

    def __init__(self, baselines: Baselines, best: float | None = None) -> None:
        """
        Args:
            best: lowest val so far of a run that goes on, nats per character.
        """
        before = [] if best is None else [Evaluation(1, best)]
        self._baselines = baselines
        self._passed = {name for _, name in milestones(before, baselines)}

    def passed(self, evaluation: Evaluation) -> str:
        """What to say of an evaluation, or ""."""
        below = [name for _, name in milestones([evaluation], self._baselines)]
        new = [name for name in below if name not in self._passed]
        self._passed.update(new)
        if not new or evaluation.step == 0:  # a model that was trained before has passed them then
            return ""
        *others, last = new
        names = f"{', '.join(others)} and {last}" if others else last
        return f"passed {names} at step {evaluation.step:,}"


def tell(
    evaluations: Sequence[Evaluation],
    baselines: Baselines,
    *,
    train: float | None = None,
    shakespeare: bool = False,
    validates: bool = True,
) -> Story:
    """The story of a run so far.

    Args:
        evaluations: in order of their steps.
        baselines: of the run's text.
        train: newest train loss, smoothed, nats per character; it may be NaN.
        shakespeare: whether the text is of Shakespeare's plays.
        validates: whether the run has a validation part.
    """
    finite = [e for e in evaluations if math.isfinite(e.val)]
    regular = [e for e in finite if not e.early]
    contest = [e for e in finite if can_be_best(e.step, e.early)]
    best = min(contest, key=lambda e: e.val, default=None)
    lost = bool(evaluations) and not math.isfinite(evaluations[-1].val)
    if lost or (train is not None and not math.isfinite(train)):
        return Story(
            Mood.DIVERGED, "the loss is no longer a number", "it diverged", _LOWER_RATE, best
        )
    if not finite or (train is not None and finite[-1].step == 0):
        return _without_val(train, baselines, shakespeare, validates)
    first_impression = best is None
    now = finite[-1] if first_impression else regular[-1]
    lowest = now if first_impression else min(regular, key=lambda e: e.val)
    stage = stage_of(lowest.val, baselines, shakespeare)
    gap = None if now.train is None else now.val - now.train
    estimate = now.val if now.early else None
    if not first_impression and now.val - lowest.val > MEMORISING_ABOVE:
        return _since_the_lowest(now, lowest, best, stage, gap)
    if baselines.guessing is not None and now.val > baselines.guessing + WORSE_THAN_GUESSING:
        return Story(
            Mood.WORSE, stage, "it is worse than guessing", _LOWER_RATE, best, estimate, gap
        )
    if since := _flat_since(regular):
        return Story(
            Mood.FLAT, stage, f"val has hardly fallen since step {since:,}",
            "more steps alone will not help much; try a bigger model or a longer context",
            best, estimate, gap,
        )  # fmt: skip
    verdict = "still learning, no overfitting so far" if len(finite) > 1 else "it has just begun"
    return Story(Mood.LEARNING, stage, verdict, "", best, estimate, gap)


_LOWER_RATE = "try a lower learning rate"


def _without_val(
    train: float | None,
    baselines: Baselines,
    shakespeare: bool,
    validates: bool,
) -> Story:
    """What the train loss alone tells, before the first evaluation or without a validation part."""
    if train is None:
        return Story(Mood.WAITING, "it has not begun yet", "")
    stage = stage_of(train, baselines, shakespeare)
    if not validates:
        return Story(
            Mood.LEARNING, stage, "without a validation part nobody can tell whether it memorises"
        )
    return Story(Mood.LEARNING, stage, "going by the text it trains on; val comes soon")


def _since_the_lowest(
    now: Evaluation, lowest: Evaluation, best: Evaluation | None, stage: str, gap: float | None
) -> Story:
    risen = f"val has risen by {now.val - lowest.val:.2f} since step {lowest.step:,}"
    if lowest.step == 0 or (lowest.train or math.inf) + MEMORISING_ABOVE < (now.train or 0.0):
        verdict = f"getting worse: {risen}, and train did not fall"
        return Story(Mood.WORSE, stage, verdict, _LOWER_RATE, best, gap=gap)
    return Story(
        Mood.MEMORISING, stage, f"memorising: {risen}",
        "next time more text, a smaller model or dropout; the best checkpoint is that of step"
        f" {lowest.step:,}",
        best, gap=gap, memorising_from=lowest.step,
    )  # fmt: skip


def _flat_since(evaluations: Sequence[Evaluation]) -> int | None:
    """The step from which on val hardly fell, or None."""
    last = evaluations[-1].step if evaluations else 0
    late = [e for e in evaluations if e.step >= (1 - FLAT_SHARE) * last]
    if len(late) < FLAT_POINTS or late[0].val - min(e.val for e in late) >= FLAT_BELOW:
        return None
    return late[0].step


def is_shakespeare(corpus_name: str) -> bool:
    """Whether a text of this name is one of the Shakespeare texts that tuigpt knows by name."""
    return corpus_name in ("shakespeare", "tinyshakespeare")


def lines(story: Story) -> Iterator[str]:
    """The story for a terminal without colours, a sentence a line."""
    yield story.stage
    if story.verdict:
        yield story.verdict
    if story.advice:
        yield story.advice
