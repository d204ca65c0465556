"""What could come next, as bars in a line: the distribution that the next token is drawn from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tuigpt.generation.protocol import Candidate
from tuigpt.wording import one_line, symbol_shown

_BAR_SHARE = 0.45
"""Of the line's width, what a bar of 100 % takes."""


def token_shown(text: str) -> str:
    """A token's text so that it can be seen: blanks as ␣, line ends as ⏎."""
    if len(text) == 1 and text != " ":
        return symbol_shown(text)
    return one_line(text.replace(" ", "␣")).replace("\t", "⇥") or "∅"


def percent(share: float) -> str:
    """A probability in at most four characters."""
    if share <= 0:
        return "–"
    return f"{100 * share:.0f}%" if share >= 0.0095 else "<1%"


def bars(candidates: Sequence[Candidate], width: int) -> list[tuple[str, str]]:
    """Styles and texts of a line of bars, the likeliest first; what has no room is left out.

    What the samplers leave out stands last, as learned, in another style: `cut`.
    """
    drawn = [c for c in candidates if c.drawn_from > 0]
    cut = [c for c in candidates if c.drawn_from <= 0]
    parts: list[tuple[str, str]] = []
    used = 0
    for candidate in drawn:
        share = candidate.drawn_from
        bar = "▇" * round(share * _BAR_SHARE * width) or "▏"
        pieces = [("token", f"{token_shown(candidate.text)} "), ("bar", bar),
                  ("share", f" {percent(share)}   ")]  # fmt: skip
        size = sum(cell_len(text) for _, text in pieces)
        if used + size > width - 2:
            return [*parts, ("share", "…")]
        parts += pieces
        used += size
    if cut:
        text = "cut: " + " ".join(token_shown(candidate.text) for candidate in cut)
        room = width - used
        if room > 8:
            while cell_len(text) > room - 2:
                text = text[:-1]
            parts.append(("cut", f"{text} …"))
    return parts


class NextLine(Widget):
    """The likeliest next tokens with a bar each; a click opens all of them."""

    COMPONENT_CLASSES = {
        "next-line--label",
        "next-line--token",
        "next-line--bar",
        "next-line--share",
        "next-line--cut",
    }

    DEFAULT_CSS = """
    NextLine {
        height: 1;
        & > .next-line--label { color: $foreground 60%; }
        & > .next-line--token { text-style: bold; }
        & > .next-line--bar { color: $primary; }
        & > .next-line--share { color: $foreground 75%; }
        & > .next-line--cut { color: $foreground 60%; text-style: italic; }
    }
    """

    class Opened(Message):
        """It was clicked."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._candidates: list[Candidate] = []

    @property
    def candidates(self) -> list[Candidate]:
        """What is shown, the likeliest first."""
        return self._candidates

    def show(self, candidates: list[Candidate]) -> None:
        """Show another distribution; an empty one empties the line."""
        if candidates != self._candidates:
            self._candidates = candidates
            self.refresh()

    def on_click(self, event: Click) -> None:
        self.post_message(self.Opened())

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or not self._candidates:
            return Strip.blank(width, self.visual_style.rich_style)
        label = "next  "
        parts = [("label", label), *bars(self._candidates, width - len(label))]
        # A component's rich style would be computed anew for each token, its visual style is known.
        segments = [
            Segment(text, self.get_visual_style(f"next-line--{part}").rich_style)
            for part, text in parts
        ]
        return Strip(segments).adjust_cell_length(width, self.visual_style.rich_style)
