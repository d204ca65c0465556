"""What is written is as little as needed, and never less."""

from __future__ import annotations

import random
from itertools import pairwise

import pyte
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tuigpt.tui.sparing import FirstScreen, Pieces, Shown, SparingApp

PLAIN, BOLD = Style.parse("red"), Style.parse("bold red")


def strip(*texts: str, styles: tuple[Style, ...] = (PLAIN, BOLD)) -> Strip:
    return Strip([Segment(text, styles[n % len(styles)]) for n, text in enumerate(texts)])


def changes(shown: Shown, x: int, y: int, now: Strip) -> list[tuple[int, int, str]]:
    return [(x, y, piece.text) for x, y, piece in shown.changes(iter([(x, y, now)]))]


def test_only_what_differs_is_written() -> None:
    shown = Shown()
    assert changes(shown, 3, 1, strip("one", " two")) == [(3, 1, "one two")]
    assert changes(shown, 3, 1, strip("one", " two")) == []
    assert changes(shown, 3, 1, strip("one", " tzo")) == [(8, 1, "z")]
    assert changes(shown, 3, 2, strip("one", " tzo")) == [(3, 2, "one tzo")]
    assert changes(shown, 3, 1, strip("one ", "tzo")) == [(6, 1, " ")]  # in another style


def test_what_cannot_be_seen_is_no_difference() -> None:
    shown = Shown()
    changes(shown, 0, 0, strip("abc"))
    other = strip("abc", styles=(PLAIN + Style.from_meta({"offset": (0, 7)}),))
    assert changes(shown, 0, 0, other) == []


def test_at_any_borders_the_screen_ends_up_as_wanted() -> None:
    rng = random.Random(5)
    shown = Shown()
    screen = [" "] * 40
    for _ in range(2000):
        x = rng.randrange(30)
        words = ["".join(rng.choices("ab🙂", k=rng.randrange(1, 4))) for _ in range(3)]
        now = strip(*words)
        if x + now.cell_length > 40:
            continue
        wanted = list(screen)
        _put(wanted, x, now)
        for column, _, piece in shown.changes(iter([(x, 0, now)])):
            _put(screen, column, piece)
        assert screen == wanted


def _put(screen: list[str], x: int, strip: Strip) -> None:
    for segment in strip:
        for character in segment.text:
            width = Segment(character).cell_length
            screen[x : x + width] = [f"{segment.style}{character}"] * width
            x += width


def test_fewer_styles_draw_the_same() -> None:
    """As Textual's own way of writing, on an emulated terminal."""
    rng = random.Random(7)
    styles = ("red", "red on blue", "green on blue", "reverse red on blue", "underline", "bold", "")
    console = Console(color_system="truecolor")
    for _ in range(300):
        pieces, x = [], 0
        while x < 30:
            words = [rng.choice(("ab", " ", "   ", "c d")) for _ in range(rng.randrange(1, 4))]
            piece = strip(*words, styles=tuple(map(Style.parse, rng.choices(styles, k=3))))
            pieces.append((x, rng.randrange(2), piece))
            x += piece.cell_length + rng.choice((0, 0, 2))
        whole = "".join(f"\x1b[{y + 1};{x + 1}H{piece.render(console)}" for x, y, piece in pieces)
        spared = Pieces(pieces).render_segments(console)
        assert _drawn(spared) == _drawn(whole)
        assert len(spared) <= len(whole) + len("\x1b[0m")


def _drawn(text: str) -> list[object]:
    """What can be seen in each cell of two rows."""
    screen = pyte.Screen(50, 2)
    pyte.Stream(screen).feed(text)
    rows: list[object] = []
    for y in range(2):
        cells = [screen.buffer[y][x] for x in range(50)]
        lines = [(cell.bg, cell.reverse, cell.underscore, cell.strikethrough) for cell in cells]
        inks = [cell.fg if cell.data != " " or cell.reverse else "" for cell in cells]
        rows.append([*zip((cell.data for cell in cells), inks, lines, strict=True)])
    return rows


class Letter(Widget):
    """All of one letter."""

    def __init__(self, letter: str, drawn: list[str], id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.letter, self._drawn = letter, drawn

    def render_lines(self, crop: Region) -> list[Strip]:
        self._drawn.append(self.letter.lower())
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(self.letter * self.size.width, PLAIN)])


class Overlapping(SparingApp):
    """Letters beside each other, partly out of view, in frames, and below another one."""

    CSS = """
    Screen { layers: below above; layout: horizontal; }
    Container { width: 12; border: round red; }
    VerticalScroll { width: 15; }
    Letter { height: 4; }
    #tall { height: 30; }
    #above { layer: above; width: 20; height: 5; offset: 8 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []

    def compose(self) -> ComposeResult:
        with Container():
            yield Letter("a", self.drawn)
            yield Letter("b", self.drawn)
        with VerticalScroll():
            yield Letter("c", self.drawn)
            yield Letter("d", self.drawn, id="tall")
        yield Letter("e", self.drawn, id="above")


async def test_after_any_change_there_stands_what_a_whole_drawing_shows() -> None:
    app, rng = Overlapping(), random.Random(3)
    async with app.run_test(size=(40, 14)):
        app.screen.query_one(VerticalScroll).scroll_to(y=2, animate=False, force=True)
        compositor = app.screen._compositor
        compositor.reflow(app.screen, app.size)
        for _ in range(300):
            changed = set(rng.sample([*app.screen.query(Widget)], rng.randrange(1, 4)))
            for widget in changed:
                if isinstance(widget, Letter):
                    widget.letter = widget.letter.swapcase()
                x, y, width = rng.randrange(-2, 12), rng.randrange(-2, 8), rng.randrange(1, 9)
                widget.refresh(*[Region(x, y, width, 3)] * rng.randrange(2))
            compositor.update_widgets(changed)
            update = compositor.render_partial_update()
            if update is None:  # all of it is out of view
                continue
            whole = compositor.render_strips()
            for y, first, last in update.spans:
                for x, end in pairwise(compositor.cuts[y]):
                    if x < last and end > first:
                        piece = update.chops[y][x]
                        assert piece is not None
                        left, right = max(x, first), min(end, last)
                        wanted = whole[y].crop(left, right)
                        assert piece.crop(left - x, right - x).text == wanted.text


async def test_what_did_not_change_or_lies_behind_is_not_drawn_again() -> None:
    app = Overlapping()
    async with app.run_test(size=(40, 14)):
        assert isinstance(app.screen, FirstScreen)
        compositor = app.screen._compositor
        compositor.update_widgets({*app.screen.query(Widget)})  # as they were never drawn
        compositor.render_full_update()
        for letter, region, drawn in (
            (0, Region(0, 0, 5, 2), "a"),
            (4, Region(0, 0, 20, 5), "e"),
            (0, Region(0, 0, 10, 4), "ea"),
        ):
            app.drawn.clear()
            widget = app.screen.query(Letter)[letter]
            widget.refresh(region)
            compositor.update_widgets({widget})
            assert compositor.render_partial_update() is not None
            assert "".join(app.drawn) == drawn
