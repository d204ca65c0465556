"""The question what a run shall read: the built-in text, one of before, or a path."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tuigpt.tui.screens.new_run.path_field import PathField, sources_of
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.wording import one_line

BUILT_IN_TEXT = "shakespeare"


class _Mark(Static):
    """Stands before the path as its answer's mark; a click goes to the path."""

    def on_click(self) -> None:
        self.screen.query_one(PathField).focus()


class Source(Vertical):
    """The texts that are offered, and below them the path that counts."""

    DEFAULT_CSS = "Source { height: auto; }"

    def __init__(self, text: str) -> None:
        """
        Args:
            text: paths with semicolons between; "" is the built-in text.
        """
        super().__init__()
        text = "" if text == BUILT_IN_TEXT else text
        self._offered = Radio(_rows([]), chosen=text, id="source")
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
    def texts(self) -> list[str]:
        """What is to be read, as `tuigpt train` takes it."""
        return sources_of(self.path.value) or [BUILT_IN_TEXT]

    def offer(self, texts: Sequence[str]) -> None:
        """Offer texts of before as well."""
        self._offered.show(_rows(texts))
        self._show_chosen()

    @on(Radio.Chosen, "#source")
    def _chosen(self, event: Radio.Chosen) -> None:
        event.stop()
        self.path.value = event.radio.chosen

    @on(Input.Changed, "#text")
    def _show_chosen(self) -> None:
        """Mark the answer that the path stands for."""
        value = self.path.value.strip()
        own = value not in (*self._offered.answers, BUILT_IN_TEXT)
        self._offered.chosen = "\0" if own else ("" if value == BUILT_IN_TEXT else value)
        mark = ("● ", "bold $text-primary") if own else "○ "
        self._mark.update(Content.assemble(mark, ("your file or folder  ", "bold" if own else "")))


def _rows(texts: Sequence[str]) -> list[tuple[str, Content]]:
    """Each answer, named as the field would hold it."""
    return [
        ("", Content("Shakespeare's 38 plays, 4.8 M characters")),
        *((text, Content(f"{one_line(text)}, read before")) for text in texts),
    ]
