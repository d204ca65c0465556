"""The themes: words and lines stand out from what is behind them, in every pane."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import MakeRun
from textual.color import Color
from textual.pilot import Pilot
from tui.conftest import OpenApp, screen_text, still
from tui.test_app import RECORDS, RUNNING

from tuigpt.settings import change_settings
from tuigpt.tui.themes import INK, PAPER, TERMINAL, THEMES, default_glyphs, default_theme

WORDS, LINES = 4.5, 3.0
"""Contrast that words and lines need, as WCAG 2 measures it."""

ROLES = (
    "accent", "train", "val", "success", "warning", "error", "foreground", "text-primary",
    "text-success", "text-warning", "text-error", "foreground-muted",
)  # fmt: skip


def contrast(one: Color, other: Color) -> float:
    """As WCAG 2 defines it, from 1 to 21."""

    def luminance(color: Color) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (color.r / 255, color.g / 255, color.b / 255)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [INK, PAPER], ids=lambda theme: theme.name)
@pytest.mark.parametrize("behind", ["background", "surface"])
def test_every_role_can_be_read(theme: Any, behind: str) -> None:
    variables = theme.to_color_system().generate() | theme.variables
    ground = Color.parse(variables[behind])
    for role in ROLES:
        assert contrast(Color.parse(variables[role]), ground) >= WORDS, role
    assert contrast(Color.parse(variables["line"]), ground) >= LINES
    if behind == "background":  # where the chart is: seen, and far fainter than what it is behind
        noise, train = (Color.parse(variables[role]) for role in ("noise", "train"))
        assert LINES <= contrast(noise, ground) < contrast(train, ground) / 1.9


def poor(pilot: Pilot[None]) -> dict[str, float]:
    """What on the screen stands out too little, with its contrast."""
    found = {}
    for strip in pilot.app.screen._compositor.render_strips():
        for text, style, _ in strip:
            if not text.strip() or style is None or style.color is None or style.bgcolor is None:
                continue
            if style.color.is_default or style.bgcolor.is_default:
                continue
            fore, back = (Color.from_rich_color(c) for c in (style.color, style.bgcolor))
            if style.reverse:
                fore, back = back, fore
            if re.fullmatch(r"\w", text):  # below a cursor
                continue
            need = WORDS if re.search(r"\w", text) else LINES
            ratio = contrast(fore, back)
            if ratio < need - 0.05:
                found[text.strip()] = round(ratio, 2)
    return found


@pytest.mark.parametrize("theme", [INK.name, PAPER.name])
async def test_what_is_on_the_screen_can_be_read(
    open_app: OpenApp, make_run: MakeRun, theme: str
) -> None:
    make_run("verse", {50: 2.0, 100: 1.5}, RECORDS, **RUNNING, val_loss=1.5, train_loss=1.5,
             step=60, max_steps=100)  # fmt: skip
    async with open_app(160, 45) as pilot:
        pilot.app.theme = theme
        for key in ("ctrl+g", "ctrl+t", "ctrl+o", "f1"):
            await pilot.press(key)
            await still(pilot)
            assert poor(pilot) == {}, key


def test_a_terminal_of_sixteen_colours_gets_its_own() -> None:
    assert default_theme("standard") == TERMINAL.name
    assert {default_theme(name) for name in ("256", "truecolor", None)} == {INK.name}
    assert len({theme.name for theme in THEMES}) == len(THEMES)


def test_the_linux_console_gets_blocks() -> None:
    assert default_glyphs("linux") == "blocks"
    assert default_glyphs("xterm-256color") == "braille"


async def test_charts_are_drawn_as_was_chosen(open_app: OpenApp, make_run: MakeRun) -> None:
    make_run("verse", {50: 2.0, 100: 1.5}, RECORDS)
    change_settings(glyphs="ascii")
    async with open_app(160, 45) as pilot:
        await still(pilot)
        assert not re.search("[\u2801-\u28ff]", screen_text(pilot))
