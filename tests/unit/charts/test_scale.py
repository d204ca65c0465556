"""Axes and their ticks."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from tuigpt.charts.scale import (
    Axis,
    finite_range,
    nice_step,
    round_end,
    round_start,
    span_axis,
    tick_labels,
    value_axis,
)

NAN, INF = math.nan, math.inf


def labels(axis: Axis) -> list[str]:
    return [label for _, label in axis.ticks]


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (1.38, 4.21, 6, ["1.5", "2.0", "2.5", "3.0", "3.5", "4.0"]),
        (1.5, 1.5, 3, ["1.48", "1.50", "1.52"]),
        (0.0, 0.0, 3, ["0.000", "0.002", "0.004"]),
        (0.0, 150.0, 4, ["0", "50", "100", "150"]),
        (2.0, 25_000.0, 3, ["0", "10k", "20k"]),
        (-3.0, 3.0, 4, ["-2", "0", "2"]),
    ],
)
def test_value_ticks(low: float, high: float, count: int, expected: list[str]) -> None:
    assert labels(value_axis(low, high, count)) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.5, 80.0, ["0.5", "1", "2", "5", "10", "20", "50"]),
        (1.2, 4.2, ["2", "3", "4"]),
        (1e-4, 1e4, ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000"]),
    ],
)
def test_log_ticks(low: float, high: float, expected: list[str]) -> None:
    axis = value_axis(low, high, 6, log=True)
    assert axis.log and labels(axis) == expected


def test_equal_ratios_are_equal_distances_on_a_log_axis() -> None:
    axis = Axis(1.0, 100.0, (), log=True)
    assert [axis.position(x, 101) for x in (1.0, 10.0, 100.0)] == pytest.approx([0, 50, 100])
    assert axis.position(0.0, 101) == -INF
    assert axis.value(50, 101) == pytest.approx(10.0)


def test_a_log_axis_needs_values_above_zero() -> None:
    assert not value_axis(-1.0, 2.0, 5, log=True).log


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 5000, ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]),
        (100, 1200, ["500", "1,000"]),
        (0, 200_000, ["0", "50k", "100k", "150k", "200k"]),
        (0.0, 0.8, ["0.0", "0.2", "0.4", "0.6", "0.8"]),
    ],
)
def test_span_ticks(first: float, last: float, expected: list[str]) -> None:
    axis = span_axis(first, last, 5)
    assert (axis.low, axis.high) == (first, last)
    assert labels(axis) == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (90, ["0", "30 s", "60 s", "90 s"]),
        (600, ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]),
        (5400, ["0", "30 min", "60 min", "90 min"]),
        (7 * 86_400, ["0", "2 d", "4 d", "6 d"]),
        (3, ["0", "1 s", "2 s", "3 s"]),
    ],
)
def test_time_ticks_are_whole_units(last: float, expected: list[str]) -> None:
    found = labels(span_axis(0, last, 5, time=True))
    assert found == expected or found[:1] == ["0 s"] and found[1:] == expected[1:]


def test_every_axis_has_extent_and_different_labels() -> None:
    rng = random.Random(7)
    extremes = [0.0, 1e12, -1e12, 5e-324, 1e-9, 1.0, 4.17, 123_456.0]
    for _ in range(2000):
        ends = [rng.choice(extremes) * rng.uniform(0.5, 1.0) for _ in range(2)]
        axis = value_axis(min(ends), max(ends), rng.randint(1, 12), log=rng.random() < 0.3)
        assert axis.low < axis.high
        assert axis.low <= min(ends) and max(ends) <= axis.high
        assert len(set(labels(axis))) == len(axis.ticks)
        assert all(a < b for (a, _), (b, _) in pairwise(axis.ticks))


def test_a_position_and_its_value_are_each_other() -> None:
    rng = random.Random(3)
    for log in (False, True):
        axis = Axis(0.3, 17.0, (), log)
        for _ in range(200):
            value = rng.uniform(0.3, 17.0)
            assert axis.value(axis.position(value, 200), 200) == pytest.approx(value)


def test_the_ends_hold_still_while_the_curve_grows() -> None:
    assert len({round_end(last) for last in range(1000, 10_000)}) <= 16
    assert len({round_start(last / 10) for last in range(1000, 10_000)}) <= 16


@pytest.mark.parametrize("value", [0.013, 1, 7.3, 101, 1083, 99_999, 1_000_000])
def test_round_ends_enclose(value: float) -> None:
    assert round_start(value) <= value <= round_end(value)
    assert round_end(value) < 1.3 * value and round_start(value) > value / 1.3


def test_nice_step() -> None:
    assert [nice_step(10, count) for count in (1, 2, 5, 7, 10)] == [10, 5, 2, 2, 1]


def test_labels_share_their_decimals() -> None:
    assert tick_labels([1.0, 1.05, 1.1], 0.05) == ["1.00", "1.05", "1.10"]
    assert tick_labels([], 1.0) == []


def test_finite_range() -> None:
    assert finite_range([NAN, 3.0, INF, 1.0, -INF]) == (1.0, 3.0)
    assert finite_range([NAN, INF]) is None
    assert finite_range([]) is None
