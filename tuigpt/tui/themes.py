"""The app's own themes: one colour for each role, dark on light and light on dark.

Textual's names are filled so that whatever follows them follows the roles: `primary` and `accent`
are the accent, `success` is best, `warning` is caution. `$train`, `$noise`, `$val` and `$line` are
ours.
"""

from __future__ import annotations

from textual.theme import Theme


def _theme(
    name: str,
    *,
    dark: bool,
    background: str,
    surface: str,
    panel: str,
    cursor: str,
    foreground: str,
    muted: str,
    line: str,
    accent: str,
    train: str,
    noise: str,
    val: str,
    best: str,
    caution: str,
    error: str,
) -> Theme:
    """
    Args:
        cursor: behind the row of a list that has the focus.
        muted: of words that matter less.
        line: of borders and rules.
        accent: the focus, the prompt, the next thing to do.
        train: the loss on the text that is studied.
        noise: the train loss of single updates, behind its smoothed course.
        val: the loss on text that is never seen.
        best: the lowest val, and what went well.
        caution: a run that memorises, is paused, or wants a look.
        error: nothing but errors.
    """
    return Theme(
        name, primary=accent, secondary=train, accent=accent, success=best, warning=caution,
        error=error, foreground=foreground, background=background, surface=surface, panel=panel,
        dark=dark,
        variables={
            "train": train, "noise": noise, "val": val, "line": line,
            "text-primary": accent, "text-accent": accent, "text-secondary": train,
            "text-success": best, "text-warning": caution, "text-error": error,
            "text": foreground, "text-muted": muted, "foreground-muted": muted,
            "border": accent, "border-blurred": line,
            "block-cursor-background": cursor, "block-cursor-foreground": foreground,
            "block-cursor-blurred-background": surface,
            "block-cursor-blurred-foreground": foreground,
            "footer-background": surface, "footer-foreground": foreground,
            "footer-description-foreground": foreground,
            "footer-key-foreground": accent, "footer-key-background": surface,
            "input-selection-background": f"{accent} 35%",
            "button-color-foreground": background, "button-foreground": foreground,
            "scrollbar": line, "scrollbar-background": surface,
        },
    )  # fmt: skip


INK = _theme(
    "ink", dark=True,
    background="#16171c", surface="#1e2027", panel="#2b2e38", cursor="#33304a",
    foreground="#e8e4da", muted="#a6a29a", line="#70727d",
    accent="#c9a6ee", train="#6cb6ff", noise="#4b6783", val="#f0883e", best="#7ee787",
    caution="#f2cc60", error="#ff7b72",
)  # fmt: skip

PAPER = _theme(
    "paper", dark=False,
    background="#faf7f0", surface="#f3efe5", panel="#e8e4da", cursor="#e9e0f5",
    foreground="#16171c", muted="#5f5c55", line="#85817a",
    accent="#6d3ba8", train="#0b5cad", noise="#78909f", val="#a04308", best="#1a6b2f",
    caution="#7a5500", error="#b3261e",
)  # fmt: skip

TERMINAL = Theme(
    "terminal", ansi=True, primary="ansi_magenta", secondary="ansi_blue", accent="ansi_magenta",
    success="ansi_green", warning="ansi_yellow", error="ansi_red", foreground="ansi_default",
    background="ansi_default", surface="ansi_default", panel="ansi_default", boost="ansi_default",
    dark=True,
    variables={
        "ansi-background": "ansi_black", "ansi-foreground": "ansi_white",
        "border-blurred": "ansi_bright_black",
        "train": "ansi_bright_blue", "noise": "ansi_bright_black", "val": "ansi_bright_yellow",
        "line": "ansi_bright_black",
        "block-cursor-foreground": "ansi_black", "block-cursor-background": "ansi_magenta",
        "footer-key-foreground": "ansi_magenta",
        "input-selection-background": "ansi_bright_blue",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_bright_blue",
        "screen-selection-foreground": "ansi_black",
    },
)  # fmt: skip
"""The terminal's own sixteen colours, whatever they look like there."""

THEMES = (INK, PAPER, TERMINAL)
"""All that are offered."""


def default_theme(color_system: str | None) -> str:
    """The theme for a terminal of these colours, as Rich calls them: `standard` has sixteen."""
    return TERMINAL.name if color_system == "standard" else INK.name


def default_glyphs(term: str) -> str:
    """What charts are drawn with under this `TERM`: the font of Linux's console has no braille."""
    return "blocks" if term in ("linux", "vt100", "vt220") else "braille"
