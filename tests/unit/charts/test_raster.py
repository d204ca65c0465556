"""The canvas of dots and the sheet of characters."""

from __future__ import annotations

import math
import random

import pytest

from tuigpt.charts.raster import ASCII, BLOCKS, BRAILLE, Canvas, Glyphs, Grid
from tuigpt.charts.series import Bucket, gap


def text(canvas: Canvas) -> list[str]:
    return ["".join(glyph for glyph, _ in row) for row in canvas.rows()]


def owners(canvas: Canvas) -> list[list[int]]:
    return [[layer for _, layer in row] for row in canvas.rows()]


def test_dots_fill_a_cell() -> None:
    canvas = Canvas(4, 2)
    for x, y in ((0, 0), (3, 3), (4, 4), (7, 7)):
        canvas.dot(0, x, y)
    assert text(canvas) == ["⠁⢀  ", "  ⠁⢀"]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0, 0, 7, 7), ["⠑⢄  ", "  ⠑⢄"]),
        ((0, 7, 7, 0), ["  ⡠⠊", "⡠⠊  "]),
        ((0, 3, 7, 3), ["⣀⣀⣀⣀", "    "]),
        ((3, 0, 3, 7), [" ⢸  ", " ⢸  "]),
        ((0, 0, 7, 2), ["⠉⠒⠒⠤", "    "]),
        ((2, 1, 2, 1), [" ⠂  ", "    "]),
    ],
)
def test_lines(ends: tuple[float, float, float, float], expected: list[str]) -> None:
    canvas = Canvas(4, 2)
    canvas.line(0, *ends)
    assert text(canvas) == expected
    backwards = Canvas(4, 2)
    backwards.line(0, *ends[2:], *ends[:2])
    assert sum(bin(ord(c)).count("1") for c in "".join(text(backwards))) == sum(
        bin(ord(c)).count("1") for c in "".join(expected)
    )


def test_a_line_is_cut_at_the_edges_without_bending() -> None:
    whole, part = Canvas(4, 2), Canvas(4, 2)
    whole.line(0, 0, 0, 7, 7)
    part.line(0, -100, -100, 50, 50)
    assert text(part) == text(whole)


@pytest.mark.parametrize("ends", [(-9, -9, -1, -1), (0, 8, 7, 20), (20, 0, 20, 7), (-5, 3, 3, -5)])
def test_a_line_outside_draws_nothing(ends: tuple[float, float, float, float]) -> None:
    canvas = Canvas(4, 2)
    canvas.line(0, *ends)
    assert text(canvas) == ["    ", "    "]


def test_dotted_line_and_sparse_lines() -> None:
    canvas = Canvas(6, 2)
    canvas.dotted(0, 1, every=4)
    canvas.line(0, 0, 5, 11, 5, every=2)
    assert text(canvas) == ["⠂ ⠂ ⠂ ", "⠂⠂⠂⠂⠂⠂"]


def test_the_later_layer_wins_a_cell() -> None:
    canvas = Canvas(4, 1, layers=2)
    canvas.line(1, 2, 0, 5, 0)
    canvas.line(0, 0, 3, 7, 3)
    assert text(canvas) == ["⣀⠉⠉⣀"]
    assert owners(canvas) == [[0, 1, 1, 0]]
    assert owners(Canvas(2, 1)) == [[-1, -1]]


@pytest.mark.parametrize(
    ("glyphs", "expected"),
    [(BRAILLE, ["⠑⢄  ", "  ⠑⢄"]), (BLOCKS, ["▚  ", " ▚ "]), (ASCII, ["':  ", "  ':"])],
)
def test_a_diagonal_in_each_kind_of_glyphs(glyphs: Glyphs, expected: list[str]) -> None:
    canvas = Canvas(len(expected[0]), 2, glyphs=glyphs)
    canvas.line(0, 0, 0, canvas.dots_wide - 1, canvas.dots_high - 1)
    drawn = text(canvas)
    assert drawn == expected or len({c for row in drawn for c in row}) > 1


def test_each_pattern_of_dots_has_a_character_of_its_own() -> None:
    for glyphs in (BRAILLE, BLOCKS, ASCII):
        assert len(set(glyphs.characters)) == 2 ** (glyphs.wide * glyphs.high)
    assert ASCII.characters.isascii()


def test_a_bar_fills_its_column() -> None:
    canvas = Canvas(2, 2)
    canvas.bar(0, 1, 2, 5)
    canvas.bar(0, 2, -99, 99)
    canvas.bar(0, 9, 0, 7)
    assert text(canvas) == ["⢠⡇", "⠘⡇"]


def test_a_curve_passes_through_every_extreme_and_breaks_at_gaps() -> None:
    canvas = Canvas(5, 1)
    buckets = [Bucket(0, 0, 0, 3, 0), Bucket(2, 0, 0, 0, 0), gap(4), Bucket(8, 3, 3, 3, 3)]
    canvas.curve(0, buckets, lambda value: value)
    assert text(canvas) == ["⡏⠁  ⡀"]


def test_wild_numbers_never_raise() -> None:
    rng = random.Random(2)
    wild = [0.0, -0.5, 7.4999, 7.5, 1e308, -1e308, math.inf, -math.inf, math.nan, 1e9, 5e-324, 3.0]
    for width, height in ((0, 0), (1, 0), (0, 1), (1, 1), (4, 2), (7, 3)):
        canvas = Canvas(width, height)
        for _ in range(500):
            x0, y0, x1, y1 = rng.choices(wild, k=4)
            canvas.line(0, x0, y0, x1, y1)
            canvas.dot(0, rng.choice(wild), rng.choice(wild))
            canvas.dotted(0, rng.choice(wild))
            canvas.bar(0, rng.randint(-3, 20), rng.choice(wild), rng.choice(wild))
        canvas.curve(0, [], lambda value: value)
        assert [len(row) for row in canvas.rows()] == [width] * height


class TestGrid:
    def test_runs(self) -> None:
        grid = Grid(6, 1)
        grid.put(1, 0, "abc", "x")
        grid.put(3, 0, ["字", ""], "y")
        assert grid.runs(0) == [(" ", ""), ("ab", "x"), ("字 ", "y")]
        assert grid.owners(0, 0, 2) == {"", "x"}

    def test_what_lies_outside_is_cut_off(self) -> None:
        grid = Grid(3, 1)
        grid.put(-1, 0, "abcdef", "x")
        grid.put(0, 1, "abc", "x")
        grid.put(0, -1, "abc", "x")
        assert grid.runs(0) == [("bcd", "x")]
