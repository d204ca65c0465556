"""The loss chart as a sheet of characters with their roles; whoever shows it gives them colours.

Roles: train, train-raw, val, best, other (another run), ruler, gap, axis, cursor, milestone,
message, text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter

from tuigpt.charts.raster import BRAILLE, Canvas, Glyphs, Grid
from tuigpt.charts.scale import Axis, finite_range, round_end, round_start, span_axis, value_axis
from tuigpt.charts.series import Bucket, Series

GUTTER = 7
"""Columns left of the plot: a label of six and the axis; fixed, so that the plot never jumps."""

SETTLED = 10
"""The fitted view begins at the last step's n-th part: what fell steeply before is left out."""

_UNDER_NAMES = {"", "ruler", "gap", "cursor"}
"""Roles that a name may be written over."""

_LAYERS = ("ruler", "train-raw", "other", "val", "train", "val", "best")
_RULER, _RAW, _OTHER, _VAL, _TRAIN, _POINTS, _BEST = range(len(_LAYERS))

_RING = ((0, -1), (-1, 0), (1, 0), (0, 1))
_DIAMOND = ((0, -1), (-1, 0), (0, 0), (1, 0), (0, 1), (-1, -1), (1, 1), (1, -1), (-1, 1))

MARK_DISTANCE = 6
"""Dots between two marks of the val curve, at least."""


@dataclass(frozen=True)
class Marker:
    """A named place on the x axis, such as a setting that was changed, or a milestone."""

    x: float
    name: str


@dataclass(frozen=True)
class Ruler:
    """A named level to compare a loss with."""

    name: str
    value: float


@dataclass(frozen=True)
class Other:
    """Another run laid over the chart.

    Attributes:
        letter: Tells it apart where colours do not; stands at its end and in the legend.
        name: Of the run.
        curve: Its val loss, or its smoothed train loss where there is none.
    """

    letter: str
    name: str
    curve: Series


@dataclass(frozen=True)
class Picture:
    """What is drawn; all x are in one unit, and ascending.

    Attributes:
        train: Train loss, nats per character.
        val: Val loss, nats per character.
        unit: What x counts: step, tokens, epoch or time (in seconds).
        best: x and loss of the lowest val loss.
        memorising_from: Where the gap between the curves begins to be shaded; None for nowhere.
        rulers: Levels to compare with.
        markers: Places on the x axis.
        others: Other runs.
        placeholder: What an empty chart says, in lines.
    """

    train: Series = field(default_factory=Series)
    val: Series = field(default_factory=Series)
    unit: str = "step"
    best: tuple[float, float] | None = None
    memorising_from: float | None = None
    rulers: Sequence[Ruler] = ()
    markers: Sequence[Marker] = ()
    others: Sequence[Other] = ()
    placeholder: Sequence[str] = ()

    @property
    def extent(self) -> tuple[float, float] | None:
        """The first and the last x of this run's curves."""
        curves = [s.raw for s in (self.train, self.val) if s]
        ends = [x for c in curves for part in (c.xs, c.broken) if part for x in (part[0], part[-1])]
        return (min(ends), max(ends)) if ends else None


@dataclass(frozen=True)
class View:
    """Which part is shown, and how.

    Attributes:
        span: First and last x; None follows the run.
        whole: Whether to follow from the beginning, not only what still changes.
        log: Whether the losses are on a logarithmic axis.
        cursor: x of the cursor, or None.
    """

    span: tuple[float, float] | None = None
    whole: bool = False
    log: bool = False
    cursor: float | None = None

    def shown(self, picture: Picture) -> tuple[float, float]:
        """First and last x of the axis."""
        if self.span is not None:
            return self.span
        extent = picture.extent
        if extent is None or extent[1] <= 0:
            return 0.0, 10.0
        first, last = extent
        end = max(round_end(last), 10.0 if picture.unit == "step" else 0.0)
        settled = last / SETTLED
        if not self.whole and settled >= max(first, 10.0 if picture.unit == "step" else 0.0):
            return round_start(settled), end
        return (0.0 if first <= last / 4 else first), max(end, first * 1.01)

    def zoomed(self, picture: Picture, factor: float, around: float | None = None) -> View:
        """The view with its span divided by a factor around a place, at most the whole run's."""
        first, last = self.shown(picture)
        lowest, highest = replace(self, span=None, whole=True).shown(picture)
        middle = around if around is not None else (first + last) / 2
        span = min((last - first) / factor, highest - lowest)
        smallest = 4.0 if picture.unit in ("step", "tokens") else (highest - lowest) / 1e6
        span = max(span, smallest)
        start = middle - (middle - first) / (last - first) * span
        start = min(max(start, lowest), highest - span)
        return replace(self, span=(start, start + span))

    def panned(self, picture: Picture, share: float) -> View:
        """The view moved by a share of its width, to the right if positive, within the run."""
        first, last = self.shown(picture)
        lowest, highest = replace(self, span=None, whole=True).shown(picture)
        start = min(max(first + share * (last - first), lowest), highest - (last - first))
        return replace(self, span=(start, start + last - first))


