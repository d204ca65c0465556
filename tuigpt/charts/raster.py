"""A canvas of braille dots, two by four in a cell, in layers of which the last one wins a cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tuigpt.charts.scale import Bucket

Cell = tuple[str, int]
"""A character and the layer that it belongs to, -1 for none."""

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BLANK: Cell = (" ", -1)


class Canvas:
    """Layers of dots; x runs to the right and y down, from 0 to `dots_wide` and `dots_high` less 1.

    Whatever lies outside is cut off, and coordinates that are not finite draw nothing.
    """

    def __init__(self, width: int, height: int, layers: int = 1) -> None:
        """Start blank.

        Args:
            width: Cells in a row.
            height: Rows.
            layers: How many layers there are.
        """
        self.width, self.height = max(0, width), max(0, height)
        self.dots_wide, self.dots_high = 2 * self.width, 4 * self.height
        self._layers = [[0] * (self.width * self.height) for _ in range(layers)]

    def dot(self, layer: int, x: float, y: float) -> None:
        """Set one dot."""
        self.line(layer, x, y, x, y)

    def line(self, layer: int, x0: float, y0: float, x1: float, y1: float, every: int = 1) -> None:
        """Draw a straight line.

        Args:
            layer: The layer to draw on.
            x0: Where it starts.
            y0: Where it starts.
            x1: Where it ends.
            y1: Where it ends.
            every: Set only every so-manieth dot, counted from the edge of the canvas.
        """
        right, bottom = self.dots_wide - 1, self.dots_high - 1
        if not (0 <= x0 <= right and 0 <= x1 <= right and 0 <= y0 <= bottom and 0 <= y1 <= bottom):
            clipped = self._clip(x0, y0, x1, y1)
            if clipped is None:
                return
            x0, y0, x1, y1 = clipped
        x, y, end_x, end_y = round(x0), round(y0), round(x1), round(y1)
        dx, dy = abs(end_x - x), -abs(end_y - y)
        step_x, step_y = (1 if end_x > x else -1), (1 if end_y > y else -1)
        steep = -dy > dx
        error = dx + dy
        bits, width = self._layers[layer], self.width
        while True:
            if every == 1 or (y if steep else x) % every == 0:
                bits[(y >> 2) * width + (x >> 1)] |= _DOTS[x & 1][y & 3]
            if x == end_x and y == end_y:
                return
            doubled = 2 * error
            if doubled >= dy:
                error += dy
                x += step_x
            if doubled <= dx:
                error += dx
                y += step_y

    def polyline(self, layer: int, points: Iterable[tuple[float, float]], every: int = 1) -> None:
        """Join points by lines; a point that is not finite interrupts, a lone one is a dot."""
        before: tuple[float, float] | None = None
        for point in points:
            if not (math.isfinite(point[0]) and math.isfinite(point[1])):
                before = None
                continue
            self.line(layer, *(before or point), *point, every=every)
            before = point

    def dotted(self, layer: int, y: float, every: int = 2) -> None:
        """Draw a horizontal line of dots across the canvas."""
        self.line(layer, 0, y, self.dots_wide - 1, y, every)

    def rows(self) -> list[list[Cell]]:
        """The characters, with the layer that owns each: the last one with a dot in the cell."""
        cells = [_BLANK] * (self.width * self.height)
        for index, layer in enumerate(self._layers):
            for position, bits in enumerate(layer):
                if bits:
                    cells[position] = (chr(0x2800 + bits), index)
        return [cells[row * self.width : (row + 1) * self.width] for row in range(self.height)]

    def _clip(
        self, x0: float, y0: float, x1: float, y1: float
    ) -> tuple[float, float, float, float] | None:
        """The part of a line that lies on the canvas, by Liang and Barsky's method."""
        if not (self.width and self.height and all(map(math.isfinite, (x0, y0, x1, y1)))):
            return None
        # Far enough out to keep the slope, near enough that differences do not overflow.
        x0, y0, x1, y1 = (max(-1e9, min(value, 1e9)) for value in (x0, y0, x1, y1))
        dx, dy = x1 - x0, y1 - y0
        right, bottom = self.dots_wide - 1, self.dots_high - 1
        enter, leave = 0.0, 1.0
        for delta, room in ((-dx, x0), (dx, right - x0), (-dy, y0), (dy, bottom - y0)):
            if delta == 0:
                # Half a dot outside still rounds to the dot at the edge.
                if room < -0.5:
                    return None
            elif delta < 0:
                enter = max(enter, room / delta)
            else:
                leave = min(leave, room / delta)
        if enter > leave:
            return None
        return (
            max(0, min(x0 + enter * dx, right)),
            max(0, min(y0 + enter * dy, bottom)),
            max(0, min(x0 + leave * dx, right)),
            max(0, min(y0 + leave * dy, bottom)),
        )


def outline(buckets: Sequence[Bucket]) -> list[tuple[float, float]]:
    """The points of a poly-line that draws what the unthinned series would, one bucket a dot.

    A gap takes the whole cell, since a single missing column of dots is not seen.
    """
    gaps = {bucket.column // 2 for bucket in buckets if bucket.is_gap}
    points: list[tuple[float, float]] = []
    for column, first, low, high, last, _ in buckets:
        if column // 2 in gaps:
            points.append((column, math.nan))
        else:
            points += [(column, value) for value in dict.fromkeys((first, low, high, last))]
    return points


class Grid:
    """A sheet of characters, each with the name of what it belongs to."""

    def __init__(self, width: int, height: int) -> None:
        """Start blank.

        Args:
            width: Cells in a row.
            height: Rows.
        """
        self.width, self.height = width, height
        self._cells = [[(" ", "")] * width for _ in range(height)]

    def put(self, x: int, y: int, cells: Iterable[str], owner: str) -> None:
        """Write one string a cell from (x, y) to the right; what lies outside is cut off."""
        for column, cell in enumerate(cells, x):
            if 0 <= column < self.width and 0 <= y < self.height:
                self._cells[y][column] = (cell, owner)

    def owners(self, x: int, y: int, length: int) -> set[str]:
        """What the cells from (x, y) to the right belong to, "" for blank ones."""
        return {owner for _, owner in self._cells[y][max(0, x) : x + length]}

    def runs(self, y: int) -> list[tuple[str, str]]:
        """The text of a row in runs of one owner; blank cells join the run before them."""
        runs: list[tuple[str, str]] = []
        for cell, owner in self._cells[y]:
            if runs and (owner == runs[-1][1] or cell == " "):
                runs[-1] = (runs[-1][0] + cell, runs[-1][1])
            else:
                runs.append((cell, owner))
        return runs
