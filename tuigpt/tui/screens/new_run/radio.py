"""A question with a few answers, of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

_GAP = 3
"""Blanks between two answers that stand side by side."""

Answers = Sequence[tuple[str, Content]]
"""Name and words of each answer."""


class Radio(Widget, can_focus=True):
    """Shows all answers, one below the other or side by side; the arrow keys and a click choose.

    Beyond the first and the last answer the arrows go to the field before and to the next one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "above", "answer above", show=False, id="radio.up",
                tooltip="Choose the answer above, or go to the field before"),
        Binding("down", "below", "answer below", show=False, id="radio.down",
                tooltip="Choose the answer below, or go to the next field"),
        Binding("left", "move(-1)", "answer before", show=False, id="radio.left",
                tooltip="Choose the answer before this one"),
        Binding("right,space", "move(1)", "next answer", show=False, id="radio.right",
                tooltip="Choose the next answer"),
        Binding("enter", "app.focus_next", "choose", show=False, id="radio.enter",
                tooltip="Take this answer, and go to the next field"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Radio { height: auto; width: 1fr; }
    Radio:focus { background: $boost; }
    """

    ALLOW_SELECT = False

    chosen: reactive[str] = reactive("")
    """Name of the answer; one that is none of the answers marks no one."""

    class Chosen(Message):
        """The user has chosen an answer."""

        def __init__(self, radio: Radio) -> None:
            super().__init__()
            self.radio = radio

        @property
        def control(self) -> Radio:
            return self.radio

    def __init__(
        self,
        answers: Answers,
        *,
        chosen: str,
        across: bool = False,
        id: str,  # noqa: A002
        tooltip: str | None = None,
    ) -> None:
        """
        Args:
            across: let the answers stand side by side, as far as they fit.
        """
        super().__init__(id=id)
        self._answers = list(answers)
        self._across = across
        self.tooltip = tooltip
        self.set_reactive(Radio.chosen, chosen)

    @property
    def answers(self) -> list[str]:
        """The names of the answers."""
        return [name for name, _ in self._answers]

    def show(self, answers: Answers) -> None:
        """Show other answers, or the same ones in other words."""
        if answers != self._answers:
            self._answers = list(answers)
            self.refresh(layout=True)

    # --- choosing ---

    def action_move(self, by: int) -> None:
        """Choose the answer that many further on."""
        names = self.answers
        if self.chosen in names:
            at = max(0, min(names.index(self.chosen) + by, len(names) - 1))
        else:
            at = 0 if by > 0 else len(names) - 1
        self.choose(names[at])

    def action_above(self) -> None:
        if self._across or self.chosen == self.answers[0]:
            self.screen.focus_previous()
        else:
            self.action_move(-1)

    def action_below(self) -> None:
        if self._across or self.chosen not in self.answers[:-1]:
            self.screen.focus_next()
        else:
            self.action_move(1)

    def on_click(self, event: events.Click) -> None:
        for y, row in enumerate(self._rows(self.size.width)):
            for start, name, words in row:
                if event.y == y and start <= event.x < start + words.cell_length:
                    self.choose(name)

    def choose(self, name: str) -> None:
        """Choose an answer as the user does."""
        if name != self.chosen:
            self.chosen = name
            self.post_message(self.Chosen(self))

    # --- drawing ---

    def _rows(self, width: int) -> list[list[tuple[int, str, Content]]]:
        """For every row its answers, each with the column where it starts."""
        rows: list[list[tuple[int, str, Content]]] = []
        end = 0
        for name, words in self._answers:
            mark = ("● ", "bold $text-primary") if name == self.chosen else "○ "
            answer = Content.assemble(mark, words)
            if name == self.chosen:
                answer = answer.stylize("bold")
            if self._across and rows and end + _GAP + answer.cell_length <= width:
                rows[-1].append((end + _GAP, name, answer))
                end += _GAP + answer.cell_length
            else:
                rows.append([(0, name, answer)])
                end = answer.cell_length
        return rows

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Content:
        lines = []
        for row in self._rows(self.size.width):
            line = Content("")
            for start, _, words in row:
                line = Content.assemble(line, " " * (start - line.cell_length), words)
            lines.append(line.truncate(self.size.width, ellipsis=True))
        return Content("\n").join(lines)
