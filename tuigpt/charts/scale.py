"""Axes with readable ticks, and long series thinned to the columns of a chart."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import NamedTuple

Point = tuple[int, float]
"""A step and a value; the value may be NaN or infinite."""

LARGEST_VALUE = 1e300
"""Axes end here at the latest, so that no span of two finite numbers overflows."""

LARGEST_STEP = 2**53
"""Steps beyond it cannot be told apart as floats and are ignored."""

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_ENDS = (1.0, 1.2, 1.5, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of values with ticks inside it.

    Attributes:
        low: The value at position 0.
        high: The value at the last position; always above `low`.
        ticks: Values with their labels, ascending; the labels all differ.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def position(self, value: float, size: int) -> float:
        """Where `value` lies on `size` positions; outside 0 to `size - 1` if off the axis."""
        return (value - self.low) / (self.high - self.low) * (size - 1)


def nice_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that divides `span` into at most `count`."""
    rough = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 5.0):
        if factor * power >= rough * (1 - 1e-9):
            return factor * power
    return 10.0 * power


def tick_labels(values: Sequence[float], spacing: float) -> list[str]:
    """Labels with one unit and one number of decimals for all, so that all of them differ.

    Args:
        values: Multiples of `spacing`.
        spacing: The distance between two ticks.
    """
    peak = max((abs(value) for value in values), default=0.0)
    if peak >= 1e13:
        exponent = -_places(spacing)
        return [f"{value / 10.0**exponent:.0f}e{exponent}" if value else "0" for value in values]
    for unit, suffix in _UNITS:
        # A unit pays only where it shortens: 12k for 12000, but 1250 rather than 1.25k.
        if peak >= 10 * unit and _places(spacing / unit) <= 2:
            decimals = max(0, _places(spacing / unit))
            return [f"{value / unit:.{decimals}f}{suffix}" if value else "0" for value in values]
    return [f"{value:.{max(0, _places(spacing))}f}" for value in values]


def _places(spacing: float) -> int:
    """How many decimals tell multiples of `spacing` apart; negative where tens or more do."""
    return -math.floor(math.log10(spacing) + 1e-9)


