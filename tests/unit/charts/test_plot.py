"""The loss chart as text: what it shows of a run, at which zoom, in which glyphs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from tuigpt.charts.plot import Marker, Other, Picture, Ruler, View, draw, frame_of
from tuigpt.charts.raster import ASCII, BLOCKS, BRAILLE, Glyphs, Grid
from tuigpt.charts.series import Series

NAN = math.nan
RULERS = [
    Ruler("guessing", 4.17), Ruler("letters", 3.32), Ruler("pairs", 2.48), Ruler("triples", 2.07),
    Ruler("the poet", 1.44),
]  # fmt: skip


def series(points: Sequence[tuple[float, float]], memory: float = 1.0) -> Series:
    made = Series(memory)
    made.extend([x for x, _ in points], [y for _, y in points])
    return made


def descent(count: int, floor: float = 1.5, first: int = 1) -> list[tuple[float, float]]:
    """A loss that falls steeply, then slowly."""
    return [
        (x, floor + 2.6 * math.exp(-x / (count / 18)) + 0.6 * math.exp(-x / (count / 3)))
        for x in range(first, count + 1)
    ]


def row_text(grid: Grid, y: int) -> str:
    return "".join(text for text, _ in grid.runs(y))


def healthy(count: int = 1000) -> Picture:
    val = series([(x, y + 0.1) for x, y in descent(count, first=0) if x % 100 == 0])
    return Picture(
        train=series(descent(count), 100.0), val=val, best=val.raw.lowest(), rulers=RULERS
    )


def memorising() -> Picture:
    points = [(x, 1.94 + 2.2 * math.exp(-x / 70) + max(0, x - 250) / 450 * 0.64)
              for x in range(0, 701, 50)]  # fmt: skip
    val = series(points)
    best = val.raw.lowest()
    assert best
    train = series([(x, 0.5 + 3.6 * math.exp(-x / 220)) for x in range(1, 701)], 100.0)
    return Picture(train, val, best=best, memorising_from=best[0], rulers=RULERS)


def lines(
    picture: Picture, view: View | None = None, size: tuple[int, int] = (70, 14),
    glyphs: Glyphs = BRAILLE,
) -> list[str]:  # fmt: skip
    return draw(picture, view or View(), *size, glyphs).lines()


def labels(drawn: list[str]) -> list[float]:
    """The numbers at the ticks of the losses, from above."""
    return [float(line[:6]) for line in drawn[1:-2] if line[:6].strip()]


class TestWhatIsShown:
    def test_it_fits_what_still_changes_and_the_whole_run_is_one_key_away(self) -> None:
        fitted, whole = lines(healthy()), lines(healthy(), View(whole=True))
        assert fitted[-1].split()[1] != "0" and whole[-1].split()[1] == "0"
        assert max(labels(fitted)) < 3.5 <= max(labels(whole))

    def test_levels_outside_are_named_at_the_edge(self) -> None:
        late = Picture(train=series(descent(1000)[400:], 100.0), rulers=RULERS)
        drawn = "\n".join(lines(late, View(span=(600, 1000)), (90, 14)))
        assert "↑ triples 2.07, pairs 2.48, letters 3.32, guessing 4.17" in drawn
        assert "↓ the poet 1.44" in drawn

    @pytest.mark.parametrize("spike", [900.0, 1e9])
    def test_one_extreme_value_does_not_flatten_the_rest(self, spike: float) -> None:
        points = descent(500)
        points[300] = (301, spike)
        drawn = lines(Picture(train=series(points, 1.0)), View(whole=True))
        assert max(labels(drawn)) < 20
        assert "▲" in drawn[1]

    def test_the_best_is_marked_where_it_lies(self) -> None:
        picture = memorising()
        drawn = lines(picture, size=(90, 20))
        assert any("★ 1.9" in line or "★ 2.0" in line for line in drawn[1:])
        assert "★ best" in drawn[0] and "@ 250" in drawn[0]
        column = frame_of(picture, View(), 90, 20).column(250)
        assert sum(line[column : column + 1] == "┊" for line in drawn) > 3

    def test_the_gap_is_shaded_and_named_once_it_memorises(self) -> None:
        drawn = "\n".join(lines(memorising(), size=(90, 24)))
        assert "░" in drawn and "the gap" in drawn
        assert "░" not in "\n".join(lines(healthy(), size=(90, 24)))

    def test_not_a_number_is_a_gap_a_mark_and_a_word(self) -> None:
        points = [(x, NAN if x == 150 else y) for x, y in descent(300)]
        drawn = lines(Picture(train=series(points, 1.0)), View(whole=True))
        assert drawn[0].endswith("not a number at step 150")
        assert drawn[-2].count("×") == 1

    def test_another_run_is_told_apart_without_colour(self) -> None:
        other = Other("a", "tiny-2", series(descent(900, 1.9)))
        drawn = lines(Picture(train=healthy().train, others=[other]), size=(90, 16))
        assert "a tiny-2" in drawn[0]
        assert any("a" in line[60:] for line in drawn[1:-2])

    def test_milestones_stand_on_the_axis(self) -> None:
        picture = Picture(train=healthy().train, markers=[Marker(140, "pairs"), Marker(9e9, "no")])
        assert lines(picture)[-2].count("▴") == lines(picture)[-2].count("▴ pairs") == 1

    def test_before_a_run_the_levels_are_there_to_be_passed(self) -> None:
        picture = Picture(rulers=RULERS, placeholder=["A model begins by guessing."])
        drawn = "\n".join(lines(picture, size=(80, 20)))
        for ruler in RULERS:
            assert f"{ruler.name} {ruler.value}" in drawn
        assert "A model begins by guessing." in drawn

    @pytest.mark.parametrize("unit", ["step", "tokens", "epoch", "time"])
    def test_the_axis_says_what_it_counts(self, unit: str) -> None:
        drawn = lines(Picture(train=healthy().train, unit=unit))
        assert drawn[-1].split()[0] == unit
        assert ("min" in drawn[-1]) == (unit == "time")

    def test_a_log_axis_is_labelled_with_losses(self) -> None:
        drawn = lines(healthy(), View(whole=True, log=True), (70, 24))
        numbers = labels(drawn)
        assert numbers == sorted(numbers, reverse=True) and len(numbers) >= 3
        rows = [y for y, line in enumerate(drawn[1:-2]) if line[:6].strip()]
        assert rows[1] - rows[0] < rows[-1] - rows[-2]  # equal losses come closer further up

    @pytest.mark.parametrize("glyphs", [BRAILLE, BLOCKS, ASCII])
    def test_every_kind_of_glyphs_draws_the_same_story(self, glyphs: Glyphs) -> None:
        drawn = lines(memorising(), size=(90, 24), glyphs=glyphs)
        assert "the gap" in "\n".join(drawn) and "★ best" in drawn[0]
        if glyphs is ASCII:
            plot = "".join(line[6:] for line in drawn[1:])
            assert plot.replace("★", "").replace("↑", "").replace("↓", "").isascii()


class TestZoom:
    def test_in_and_out_again(self) -> None:
        picture, view = healthy(), View()
        near = view.zoomed(picture, 2.0, around=800)
        first, last = near.shown(picture)
        assert first < 800 < last and last - first < 600
        assert near.zoomed(picture, 1e9).shown(picture)[1] - near.zoomed(picture, 1e9).shown(
            picture
        )[0] == pytest.approx(4)
        assert near.zoomed(picture, 1e-9).shown(picture) == View(whole=True).shown(picture)

    def test_panning_stays_within_the_run(self) -> None:
        picture = healthy()
        view = View().zoomed(picture, 4.0, around=500)
        for direction, edge in ((-1, 0), (1, 1)):
            moved = view
            for _ in range(50):
                moved = moved.panned(picture, 0.5 * direction)
            assert moved.shown(picture)[edge] == View(whole=True).shown(picture)[edge]

    def test_a_zoomed_view_stays_where_it_is_while_the_run_grows(self) -> None:
        picture = healthy(500)
        view = View().zoomed(picture, 3.0)
        before = view.shown(picture)
        picture.train.extend([501, 502], [1.5, 1.5])
        assert view.shown(picture) == before

    @pytest.mark.parametrize("glyphs", [BRAILLE, ASCII])
    def test_it_says_how_it_is_shown_and_what_is_hidden(self, glyphs: Glyphs) -> None:
        def shown(view: View) -> tuple[str, str]:
            lines = [row_text(draw(healthy(), view, 90, 20, glyphs), y) for y in range(20)]
            return lines[0].strip(), lines[-2].strip()

        legend, edge = shown(View())
        assert "earlier" in edge and "whole run" not in legend and "log" not in legend
        legend, edge = shown(View(whole=True, log=True))
        assert "earlier" not in edge and "whole run · log" in legend

    def test_the_cursor_leaves_the_names_whole(self) -> None:
        picture = healthy()
        frame = frame_of(picture, View(), 70, 20)
        for column in range(frame.left, 70):
            grid = draw(picture, View(cursor=frame.x_at(column)), 70, 20)
            text = "\n".join(row_text(grid, y) for y in range(20))
            assert "triples 2.07" in text and "★ 1." in text
            assert any(role == "cursor" for y in range(20) for _, role in grid.runs(y))

    def test_the_cursor_reads_what_is_below_it(self) -> None:
        picture = healthy()
        frame = frame_of(picture, View(), 70, 14)
        for x in (200, 500, 900):
            assert frame.x_at(frame.column(x)) == pytest.approx(x, abs=20)


def test_nothing_ever_raises() -> None:
    rng = random.Random(4)
    wild = [1.5, 0.0, 1e308, -1e308, 5e-324, NAN, math.inf, -math.inf, 4.2]
    shapes: list[list[tuple[float, float]]] = [
        [], [(0, 1.0)], [(0, NAN)], [(0, 1e308), (1, 1.0)], [(x, 1.0) for x in range(50)],
        sorted((float(x), rng.choice(wild)) for x in rng.sample(range(100), 60)),
        [(-5, 1.0), (2, 3.0)], descent(500), [(1e9, 2.0), (1e9 + 1, 1.0)],
    ]  # fmt: skip
    views = [
        View(), View(whole=True), View(log=True), View(span=(3, 3.5), cursor=3.2), View(cursor=1e9)
    ]  # fmt: skip
    for width, height in [(0, 0), (1, 1), (5, 1), (1, 9), (20, 5), (24, 8), (90, 30), (19, 30)]:
        for train in shapes:
            for val in shapes:
                curve = series(val)
                picture = Picture(
                    series(train, 50.0), curve, best=curve.raw.lowest(), memorising_from=1,
                    rulers=[*RULERS, Ruler("bad", NAN)], markers=[Marker(1, "x")],
                )  # fmt: skip
                for view in views:
                    grid = draw(picture, view, width, height, rng.choice([BRAILLE, BLOCKS, ASCII]))
                    assert all(len(line) <= width for line in grid.lines())
