"""Long curves, read at any zoom at the cost of the columns that are drawn, no extreme lost."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tuigpt.charts.scale import LARGEST, Axis

_BLOCK = 64
"""Points summarised by one pair of extremes."""

_FAR_OUT = 1e6
"""Columns from the axis at which a point outside may be drawn, so that lines keep their slope."""


class Bucket(NamedTuple):
    """The points in one column of a chart.

    Attributes:
        column: The column, from 0.
        first: The first value; like the next three NaN where the curve is interrupted.
        low: The lowest value.
        high: The highest value.
        last: The last value.
    """

    column: int
    first: float
    low: float
    high: float
    last: float

    @property
    def is_gap(self) -> bool:
        """Whether the curve is interrupted here."""
        return math.isnan(self.low)


def gap(column: int) -> Bucket:
    """A column without values."""
    return Bucket(column, math.nan, math.nan, math.nan, math.nan)


class Curve:
    """Finite points in ascending order of x, with the extremes of each block of them kept.

    Attributes:
        xs: The positions, ascending.
        ys: One value a position.
        broken: Positions where a value was not finite, ascending; the curve is interrupted there.
    """

    def __init__(self) -> None:
        """Start without points."""
        self.xs = array("d")
        self.ys = array("d")
        self.broken = array("d")
        self._lows = array("d")  # of whole blocks
        self._highs = array("d")

    def __len__(self) -> int:
        return len(self.xs)

    def extend(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """Add points whose positions ascend from the last one."""
        if math.hypot(*ys) < LARGEST:  # which is at least as far from zero as each of them
            self.extend_finite(xs, ys)
            return
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if -LARGEST < y < LARGEST]
        self.broken.extend(x for x, y in zip(xs, ys, strict=True) if not -LARGEST < y < LARGEST)
        self.extend_finite([x for x, _ in points], [y for _, y in points])

    def extend_finite(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """As `extend`, where every value is known to be closer to zero than `LARGEST`."""
        self.xs.extend(xs)
        self.ys.extend(ys)
        rest = iter(self.ys[len(self._lows) * _BLOCK :].tolist())
        blocks = list(zip(*[rest] * _BLOCK, strict=False))  # whole ones only
        self._lows.extend(map(min, blocks))
        self._highs.extend(map(max, blocks))

    def extremes(self, start: int, end: int) -> tuple[float, float]:
        """The lowest and the highest of the values number `start` to `end`, at least one."""
        first, last = -(-start // _BLOCK), end // _BLOCK
        if first >= last:
            part = self.ys[start:end]
            return min(part), max(part)
        lows, highs = [min(self._lows[first:last])], [max(self._highs[first:last])]
        for part in (self.ys[start : first * _BLOCK], self.ys[last * _BLOCK : end]):
            if part:
                lows.append(min(part))
                highs.append(max(part))
        return min(lows), max(highs)

    def buckets(self, axis: Axis, columns: int) -> list[Bucket]:
        """The curve thinned to at most one bucket a column, from left to right.

        One point to the left and one to the right of the axis keep the line going to the edges.
        """
        if not self.xs:
            return []
        found: list[Bucket] = []
        left = bisect_left(self.xs, axis.value(-0.5, columns))

        def column_of(x: float) -> int:
            place = axis.position(x, columns)
            return math.floor(max(-_FAR_OUT, min(place, _FAR_OUT)) + 0.5)

        if left:
            found.append(Bucket(column_of(self.xs[left - 1]), *[self.ys[left - 1]] * 4))
        while left < len(self.xs):
            column = column_of(self.xs[left])
            if column >= columns:
                found.append(Bucket(column, *[self.ys[left]] * 4))
                break
            right = bisect_left(self.xs, axis.value(column + 0.5, columns), left + 1)
            low, high = self.extremes(left, right)
            found.append(Bucket(column, self.ys[left], low, high, self.ys[right - 1]))
            left = right
        return self._interrupted(found, axis, columns)

    def _interrupted(self, buckets: list[Bucket], axis: Axis, columns: int) -> list[Bucket]:
        if not self.broken:
            return buckets
        gaps = set(self.broken_columns(axis, columns))
        if 2 * len(gaps & {bucket.column for bucket in buckets}) > len(buckets):
            # Most of the curve would vanish: then only columns without a finite value are gaps.
            gaps -= {bucket.column for bucket in buckets}
        kept = [bucket for bucket in buckets if bucket.column not in gaps]
        return sorted([*kept, *map(gap, gaps)], key=lambda bucket: bucket.column)

    def broken_columns(self, axis: Axis, columns: int) -> list[int]:
        """The columns in which a value was not finite."""
        first = bisect_left(self.broken, axis.low)
        last = bisect_right(self.broken, axis.high)
        places = (axis.position(x, columns) for x in self.broken[first:last])
        return sorted({min(columns - 1, math.floor(place + 0.5)) for place in places})

    def at(self, x: float) -> tuple[float, float] | None:
        """The point at x, or the last one before it; None where there is none."""
        place = bisect_right(self.xs, x) - 1
        return (self.xs[place], self.ys[place]) if place >= 0 else None

    def lowest(self) -> tuple[float, float] | None:
        """The first point with the lowest value."""
        if not self.ys:
            return None
        lowest, _ = self.extremes(0, len(self.ys))
        place = self.ys.index(lowest)
        return self.xs[place], self.ys[place]


class Smoother:
    """An exponential moving average whose memory grows with the run.

    The first value counts in full, so the average starts at the data and needs no correction for a
    bias towards zero. The memory then grows with the root of the number of values seen, up to
    `memory`: noise goes early on, and yet the steep start of a run is not dragged behind.
    """

    def __init__(self, memory: float = 100.0) -> None:
        """Start without any value.

        Args:
            memory: The largest number of values averaged over, at least 1, which is no smoothing.
        """
        self._memory = memory
        self._count = 0
        self._average = 0.0

    def extend(self, values: Iterable[float]) -> array[float]:
        """Take the next values, all finite, and return the average after each."""
        averages = array("d")
        append, sqrt, memory = averages.append, math.sqrt, self._memory
        count, average = self._count, self._average
        rest = iter(values)
        while 1 + sqrt(count) < memory and (value := next(rest, None)) is not None:
            average += (value - average) / (1 + sqrt(count))
            count += 1
            append(average)
        share = 1 / memory  # nearly all of a long run follows, so what is quick counts
        averages.fromlist([average := average + (value - average) * share for value in rest])
        self._count, self._average = self._count + len(averages), average
        return averages


class Series:
    """A curve as it was measured, and smoothed over all of its points.

    Attributes:
        raw: The curve itself.
        smooth: Its moving average.
    """

    def __init__(self, memory: float = 1.0) -> None:
        """
        Args:
            memory: How many values are averaged over, at most; 1 is none but the value itself.
        """
        self.memory = memory
        self.raw = Curve()
        self.smooth = self.raw
        self._smoother = Smoother(memory)
        if memory > 1:
            self.smooth = Curve()

    def __len__(self) -> int:
        return len(self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw.xs or self.raw.broken)

    def extend(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """Add points whose positions ascend from the last one."""
        known = len(self.raw)
        self.raw.extend(xs, ys)
        if self.smooth is not self.raw:
            new = slice(known, None)
            averages = self._smoother.extend(self.raw.ys[new])
            self.smooth.extend_finite(self.raw.xs[new], averages)
            self.smooth.broken = self.raw.broken

    def smoothed_over(self, memory: float) -> Series:
        """The same points with another smoothing."""
        other = Series(memory)
        other.extend(self.raw.xs, self.raw.ys)
        other.raw.broken = self.raw.broken
        other.smooth.broken = self.raw.broken
        return other
