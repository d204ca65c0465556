"""The loss chart: what it shows, at which size, and when it draws."""

from __future__ import annotations

import math
import random
import time

import pytest
from textual.app import App, ComposeResult

from tuigpt.charts.scale import Point
from tuigpt.tui.widgets.loss_chart import LossChart

NAN = math.nan
LEVELS = [("uniform", 4.17), ("bigram", 2.45)]


PICTURE_OVERFIT = """\
 loss  ─ train  ○ val  ★ best 1.70 @ 600
     │
    4┤○⡀⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁ ⠁  uniform 4.17
     │⠈⢧⠡
     │ ⠈⢧⠈⠠
    3┤  ⠈⢧ ⠈⠠
     │   ⠈⠳⡀ ⠈⠄
     │⠂ ⠂ ⠈⠙⢦⡀⠂⠁○⡀⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ ⠂ bigram 2.45
    2┤      ⠈⠙⠦⣄  ⠁⠁⠂⠂⠄⡀⡀                          ⡀⡀⠄⠄⠄⠂⠂⠂○
     │         ⠈⠙⠲⠤⣄⣀⡀   ⠁⠁○⠂⠂⠂⠂⠂⠄⠄⠄⠄⠄★⠄⠄⠂⠂⠂⠂⠂⠂⠁⠁○⠁
     │              ⠉⠉⠉⠙⠒⠒⠒⠒⠒⠦⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤
    1┤
     └┬─────────┬──────────┬──────────┬──────────┬─────────┬
 step 0        200        400        600        800     1000""".splitlines()

PICTURE_EMPTY = """\
 loss
     │
     │
     │           No run yet.
     │
     │
     │
     └──────────────────────────────────
 step""".splitlines()

PICTURE_NAN = """\
 loss  ─ train                     NaN at step 120
     │
    4┤⢦
     │⠈⠳⡀
     │ ⠈⠈⢦⡀
     │   ⠈⠉⠢⣄⡀
    2┤      ⠉⠉⠑⠲⠤⢤⣀⣀⣀⣀
     │              ⠉⠈⠉ ⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
     └┬─────────────┬──×───────────┬─────────────┬
 step 0            100            200          300""".splitlines()


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LossChart(placeholder="No run yet.")

    @property
    def chart(self) -> LossChart:
        return self.query_one(LossChart)

    @property
    def lines(self) -> list[str]:
        return [self.chart.render_line(y).text.rstrip() for y in range(self.chart.size.height)]


def descent(count: int, every: int = 1, floor: float = 1.4, scale: float = 0.1) -> list[Point]:
    return [
        (step, floor + (4.2 - floor) * math.exp(-step / (count * scale)))
        for step in range(0, count, every)
    ]


async def drawn(
    size: tuple[int, int],
    train: list[Point],
    val: list[Point],
    references: list[tuple[str, float]] | None = None,
) -> list[str]:
    app = ChartApp()
    async with app.run_test(size=size):
        app.chart.show(train, val, references or [])
        return app.lines


class TestPictures:
    async def test_an_overfitting_run(self) -> None:
        val = [(0, 4.2), (200, 2.3), (400, 1.8), (600, 1.7), (800, 1.9), (999, 2.2)]
        lines = await drawn((60, 14), descent(1000), val, LEVELS)
        assert lines == PICTURE_OVERFIT

    async def test_an_empty_chart(self) -> None:
        assert await drawn((40, 9), [], []) == PICTURE_EMPTY

    async def test_a_nan(self) -> None:
        train = [(step, NAN if step == 120 else loss) for step, loss in descent(300)]
        assert await drawn((50, 10), train, []) == PICTURE_NAN


