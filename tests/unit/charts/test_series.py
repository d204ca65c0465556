"""Long curves: thinning that loses no extreme, gaps, smoothing."""

from __future__ import annotations

import math
import random

import pytest

from tuigpt.charts.scale import Axis, span_axis
from tuigpt.charts.series import Bucket, Curve, Series, Smoother

NAN, INF = math.nan, math.inf


def curve(xs: list[float], ys: list[float]) -> Curve:
    made = Curve()
    made.extend(xs, ys)
    return made


class TestBuckets:
    @pytest.mark.parametrize("seed", range(20))
    def test_every_extreme_survives(self, seed: int) -> None:
        rng = random.Random(seed)
        count, size = rng.randint(1, 9000), rng.randint(2, 200)
        xs: list[float] = sorted(float(x) for x in rng.sample(range(10_000), count))
        ys = [rng.gauss(0, 1) for _ in xs]
        # Ends at random, so that no point lies exactly between two columns.
        axis = Axis(xs[0] - rng.random(), xs[-1] + rng.random(), ())
        columns: dict[int, list[float]] = {}
        for x, y in zip(xs, ys, strict=True):
            columns.setdefault(round(axis.position(x, size)), []).append(y)
        assert curve(xs, ys).buckets(axis, size) == [
            Bucket(column, chunk[0], min(chunk), max(chunk), chunk[-1])
            for column, chunk in columns.items()
        ]

    @pytest.mark.parametrize("at", [0, 255, 256, 77_777, 99_999])
    def test_a_spike_among_many_is_seen_at_any_zoom(self, at: int) -> None:
        ys = [1.0] * 100_000
        ys[at] = 9.0
        long = curve([float(x) for x in range(100_000)], ys)
        for first, last in ((0, 100_000), (max(0, at - 1000), at + 1000), (at - 2, at + 2)):
            seen = long.buckets(span_axis(first, last, 5), 50)
            assert [b.high for b in seen if b.high > 1] == [9.0]

    def test_the_line_goes_on_to_the_edges_of_a_zoomed_view(self) -> None:
        seen = curve([0, 10, 20, 30], [4, 3, 2, 1]).buckets(span_axis(12, 28, 3), 10)
        assert [(b.column, b.last) for b in seen] == [(-1, 3), (5, 2), (10, 1)]

    @pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e300])
    def test_one_bad_value_interrupts(self, bad: float) -> None:
        ys = [1.0] * 1000
        ys[500] = bad
        seen = curve([float(x) for x in range(1000)], ys).buckets(span_axis(0, 1000, 5), 11)
        assert [bucket.column for bucket in seen if bucket.is_gap] == [5]

    def test_bad_values_everywhere_leave_the_rest_to_be_seen(self) -> None:
        ys = [NAN if x % 10 == 0 else 1.0 for x in range(1000)]
        seen = curve([float(x) for x in range(1000)], ys).buckets(span_axis(0, 1000, 5), 10)
        assert not any(bucket.is_gap for bucket in seen)

    def test_no_points(self) -> None:
        assert Curve().buckets(span_axis(0, 10, 5), 10) == []


class TestReading:
    def test_the_point_at_or_before(self) -> None:
        read = curve([1, 5, 9], [4, 3, 2])
        assert [read.at(x) for x in (0.5, 1, 4.9, 5, 100)] == [
            None, (1, 4), (1, 4), (5, 3), (9, 2),
        ]  # fmt: skip

    def test_the_lowest_is_the_first_of_equals_and_never_nan(self) -> None:
        assert curve([0, 1, 2, 3], [NAN, 2.0, -INF, 2.0]).lowest() == (1, 2.0)
        assert Curve().lowest() is None


class TestSmoother:
    def test_starts_at_the_data_and_stays_flat_on_a_flat_line(self) -> None:
        assert set(Smoother().extend([1.1] * 500)) == {1.1}

    def test_in_parts_as_at_once(self) -> None:
        rng = random.Random(1)
        values = [rng.gauss(2, 1) for _ in range(500)]
        smoother = Smoother()
        parts = smoother.extend(values[:123]) + smoother.extend(values[123:])
        assert parts == Smoother().extend(values)

    def test_takes_out_noise_and_keeps_up(self) -> None:
        rng = random.Random(3)
        smoothed = Smoother().extend([1.5 + rng.gauss(0, 0.1) for _ in range(5000)])
        assert max(abs(value - 1.5) for value in smoothed[1000:]) < 0.05
        assert Smoother().extend([4.0] * 1000 + [2.0] * 300)[-1] == pytest.approx(2.0, abs=0.05)


class TestSeries:
    @pytest.mark.parametrize("memory", [1.0, 100.0])
    def test_growing_is_the_same_as_at_once(self, memory: float) -> None:
        rng = random.Random(5)
        ys = [rng.choice([NAN, 2.0, 3.0, 4.0]) for _ in range(3000)]
        whole, grown = Series(memory), Series(memory)
        whole.extend(range(3000), ys)
        start = 0
        while start < 3000:
            end = start + rng.randint(1, 400)
            grown.extend(range(start, min(end, 3000)), ys[start:end])
            start = end
        axis = span_axis(0, 3000, 5)
        for a, b in ((whole.raw, grown.raw), (whole.smooth, grown.smooth)):
            assert repr(a.buckets(axis, 70)) == repr(b.buckets(axis, 70))

    def test_smoothing_anew_leaves_the_points(self) -> None:
        series = Series(1.0)
        series.extend([0, 1, 2, 3], [4.0, NAN, 2.0, 3.0])
        smoothed = series.smoothed_over(50.0)
        assert list(smoothed.raw.ys) == [4.0, 2.0, 3.0]
        assert list(smoothed.smooth.ys) != list(smoothed.raw.ys)
        assert list(smoothed.smooth.broken) == [1.0]