def finite_range(values: Iterable[float]) -> tuple[float, float] | None:
    """The lowest and the highest finite value, or `None` where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def value_axis(low: float, high: float, count: int) -> Axis:
    """An axis for the values from `low` to `high`, both finite, with about `count` ticks.

    The range is padded and ends on half ticks, so that it holds still while values drift. It spans
    at least 4% of the largest value, so that noise around a flat line is not blown up. Losses are
    not negative, and neither is the axis while the values are not.
    """
    low, high = (max(-LARGEST_VALUE, min(value, LARGEST_VALUE)) for value in (low, high))
    floor = 0.0 if low >= 0 else -math.inf
    missing = max(0.04 * max(abs(low), abs(high)), 0.01) - (high - low)
    pad = max(missing / 2, 0.02 * (high - low))
    bottom, top = max(floor, low - pad), high + pad
    spacing = nice_step(top - bottom, count)
    half = spacing / 2
    bottom, top = math.floor(bottom / half) * half, math.ceil(top / half) * half
    return Axis(bottom, top, _ticks(bottom, top, spacing))


def step_axis(first: int, last: int, count: int) -> Axis:
    """An axis for the steps from `first` to `last` with about `count` whole ticks.

    It starts at 0 unless a quarter of it would be empty, and ends on a round number at or after
    `last`, so that a growing curve is redrawn at a new scale only now and then.
    """
    start = min(first, 0) if first <= max(10, last / 4) else first
    span = max(10, last - start)
    power = 10.0 ** math.floor(math.log10(span))
    end = start + next(power * end for end in (*_ENDS, 20.0) if power * end >= span * (1 - 1e-9))
    spacing = max(1.0, nice_step(end - start, count))
    return Axis(float(start), float(end), _ticks(start, end, spacing))


def _ticks(low: float, high: float, spacing: float) -> tuple[tuple[float, str], ...]:
    """The multiples of `spacing` from `low` to `high` with their labels."""
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    values = [index * spacing for index in range(first, last + 1)]
    return tuple(zip(values, tick_labels(values, spacing), strict=True))


class Bucket(NamedTuple):
    """The points in one column of a chart.

    Attributes:
        column: The column, from 0.
        first: The first finite value; like the next three NaN where the curve is interrupted.
        low: The lowest finite value.
        high: The highest finite value.
        last: The last finite value.
        broken: Whether there was a NaN or an infinity among the values.
    """

    column: int
    first: float
    low: float
    high: float
    last: float
    broken: bool = False

    @property
    def is_gap(self) -> bool:
        """Whether the curve is interrupted here."""
        return math.isnan(self.low)

    def as_gap(self) -> Bucket:
        """The same column without values."""
        return Bucket(self.column, math.nan, math.nan, math.nan, math.nan, self.broken)


def bucketize(
    steps: Sequence[int], values: Sequence[float], axis: Axis, size: int, start: int = 0
) -> list[Bucket]:
    """Thin a series to at most one bucket a column, keeping every extreme.

    Args:
        steps: Ascending steps.
        values: One value a step.
        axis: The axis of the steps.
        size: The number of columns.
        start: The first column wanted.

    Returns:
        The columns that hold points, from left to right; gaps are those without a finite value.
    """
    buckets = []
    width = (axis.high - axis.low) / max(1, size - 1)
    left = bisect_left(steps, axis.low + (start - 0.5) * width) if start else 0
    for column in range(start, size):
        right = bisect_left(steps, axis.low + (column + 0.5) * width, left)
        if column == size - 1:
            right = len(steps)
        if right > left:
            chunk = values[left:right]
            # The sum is finite only if every term is: one fast test for the usual case.
            finite = chunk if math.isfinite(sum(chunk)) else [v for v in chunk if math.isfinite(v)]
            broken = len(finite) < len(chunk)
            seen = finite or [math.nan]
            buckets.append(Bucket(column, seen[0], min(seen), max(seen), seen[-1], broken))
        left = right
    return buckets


def with_gaps(buckets: Sequence[Bucket]) -> list[Bucket]:
    """Interrupt the curve wherever a value was not finite, so that it shows.

    Where that would take more than half of what there is to see, only columns without any finite
    value are gaps.
    """
    visible = [bucket.broken for bucket in buckets if not bucket.is_gap]
    if 2 * sum(visible) > len(visible):
        return list(buckets)
    return [bucket.as_gap() if bucket.broken else bucket for bucket in buckets]


class Smoother:
    """An exponential moving average whose memory grows with the run.

    The first value counts in full, so the average starts at the data and needs no correction for a
    bias towards zero. The memory then grows with the root of the number of values seen, up to
    `memory`: noise goes early on, and yet the steep start of a run is not dragged behind.
    """

    def __init__(self, memory: float = 100.0) -> None:
        """Start without any value.

        Args:
            memory: The largest number of values averaged over, at least 1.
        """
        self._memory = memory
        self._count = 0
        self._average = 0.0

    def extend(self, values: Iterable[float]) -> list[float]:
        """Take the next values and return the average after each.

        A value that is not finite is skipped, and the average is NaN there.
        """
        averages: list[float] = []
        append, sqrt, memory = averages.append, math.sqrt, self._memory
        count, average = self._count, self._average
        for value in values:
            if not -LARGEST_VALUE <= value <= LARGEST_VALUE:
                if not math.isfinite(value):
                    append(math.nan)
                    continue
                value = math.copysign(LARGEST_VALUE, value)
            age = 1 + sqrt(count)
            count += 1
            average += (value - average) / (age if age < memory else memory)
            append(average)
        self._count, self._average = count, average
        return averages


class Series:
    """The points of one curve, kept in step order and thinned on demand.

    Steps may come unsorted and twice, as they do in a run that was resumed: they are sorted, and
    the later of two points at one step counts.

    Attributes:
        steps: The steps, ascending.
        values: One value a step.
        smoothed: The moving average at each step.
        nonfinite: The points that are NaN or infinite.
        lowest: The first point with the lowest finite value.
    """

    def __init__(self) -> None:
        """Start without points."""
        self._source: Sequence[Point] = ()
        self._clear()

    def _clear(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self.smoothed: list[float] = []
        self.nonfinite: list[Point] = []
        self.lowest: Point | None = None
        self._points: list[Point] = []
        self._smoother = Smoother()
        self._buckets: dict[bool, tuple[Axis, int, list[Bucket]]] = {}

    def __len__(self) -> int:
        """The number of different steps."""
        return len(self.steps)

    def replace(self, points: Sequence[Point]) -> bool:
        """Take `points` in place of those before.

        Points after those already known cost only what they cost alone. The same list that has
        grown since is the cheapest of all: it is not compared with what was known.

        Returns:
            Whether anything changed.
        """
        known = len(self._points)
        added = list(points[known:])
        if self._extends(points) and _ascending(added, self.steps):
            self._append(added)
            self._points += added
        else:
            self._clear()
            self._points = list(points)
            latest = {step: value for step, value in points if abs(step) <= LARGEST_STEP}
            self._append(sorted(latest.items()))
            added = self._points
        self._source = points
        return bool(added) or known > 0 and not points

    def _extends(self, points: Sequence[Point]) -> bool:
        """Whether `points` begins with all the points known."""
        known = len(self._points)
        if points is self._source and len(points) >= known:
            return not known or points[known - 1] is self._points[-1]
        return list(points[:known]) == self._points

    def _append(self, points: Sequence[Point]) -> None:
        """Add points whose steps ascend from the last one."""
        if not points:
            return
        values = [value for _, value in points]
        self.steps += [step for step, _ in points]
        self.values += values
        self.smoothed += self._smoother.extend(values)
        finite = values
        if not math.isfinite(sum(values)):
            self.nonfinite += [point for point in points if not math.isfinite(point[1])]
            finite = [value for value in values if math.isfinite(value)]
        lowest = min(finite, default=math.inf)
        if finite and (self.lowest is None or lowest < self.lowest[1]):
            self.lowest = points[values.index(lowest)]

    def buckets(self, axis: Axis, size: int, *, smooth: bool = False) -> list[Bucket]:
        """The series, or its average if `smooth`, thinned to `size` columns, with gaps."""
        old_axis, old_size, buckets = self._buckets.get(smooth, (None, 0, []))
        # On the same axis only the last column, and those after it, can have got new points.
        keep = buckets[:-1] if (old_axis, old_size) == (axis, size) else []
        start = keep[-1].column + 1 if keep else 0
        values = self.smoothed if smooth else self.values
        buckets = keep + bucketize(self.steps, values, axis, size, start)
        self._buckets[smooth] = (axis, size, buckets)
        return with_gaps(buckets)


def _ascending(points: Sequence[Point], before: list[int]) -> bool:
    """Whether the steps of `points` ascend, from the last of `before`, and are not absurd."""
    steps = before[-1:] + [step for step, _ in points]
    return not steps or (
        all(map(lt, steps, islice(steps, 1, None)))
        and -LARGEST_STEP <= steps[0] <= steps[-1] <= LARGEST_STEP
    )
