"""Axes with readable ticks: linear and logarithmic, of losses, steps, tokens, readings and time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LARGEST = 1e12
"""Values further from zero are as good as infinite to a reader, and are drawn as such."""

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_ENDS = (1.0, 1.2, 1.5, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
_DURATIONS = tuple(
    count * unit
    for unit, counts in ((1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)),
                         (3600, (1, 2, 3, 6, 12)), (86_400, (1, 2, 5, 10, 20, 50, 100)))
    for count in counts
)  # fmt: skip
"""Seconds between two ticks of a time axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of values with ticks inside it.

    Attributes:
        low: The value at position 0; above 0 on a logarithmic axis.
        high: The value at the last position; always above `low`.
        ticks: Values with their labels, ascending; the labels all differ.
        log: Whether equal distances are equal ratios.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def position(self, value: float, size: int) -> float:
        """Where a value lies on `size` positions; outside 0 to `size - 1` if off the axis."""
        low, high = self.low, self.high
        if self.log:
            if value <= 0:
                return -math.inf
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low) * (size - 1)

    def value(self, position: float, size: int) -> float:
        """The value at a position; the reverse of `position`."""
        share = position / max(1, size - 1)
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


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
    for unit, suffix in _UNITS:
        # A unit pays only where it shortens: 12k for 12000, but 1,250 rather than 1.25k.
        if peak >= 10 * unit and _places(spacing / unit) <= 2:
            decimals = max(0, _places(spacing / unit))
            return [f"{value / unit:.{decimals}f}{suffix}" if value else "0" for value in values]
    return [f"{value:,.{max(0, _places(spacing))}f}" for value in values]


def _places(spacing: float) -> int:
    """How many decimals tell multiples of `spacing` apart; negative where tens or more do."""
    return -math.floor(math.log10(spacing) + 1e-9)


def finite_range(values: Iterable[float]) -> tuple[float, float] | None:
    """The lowest and the highest finite value, or `None` where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def value_axis(low: float, high: float, count: int, log: bool = False) -> Axis:
    """An axis for the values from `low` to `high`, both finite, with about `count` ticks.

    The range is padded and ends on quarters of ticks, so that it holds still while values drift.
    It spans at least 4% of the largest value, so that noise around a flat line is not blown up.
    Losses are not negative, and neither is the axis while the values are not.

    Args:
        log: Logarithmic; needs values above 0, and is linear without them.
    """
    floor = 0.0 if low >= 0 else -math.inf
    missing = max(0.04 * max(abs(low), abs(high)), 0.01) - (high - low)
    pad = max(missing / 2, 0.02 * (high - low))
    bottom, top = max(floor, low - pad), high + pad
    if log and low > 0:
        return _log_axis(max(bottom, low / 1.1), top, count)
    spacing = nice_step(top - bottom, count)
    part = spacing / 4
    bottom, top = math.floor(bottom / part) * part, math.ceil(top / part) * part
    return Axis(bottom, top, _ticks(bottom, top, spacing))


def _log_axis(low: float, high: float, count: int) -> Axis:
    """Ticks at 1, 2 and 5 times powers of ten, or evenly spaced within a narrow range."""
    if high / low < 8:
        return Axis(low, high, _ticks(low, high, nice_step(high - low, count)), log=True)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**d for d in decades for f in factors if low <= f * 10.0**d <= high]
        if len(ticks) <= 2 * count:
            break
    return Axis(low, high, tuple((tick, f"{tick:,g}") for tick in ticks), log=True)


def span_axis(first: float, last: float, count: int, time: bool = False) -> Axis:
    """An axis that begins and ends exactly here, with about `count` ticks.

    Args:
        first: Must lie below `last`.
        time: Whether these are seconds, whose ticks are whole seconds, minutes, hours and days.
    """
    if time:
        return Axis(first, last, _time_ticks(first, last, count))
    return Axis(first, last, _ticks(first, last, nice_step(last - first, count)))


def round_end(value: float) -> float:
    """A round number at or above a positive one, so that a growing curve rarely moves its axis."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * end for end in _ENDS if power * end >= value * (1 - 1e-9))


def round_start(value: float) -> float:
    """A round number at or below a positive one."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return max(power * end for end in _ENDS if power * end <= value * (1 + 1e-9))


def _ticks(low: float, high: float, spacing: float) -> tuple[tuple[float, str], ...]:
    """The multiples of `spacing` from `low` to `high` with their labels."""
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    values = [index * spacing for index in range(first, last + 1)]
    return tuple(zip(values, tick_labels(values, spacing), strict=True))


def _time_ticks(low: float, high: float, count: int) -> tuple[tuple[float, str], ...]:
    rough = (high - low) / max(1, count)
    if rough <= 1:
        return tuple((v, f"{label} s") for v, label in _ticks(low, high, nice_step(rough, 1)))
    spacing = next((s for s in _DURATIONS if s >= rough), _DURATIONS[-1])
    unit, name = next((u, n) for u, n in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
                      if spacing >= u)  # fmt: skip
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    # An interval of 90 minutes never comes up, so every tick is a whole number of its unit.
    values = [index * spacing for index in range(first, last + 1)]
    return tuple((float(v), f"{v // unit} {name}" if v else "0") for v in values)
