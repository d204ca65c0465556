"""Other runs laid over the chart, each told apart by a letter."""

from __future__ import annotations

from collections.abc import Sequence

from tuigpt.charts.plot import Other
from tuigpt.runs.folder import Run
from tuigpt.runs.history import History
from tuigpt.runs.metrics import MetricsTail
from tuigpt.tui.panes.training.curves import Curves

LETTERS = "abcdefgh"


class Overlay:
    """A run laid over the chart, which grows while it trains.

    Attributes:
        letter: stands at the end of its curve and before its name.
        run: as it was when it was chosen.
    """

    def __init__(self, letter: str, run: Run) -> None:
        self.letter = letter
        self.run = run
        self._history = History(run.train_characters_per_token)
        self._tail = MetricsTail(run.metrics)
        self._curves = Curves()

    def read(self) -> bool:
        """Read what its log has got since the last time; whether that is anything."""
        grown = False
        while True:
            lines, restarted = self._tail.read_new()
            if restarted:
                self._history = History(self.run.train_characters_per_token)
            self._history.add(lines)
            grown |= restarted or bool(lines)
            if not self._tail.more:
                return grown

    def drawn(self, unit: str, memory: int) -> Other:
        """Its val loss, or its smoothed train loss where it has no val."""
        self._curves.unit = unit if unit in self._curves.units else "step"
        self._curves.memory = memory
        self._curves.look(self.run, self._history)
        return Other(self.letter, self.run.name, self._curves.shown_to_others)


def chosen(names: Sequence[str], before: Sequence[Overlay], runs: Sequence[Run]) -> list[Overlay]:
    """Overlays of the runs of these names; those that were there keep their letters."""
    kept = [overlay for overlay in before if overlay.run.name in names]
    free = [letter for letter in LETTERS if letter not in {overlay.letter for overlay in kept}]
    known = {overlay.run.name for overlay in kept}
    new = [run for run in runs if run.name in names and run.name not in known]
    return [*kept, *(Overlay(letter, run) for letter, run in zip(free, new, strict=False))]


def read_history(run: Run) -> History:
    """The whole history of a run, from its log."""
    history, tail = History(run.train_characters_per_token), MetricsTail(run.metrics)
    while True:
        lines, _ = tail.read_new()
        history.add(lines)
        if not tail.more:
            return history