@dataclass(frozen=True)
class Frame:
    """Where the plot lies on the sheet, and its axes; an axis is None without data."""

    left: int
    top: int
    width: int
    height: int
    glyphs: Glyphs
    x_axis: Axis | None = None
    y_axis: Axis | None = None

    def dot_column(self, x: float) -> float:
        """The distance of an x from the left of the plot, in dots."""
        assert self.x_axis
        return max(-1e6, min(self.x_axis.position(x, self.glyphs.wide * self.width), 1e6))

    def column(self, x: float) -> int:
        """The column of an x on the sheet."""
        return self.left + math.floor(self.dot_column(x) + 0.5) // self.glyphs.wide

    def dot(self, value: float) -> float:
        """The distance of a value from the top of the plot, in dots."""
        assert self.y_axis
        dots = self.glyphs.high * self.height
        # A zero on a logarithmic axis lies infinitely far below.
        return dots - 1 - max(-1e6, min(self.y_axis.position(value, dots), 1e6))

    def row(self, value: float) -> int:
        """The row of a value on the sheet."""
        return self.top + round(self.dot(value)) // self.glyphs.high

    def x_at(self, column: float) -> float:
        """The x in the middle of a column of the sheet."""
        assert self.x_axis
        dots = self.glyphs.wide * self.width
        place = (column - self.left + 0.5) * self.glyphs.wide - 0.5
        return self.x_axis.value(max(0.0, min(place, dots - 1)), dots)


