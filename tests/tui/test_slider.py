"""The slider by key, mouse, wheel, typing and program."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static
from tui.conftest import InkApp

from tuigpt.tui.widgets.slider import Slider


def temperature(**options: Any) -> Slider:
    options = {"step": 0.05, "value": 0.8, "label": "temperature", **options}
    return Slider(0.0, 2.0, **options)


def top_k(**options: Any) -> Slider:
    options = {"step": 1, "value": 40, "label": "top-k", "format": "{:d}", "off_at": 0, **options}
    return Slider(0, 65, **options)


class SliderApp(InkApp):
    """A slider in a pane that could scroll, under an app that binds digits and enter."""

    CSS = "Slider { width: 40; } Static { height: 50; }"
    BINDINGS = [
        Binding("1", "seen('1')"),
        Binding("enter", "seen('enter')"),
        Binding("escape", "seen('escape')"),
        Binding("x", "seen('x')"),
    ]

    def __init__(self, slider: Slider) -> None:
        super().__init__()
        self.slider = slider
        self.changes: list[float] = []
        self.seen: list[str] = []
        self.bells = 0

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield self.slider
            yield Static()

    def on_slider_changed(self, message: Slider.Changed) -> None:
        assert message.control is message.slider is self.slider
        self.changes.append(message.value)

    def action_seen(self, key: str) -> None:
        self.seen.append(key)

    def bell(self) -> None:
        self.bells += 1

    @property
    def line(self) -> str:
        return self.slider.render_line(0).text


TRACK = 12
"""The column at which the track of the temperature slider starts; it is 23 columns wide."""


class TestDrawing:
    async def test_one_line(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            assert app.line == "temperature ━━━━━━━━━◉───────────── 0.80"
            app.set_focus(None)
            await pilot.pause()
            assert app.line == "temperature ━━━━━━━━━●───────────── 0.80"
            app.slider.value = 0
            assert app.line == "temperature ●────────────────────── 0.00"
            app.slider.value = 2
            assert app.line == "temperature ━━━━━━━━━━━━━━━━━━━━━━● 2.00"

    async def test_off_and_a_value_column_that_never_jumps(self) -> None:
        app = SliderApp(top_k())
        async with app.run_test() as pilot:
            app.set_focus(None)
            await pilot.pause()
            assert app.line == "top-k ━━━━━━━━━━━━━━━━━━●───────────  40"
            app.slider.value = 7
            assert app.line == "top-k ━━━●──────────────────────────   7"
            app.slider.value = 0
            assert app.line == "top-k ●───────────────────────────── off"

    @pytest.mark.parametrize(
        ("width", "expected"),
        [
            (24, "temperature ━━●──── 0.80"),
            (20, "temperat… ━━●── 0.80"),
            (14, "te… ━━●── 0.80"),
            (12, "━━●──── 0.80"),
            (7, "●─ 0.80"),
            (5, " 0.80"),
            (3, "0.8"),
            (1, "0"),
        ],
    )
    async def test_narrow(self, width: int, expected: str) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            app.set_focus(None)
            app.slider.styles.width = width
            await pilot.pause()
            assert app.line == expected.rjust(width)[:width]

    async def test_the_label_is_never_markup(self) -> None:
        app = SliderApp(temperature(label="[/red]"))
        async with app.run_test():
            assert app.line.startswith("[/red] ━")

    async def test_taller_than_its_line(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            app.slider.styles.height = 3
            await pilot.pause()
            assert [app.slider.render_line(y).text.strip() for y in (1, 2)] == ["", ""]


class TestValues:
    def test_are_clamped_and_put_on_a_step(self) -> None:
        slider = temperature(value=0.837)
        assert slider.value == 0.85
        for value, expected in [(0.6, 0.6), (9, 2.0), (-1, 0.0), (float("inf"), 2.0), (0.13, 0.15)]:
            slider.value = value
            assert slider.value == expected

    def test_what_is_not_a_number_changes_nothing(self) -> None:
        slider = temperature()
        slider.value = float("nan")
        slider.maximum = float("nan")
        assert (slider.value, slider.maximum) == (0.8, 2.0)

    def test_no_drift(self) -> None:
        slider = temperature(value=0)
        seen = []
        for _ in range(41):
            seen.append(slider.value)
            slider.action_step(1)
        assert seen == [float(f"{tick * 5 // 100}.{tick * 5 % 100:02}") for tick in range(41)]

    def test_integers_stay_integers(self) -> None:
        slider = top_k(value=3.7)
        assert slider.value == 4 and type(slider.value) is int
        slider.maximum = 2.0
        assert slider.value == 2 and type(slider.value) is int

    def test_an_end_that_is_not_on_a_step(self) -> None:
        slider = Slider(0, 65, step=10, value=65, format="{:d}")
        assert slider.value == 60

    def test_a_single_value(self) -> None:
        slider = Slider(3, 1, step=1, value=7, format="{:d}")
        slider.action_step(5)
        assert (slider.value, slider.maximum) == (3, 3)

    @pytest.mark.parametrize("step", [0, -1, float("nan"), float("inf")])
    def test_impossible_steps_are_refused(self, step: float) -> None:
        with pytest.raises(ValueError, match="no slider"):
            Slider(0, 1, step=step, value=0)


class TestMessages:
    async def test_only_real_changes_are_told(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.pause()
            assert app.changes == []
            app.slider.value = 0.8
            app.slider.value = 0.81
            await pilot.pause()
            assert app.changes == []
            app.slider.value = 1
            await pilot.pause()
            assert app.changes == [1.0]

    async def test_a_lower_end_takes_the_value_along(self) -> None:
        app = SliderApp(top_k())
        async with app.run_test() as pilot:
            app.slider.maximum = 50
            await pilot.pause()
            assert app.changes == []
            app.slider.maximum = 27
            await pilot.pause()
            assert app.changes == [27]
            app.slider.maximum = 65
            await pilot.pause()
            assert app.changes == [27]


class TestKeys:
    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ("right", 41),
            ("up", 41),
            ("left", 39),
            ("down", 39),
            ("shift+right", 50),
            ("pageup", 50),
            ("shift+left", 30),
            ("pagedown", 30),
            ("home", 0),
            ("end", 65),
        ],
    )
    async def test_each_key(self, keys: str, expected: int) -> None:
        app = SliderApp(top_k())
        async with app.run_test() as pilot:
            await pilot.press(keys)
            assert app.changes == [expected]

    async def test_stops_at_the_ends(self) -> None:
        app = SliderApp(top_k())
        async with app.run_test() as pilot:
            await pilot.press("end", "right", "shift+right", "home", "left", "pagedown")
            assert app.changes == [65, 0]

    def test_every_binding_is_described(self) -> None:
        bindings = [binding for binding in Slider.BINDINGS if isinstance(binding, Binding)]
        assert len({binding.id for binding in bindings}) == len(bindings) == 6
        assert all(b.description and b.tooltip and b.id and b.id.islower() for b in bindings)
        assert {b.group.description for b in bindings if b.show and b.group} == {"adjust"}


class TestTyping:
    async def test_enter_sets_the_number(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("1", ".", "2")
            assert app.line == "temperature ━━━━━━━━━◉─────────────  1.2"
            assert app.changes == []
            await pilot.press("enter")
            assert app.changes == [1.2]
            assert app.seen == []

    async def test_escape_forgets_it(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("1", "escape")
            assert app.line.endswith(" 0.80")
            assert app.changes == []
            assert app.seen == []

    async def test_backspace_and_a_comma(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("0", ",", "8", "5", "backspace", "6", "enter")
            assert app.changes == [0.85]

    @pytest.mark.parametrize(
        ("keys", "changes", "bells"),
        [
            ("9", [2.0], 1),
            ("1.1.", [], 1),
            (".", [], 1),
            ("1x", [1.0], 1),
            ("1.255", [1.25], 1),
        ],
    )
    async def test_what_is_no_number_here_rings(
        self, keys: str, changes: list[float], bells: int
    ) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press(*keys, "enter")
            assert (app.changes, app.bells) == (changes, bells)

    async def test_a_negative_number(self) -> None:
        app = SliderApp(Slider(-5, 5, step=1, value=0, format="{:d}"))
        async with app.run_test() as pilot:
            await pilot.press("-", "3", "enter")
            assert app.changes == [-3]
            await pilot.press("-", "enter")
            assert (app.changes, app.bells) == ([-3], 1)

    async def test_integers_take_no_point(self) -> None:
        app = SliderApp(top_k())
        async with app.run_test() as pilot:
            await pilot.press("1", ".", "2", "enter")
            assert (app.changes, app.bells) == ([12], 1)

    @pytest.mark.parametrize(("key", "changes"), [("tab", [1.0]), ("right", [1.0, 1.05])])
    async def test_another_key_sets_it_first(self, key: str, changes: list[float]) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("1", key)
            assert app.changes == changes

    async def test_losing_the_focus_sets_it(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("1")
            app.set_focus(None)
            await pilot.pause()
            assert app.changes == [1.0]

    async def test_keys_that_mean_nothing_here_reach_the_app(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.press("x", "enter", "escape")
            assert app.seen == ["x", "enter", "escape"]
            assert "1" not in app.screen.active_bindings
            assert "x" in app.screen.active_bindings
            await pilot.press("1")
            assert not {"enter", "escape", "x"} & app.screen.active_bindings.keys()


class TestMouse:
    async def test_a_click_jumps(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.click(Slider, offset=(TRACK, 0))
            await pilot.click(Slider, offset=(TRACK + 22, 0))
            await pilot.click(Slider, offset=(TRACK + 11, 0))
            assert app.changes == [0.0, 2.0, 1.0]

    async def test_a_click_beside_the_track_only_focuses(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            app.set_focus(None)
            await pilot.click(Slider, offset=(3, 0))
            await pilot.click(Slider, offset=(38, 0))
            assert app.slider.has_focus
            assert app.changes == []

    async def test_another_button_does_nothing(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.click(Slider, offset=(TRACK, 0), button=3)
            assert app.changes == []

    async def test_drag_beyond_the_ends_and_off_the_line(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.mouse_down(Slider, offset=(TRACK + 11, 0))
            assert app.mouse_captured is app.slider
            await pilot.hover(offset=(70, 9))
            await pilot.hover(offset=(2, 3))
            await pilot.mouse_up(offset=(2, 3))
            assert app.changes == [1.0, 2.0, 0.0]
            assert app.mouse_captured is None
            await pilot.hover(Slider, offset=(TRACK + 11, 0))
            assert app.changes == [1.0, 2.0, 0.0]

    @pytest.mark.parametrize("gone", ["removed", "disabled", "pane disabled", "unfocused"])
    async def test_never_keeps_the_mouse(self, gone: str) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            await pilot.mouse_down(Slider, offset=(TRACK, 0))
            assert app.mouse_captured is app.slider
            if gone == "removed":
                await app.slider.remove()
            elif gone == "disabled":
                app.slider.disabled = True
            elif gone == "pane disabled":
                app.query_one(VerticalScroll).disabled = True
            else:
                app.set_focus(None)
            await pilot.pause()
            assert app.mouse_captured is None

    async def test_padding_counts(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            app.slider.styles.padding = (0, 0, 0, 4)
            await pilot.pause()
            await pilot.click(Slider, offset=(4 + TRACK, 0))
            assert app.changes == [0.0]


class TestWheel:
    @staticmethod
    def wheel(app: SliderApp, kind: type[events.MouseEvent], y: int = 0) -> None:
        app.post_message(kind(None, 20, y, 0, 0, 0, False, False, False, 20, y))

    async def test_steps_without_focus_and_without_scrolling(self) -> None:
        app = SliderApp(temperature())
        async with app.run_test() as pilot:
            app.set_focus(None)
            for kind in (events.MouseScrollUp, events.MouseScrollUp, events.MouseScrollDown):
                self.wheel(app, kind)
                await pilot.pause()
            assert app.changes == [0.85, 0.9, 0.85]
            app.slider.value = 0
            self.wheel(app, events.MouseScrollDown)
            await pilot.pause()
            assert app.query_one(VerticalScroll).scroll_y == 0

    async def test_scrolls_the_pane_when_disabled(self) -> None:
        app = SliderApp(temperature(disabled=True))
        async with app.run_test() as pilot:
            self.wheel(app, events.MouseScrollDown)
            await pilot.pause()
            await pilot.wait_for_animation()
            assert app.changes == []
            assert app.query_one(VerticalScroll).scroll_y > 0
