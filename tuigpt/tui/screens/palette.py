"""The list of everything that can be done, with a field that narrows it down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tuigpt.tui.commands import Command
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.choices import Choices

WIDE = 72
"""Columns of a terminal in which each row has room for what its command does."""


class Palette(Dialog[Command]):
    """Dismisses with the command that was chosen.

    Textual's own palette searches in the background, and raises when a key finds it half open or
    half closed; here the list is always what the field says.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Do nothing", id="palette.back"),
        Binding("down", "move('cursor_down')", "down", show=False, tooltip="The next command",
                id="palette.down"),
        Binding("up", "move('cursor_up')", "up", show=False, tooltip="The command before",
                id="palette.up"),
        Binding("pagedown", "move('page_down')", "page down", show=False,
                tooltip="Commands further down", id="palette.page-down"),
        Binding("pageup", "move('page_up')", "page up", show=False,
                tooltip="Commands further up", id="palette.page-up"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Palette { align: center top; }
    Palette > Vertical {
        width: 90%; max-width: 84; height: auto; max-height: 100%; margin-top: 1;
        border: round $primary; background: $surface; padding: 0 1;
    }
    Palette Input { background: transparent; }
    Palette #about {
        dock: bottom; height: auto; max-height: 2; color: $foreground-muted; margin-top: 1;
    }
    Palette OptionList {
        height: auto; max-height: 16; border: none; padding: 0; background: transparent;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, commands: Sequence[Command], placeholder: str) -> None:
        super().__init__()
        self._commands = commands
        self._found: list[Command] = []
        self._input = Input(placeholder=placeholder, compact=True, id="search")
        self._list = Choices(id="found", compact=True, markup=False)
        self._list.can_focus = False
        self._about = Static(id="about", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._input
            yield self._list
            yield self._about

    def on_mount(self) -> None:
        self.set_focus(self._input)
        self._narrow_down()

    @on(Input.Changed)
    def _narrow_down(self) -> None:
        self._found = found(self._commands, self._input.value)
        width = max((len(command.title) for command in self._commands), default=0)
        keys = max((len(command.key) for command in self._commands), default=0)
        wide = self.app.size.width >= WIDE
        self._list.clear_options()
        self._list.add_options(
            Option(
                Content.assemble(
                    command.title.ljust(width + 2),
                    (command.key.ljust(keys + 2), "$text-primary"),
                    (command.help if wide else "", "$foreground-muted"),
                )
            )
            for command in self._found
        )
        if not self._found:
            self._list.add_option(Option("nothing of that name", disabled=True))
        self._list.highlighted = 0 if self._found else None

    @on(OptionList.OptionHighlighted)
    def _explain(self, event: OptionList.OptionHighlighted) -> None:
        """Show in full what a narrow list cuts off."""
        if event.option_index < len(self._found):
            self._about.update(self._found[event.option_index].help)

    def action_move(self, how: str) -> None:
        if self._found:
            getattr(self._list, f"action_{how}")()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        at = self._list.highlighted
        if at is not None and at < len(self._found):
            self.answer(self._found[at])

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_index < len(self._found):
            self.answer(self._found[event.option_index])


SYNONYMS = {
    "appearance": "theme", "colour": "theme", "color": "theme", "dark": "theme", "light": "theme",
    "begin": "new run", "start": "new run", "learn": "new run",
    "bye": "quit", "close": "quit", "exit": "quit", "leave": "quit",
    "continue": "resume", "go on": "resume",
    "creativity": "temperature", "randomness": "temperature", "wild": "temperature",
    "end": "stop", "halt": "pause",
    "erase": "delete", "remove": "delete", "discard": "delete", "delete": "discard",
    "font": "glyphs", "braille": "glyphs", "ascii": "glyphs",
    "fullscreen": "whole", "maximise": "whole", "maximize": "whole", "zoom": "whole",
    "keys": "help", "shortcuts": "help", "explain": "help", "glossary": "help",
    "load": "open", "model": "checkpoint", "weights": "checkpoint",
    "snapshot": "checkpoint", "generate": "send", "write": "send", "prompt": "send",
    "topk": "top-k", "loss": "training", "chart": "training", "curve": "training",
}  # fmt: skip
"""Words that people use, and what the commands call it."""


def found(commands: Sequence[Command], query: str) -> list[Command]:
    """Commands that have every word of a query, those with all of them in the title first.

    A word also finds what it is another name for, from its third letter on; those come last.
    """
    words = query.lower().split()

    def rank(command: Command) -> int:
        title, text = command.title.lower(), f"{command.title} {command.help}".lower()
        if all(word in title for word in words):
            return 0
        if all(word in text for word in words):
            return 1
        others = [[name for other, name in SYNONYMS.items() if len(word) > 2
                   and other.startswith(word)] for word in words]  # fmt: skip
        fits = all(word in text or any(name in text for name in names)
                   for word, names in zip(words, others, strict=True))  # fmt: skip
        return 2 if fits else 3

    ranked = [(rank(command), command) for command in commands]
    return [command for at in range(3) for place, command in ranked if place == at]
