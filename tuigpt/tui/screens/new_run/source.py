"""The question what a run shall read: the built-in text, one of before, or a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tuigpt.tui.screens.new_run.path_field import PathField, sources_of
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.wording import one_line

BUILT_IN_TEXT = "shakespeare"

OWN = "\0"
"""The answer that the path stands for, among those that are offered; no path has that name."""


class _Mark(Static):
    """Stands before the path as its answer's mark; a click chooses it."""

    class Clicked(Message):
        """The user wants the path to count."""

    def on_click(self) -> None:
        self.post_message(self.Clicked())


class Source(Vertical):
    """The texts that are offered, and below them a path of the user's own.

    The path has the focus all the while, so that what is typed at any answer is the path, and then
    the path is what counts. The up and down keys choose, and lead on beyond the last answer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "answer above", show=False, id="new-run.text-above",
                tooltip="Choose the answer above, or go to the field before"),
        Binding("down", "move(1)", "answer below", show=False, id="new-run.text-below",
                tooltip="Choose the answer below, or go to the next field"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Source { height: auto; }
    Source PathField.-idle > .input--cursor, Source PathField.-idle > .input--selection {
        color: $foreground-muted; background: transparent; text-style: none;
    }
    Source PathField.-idle { color: $foreground-muted; }
    """

    def __init__(self, text: str) -> None:
        """
        Args:
            text: paths with semicolons between; "" is the built-in text.
        """
        super().__init__()
        text = "" if text == BUILT_IN_TEXT else text
        self._offered = Radio(_rows([]), chosen=OWN if text else "", id="source")
        self._offered.can_focus = False
        self._mark = _Mark(id="own-mark", markup=False)
        self.path = PathField(
            id="text", placeholder="type a path; tab completes it",
            tooltip="A text file or a folder of them; several with ; between",
        )  # fmt: skip
        self.path.value = text

    def compose(self) -> ComposeResult:
        yield self._offered
        with Horizontal(id="own"):
            yield self._mark
            yield self.path

    def on_mount(self) -> None:
        self._show_chosen()

    @property
    def text(self) -> str:
        """What is chosen, with semicolons between paths; "" is the built-in text."""
        chosen = self._offered.chosen
        return self.path.value.strip() if chosen == OWN else chosen

    @property
    def texts(self) -> list[str]:
        """What is to be read, as `tuigpt train` takes it; nothing while a path is awaited."""
        if self._offered.chosen == "":
            return [BUILT_IN_TEXT]
        return sources_of(self.text)

    def offer(self, texts: Sequence[str]) -> None:
        """Offer texts of before as well, but for the one that the path names already."""
        self._offered.show(_rows([text for text in texts if text != self.path.value.strip()]))

    def action_move(self, by: int) -> None:
        names = [*self._offered.answers, OWN]
        at = names.index(self._offered.chosen) + by
        if at == len(names):
            self.screen.focus_next()
        elif at >= 0:
            self._offered.choose(names[at])

    @on(_Mark.Clicked)
    def _choose_own(self) -> None:
        self._offered.choose(OWN)
        self.path.focus()

    @on(Radio.Chosen)
    def _chosen(self) -> None:
        self._show_chosen()
        self.path.focus()

    @on(Input.Changed, "#text")
    def _typed(self) -> None:
        """A path counts from its first letter on."""
        if self.path.value.strip():
            self._offered.chosen = OWN
        self._show_chosen()

    def _show_chosen(self) -> None:
        own = self._offered.chosen == OWN
        if own and self.path.has_class("-idle"):
            self.path.cursor_position = len(self.path.value)
        elif not own:
            self.path.select_all()  # what is typed now is another path
        self.path.set_class(not own, "-idle")
        mark = ("● ", "bold $text-primary") if own else "○ "
        self._mark.update(Content.assemble(mark, ("your file or folder  ", "bold" if own else "")))


def _rows(texts: Sequence[str]) -> list[tuple[str, Content]]:
    """Each answer, named as a path field would hold it."""
    return [
        ("", Content("Shakespeare's 38 plays, 4.8 M characters")),
        *((text, Content(f"{one_line(text)}, read before")) for text in texts),
    ]
