"""Axes, thinning and smoothing."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from tuigpt.charts.scale import (
    LARGEST_STEP,
    Axis,
    Bucket,
    Point,
    Series,
    Smoother,
    bucketize,
    finite_range,
    nice_step,
    step_axis,
    tick_labels,
    value_axis,
    with_gaps,
)

NAN, INF = math.nan, math.inf


def labels(axis: Axis) -> list[str]:
    return [label for _, label in axis.ticks]


def noise(count: int, seed: int = 1) -> list[Point]:
    rng = random.Random(seed)
    return [(step, 1.5 + 2.7 * math.exp(-step / 100) + rng.gauss(0, 0.1)) for step in range(count)]


class TestAxes:
    @pytest.mark.parametrize(
        ("low", "high", "count", "expected"),
        [
            (1.38, 4.21, 6, ["1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"]),
            (1.5, 1.5, 3, ["1.48", "1.50", "1.52"]),
            (0.0, 0.0, 3, ["0.000", "0.002", "0.004"]),
            (0.0, 150.0, 4, ["0", "50", "100", "150"]),
            (2.0, 25_000.0, 3, ["0", "10k", "20k", "30k"]),
            (-3.0, 3.0, 4, ["-4", "-2", "0", "2", "4"]),
        ],
    )
    def test_value_ticks(self, low: float, high: float, count: int, expected: list[str]) -> None:
        assert labels(value_axis(low, high, count)) == expected

    @pytest.mark.parametrize(
        ("first", "last", "expected", "ends"),
        [
            (0, 5000, ["0", "1000", "2000", "3000", "4000", "5000"], (0, 5000)),
            (1, 1240, ["0", "500", "1000", "1500"], (0, 1500)),
            (0, 0, ["0", "2", "4", "6", "8", "10"], (0, 10)),
            (7, 7, ["0", "2", "4", "6", "8", "10"], (0, 10)),
            (1000, 1003, ["1000", "1002", "1004", "1006", "1008", "1010"], (1000, 1010)),
            (0, 200_000, ["0", "50k", "100k", "150k", "200k"], (0, 200_000)),
            (0, 11_000, ["0", "5k", "10k"], (0, 12_000)),
        ],
    )
    def test_step_ticks(
        self, first: int, last: int, expected: list[str], ends: tuple[int, int]
    ) -> None:
        axis = step_axis(first, last, 5)
        assert (axis.low, axis.high) == ends
        assert labels(axis) == expected

    def test_every_axis_has_extent_and_different_labels(self) -> None:
        rng = random.Random(7)
        extremes = [0.0, 1e308, -1e308, 5e-324, 1e-9, 1.0, 4.17, 123_456.0]
        for _ in range(2000):
            ends = [rng.choice(extremes) * rng.uniform(0.5, 1.0) for _ in range(2)]
            axis = value_axis(min(ends), max(ends), rng.randint(1, 12))
            assert axis.low < axis.high
            assert axis.low <= max(min(ends), -1e300) and min(max(ends), 1e300) <= axis.high
            assert len(set(labels(axis))) == len(axis.ticks)
            assert all(a < b for (a, _), (b, _) in pairwise(axis.ticks))

    def test_every_step_axis_holds_its_steps(self) -> None:
        rng = random.Random(8)
        for _ in range(2000):
            first = int(10 ** rng.uniform(0, 15)) - 1
            last = first + int(10 ** rng.uniform(0, 15)) - 1
            axis = step_axis(first, last, rng.randint(1, 15))
            assert axis.low <= first <= last <= axis.high
            assert all(value == int(value) for value, _ in axis.ticks)
            assert len(set(labels(axis))) == len(axis.ticks)

    def test_the_ends_hold_still_while_the_curve_grows(self) -> None:
        ends = {step_axis(0, last, 6).high for last in range(1000, 10_000)}
        assert len(ends) <= 16

    def test_nice_step(self) -> None:
        assert [nice_step(10, count) for count in (1, 2, 5, 7, 10)] == [10, 5, 2, 2, 1]

    def test_labels_share_their_decimals(self) -> None:
        assert tick_labels([1.0, 1.05, 1.1], 0.05) == ["1.00", "1.05", "1.10"]
        assert tick_labels([0.0, 2e307, 1e308], 2e307) == ["0", "2e307", "10e307"]
        assert tick_labels([], 1.0) == []

    def test_finite_range(self) -> None:
        assert finite_range([NAN, 3.0, INF, 1.0, -INF]) == (1.0, 3.0)
        assert finite_range([NAN, INF]) is None
        assert finite_range([]) is None


class TestBuckets:
    @pytest.mark.parametrize("seed", range(20))
    def test_every_extreme_survives(self, seed: int) -> None:
        rng = random.Random(seed)
        count, size = rng.randint(1, 3000), rng.randint(1, 200)
        steps = sorted(rng.sample(range(10_000), count))
        values = [rng.gauss(0, 1) for _ in steps]
        # Ends at random, so that no step lies exactly between two columns.
        axis = Axis(steps[0] - rng.random(), steps[-1] + rng.random(), ())
        buckets = bucketize(steps, values, axis, size)
        columns: dict[int, list[float]] = {}
        for step, value in zip(steps, values, strict=True):
            columns.setdefault(round(axis.position(step, size)), []).append(value)
        assert buckets == [
            Bucket(column, chunk[0], min(chunk), max(chunk), chunk[-1])
            for column, chunk in columns.items()
        ]

    def test_a_spike_among_many_is_seen(self) -> None:
        values = [1.0] * 100_000
        values[77_777] = 9.0
        buckets = bucketize(range(100_000), values, step_axis(0, 100_000, 5), 50)
        assert [bucket.column for bucket in buckets if bucket.high == 9.0] == [38]

    def test_huge_values_are_not_taken_for_infinite(self) -> None:
        bucket, *_ = bucketize([0, 1], [1e308, 1e308], Axis(0, 100, ()), 2)
        assert bucket == Bucket(0, 1e308, 1e308, 1e308, 1e308)

    @pytest.mark.parametrize("bad", [NAN, INF, -INF])
    def test_one_bad_value_interrupts(self, bad: float) -> None:
        values = [1.0] * 1000
        values[500] = bad
        buckets = with_gaps(bucketize(range(1000), values, step_axis(0, 1000, 5), 11))
        assert [bucket.column for bucket in buckets if bucket.is_gap] == [5]
        assert [bucket.column for bucket in buckets if bucket.broken] == [5]

    def test_bad_values_everywhere_leave_the_rest_to_be_seen(self) -> None:
        values = [NAN if step % 10 == 0 else 1.0 for step in range(1000)]
        buckets = with_gaps(bucketize(range(1000), values, step_axis(0, 1000, 5), 10))
        assert not any(bucket.is_gap for bucket in buckets)
        assert all(bucket.broken for bucket in buckets)

    def test_a_bad_tail_does_not_close_an_earlier_gap(self) -> None:
        values = [NAN if step == 100 or step > 400 else 1.0 for step in range(1000)]
        buckets = with_gaps(bucketize(range(1000), values, step_axis(0, 1000, 5), 101))
        assert [bucket.column for bucket in buckets if bucket.is_gap] == [10, *range(40, 101)]


class TestSmoother:
    def test_starts_at_the_data_and_ignores_what_is_not_finite(self) -> None:
        assert Smoother().extend([4.0, NAN, INF, 4.0]) == pytest.approx(
            [4.0, NAN, NAN, 4.0], nan_ok=True
        )

    def test_a_flat_line_stays_exactly_flat(self) -> None:
        assert set(Smoother().extend([1.1] * 500)) == {1.1}

    def test_in_pieces_as_at_once(self) -> None:
        values = [value for _, value in noise(500)]
        smoother = Smoother()
        assert smoother.extend(values[:123]) + smoother.extend(values[123:]) == Smoother().extend(
            values
        )

    def test_takes_out_noise_and_keeps_up(self) -> None:
        rng = random.Random(3)
        smoothed = Smoother().extend([1.5 + rng.gauss(0, 0.1) for _ in range(5000)])
        assert max(abs(value - 1.5) for value in smoothed[1000:]) < 0.05
        assert Smoother().extend([4.0] * 1000 + [2.0] * 300)[-1] == pytest.approx(2.0, abs=0.05)

    def test_never_overflows(self) -> None:
        assert all(map(math.isfinite, Smoother().extend([1e308, -1e308] * 50)))


class TestSeries:
    def test_unsorted_and_repeated_steps(self) -> None:
        series = Series()
        series.replace([(3, 1.0), (1, 2.0), (2, 3.0), (1, 4.0)])
        assert (series.steps, series.values) == ([1, 2, 3], [4.0, 3.0, 1.0])

    def test_a_resumed_run_replaces_what_it_repeats(self) -> None:
        series, points = Series(), [(step, 1.0) for step in range(10)]
        series.replace(points)
        points += [(step, 2.0) for step in range(5, 8)]
        assert series.replace(points)
        assert series.values == [1.0] * 5 + [2.0] * 3 + [1.0] * 2
        points += [(10, 3.0)]
        assert series.replace(points)
        assert (series.steps[-1], len(series)) == (10, 11)

    @pytest.mark.parametrize("same_list", [True, False])
    def test_growing_is_the_same_as_replacing(self, same_list: bool) -> None:
        rng = random.Random(5)
        everything = noise(1000)
        for index in rng.sample(range(1000), 20):
            everything[index] = (index, rng.choice([NAN, INF, -5.0]))
        grown, points = Series(), everything[:1]
        while len(points) < len(everything):
            points += everything[len(points) : len(points) + rng.randint(1, 60)]
            assert grown.replace(points if same_list else list(points))
            fresh = Series()
            fresh.replace(points)
            axis = step_axis(0, rng.choice([len(points), 1000]), 5)
            for smooth in (False, True):
                assert repr(grown.buckets(axis, 40, smooth=smooth)) == repr(
                    fresh.buckets(axis, 40, smooth=smooth)
                )
            assert repr(grown.nonfinite) == repr(fresh.nonfinite)
            assert grown.lowest == fresh.lowest

    def test_says_whether_anything_changed(self) -> None:
        series, points = Series(), noise(10)
        assert not series.replace([])
        assert series.replace(points)
        assert not series.replace(points)
        assert not series.replace(list(points))
        assert series.replace(points[:5])
        assert series.replace([(step, 1.0) for step, _ in points])
        assert series.replace([])
        assert len(series) == 0

    def test_a_list_cut_back_and_grown_again_is_read_anew(self) -> None:
        series, points = Series(), noise(100)
        series.replace(points)
        del points[50:]
        points += [(step, 9.0) for step in range(50, 120)]
        series.replace(points)
        assert series.values[50:] == [9.0] * 70

    def test_another_run_with_the_same_start_and_end(self) -> None:
        series = Series()
        series.replace([(0, 4.0), (1, 3.0), (2, NAN)])
        series.replace([(0, 4.0), (1, 2.0), (2, NAN), (3, NAN)])
        assert series.values[1] == 2.0

    def test_lowest_is_the_first_of_equals_and_never_nan(self) -> None:
        series = Series()
        series.replace([(0, NAN), (1, 2.0), (2, -INF), (3, 2.0)])
        assert series.lowest == (1, 2.0)
        assert [step for step, _ in series.nonfinite] == [0, 2]

    def test_absurd_steps_are_left_out(self) -> None:
        series = Series()
        series.replace([(1, 1.0), (LARGEST_STEP + 1, 1.0), (10**400, 1.0)])
        assert series.steps == [1]
