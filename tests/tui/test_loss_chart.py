"""The loss chart as a widget: keys, wheel, drag, cursor, and when it draws."""

from __future__ import annotations

import math

import pytest
from textual.app import ComposeResult
from textual.events import MouseScrollUp
from tui.conftest import InkApp

from tuigpt.charts.plot import Picture, View
from tuigpt.charts.series import Series
from tuigpt.tui.widgets.loss_chart import LossChart


def picture(count: int = 1000) -> Picture:
    train, val = Series(100.0), Series()
    steps = range(1, count + 1)
    train.extend(steps, [1.5 + 2.6 * math.exp(-x / 60) for x in steps])
    val.extend([100, 500, count], [2.2, 1.7, 1.6])
    return Picture(train, val, best=val.raw.lowest())


class ChartApp(InkApp):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[float | None] = []

    def compose(self) -> ComposeResult:
        yield LossChart()

    def on_mount(self) -> None:
        self.chart.focus()
        self.chart.picture = picture()

    def on_loss_chart_read(self, event: LossChart.Read) -> None:
        self.read.append(event.x)

    @property
    def chart(self) -> LossChart:
        return self.query_one(LossChart)

    @property
    def text(self) -> str:
        return "\n".join(self.chart.render_line(y).text for y in range(self.chart.size.height))

    @property
    def span(self) -> tuple[float, float]:
        return self.chart.view.shown(self.chart.picture)


async def test_keys_zoom_pan_and_reset() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)) as pilot:
        fitted = app.span
        await pilot.press("plus", "plus")
        near = app.span
        assert near[1] - near[0] < (fitted[1] - fitted[0]) / 2
        await pilot.press("comma", "comma")
        assert app.span[0] < near[0]
        await pilot.press("full_stop", "full_stop")
        assert app.span == pytest.approx(near)
        await pilot.press("escape")
        assert app.span == fitted
        await pilot.press("z")
        assert app.span[0] == 0


async def test_the_cursor_moves_a_column_a_key_and_tells() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("left")
        await pilot.pause()
        assert app.read == [1000] and "│" in app.text.splitlines()[5][10:]
        await pilot.press("left", "left", "right")
        await pilot.pause()
        assert 950 < (app.read[-1] or 0) < 1000
        await pilot.press("escape")
        await pilot.pause()
        assert app.read[-1] is None


async def test_a_click_reads_the_wheel_zooms_and_a_drag_pans() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.click(LossChart, offset=(40, 8))
        await pilot.pause()
        assert 300 < (app.read[-1] or 0) < 700
        before = app.span
        app.chart.post_message(MouseScrollUp(app.chart, 40, 8, 0, 0, 0, False, False, False))
        await pilot.pause()
        near = app.span
        assert near[1] - near[0] < before[1] - before[0]
        await pilot.mouse_down(LossChart, offset=(40, 8))
        await pilot.hover(LossChart, offset=(50, 8))
        await pilot.mouse_up(LossChart, offset=(50, 8))
        assert app.span[0] < near[0]


async def test_a_log_scale_is_a_key_away() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)) as pilot:
        linear = app.text
        await pilot.press("l")
        await pilot.pause()
        assert app.text != linear and app.chart.view.log
        await pilot.press("l")
        await pilot.pause()
        assert app.text == linear


async def test_without_braille_it_is_drawn_with_what_there_is() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)):
        for name in ("blocks", "ascii"):
            app.chart.use_glyphs(name)
            assert not any("\u2800" <= c <= "\u28ff" for c in app.text)
            assert "val" in app.text


async def test_keys_on_an_empty_chart_do_nothing() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)) as pilot:
        app.chart.picture = Picture(placeholder=["No run yet."])
        await pilot.press("left", "right", "plus", "minus", "comma", "full_stop", "z", "escape")
        await pilot.pause()
        assert "No run yet." in app.text


async def test_curves_differ_in_colour() -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 20)):
        colours = {s.text.strip(): s.style.color for s in app.chart.render_line(0) if s.style}
        assert len({colours["─ train"], colours["○ val"], colours["★"]}) == 3


async def test_without_colours_the_raw_curve_is_dim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = ChartApp()
    async with app.run_test(size=(80, 20)):
        assert app.chart.get_component_rich_style("loss-chart--train-raw").dim
        assert not app.chart.get_component_rich_style("loss-chart--train").dim


async def test_only_rows_that_changed_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    app = ChartApp()
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        first = app.chart.render_line(0)
        regions: list[object] = []
        monkeypatch.setattr(app.chart, "refresh", lambda *given, **how: regions.extend(given))
        same = app.chart.picture
        app.chart.picture = same
        assert regions == []
        same.train.extend([1001], [1.5])
        app.chart.picture = same
        assert 0 < len(regions) < 30
        assert app.chart.render_line(0) == first


async def test_any_size_can_be_drawn() -> None:
    app = ChartApp()
    async with app.run_test(size=(90, 30)) as pilot:
        for width, height in [(1, 1), (2, 2), (5, 1), (1, 9), (20, 5), (24, 8), (90, 30)]:
            app.chart.styles.width, app.chart.styles.height = width, height
            await pilot.pause()
            for view in (View(), View(whole=True, log=True), View(cursor=500)):
                app.chart.view = view
                for y in range(height + 1):
                    assert app.chart.render_line(y).cell_length == width
