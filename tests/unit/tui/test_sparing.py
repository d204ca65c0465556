"""What is written is as little as needed, and never less."""

from __future__ import annotations

import random

import pyte
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tuigpt.tui.sparing import Pieces, Shown

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
