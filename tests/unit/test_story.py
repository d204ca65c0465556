"""What is said of a run, on recorded kinds of curves."""

from __future__ import annotations

import math

import pytest

from tuigpt.loss import Baselines
from tuigpt.story import STAGES, Evaluation, Milestones, Mood, milestones, stage_of, tell

PLAYS = Baselines(guessing=4.17, letters=3.32, pairs=2.48, triples=2.07)

HEALTHY = [
    Evaluation(0, 4.2), Evaluation(10, 3.9, 3.9), Evaluation(50, 3.1, 3.0),
    Evaluation(100, 2.46, 2.4), Evaluation(200, 2.04, 1.97), Evaluation(400, 1.84, 1.73),
    Evaluation(800, 1.75, 1.66), Evaluation(1000, 1.71, 1.62),
]  # fmt: skip
OVERFITTED = [
    Evaluation(0, 4.2), Evaluation(100, 2.28, 2.24), Evaluation(200, 1.97, 1.78),
    Evaluation(250, 1.94, 1.63), Evaluation(300, 1.96, 1.43), Evaluation(500, 2.15, 0.97),
    Evaluation(700, 2.58, 0.54),
]  # fmt: skip


def test_a_healthy_run_is_learning() -> None:
    story = tell(HEALTHY, PLAYS, train=1.6, shakespeare=True)
    assert story.mood is Mood.LEARNING and story.verdict.startswith("still learning")
    assert story.stage == "recognisable words, the shape of a play"
    assert story.gap == pytest.approx(0.09) and story.memorising_from is None


def test_an_overfitted_run_keeps_the_stage_of_its_best() -> None:
    story = tell(OVERFITTED, PLAYS, train=0.54, shakespeare=True)
    assert story.mood is Mood.MEMORISING and story.memorising_from == 250
    assert story.stage == stage_of(1.94, PLAYS, shakespeare=True)
    assert story.verdict == "memorising: val has risen by 0.64 since step 250"
    assert "step 250" in story.advice and story.best == OVERFITTED[3]


def test_a_small_rise_is_no_memorising_yet() -> None:
    assert tell(OVERFITTED[:5], PLAYS).mood is Mood.LEARNING


def test_when_both_losses_rise_it_is_the_rate() -> None:
    rising = [*HEALTHY, Evaluation(1100, 2.4, 2.3)]
    story = tell(rising, PLAYS, train=2.3)
    assert story.mood is Mood.WORSE and "lower learning rate" in story.advice


@pytest.mark.parametrize("train", [math.nan, math.inf])
def test_a_train_loss_that_is_no_number_has_diverged(train: float) -> None:
    story = tell(HEALTHY, PLAYS, train=train)
    assert story.mood is Mood.DIVERGED and story.best == HEALTHY[-1]


def test_a_val_loss_that_is_no_number_has_diverged() -> None:
    assert tell([*HEALTHY, Evaluation(1100, math.nan)], PLAYS, train=1.6).mood is Mood.DIVERGED


def test_worse_than_guessing() -> None:
    story = tell([Evaluation(0, 4.2), Evaluation(10, 5.0)], PLAYS, train=5.0)
    assert story.mood is Mood.WORSE and story.best == Evaluation(10, 5.0)
    assert stage_of(5.0, PLAYS) == "worse than guessing"


def test_a_flat_run_is_told_so() -> None:
    flat = [*HEALTHY, *(Evaluation(s, 1.709 - s / 1e7, 1.6) for s in range(1500, 4001, 100))]
    story = tell(flat, PLAYS, train=1.6)
    assert story.mood is Mood.FLAT and "hardly fallen since step 2,8" in story.verdict


def test_before_the_first_evaluation_train_speaks() -> None:
    story = tell([Evaluation(0, 4.2)], PLAYS, train=2.3)
    assert story.stage == STAGES["triples"] and "text it trains on" in story.verdict
    assert tell([], PLAYS).mood is Mood.WAITING
    assert tell([Evaluation(0, 4.2)], PLAYS).stage == STAGES["guessing"]


def test_a_first_impression_from_little_text_tells_the_stage_and_is_never_the_best() -> None:
    early = [Evaluation(0, 4.2), Evaluation(10, 3.1, 3.2, early=True)]
    story = tell(early, PLAYS, train=3.2)
    assert story.stage == STAGES["pairs"] and story.mood is Mood.LEARNING
    assert story.best is None and story.estimate == 3.1
    later = tell([*early, Evaluation(100, 3.2, 3.1)], PLAYS, train=3.1)
    assert later.best == Evaluation(100, 3.2, 3.1) and later.memorising_from is None
    # It may be off, so a level counts as passed only well below it.
    near = [Evaluation(10, 3.3, early=True), Evaluation(100, 3.1)]
    assert milestones(near, PLAYS) == [(100, "letters")]


def test_without_validation_nobody_can_tell() -> None:
    story = tell([], PLAYS, train=0.4, validates=False)
    assert "nobody can tell" in story.verdict


@pytest.mark.parametrize(
    ("loss", "stage"),
    [(4.1, "guessing"), (3.5, "letters"), (3.0, "pairs"), (2.2, "triples")],
)
def test_stages_of_any_text_go_by_its_own_baselines(loss: float, stage: str) -> None:
    assert stage_of(loss, PLAYS) == STAGES[stage]


def test_below_triples_a_text_of_ones_own_is_told_how_far() -> None:
    assert stage_of(1.55, PLAYS).endswith("25% below them")
    assert "play" not in stage_of(1.55, PLAYS)


def test_a_text_too_short_for_baselines_still_has_stages() -> None:
    little = Baselines(guessing=2.0)
    assert stage_of(1.99, little) == STAGES["guessing"]
    assert stage_of(1.0, little) == "it has left guessing behind"
    assert stage_of(1.0, Baselines()) == "it has left guessing behind"


def test_milestones_are_the_first_evaluations_below_each_level() -> None:
    assert milestones(HEALTHY, PLAYS) == [(50, "letters"), (100, "pairs"), (200, "triples")]
    assert milestones(OVERFITTED[:2], PLAYS) == [(100, "letters"), (100, "pairs")]


def test_each_milestone_is_told_once() -> None:
    told = Milestones(PLAYS)
    said = [told.passed(e) for e in HEALTHY]
    assert list(filter(None, said)) == [
        "passed letters at step 50", "passed pairs at step 100", "passed triples at step 200",
    ]  # fmt: skip
    resumed = Milestones(PLAYS, best=2.4)
    assert resumed.passed(Evaluation(1000, 2.0)) == "passed triples at step 1,000"
    assert Milestones(PLAYS).passed(Evaluation(100, 2.3)) == "passed letters and pairs at step 100"
    assert Milestones(PLAYS).passed(Evaluation(0, 1.5)) == ""


def test_a_resumed_run_goes_on_with_its_story() -> None:
    assert tell([*HEALTHY, Evaluation(1100, 1.69, 1.6)], PLAYS).best == Evaluation(1100, 1.69, 1.6)
