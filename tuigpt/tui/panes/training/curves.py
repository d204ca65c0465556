"""From a run's history to the picture of its chart, at the cost of what came since."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuigpt.charts.plot import Marker, Other, Picture, Ruler
from tuigpt.charts.series import Series
from tuigpt.loss import Baselines
from tuigpt.runs.folder import Run
from tuigpt.runs.history import History, Point, Points
from tuigpt.story import Evaluation, Story, is_shakespeare, milestones, tell

UNITS = ("step", "tokens", "epoch", "time")
"""What the x axis may count; `epoch` is how often the training part was read."""

_Told = tuple[Story, list[tuple[int, str]]]
"""A story and its milestones."""

_AT_ONCE = 8192
"""Points that go into a series at once: as many as the processor has near at hand."""

SMOOTHING = (1, 10, 30, 100, 300, 1000)
"""Updates that the smoothed train loss averages over, at most."""


@dataclass
class Curves:
    """The curves of one run.

    Attributes:
        unit: of the x axis, one of `UNITS`.
        memory: updates that the train loss is averaged over, one of `SMOOTHING`.
        until: the step up to which they are shown, for a replay; None shows all.
    """

    unit: str = "step"
    memory: int = 100
    until: int | None = None
    _run: Run | None = None
    _history: History = field(default_factory=History)
    _train: Series = field(default_factory=Series)
    _val: Series = field(default_factory=Series)
    _known: tuple[object, ...] = ()
    _newest: tuple[Point | None, Point | None] = (None, None)
    _evaluations: list[Evaluation] = field(default_factory=list)
    _told: tuple[object, _Told] | None = None

    def look(self, run: Run | None, history: History) -> None:
        """Take in a history that may have grown since the last look, or be another one."""
        self._run, self._history = run, history
        train, val = history.train, history.val
        known = (id(history), self.unit, self.memory, self.until is None)
        done, measured = _count(self._train), _count(self._val)
        same = known == self._known and self._newest == (_at(train, done), _at(val, measured))
        if not same:
            self._train, self._val = Series(float(self.memory)), Series()
            self._evaluations, done, measured = [], 0, 0
            self._known = known
        ends = self._end(train), self._end(val)
        self._extend(self._train, train, done, ends[0])
        self._extend(self._val, val, measured, ends[1])
        to_x = self._to_x()
        for step, loss in val[measured : ends[1]]:
            around = self._train.smooth.at(to_x(step))
            self._evaluations.append(
                Evaluation(step, loss, around[1] if around else None, step in history.early)
            )
        self._newest = (_at(train, ends[0]), _at(val, ends[1]))

    def _extend(self, series: Series, points: Points, start: int, end: int) -> None:
        to_x = self._to_x()
        for first in range(start, end, _AT_ONCE):
            part = slice(first, min(first + _AT_ONCE, end))
            steps = points.steps[part].tolist()
            xs = array("d", steps if self.unit == "step" else list(map(to_x, steps)))
            series.extend(xs, points.values[part])

    def _end(self, points: Points) -> int:
        """How many of the points are to be seen."""
        return len(points) if self.until is None else bisect_right(points.steps, self.until)

    @property
    def units(self) -> tuple[str, ...]:
        """The units that this run's files tell enough for."""
        record = self._run.record if self._run else None
        if record is None:
            return ("step",)
        has = {
            "step": True,
            "tokens": True,
            "epoch": record.corpus.train_tokens > 0,
            "time": bool(self._history.updates.elapsed and self._history.updates.elapsed[-1]),
        }
        return tuple(unit for unit in UNITS if has[unit])

    def _to_x(self) -> Callable[[float], float]:
        """From a step to the x of the unit."""
        record = self._run.record if self._run else None
        if record is None or self.unit == "step":
            return float
        tokens = record.train.batch_size * record.model.block_size
        if self.unit == "tokens":
            return lambda step: step * tokens
        if self.unit == "epoch":
            return lambda step: step * tokens / max(1, record.corpus.train_tokens)
        updates = self._history.updates

        def seconds(step: float) -> float:
            place = bisect_left(updates.steps, step)
            return updates.elapsed[min(place, len(updates.elapsed) - 1)] if step else 0.0

        return seconds

    def step_at(self, x: float) -> int:
        """The last step at or before an x."""
        to_x = self._to_x()
        steps = (self._history.train or self._history.val).steps
        low, high = 0, len(steps)
        while low < high:
            middle = (low + high) // 2
            if to_x(steps[middle]) <= x + 1e-9:
                low = middle + 1
            else:
                high = middle
        return steps[max(0, low - 1)] if steps else 0

    def measured_near(self, step: int) -> Evaluation | None:
        """The evaluation nearest to a step, the earlier one of two, or None."""
        return min(self._evaluations, key=lambda e: abs(e.step - step), default=None)

    @property
    def baselines(self) -> Baselines:
        record = self._run.record if self._run else None
        return record.baselines if record else Baselines()

    @property
    def shown_to_others(self) -> Series:
        """What another run's chart shows of this one: val, or train where there is none."""
        return self._val or self._train

    def story(self) -> Story:
        """What is to be said of the run so far."""
        return self._tell()[0]

    def _tell(self) -> _Told:
        record = self._run.record if self._run else None
        train, smooth = self._newest[0], self._train.smooth.ys
        newest = None
        if train is not None:
            newest = smooth[-1] if smooth and train[1] == train[1] else train[1]
        last = self._evaluations[-1] if self._evaluations else None
        if last is not None and last.step and newest is not None and math.isfinite(newest):
            newest = 0.0  # beside a val it only matters that it is a number
        known = (self._known, record, len(self._evaluations), last, newest)
        if self._told is None or self._told[0] != known:
            story = tell(
                self._evaluations, self.baselines, train=newest,
                shakespeare=record is not None and is_shakespeare(record.corpus.name),
                validates=record is None or record.train.val_fraction > 0,
            )  # fmt: skip
            self._told = known, (story, milestones(self._evaluations, self.baselines))
        return self._told[1]

    def picture(
        self, story: Story, poet_val: float | None, others: Sequence[Other], lines: Sequence[str]
    ) -> Picture:
        """What the chart draws.

        Args:
            poet_val: the built-in model's loss, a level to compare with.
            others: runs laid over this one.
            lines: what an empty chart says.
        """
        to_x = self._to_x()
        rulers = [Ruler(name, value) for name, value in self.baselines.items()]
        record = self._run.record if self._run else None
        own_poet = self._run is not None and self._run.built_in
        if (
            poet_val is not None
            and not own_poet
            and (record is None or is_shakespeare(record.corpus.name))
        ):
            rulers.append(Ruler("the poet", poet_val))
        marks = self._tell()[1] + [
            (step, setting.replace("_", " "))
            for step, setting in self._history.changes
            if self.until is None or step <= self.until
        ]
        return Picture(
            train=self._train,
            val=self._val,
            unit=self.unit,
            best=None if story.best is None else (to_x(story.best.step), story.best.val),
            memorising_from=None if story.memorising_from is None
            else to_x(story.memorising_from),
            rulers=rulers,
            markers=[Marker(to_x(step), name) for step, name in sorted(marks)],
            others=others,
            placeholder=lines,
        )  # fmt: skip


def _count(series: Series) -> int:
    return len(series.raw) + len(series.raw.broken)


def _at(points: Points, count: int) -> Point | None:
    """The last of the first so many points, or None where there are fewer."""
    return points[count - 1] if 0 < count <= len(points) else None
