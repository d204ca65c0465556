"""Looking inside a text: what the model thought in each place, and writing one token at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from tuigpt.errors import UserError
from tuigpt.generation.protocol import Candidate, Logprobs, TextScore
from tuigpt.tui.panes.generate.ahead import MOST
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.heat_text import HeatText
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.next_line import percent, token_shown
from tuigpt.wording import one_line

_PAUSE = 0.05
"""Seconds that the cursor rests on a token before the model is asked about it."""

WIDE = 90
"""Columns of the list from which on what temperature alone does has room."""


def _room(width: int, tokens: int) -> int:
    """Columns of a bar at most, beside tokens of so many columns."""
    columns = 3 if width >= WIDE else 2
    return max(4, (width - tokens - 4 - 7 * columns) // columns)


Look = Callable[[WrittenText, int], Awaitable[Logprobs]]
"""Asks for the distribution that a text's token with this number is drawn from."""

Measure = Callable[[WrittenText], Awaitable[TextScore]]
"""Asks how surprising a text's prompt is."""


@dataclass(frozen=True)
class OtherToken:
    """Another token is wanted in a place, and the text is to go on from it.

    Attributes:
        at: the token that it stands for.
    """

    at: int
    candidate: Candidate


@dataclass(frozen=True)
class OtherPrompt:
    """Another token is wanted in the prompt: this begins another text."""

    prompt: str


class Candidates(ScrollView, can_focus=False):
    """Tokens that could stand in a place, a row each: as learned, and as they are drawn."""

    COMPONENT_CLASSES = {
        f"candidates--{name}" for name in ("token", "bar", "share", "cut", "cursor")
    }

    DEFAULT_CSS = """
    Candidates {
        overflow-x: hidden; scrollbar-size-vertical: 1;
        & > .candidates--token { text-style: bold; }
        & > .candidates--bar { color: $primary; }
        & > .candidates--share { color: $foreground 75%; }
        & > .candidates--cut { color: $foreground 60%; }
        & > .candidates--cursor { background: $boost; }
    }
    """

    cursor: reactive[int] = reactive(0)

    @dataclass
    class Picked(Message):
        """A row was clicked that had the cursor."""

        candidate: Candidate

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.shown: list[Candidate] = []
        self._standing: int | None = None

    def show(self, candidates: list[Candidate], standing: int | None) -> None:
        """Show candidates, the likeliest first.

        Args:
            standing: the token that the text has there, or None.
        """
        self.shown, self._standing = candidates, standing
        self.virtual_size = Size(self.size.width, len(candidates))
        at = [n for n, candidate in enumerate(candidates) if candidate.token == standing]
        self.cursor = at[0] if at else 0
        self.refresh()

    @property
    def candidate(self) -> Candidate | None:
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    def validate_cursor(self, at: int) -> int:
        return max(0, min(at, len(self.shown) - 1))

    def watch_cursor(self, at: int) -> None:
        self.scroll_to_region(Region(0, at, 1, 1), animate=False)
        self.refresh()

    def on_click(self, event: Click) -> None:
        at = self.scroll_offset.y + event.y
        if at < len(self.shown):
            if at == self.cursor:
                self.post_message(self.Picked(self.shown[at]))
            self.cursor = at

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        number = y + self.scroll_offset.y
        if number >= len(self.shown):
            return Strip.blank(width, self.rich_style)
        candidate = self.shown[number]
        tokens = min(12, max(cell_len(token_shown(c.text)) for c in self.shown[:100]))
        shares = [candidate.learned, candidate.tempered, candidate.drawn_from]
        if width < WIDE:
            del shares[1]
        room = _room(width, tokens)
        mark = "▸ " if candidate.token == self._standing else "  "
        parts = [("token", mark + set_cell_size(token_shown(candidate.text), tokens) + " ")]
        for share in shares:
            bar = "▇" * round(share * room)
            parts.append(("bar", bar + " " * (room - len(bar))))
            words = percent(share) if share > 0 or share is not shares[-1] else "cut"
            parts.append(("share", words.rjust(5) + "  "))
        if candidate.drawn_from <= 0:
            parts = [("cut", text) for _, text in parts]
        look = self.get_component_rich_style
        strip = Strip([Segment(text, look(f"candidates--{part}")) for part, text in parts])
        strip = strip.adjust_cell_length(width, self.rich_style)
        return strip.apply_style(look("candidates--cursor")) if number == self.cursor else strip