def frame_of(
    picture: Picture, view: View, width: int, height: int, glyphs: Glyphs = BRAILLE
) -> Frame:
    """Where the plot of a sheet lies, and its x axis."""
    axes = width >= 20 and height >= 5
    legend = width >= 24 and height >= 8
    left, top = GUTTER * axes, int(legend)
    plain = Frame(left, top, max(1, width - left), max(1, height - top - 2 * axes), glyphs)
    first, last = view.shown(picture)
    count = max(2, plain.width // 10)
    return replace(plain, x_axis=span_axis(first, last, count, time=picture.unit == "time"))


def draw(picture: Picture, view: View, width: int, height: int, glyphs: Glyphs = BRAILLE) -> Grid:
    """Draw a chart.

    Args:
        picture: What there is to draw.
        view: Which part of it.
        width: Columns of the sheet.
        height: Rows of the sheet.
        glyphs: What the terminal's font has.
    """
    grid = Grid(width, height)
    if width < 1 or height < 1:
        return grid
    frame = frame_of(picture, view, width, height, glyphs)
    if picture.extent is not None:
        frame = _draw_curves(grid, frame, picture, view)
    elif picture.rulers:
        frame = _draw_rulers_alone(grid, frame, picture)
    if frame.left:
        _draw_axes(grid, frame, picture)
        _tell_hidden(grid, frame, picture)
    if frame.top:
        _draw_legend(grid, frame, picture, view)
    if picture.extent is None:
        _draw_placeholder(grid, frame, picture.placeholder)
    return grid


def _draw_curves(grid: Grid, frame: Frame, picture: Picture, view: View) -> Frame:
    dots = glyph_columns(frame)
    assert frame.x_axis
    raw = picture.train.raw.buckets(frame.x_axis, dots) if frame.height >= 6 else []
    train = picture.train.smooth.buckets(frame.x_axis, dots)
    val = picture.val.raw.buckets(frame.x_axis, dots)
    others = [other.curve.smooth.buckets(frame.x_axis, dots) for other in picture.others]
    seen = [[b for b in curve if 0 <= b.column < dots] for curve in (raw, train, val, *others)]
    y_axis = _value_axis(picture, view, seen[0], seen[1:], 2 * frame.height // 5)
    if y_axis is None:
        return frame
    frame = replace(frame, y_axis=y_axis)
    canvas = Canvas(frame.width, frame.height, len(_LAYERS), frame.glyphs)
    inside = [r for r in _named(picture.rulers, frame) if y_axis.low <= r.value <= y_axis.high]
    for ruler in inside:
        canvas.dotted(_RULER, round(frame.dot(ruler.value)), every=2 * frame.glyphs.wide)
    lines = [(_RAW, raw, 1), (_VAL, val, 2), (_TRAIN, train, 1)]
    lines += [(_OTHER, buckets, 2 + i % 3) for i, buckets in enumerate(others)]
    for layer, buckets, every in lines:
        canvas.curve(layer, buckets, frame.dot, every)
    marks = _draw_points(canvas, frame, picture, train, val)
    for y, row in enumerate(canvas.rows(), frame.top):
        for x, (glyph, layer) in enumerate(row, frame.left):
            if layer >= 0:
                grid.put(x, y, glyph, _LAYERS[layer])
    if view.cursor is not None:
        column = frame.column(view.cursor)
        for y in range(frame.top, frame.top + frame.height):
            if frame.left <= column and grid.owners(column, y, 1) <= {"", "ruler"}:
                grid.put(column, y, "│" if frame.glyphs.wide > 1 else "|", "cursor")
    for x, y, glyph, role in marks:
        grid.put(x, y, glyph, role)
    _draw_gap(grid, frame, picture, train, val)
    _draw_best(grid, frame, picture)
    _draw_others(grid, frame, picture, others)
    _draw_rulers(grid, frame, picture, inside)
    _draw_off_scale(grid, frame, raw, train, val)
    return frame


def glyph_columns(frame: Frame) -> int:
    """Columns of dots in the plot."""
    return frame.glyphs.wide * frame.width


def _value_axis(
    picture: Picture,
    view: View,
    raw: Sequence[Bucket],
    curves: Sequence[Sequence[Bucket]],
    ticks: int,
) -> Axis | None:
    """The axis of the losses that are seen; one value far away does not count."""
    seen = sorted(
        value
        for bucket in chain.from_iterable(curves)
        if not bucket.is_gap
        for value in (bucket.low, bucket.high)
    )
    if not seen:
        return None
    low, high = seen[len(seen) // 10], seen[-1 - len(seen) // 10]
    fence = high + 6 * (high - low) + 0.1 * abs(high)
    beginning = [ruler.value for ruler in picture.rulers if ruler.name == "guessing"]
    if view.whole and beginning:
        fence = max(fence, beginning[0] + 0.5)
    fenced = [value for value in seen if value <= fence]
    noise = [v for b in raw if not b.is_gap for v in (b.low, b.high) if v <= fence]
    found = finite_range([*fenced, *noise])
    assert found
    return value_axis(*found, max(2, ticks), view.log)


def _named(rulers: Sequence[Ruler], frame: Frame) -> list[Ruler]:
    """The rulers that have room for their names."""
    return [
        ruler for ruler in rulers
        if 2 * len(ruler.name) + 12 <= frame.width and math.isfinite(ruler.value)
    ]  # fmt: skip


def _draw_points(
    canvas: Canvas, frame: Frame, picture: Picture, train: Sequence[Bucket], val: Sequence[Bucket]
) -> list[tuple[int, int, str, str]]:
    """Mark the val points where they lie; gives the marks that are whole characters."""
    glyphs, marks = frame.glyphs, []
    points = [b for b in val if not b.is_gap and 0 <= b.column < canvas.dots_wide]
    stride = 1
    while points and len(points) * MARK_DISTANCE > stride * canvas.dots_wide:
        stride *= 2  # by powers of two, so that the marks hold still while a run grows
    for bucket in {*points[::stride], *points[-1:]}:
        if glyphs.val:
            x = frame.left + bucket.column // glyphs.wide
            marks.append((x, frame.row(bucket.last), glyphs.val, "val"))
        for dx, dy in _RING if not glyphs.val else ():
            canvas.dot(_POINTS, bucket.column + dx, round(frame.dot(bucket.last)) + dy)
    if picture.best and frame.x_axis and frame.x_axis.low <= picture.best[0] <= frame.x_axis.high:
        x, y = round(frame.dot_column(picture.best[0])), round(frame.dot(picture.best[1]))
        if glyphs.best:
            marks.append(
                (frame.column(picture.best[0]), frame.row(picture.best[1]), glyphs.best, "best")
            )
        for dx, dy in _DIAMOND if not glyphs.best else ():
            canvas.dot(_BEST, x + dx, y + dy)
    alone = [b for b in train if not b.is_gap and 0 <= b.column < canvas.dots_wide]
    if len(alone) == 1 and len(train) == 1:  # one dot would be overlooked
        column = frame.left + alone[0].column // glyphs.wide
        marks.append((column, frame.row(alone[0].last), "•" if not glyphs.val else "+", "train"))
    return marks


def _draw_gap(
    grid: Grid, frame: Frame, picture: Picture, train: Sequence[Bucket], val: Sequence[Bucket]
) -> None:
    """Shade what lies between the curves since the model memorises, and name it once."""
    if picture.memorising_from is None:
        return
    lower = {b.column // frame.glyphs.wide: b.last for b in train if not b.is_gap}
    points = [(b.column / frame.glyphs.wide, b.last) for b in val if not b.is_gap]
    widest: tuple[int, int, int] | None = None  # rows, column, row
    first = max(0, frame.column(picture.memorising_from) - frame.left)
    for column in range(first, frame.width):
        upper = _between(points, column)
        if upper is None or column not in lower:
            continue
        top, bottom = frame.row(upper) + 1, frame.row(lower[column]) - 1
        for y in range(max(top, frame.top), min(bottom + 1, frame.top + frame.height)):
            if grid.is_blank(frame.left + column, y):
                grid.put(frame.left + column, y, frame.glyphs.shade, "gap")
        if widest is None or bottom - top > widest[0]:
            widest = (bottom - top, column, (top + bottom) // 2)
    if widest and widest[0] >= 2:
        label = " the gap "
        x = min(frame.left + widest[1], frame.left + frame.width) - len(label) - 1
        if grid.owners(x, widest[2], len(label)) <= {"gap", "cursor"}:
            grid.put(x, widest[2], label, "gap")


def _between(points: Sequence[tuple[float, float]], column: float) -> float | None:
    """The val loss at a column, on the line between the points beside it."""
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if x0 <= column <= x1:
            return y0 + (y1 - y0) * (column - x0) / (x1 - x0) if x1 > x0 else y1
    return None


def _draw_best(grid: Grid, frame: Frame, picture: Picture) -> None:
    """Name the best point beside it, and lead down to its step once the model memorises."""
    if picture.best is None or frame.x_axis is None:
        return
    x, loss = picture.best
    if not frame.x_axis.low <= x <= frame.x_axis.high:
        return
    column, row = frame.column(x), frame.row(loss)
    if picture.memorising_from is not None:
        for y in range(row + 1, frame.top + frame.height):
            if grid.owners(column, y, 1) <= {"", "gap", "ruler"}:
                grid.put(column, y, "┊" if frame.glyphs.wide > 1 else ":", "best")
    label = f"★ {_number(loss)}"
    right, left, middle = column + 2, column - len(label) - 1, column - len(label) // 2
    near = [(x, row + dy) for dy in (-1, 1, -2, 2, -3, 3) for x in (right, left, middle)]
    for place, y in near:
        fits = frame.left <= place and place + len(label) <= grid.width
        if fits and frame.top <= y < frame.top + frame.height:
            if grid.owners(place, y, len(label)) <= _UNDER_NAMES:
                grid.put(place, y, label, "best")
                return


def _draw_others(
    grid: Grid, frame: Frame, picture: Picture, curves: Sequence[Sequence[Bucket]]
) -> None:
    """Put each other run's letter at the end of its curve."""
    for other, buckets in zip(picture.others, curves, strict=True):
        ends = [b for b in buckets if not b.is_gap and 0 <= b.column < glyph_columns(frame)]
        if ends:
            column = frame.left + ends[-1].column // frame.glyphs.wide
            grid.put(column, frame.row(ends[-1].last), other.letter, "other")


def _draw_rulers(grid: Grid, frame: Frame, picture: Picture, inside: Sequence[Ruler]) -> None:
    """Name the rulers at their right end, or at their left, and those outside at the edge."""
    end = frame.left + frame.width
    for ruler in inside:
        label = _cells(f" {ruler.name} {_number(ruler.value)} ")
        y = frame.row(ruler.value)
        for x in (end - len(label), frame.left + 1):
            if x >= frame.left and grid.owners(x, y, len(label)) <= _UNDER_NAMES:
                grid.put(x, y, label, "ruler")
                break
    assert frame.y_axis
    outside = [r for r in _named(picture.rulers, frame) if r not in inside]
    above = sorted((r for r in outside if r.value > frame.y_axis.high), key=lambda r: r.value)
    below = sorted((r for r in outside if r.value < frame.y_axis.low), key=lambda r: -r.value)
    for rulers, arrow, y in ((above, "↑", frame.top), (below, "↓", frame.top + frame.height - 1)):
        while rulers:
            words = f" {arrow} " + ", ".join(f"{r.name} {_number(r.value)}" for r in rulers)
            places = [x for x in (end - len(words), frame.left) if x >= frame.left]
            free = (x for x in places if grid.owners(x, y, len(words)) <= {"", "gap", "cursor"})
            if (x := next(free, -1)) >= 0:
                grid.put(x, y, _cells(words), "ruler")
                break
            rulers = rulers[:-1]


def _draw_off_scale(grid: Grid, frame: Frame, *curves: Sequence[Bucket]) -> None:
    """Mark at the upper edge where a value lies above it."""
    assert frame.y_axis
    for bucket in chain.from_iterable(curves):
        if not bucket.is_gap and bucket.high > frame.y_axis.high:
            if 0 <= bucket.column < glyph_columns(frame):
                column = frame.left + bucket.column // frame.glyphs.wide
                grid.put(column, frame.top, "▲" if frame.glyphs.wide > 1 else "^", "message")


def _draw_rulers_alone(grid: Grid, frame: Frame, picture: Picture) -> Frame:
    """The levels that a run will fall past, before there is one."""
    found = finite_range(ruler.value for ruler in picture.rulers)
    if found is None:
        return frame
    frame = replace(frame, y_axis=value_axis(*found, max(2, 2 * frame.height // 5)))
    canvas = Canvas(frame.width, frame.height, 1, frame.glyphs)
    rulers = _named(picture.rulers, frame)
    for ruler in rulers:
        canvas.dotted(0, round(frame.dot(ruler.value)), every=2 * frame.glyphs.wide)
    for y, row in enumerate(canvas.rows(), frame.top):
        for x, (glyph, layer) in enumerate(row, frame.left):
            if layer >= 0:
                grid.put(x, y, glyph, "ruler")
    _draw_rulers(grid, frame, picture, rulers)
    return frame


def _draw_axes(grid: Grid, frame: Frame, picture: Picture) -> None:
    """Draw both axes with ticks, labels, markers, and marks where a loss was not finite."""
    bottom, x = frame.top + frame.height, frame.left - 1
    plain = frame.glyphs.wide == 1
    for y in range(frame.top, bottom):
        grid.put(x, y, "|" if plain else "│", "axis")
    grid.put(x, bottom, ("+" if plain else "└") + ("-" if plain else "─") * frame.width, "axis")
    grid.put(0, bottom + 1, picture.unit[:x].rjust(x), "axis")
    for value, label in frame.y_axis.ticks if frame.y_axis else ():
        grid.put(x, frame.row(value), "+" if plain else "┤", "axis")
        if len(label) <= x:
            grid.put(0, frame.row(value), label.rjust(x), "axis")
    if picture.extent is None or frame.x_axis is None:
        return
    free = frame.left
    for value, label in frame.x_axis.ticks:
        column = frame.column(value)
        grid.put(column, bottom, "+" if plain else "┬", "axis")
        start = min(max(free, column - len(label) // 2), grid.width - len(label))
        if start >= free:
            grid.put(start, bottom + 1, label, "axis")
            free = start + len(label) + 1
    seen = [m for m in picture.markers if frame.x_axis.low <= m.x <= frame.x_axis.high]
    for marker in seen:
        grid.put(frame.column(marker.x), bottom, "^" if plain else "▴", "milestone")
    for marker in reversed(seen):  # the newest name matters most where they crowd
        named = _cells(f" {marker.name} ")
        for start in (frame.column(marker.x) + 1, frame.column(marker.x) - len(named)):
            inside = frame.left <= start and start + len(named) <= grid.width
            if inside and grid.owners(start, bottom, len(named)) == {"axis"}:
                grid.put(start, bottom, named, "milestone")
                break
    for series in (picture.train, picture.val):
        for dot in series.raw.broken_columns(frame.x_axis, glyph_columns(frame)):
            column = frame.left + dot // frame.glyphs.wide
            grid.put(column, bottom, "x" if plain else "×", "message")


def _tell_hidden(grid: Grid, frame: Frame, picture: Picture) -> None:
    """Say at the left edge that the run began before it."""
    if picture.extent is None or frame.x_axis is None or picture.extent[0] >= frame.x_axis.low:
        return
    bottom = frame.top + frame.height
    arrow = "<" if frame.glyphs.wide == 1 else "◂"
    grid.put(frame.left, bottom, arrow, "text")
    if grid.owners(frame.left + 1, bottom, len(_EARLIER)) == {"axis"}:
        grid.put(frame.left + 1, bottom, _EARLIER, "text")


_EARLIER = " earlier "


def _draw_legend(grid: Grid, frame: Frame, picture: Picture, view: View) -> None:
    """Say where a loss was not finite, how it is shown, and which mark is which curve."""
    message = _not_finite(picture)
    room = grid.width - len(message)
    grid.put(max(0, room), 0, message, "message")
    ways = [name for name, chosen in (("whole run", view.whole), ("log", view.log)) if chosen]
    if ways and picture.extent is not None:
        words = f"{' · '.join(ways)} " + ("" if frame.glyphs.wide == 1 else "✓ ")
        if room - len(words) > grid.width // 2:
            room -= len(words)
            grid.put(room, 0, words, "text")
    grid.put(0, 0, "loss".rjust(frame.left - 1), "axis")
    for parts in _legends(picture):
        x = frame.left + 1
        if x + sum(len(text) for text, _ in parts) < room:
            for text, role in parts:
                grid.put(x, 0, _cells(text), role)
                x += len(text)
            break


def _not_finite(picture: Picture) -> str:
    """Where a loss was not a number for the first time, and how many more there are."""
    broken = [series.raw.broken for series in (picture.train, picture.val) if series.raw.broken]
    if not broken:
        return ""
    first, count = min(map(itemgetter(0), broken)), sum(map(len, broken))
    more = f" (+{count - 1})" if count > 1 else ""
    where = f"step {first:,.0f}" if picture.unit == "step" else f"{picture.unit} {first:,.4g}"
    return f"not a number at {where}{more}"


def _legends(picture: Picture) -> Iterator[list[tuple[str, str]]]:
    """Ever shorter legends, as texts with their role."""
    curves = [("─ train  ", "train")] if picture.train else []
    curves += [("○ val  ", "val")] if picture.val else []
    others = [(f"{o.letter} {o.name}  ", "other") for o in picture.others]
    if best := picture.best:
        where = f" @ {best[0]:,.0f}" if picture.unit == "step" else ""
        for figures in (f" best {_number(best[1])}{where}", f" {_number(best[1])}"):
            for tail in (others, []) if others else ([],):
                yield [*curves, ("★", "best"), (f"{figures}  ", "text"), *tail]
    yield [*curves, *others]
    yield curves


def _draw_placeholder(grid: Grid, frame: Frame, lines: Sequence[str]) -> None:
    """Write the placeholder into the middle of the plot, over whatever is there."""
    lines = lines[: frame.height]
    for y, line in enumerate(lines, frame.top + (frame.height - len(lines)) // 2):
        cells = _cells(line)[: frame.width]
        if cells:
            padded = [" ", *cells, " "]
            grid.put(frame.left + (frame.width - len(padded)) // 2, y, padded, "text")


def _number(value: float) -> str:
    """A loss in words."""
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.0e}".replace("+", "")


def _cells(text: str) -> list[str]:
    """Text as one string a cell; what is no plain character of one cell becomes U+FFFD."""
    return [c if c.isprintable() and ord(c) < 0x2E80 else "\ufffd" for c in text]
