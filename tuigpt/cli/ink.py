"""Colours on a terminal that has them; nothing but the text anywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from tuigpt.cli.live_line import is_live

if TYPE_CHECKING:
    from rich.console import Console

ROLES = {
    "accent": "cyan",
    "train": "blue",
    "val": "magenta",
    "best": "bold green",
    "caution": "yellow",
    "error": "bold red",
    "copy": "black on yellow",
    "fresh": "bold green",
    "quiet": "dim",
    "name": "bold",
}
"""What each role looks like, in rich's words; the terminal's own palette decides the shades."""

BAR = 30
"""Columns of the widest bar."""


_LABEL_WIDTH = 10


def print_labelled(lines: Iterable[tuple[str, str]]) -> None:
    """Print a label and its words in each line; an empty label belongs to the one above."""
    for label, words in lines:
        print(f"{label:>{_LABEL_WIDTH}}  {words}", flush=True)


class Ink:
    """Paints text for one stream.

    NO_COLOR, FORCE_COLOR and TERM are obeyed as rich obeys them.

    Attributes:
        live: whether the stream is a terminal, with colours or without.
    """

    def __init__(self, stream: TextIO) -> None:
        self.live = is_live(stream)
        self._console: Console | None = None
        if self.live:
            from rich.console import Console

            console = Console(file=stream, highlight=False, markup=False, emoji=False)
            if console.color_system is not None and not console.no_color:
                self._console = console

    def paint(self, text: str, role: str) -> str:
        """The text in the colour of its role, of `ROLES`."""
        if self._console is None or not text:
            return text
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(Text(text, ROLES[role]), end="", soft_wrap=True)
        return captured.get()

    def bar(self, share: float, width: int, role: str = "accent") -> str:
        """A bar of so many columns, filled to a share from 0 to 1."""
        done = min(width, max(0, round(share * width)))
        return self.paint("━" * done, role) + self.paint("╌" * (width - done), "quiet")


def wrapped(text: str, width: int) -> list[str]:
    """A text in rows of at most so many columns, broken between words where that is possible."""
    from rich.console import Console
    from rich.text import Text

    rows = Text(text, tab_size=4).wrap(Console(width=width), max(1, width), tab_size=4)
    return [row.plain.rstrip() for row in rows]