class Inside(Dialog[OtherToken | OtherPrompt]):
    """A text with a cursor, and what could stand under it; in the prompt as well.

    Dismisses with another token where the text is to go on from; tokens at its end are written in
    place, one after the other.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f3", "back", "close", key_display="esc", id="inside.close",
                tooltip="Back to the texts"),
        Binding("left", "move(-1)", "token before", id="inside.left", show=False,
                tooltip="Look at the token before"),
        Binding("right", "move(1)", "next token", id="inside.right", show=False,
                tooltip="Look at the next token"),
        Binding("home", "move(-1000000000)", "start", id="inside.start", show=False,
                tooltip="Look at the first token"),
        Binding("end", "move(1000000000)", "end", id="inside.end", show=False,
                tooltip="Look at what could come next"),
        Binding("up", "choose(-1)", "likelier", id="inside.up", show=False,
                tooltip="The likelier token"),
        Binding("down", "choose(1)", "less likely", id="inside.down", show=False,
                tooltip="The less likely token"),
        Binding("pageup", "choose(-10)", "ten likelier", id="inside.page-up", show=False,
                tooltip="Ten tokens up"),
        Binding("pagedown", "choose(10)", "ten less likely", id="inside.page-down", show=False,
                tooltip="Ten tokens down"),
        Binding("enter", "take", "write it", id="inside.take", priority=True,
                tooltip="Write the token under the list's cursor here, and go on from it"),
        Binding("space", "draw", "draw one", id="inside.draw", priority=True,
                tooltip="At the end: let the model draw one token"),
        Binding("minus", "steer(-1)", "tamer", id="inside.tamer", key_display="-",
                tooltip="A lower temperature"),
        Binding("plus,equals_sign", "steer(1)", "wilder", id="inside.wilder", key_display="+",
                tooltip="A higher temperature"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Inside { align: center top; }
    Inside > Vertical {
        width: 100%; max-width: 124; height: 1fr; max-height: 45;
        border: round $primary; border-title-color: $text-primary; background: $surface;
        border-subtitle-color: $foreground 75%; padding: 0 1;
    }
    Inside #facts { height: 1; margin-top: 1; text-style: bold; }
    Inside #heads, Inside #facts { text-wrap: nowrap; text-overflow: ellipsis; }
    Inside #heads { height: 1; color: $foreground 60%; }
    Inside Candidates { height: 2fr; min-height: 4; }
    """

    def __init__(
        self,
        text: WrittenText,
        at: int,
        look: Look,
        measure: Measure,
        steer: Callable[[int], str],
        drew: Callable[[], None],
    ) -> None:
        """
        Args:
            at: the token that the cursor is on first; the number of tokens is the end, and numbers
                below 0 count from the prompt's end.
            steer: changes the temperature by steps; the settings in words.
            drew: called when the text got a token.
        """
        super().__init__()
        self._text, self._look, self._measure = text, look, measure
        self._steer, self._drew = steer, drew
        self._at = at
        self._given: list[str] = []  # the prompt's tokens, once they are measured
        self._surprises: list[float | None] = []
        self._found: Logprobs | None = None
        self._heat = HeatText(id="heat")
        self._facts = Static(id="facts", markup=False)
        self._heads = Static(id="heads", markup=False)
        self._candidates = Candidates(id="candidates")

    def compose(self) -> ComposeResult:
        with Vertical() as page:
            page.border_title = Content(f"inside · {one_line(self._text.checkpoint.label)}")
            page.border_subtitle = "← → in the text · ↑ ↓ in the list"
            yield self._heat
            yield self._facts
            yield self._heads
            yield self._candidates
        yield KeyLine()

    def on_mount(self) -> None:
        self._show_text()
        self._ask()
        self._read_prompt()

    @work(group="measure")
    async def _read_prompt(self) -> None:
        """Find out how surprising the prompt is."""
        if self._text.prompt:
            try:
                score = await self._measure(self._text)
            except UserError as error:
                self._facts.update(one_line(str(error)))
                return
            ends = list(itertools.accumulate(score.token_characters))
            self._given = [score.text[a:b] for a, b in itertools.pairwise([0, *ends])]
            self._surprises = [None, *score.surprises]
            self._show_text()

    def _show_text(self) -> None:
        text, given = self._text, self._given
        surprises = [*self._surprises, *text.surprises] if given else text.surprises
        self._heat.show("" if given else text.prompt, [*given, *text.tokens], surprises)
        self._heat.cursor = len(given) + self._at

    @work(group="look", exclusive=True)
    async def _ask(self) -> None:
        """Ask the model about the place under the cursor."""
        self._found = None
        await asyncio.sleep(_PAUSE)
        text, at = self._text, self._at
        if at < 0:
            text, at = replace(text, prompt="".join(self._given[:at]), ids=[], tokens=[]), 0
            if not text.prompt:
                self._candidates.show([], None)
                self._facts.update("nothing stands before it")
                return
        try:
            found = await self._look(text, at)
        except UserError as error:
            self._facts.update(one_line(str(error)))
            return
        self._found = found
        shown = found.top_logprobs
        standing, facts = self._standing(shown)
        self._candidates.show(shown, standing)
        if standing is None and not facts:
            facts = f"next: {token_shown(found.chosen.text)} is what the seed draws"
        self._facts.update(one_line(facts))
        tokens = min(12, max((len(token_shown(c.text)) for c in shown[:100]), default=1))
        width = self._candidates.size.width
        heads = ["as learned", "after temperature"][: 1 + (width >= WIDE)]
        columns = "".join(head.ljust(_room(width, tokens) + 7) for head in heads)
        self._heads.update(" " * (tokens + 3) + columns + f"drawn: {self._steer(0)}")

    def _standing(self, shown: list[Candidate]) -> tuple[int | None, str]:
        """The token that stands under the cursor, and what is known of it; at the end neither."""
        text, at = self._text, self._at
        if at >= text.count:
            return None, ""
        if at < 0:
            here, where = self._given[at], f"{len(self._given) + at + 1:,} of the prompt"
            surprise = self._surprises[at]
            rank = next((n for n, c in enumerate(shown, 1) if c.text == here), None)
            token = shown[rank - 1].token if rank else None
        else:
            here, where = text.tokens[at], f"{at + 1:,} of {text.count:,}"
            surprise = text.surprises[at] if at < len(text.surprises) else None
            token = text.ids[at]
            rank = next((n for n, c in enumerate(shown, 1) if c.token == token), None)
        learned = shown[rank - 1].learned if rank else 0.0
        facts = (
            f"{where}: {token_shown(here)} · likely {percent(learned)}"
            f" · choice {rank or f'beyond {MOST}'} of {text.checkpoint.vocab_size:,}"
        )
        return token, facts + (f" · surprise {surprise:.2f} nats" if surprise is not None else "")

    @on(HeatText.Moved)
    def _moved(self, event: HeatText.Moved) -> None:
        event.stop()
        self._go(event.at - len(self._given))

    def _go(self, at: int) -> None:
        self._at = max(-len(self._given), min(at, self._text.count))
        self._heat.cursor = len(self._given) + self._at
        self.refresh_bindings()
        self._ask()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "draw" or self._at == self._text.count

    def action_move(self, count: int) -> None:
        self._go(self._at + count)

    def action_choose(self, count: int) -> None:
        self._candidates.cursor += count

    def action_steer(self, count: int) -> None:
        self._steer(count)
        self._ask()

    @on(Candidates.Picked)
    def _picked(self, event: Candidates.Picked) -> None:
        event.stop()
        self.action_take()

    def action_take(self) -> None:
        """Write the chosen token: at the end in place, elsewhere as the start of another text."""
        candidate = self._candidates.candidate
        if self._found is None or candidate is None:
            return
        if self._at < 0:
            self.answer(OtherPrompt("".join(self._given[: self._at]) + candidate.text))
            return
        if self._at < self._text.count:
            self.answer(OtherToken(self._at, candidate))
            return
        if candidate.token != self._found.chosen.token and self._text.branched_at is None:
            self._text.branched_at = self._at
        self._write(candidate)

    def action_draw(self) -> None:
        if self._found is not None and self._at == self._text.count:
            self._write(self._found.chosen)

    def _write(self, candidate: Candidate) -> None:
        self._text.add_token(candidate)
        self._drew()
        self._at = self._text.count
        self._show_text()
        self._ask()
