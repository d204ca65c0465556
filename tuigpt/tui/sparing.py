"""An app that writes to the terminal only what changes there: over ssh every byte is waited for.

Textual 8.2.8 draws all widgets within the box around what changed, writes all rows of a widget that
is drawn anew, whether they differ or not, and each piece of a row with its whole style. It also
reads its first style sheet twice, styles widgets that are not mounted yet, and a first screen twice
before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, pairwise, takewhile

from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.dom import DOMNode
from textual.events import ScreenResume
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

Piece = tuple[int, int, Strip]
"""Column, row, and what is to stand from there on."""


class FirstScreen(Screen[None]):
    """The screen below all others, which is styled once when the app starts."""

    _stood = False

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = OnlyChanged()

    def on_screen_resume(self, event: ScreenResume) -> None:
        event.refresh_styles = self._stood
        self._stood = True


class SparingApp(App[None]):
    """Compares each update with what it wrote before."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = Shown()
        self._cursor_at: object = None

    def get_default_screen(self) -> Screen[None]:
        return FirstScreen()

    def refresh_css(self, animate: bool = True) -> None:
        if self.screen_stack:
            super().refresh_css(animate)
        else:  # nothing is styled yet, so there are only colours to be known when it is
            self.stylesheet.set_variables(self.get_css_variables())

    def update_styles(self, node: DOMNode, animate: bool = True) -> None:
        if node.is_attached:  # else it is styled when it is mounted
            super().update_styles(node, animate)

    def forget_screen(self) -> None:
        """Another program may have written there: let all be written again."""
        self._shown.rows.clear()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # Textual drops an update while a batch of others is collected.
        if not self._batch_count:
            if isinstance(renderable, ChopsUpdate | LayoutUpdate):
                pieces = list(self._shown.changes(_pieces(renderable)))
                if not pieces and self.cursor_position == self._cursor_at:
                    return
                renderable = Pieces(pieces)
            elif renderable is not None:
                self.forget_screen()
            self._cursor_at = self.cursor_position
        super()._display(screen, renderable)


class OnlyChanged(Compositor):
    """Draws only rows of widgets of which something can be seen in what changed."""

    def render_partial_update(self) -> ChopsUpdate | None:
        screen = self.size.region
        spans = list(self._regions_to_spans(map(screen.intersection, self._dirty_regions)))
        self._dirty_regions.clear()
        if not spans:
            return None
        # A row is cut where widgets begin and end; each piece is of the first that covers it.
        chops: list[dict[int, Strip | None]] = [dict.fromkeys(row[:-1]) for row in self.cuts]
        missing: dict[int, set[int]] = {}
        for y, first, last in spans:
            row = missing.setdefault(y, set())
            row.update(x for x, end in pairwise(self.cuts[y]) if x < last and end > first)
        for widget, (region, clip) in self.visible_widgets.items():
            left, top, right, bottom = region.intersection(clip).corners
            rows = [
                y
                for y, row in missing.items()
                if top <= y < bottom and any(left <= x < right for x in row)
            ]
            for first, last in _runs(rows):
                drawn = Region.from_corners(left, first, right, last + 1)
                strips = widget.render_lines(drawn.translate(-region.offset))
                for y, strip in enumerate(strips, first):
                    cuts = [x for x in self.cuts[y] if left <= x <= right]
                    pieces = strip.divide([x - left for x in cuts[1:]])
                    for x, piece in zip(cuts, pieces, strict=False):
                        if x in missing[y]:
                            missing[y].remove(x)
                            chops[y][x] = piece
        return ChopsUpdate(chops, spans, [row[1:] for row in self.cuts])


def _runs(rows: list[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of those that follow each other without a gap."""
    for _, run in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        numbers = [row for _, row in run]
        yield numbers[0], numbers[-1]


class Shown:
    """What stands on the screen, as far as it is known.

    Attributes:
        rows: for each row the strips that were written, by the column that they begin in.
    """

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, Strip]] = {}

    def changes(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """What of these pieces differs from what stands there; they stand there then."""
        for x, y, strip in pieces:
            row = self.rows.setdefault(y, {})
            before, end = row.get(x), x + strip.cell_length
            if before is not None and before.cell_length == strip.cell_length:
                row[x] = strip
                first, last = _difference(before, strip)
                if first < last:
                    yield x + first, y, strip.crop(first, last)
                continue
            for start in [s for s, other in row.items() if s < end and s + other.cell_length > x]:
                del row[start]
            row[x] = strip
            yield x, y, strip


def _pieces(update: ChopsUpdate | LayoutUpdate) -> Iterator[Piece]:
    """What an update would write, row by row."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield x, y, strip
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        for end, (x, part) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if part is not None and x <= last and end > first:
                whole = x >= first and end <= last
                yield x, y, part if whole else part.crop(0, min(end, last) - x)


def _difference(before: Strip, now: Strip) -> tuple[int, int]:
    """From which column to which two strips of one length look different; equal ones: 0, 0."""
    old, new = list(before), list(now)
    if old == new:
        return 0, 0
    first = _same(old, new)
    if first == now.cell_length:  # they differ in what cannot be seen
        return 0, 0
    last = now.cell_length - _same(old[::-1], new[::-1], backwards=True)
    return first, max(first, last)


def _same(old: list[Segment], new: list[Segment], backwards: bool = False) -> int:
    """How many columns look the same from the start on; or from the end, with all reversed."""
    columns = 0
    for one, other in zip(old, new, strict=False):
        if _look(one.style) != _look(other.style):
            break
        if one.text == other.text:
            columns += one.cell_length
            continue
        if one.text.isascii() and other.text.isascii():
            texts = (one.text[::-1], other.text[::-1]) if backwards else (one.text, other.text)
            pairs = zip(*texts, strict=False)
            columns += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        break
    return columns


def _look(style: Style | None) -> Style | None:
    return style.clear_meta_and_links() if style is not None and style.meta else style


class Pieces(CompositorUpdate):
    """Writes pieces of rows where they stand."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for x, y, strip in self._pieces:
            yield Control.move_to(x, y)
            yield from strip

    def render_segments(self, console: Console) -> str:
        """Each where it belongs, and no style that looks as the one before.

        There are no links in tuigpt, so none are written.
        """
        colors = console._color_system or ColorSystem.TRUECOLOR
        written: list[str] = []
        style = Style.null()
        for x, y, strip in self._pieces:
            # Also where the cursor should be: a terminal may draw an emoji in another width.
            written.append(Control.move_to(x, y).segment.text)
            for text, wanted, _ in strip:
                wanted = wanted or Style.null()
                if wanted != style and not (text.isspace() and _alike_on_blanks(wanted, style)):
                    written.append(f"\x1b[0;{Strip.render_ansi(wanted, colors)}m")
                    style = wanted
                written.append(text)
        return "".join(written) + "\x1b[0m"


@lru_cache(1024)
def _alike_on_blanks(one: Style, other: Style) -> bool:
    """Whether two styles look the same where there are only blanks."""
    return one.bgcolor == other.bgcolor and not any(
        style.reverse or style.underline or style.underline2 or style.overline or style.strike
        for style in (one, other)
    )
