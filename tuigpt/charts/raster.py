"""A canvas of dots in layers of which the last one wins a cell, and a sheet of characters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tuigpt.charts.series import Bucket

Cell = tuple[str, int]
"""A character and the layer that it belongs to, -1 for none."""

_BLANK: Cell = (" ", -1)

_BRAILLE_BITS = (0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80)


@dataclass(frozen=True)
class Glyphs:
    """How dots become characters.

    Attributes:
        name: What users call it in the settings.
        wide: Dots in a cell from left to right.
        high: Dots in a cell from top to bottom.
        characters: One for each pattern; bit number `y * wide + x` is the dot at (x, y).
        val: Marks a point of the val curve, "" where the dots draw it.
        best: Marks the best point.
        shade: Fills the gap between the curves.
    """

    name: str
    wide: int
    high: int
    characters: str
    val: str
    best: str
    shade: str


BRAILLE = Glyphs(
    "braille", 2, 4,
    "".join(
        chr(0x2800 + sum(bit for i, bit in enumerate(_BRAILLE_BITS) if pattern >> i & 1))
        for pattern in range(256)
    ),
    val="", best="", shade="░",
)  # fmt: skip
BLOCKS = Glyphs("blocks", 2, 2, " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█", val="o", best="*", shade="░")
ASCII = Glyphs("ascii", 1, 2, " '.:", val="o", best="*", shade="/")

GLYPHS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCKS, ASCII)}


@cache
def _bar_masks(wide: int, high: int) -> list[list[list[int]]]:
    """The dots of a cell in one column of dots, from one height to another."""
    return [
        [
            [sum(1 << (y * wide + x) for y in range(first, last + 1)) for last in range(high)]
            for first in range(high)
        ]
        for x in range(wide)
    ]


class Canvas:
    """Layers of dots; x runs to the right and y down, from 0 to `dots_wide` and `dots_high` less 1.

    Whatever lies outside is cut off, and coordinates that are not finite draw nothing.
    """

    def __init__(self, width: int, height: int, layers: int = 1, glyphs: Glyphs = BRAILLE) -> None:
        """Start blank.

        Args:
            width: Cells in a row.
            height: Rows.
            layers: How many layers there are.
            glyphs: What the dots become.
        """
        self.width, self.height = max(0, width), max(0, height)
        self.glyphs = glyphs
        self.dots_wide, self.dots_high = glyphs.wide * self.width, glyphs.high * self.height
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
            every: Set only each dot of this number, counted from the edge of the canvas.
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
        wide, high = self.glyphs.wide, self.glyphs.high
        while True:
            if every == 1 or (y if steep else x) % every == 0:
                bits[y // high * width + x // wide] |= 1 << (y % high * wide + x % wide)
            if x == end_x and y == end_y:
                return
            doubled = 2 * error
            if doubled >= dy:
                error += dy
                x += step_x
            if doubled <= dx:
                error += dx
                y += step_y

    def bar(self, layer: int, x: int, y0: float, y1: float) -> None:
        """Draw a vertical line between two heights, in any order."""
        if not 0 <= x < self.dots_wide or math.isnan(y0) or math.isnan(y1):
            return
        y0, y1 = (max(-1e9, min(y, 1e9)) for y in (y0, y1))
        top, bottom = max(0, round(min(y0, y1))), min(self.dots_high - 1, round(max(y0, y1)))
        wide, high = self.glyphs.wide, self.glyphs.high
        bits, width, column = self._layers[layer], self.width, x // wide
        masks = _bar_masks(wide, high)[x % wide]
        for row in range(top // high, bottom // high + 1):
            first, last = max(0, top - row * high), min(high - 1, bottom - row * high)
            bits[row * width + column] |= masks[first][last]

    def curve(
        self,
        layer: int,
        buckets: Sequence[Bucket],
        height: Callable[[float], float],
        every: int = 1,
    ) -> None:
        """Draw what the unthinned series would: a bar a column, joined by lines.

        A gap takes the whole cell, since a single missing column of dots is not seen.

        Args:
            layer: The layer to draw on.
            buckets: From left to right.
            height: The distance of a value from the top, in dots.
            every: Set only each dot of this number.
        """
        wide = self.glyphs.wide
        gaps = {bucket.column // wide for bucket in buckets if bucket.is_gap}
        before: tuple[int, float] | None = None
        for column, first, low, high, last in buckets:
            if column // wide in gaps:
                before = None
                continue
            start = height(first)
            self.line(layer, *(before or (column, start)), column, start, every)
            if low < high:
                self.bar(layer, column, height(low), height(high))
            before = column, height(last)

    def dotted(self, layer: int, y: float, every: int = 2) -> None:
        """Draw a horizontal line of dots across the canvas."""
        self.line(layer, 0, y, self.dots_wide - 1, y, every)

    def rows(self) -> list[list[Cell]]:
        """The characters, with the layer that owns each: the last one with a dot in the cell."""
        cells = [_BLANK] * (self.width * self.height)
        characters = self.glyphs.characters
        for index, layer in enumerate(self._layers):
            if not any(layer):
                continue
            for position, bits in enumerate(layer):
                if bits:
                    cells[position] = (characters[bits], index)
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
        if not 0 <= y < self.height:
            return set()
        return {owner for _, owner in self._cells[y][max(0, x) : x + length]}

    def is_blank(self, x: int, y: int) -> bool:
        """Whether nothing was written into a cell; outside there is nothing to write into."""
        return 0 <= x < self.width and 0 <= y < self.height and self._cells[y][x][1] == ""

    def lines(self) -> list[str]:
        """The sheet as text, without blanks at the ends of its rows."""
        return ["".join(cell for cell, _ in row).rstrip() for row in self._cells]

    def runs(self, y: int) -> list[tuple[str, str]]:
        """The text of a row in runs of one owner; blank cells join the run before them."""
        runs: list[tuple[str, str]] = []
        for cell, owner in self._cells[y]:
            if runs and (owner == runs[-1][1] or cell == " "):
                runs[-1] = (runs[-1][0] + cell, runs[-1][1])
            else:
                runs.append((cell, owner))
        return runs
