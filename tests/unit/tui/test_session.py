"""Which checkpoint is open, and what is offered in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tui.test_checkpoints_pane import checkpoint, run

from tuigpt.runs.folder import Run
from tuigpt.runs.follow import Snapshot
from tuigpt.runs.history import History
from tuigpt.tui.session import Session

POET = replace(
    run("poet", replace(checkpoint(5000, 1.2, run="poet"), built_in=True)), built_in=True
)
VERSE = run("verse", checkpoint(100, 2.0))
GROWN = run("verse", checkpoint(100, 2.0), checkpoint(200, 1.5))
WORSE = run("verse", checkpoint(100, 2.0), checkpoint(200, 2.5))
UNMEASURED = run("verse", checkpoint(100, 2.0), checkpoint(200, 1.5), checkpoint(300, None))
REPLACED = run("verse", checkpoint(200, 1.5))
PROSE = run("prose", checkpoint(50, 3.0))
EMPTY = run("new", state="preparing")


def seen(*runs: Run, poet: Run | None = POET, watched: Run | None = None) -> Snapshot:
    return Snapshot(runs, poet, watched or next(iter(runs), None), History(), False)


@dataclass
class Case:
    """Looks one after the other, and what is open and offered after each."""

    looks: list[Snapshot]
    opened: list[str]
    offered: list[str]


CASES = {
    "nothing at all": Case([seen(poet=None)], [""], [""]),
    "the poet stands in": Case([seen()], ["poet@5000"], [""]),
    "a run that has saved nothing changes nothing": Case(
        [seen(), seen(EMPTY)], ["poet@5000"] * 2, ["", ""]
    ),
    "a model of one's own comes first": Case([seen(VERSE)], ["verse@100"], [""]),
    "the watched run before newer ones": Case([seen(PROSE, VERSE, watched=VERSE)],
                                              ["verse@100"], [""]),
    "the best, not the last": Case([seen(WORSE)], ["verse@100"], [""]),
    "the first model is offered, and the poet stays": Case(
        [seen(), seen(VERSE)], ["poet@5000"] * 2, ["", "verse@100"]
    ),
    "a better one of the same run is offered": Case(
        [seen(VERSE), seen(GROWN)], ["verse@100"] * 2, ["", "verse@200"]
    ),
    "a worse one is not": Case([seen(VERSE), seen(WORSE)], ["verse@100"] * 2, ["", ""]),
    "a newer one is, where nobody knows whether it is better": Case(
        [seen(VERSE), seen(UNMEASURED)], ["verse@100"] * 2, ["", "verse@300"]
    ),
    "one of another run that is watched is offered": Case(
        [seen(VERSE), seen(PROSE, VERSE, watched=PROSE)], ["verse@100"] * 2, ["", "prose@50"]
    ),
    "what took its place opens when its file is gone": Case(
        [seen(VERSE), seen(REPLACED)], ["verse@100", "verse@200"], ["", ""]
    ),
    "another run when its run is gone": Case(
        [seen(VERSE, PROSE), seen(PROSE)], ["verse@100", "prose@50"], ["", ""]
    ),
    "the poet when all else is gone": Case(
        [seen(VERSE), seen()], ["verse@100", "poet@5000"], ["", ""]
    ),
    "nothing when the poet was hidden": Case(
        [seen(), seen(poet=None)], ["poet@5000", ""], ["", ""]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_is_open_stays_open(case: Case) -> None:
    session = Session(Path("/home"))
    opened, offered = [], []
    for snapshot in case.looks:
        session.look(snapshot)
        opened.append(session.checkpoint.label if session.checkpoint else "")
        offered.append(session.offer.label if session.offer else "")
    assert (opened, offered) == (case.opened, case.offered)


def test_an_offer_ends_with_another_one_opened() -> None:
    session = Session(Path("/home"))
    session.look(seen(VERSE))
    session.look(seen(GROWN))
    assert session.offer is not None
    session.open(session.offer)
    assert session.checkpoint is not None and session.checkpoint.label == "verse@200"
    assert session.offer is None


def test_an_older_one_that_was_chosen_is_left_in_peace() -> None:
    session = Session(Path("/home"))
    session.look(seen(GROWN))
    session.open(GROWN.checkpoints[0])
    session.look(seen(GROWN))
    assert session.checkpoint == GROWN.checkpoints[0] and session.offer is None


def test_runs_that_train_or_begin_to() -> None:
    session = Session(Path("/home"), starting="prose")
    training = run("busy", state="training")
    session.look(seen(training, VERSE, PROSE))
    assert [r.name for r in session.running] == ["busy", "prose"]


def test_a_followed_run_writes_with_its_newest_checkpoint() -> None:
    session = Session(Path("/nowhere"))
    session.look(seen(VERSE))
    session.follow(session.to_follow)
    session.look(seen(WORSE))
    assert session.checkpoint is not None and session.checkpoint.label == "verse@200"
    assert session.offer is None
    session.follow(None)
    session.look(seen(run("verse", *WORSE.checkpoints, checkpoint(300, 2.6))))
    assert session.checkpoint.label == "verse@200"
    session.follow(session.to_follow)
    session.open(VERSE.last)
    assert not session.following


def test_the_run_that_trains_is_followed_before_the_open_one() -> None:
    session = Session(Path("/nowhere"))
    session.look(seen(VERSE))
    training = replace(EMPTY, status=replace(EMPTY.status, state="training"))
    session.look(seen(training, VERSE, watched=training))
    assert session.to_follow is training


def test_a_run_can_be_followed_before_it_has_saved_anything() -> None:
    session = Session(Path("/nowhere"))
    session.look(seen(EMPTY))
    session.follow(session.to_follow)
    assert session.checkpoint is not None and session.checkpoint.label == "poet@5000"
    session.look(seen(run("new", checkpoint(50, 3.0, run="new"))))
    assert session.checkpoint.label == "new@50"