class TestWords:
    async def test_legend_and_best(self) -> None:
        lines = await drawn((70, 12), descent(1300), [(600, 1.75), (1200, 1.62)])
        assert "─ train  ○ val  ★ best 1.62 @ 1200" in lines[0]
        assert any("★" in line for line in lines[1:])

    async def test_the_legend_says_only_what_is_there(self) -> None:
        assert (await drawn((70, 12), descent(100), []))[0].split() == ["loss", "─", "train"]
        assert "train" not in (await drawn((70, 12), [], [(0, 4.0)]))[0]

    async def test_the_legend_shortens(self) -> None:
        val = [(1200, 1.62)]
        assert "★ 1.62 @ 1200" in (await drawn((40, 12), descent(1300), val))[0]
        assert "★ 1.62" in (await drawn((31, 12), descent(1300), val))[0]
        assert "★" not in (await drawn((26, 12), descent(1300), val))[0]

    @pytest.mark.parametrize(
        ("train", "val", "message"),
        [
            ([(0, 3.0), (1, 2.0), (2, NAN), (3, 1.5)], [], "NaN at step 2"),
            ([(10, NAN), (20, NAN), (30, NAN)], [], "NaN at step 10 (+2)"),
            ([(0, 3.0), (1, math.inf), (2, 1.0)], [], "inf at step 1"),
            ([(0, -math.inf)], [], "-inf at step 0"),
            ([(0, 3.0), (200, NAN)], [(100, NAN)], "NaN at step 100 (+1)"),
        ],
    )
    async def test_not_a_number(self, train: list[Point], val: list[Point], message: str) -> None:
        assert (await drawn((60, 12), train, val))[0].endswith(message)
        assert any(message in line for line in await drawn((22, 4), train, val))

    async def test_bad_steps_are_marked_on_the_axis(self) -> None:
        lines = await drawn((46, 12), [(0, 3.0), (50, NAN), (100, 2.0)], [])
        assert lines[-2].count("×") == 1
        assert lines[-2][6 + 20] == "×"

    async def test_text_is_never_markup_nor_control_codes(self) -> None:
        app = ChartApp()
        async with app.run_test(size=(60, 12)):
            app.chart.placeholder = "[/red] \x1b[31m 日本"
            assert any("[/red] \ufffd[31m 日本" in line for line in app.lines)
            app.chart.show(descent(100), [], [("[b]\x07", 4.1)])
            assert any("[b]\ufffd 4.10" in line for line in app.lines)

    async def test_the_placeholder_may_change_and_wraps(self) -> None:
        app = ChartApp()
        async with app.run_test(size=(30, 12)):
            app.chart.placeholder = "Nothing yet.\nPress n to start a new run here."
            text = [line.split("│")[-1].strip() for line in app.lines]
            assert [line for line in text if line][1:4] == [
                "Nothing yet.",
                "Press n to start a new",
                "run here.",
            ]


class TestAxes:
    async def test_the_plot_never_jumps(self) -> None:
        for train in (descent(10), [(0, 120.0), (9, 50.0)], [(0, 9e4)], [(0, 1.5), (9, 1.5)]):
            lines = await drawn((60, 16), train, [])
            assert {line[5] for line in lines[1:-2]} == {"│", "┤"}

    async def test_x_is_the_real_step(self) -> None:
        val = [(0, 4.0), (900, 3.0)]
        lines = await drawn((66, 12), descent(1000), val)
        marks = {line.index("★") for line in lines[1:] if "★" in line}
        assert marks == {6 + 53}

    async def test_a_resumed_run_begins_where_it_does(self) -> None:
        lines = await drawn((66, 12), [(1000 + s, v) for s, v in descent(200)], [])
        assert lines[-1].split()[1] == "1000"

    async def test_a_level_far_away_does_not_flatten_the_curve(self) -> None:
        late = [(5000 + step, 1.5 - step / 2000) for step in range(100)]
        lines = await drawn((66, 16), late, [], LEVELS)
        assert not any("uniform" in line for line in lines)
        assert all(float(line[:5]) < 1.6 for line in lines[1:-2] if line[:5].strip())
        lines = await drawn((66, 16), descent(100), [], LEVELS)
        assert sum("uniform 4.17" in line for line in lines) == 1

    async def test_a_level_is_named_where_no_curve_is(self) -> None:
        rising = [(step, 2.0 + step / 100) for step in range(101)]
        lines = await drawn((66, 16), rising, [], [("bigram", 2.95)])
        row = next(line for line in lines if "bigram" in line)
        assert row.index("bigram") == 8


async def test_nothing_ever_raises() -> None:
    rng = random.Random(4)
    wild = [1.5, 0.0, 1e308, -1e308, 5e-324, NAN, math.inf, -math.inf, 4.2]
    shapes: list[list[Point]] = [
        [],
        [(0, 1.0)],
        [(0, NAN)],
        [(0, 1e308), (1, 1.0)],
        [(step, 1.0) for step in range(50)],
        [(rng.randint(0, 100), rng.choice(wild)) for _ in range(60)],
        [(3, 1.0), (1, 2.0), (2, 3.0), (-5, 1.0)],
        descent(500),
    ]
    app = ChartApp()
    async with app.run_test(size=(90, 30)) as pilot:
        for width, height in [(1, 1), (2, 2), (5, 1), (1, 9), (20, 5), (24, 8), (90, 30), (19, 30)]:
            app.chart.styles.width, app.chart.styles.height = width, height
            await pilot.pause()
            assert app.chart.size == (width, height)
            for train in shapes:
                for val in shapes:
                    app.chart.show(train, val, [("uniform", 4.17), ("x", NAN)])
                    for y in range(height + 1):
                        assert app.chart.render_line(y).cell_length == width


class TestDrawing:
    async def test_lines_are_kept_until_something_changes(self) -> None:
        app = ChartApp()
        async with app.run_test(size=(60, 16)) as pilot:
            chart, points = app.chart, descent(100)
            chart.show(points, [])
            line = chart.render_line(5)
            chart.show(list(points), [])
            assert chart.render_line(5) is line
            chart.show(points, [], LEVELS)
            assert chart.render_line(5) is not line
            line = chart.render_line(5)
            points.append((100, 1.0))
            chart.show(points, [], LEVELS)
            assert chart.render_line(5) is not line
            line = chart.render_line(5)
            app.theme = "textual-light"
            await pilot.pause()
            assert chart.render_line(5) is not line
            line = chart.render_line(5)
            await pilot.resize_terminal(50, 12)
            await pilot.pause()
            assert chart.render_line(5).cell_length == 50

    async def test_a_chart_may_be_filled_before_it_is_shown(self) -> None:
        chart = LossChart()
        chart.show(descent(100), [])

        class Filled(App[None]):
            def compose(self) -> ComposeResult:
                yield chart

        async with Filled().run_test(size=(60, 16)):
            assert "train" in chart.render_line(0).text

    async def test_curves_differ_in_colour_and_the_series_own_their_cells(self) -> None:
        app = ChartApp()
        async with app.run_test(size=(60, 16)):
            app.chart.show(descent(100), [(0, 4.2), (50, 1.9), (99, 1.6)])
            legend = app.chart.render_line(0)
            colours = {
                segment.text.strip(): segment.style.color
                for segment in legend
                if segment.style is not None
            }
            assert colours["─ train"] != colours["○ val"] != colours["★"]

    async def test_without_colours_the_raw_layer_is_dim(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        app = ChartApp()
        async with app.run_test(size=(60, 16)):
            assert app.chart.get_component_rich_style("loss-chart--train-raw").dim
            assert not app.chart.get_component_rich_style("loss-chart--train").dim

    async def test_a_long_run_costs_what_a_short_one_does(self) -> None:
        app = ChartApp()
        async with app.run_test(size=(100, 20)):
            chart, points = app.chart, descent(200_000)
            points_shown = points[:-100]
            chart.show(points_shown, [])
            chart.render_line(0)
            started = time.process_time()
            for point in points[-100:]:
                points_shown.append(point)
                chart.show(points_shown, [])
                chart.render_line(0)
            assert (time.process_time() - started) / 100 < 0.1
