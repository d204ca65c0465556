"""How the model writes: its samples as a timeline, a step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from tuigpt.runs.metrics import SampleLine
from tuigpt.wording import visible

_LEVELS = "▁▂▃▄▅▆▇█"

MOST_BELOW = 20
"""Samples that are shown one below the other."""

WIDEST = 10
"""Columns of the curve of real words."""


class Samples(Vertical):
    """A sample and below it those before it, with their steps; arrows go through them.

    It follows the newest one until an older one is chosen.
    """

    DEFAULT_CSS = """
    Samples { height: 8; }
    Samples > #samples-rule { height: 1; color: $foreground 70%; }
    Samples > VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    Samples:focus-within > #samples-rule { color: $text-accent; }
    Samples #sample { height: auto; width: 1fr; }
    """

    chosen: reactive[int | None] = reactive(None, init=False)
    """Number of the sample that is shown; None for the newest."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._rule = Static(id="samples-rule", markup=False)
        self._text = Static(id="sample", markup=False)
        self._samples: tuple[SampleLine, ...] = ()

    def compose(self) -> ComposeResult:
        yield self._rule
        with _Scroll(id="samples-scroll"):
            yield self._text

    def show(self, samples: Sequence[SampleLine]) -> None:
        """Show these samples, in order of their steps."""
        if tuple(samples) != self._samples:
            self._samples = tuple(samples)
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def follow(self) -> None:
        """Show the newest, and those that come."""
        self.chosen = None

    def watch_chosen(self) -> None:
        self._draw()

    def move(self, direction: int) -> None:
        """Go to the sample before (-1) or after (1) the one that is shown."""
        last = len(self._samples) - 1
        if last < 0:
            return
        at = min(last, max(0, self._place + direction))
        self.chosen = None if at == last else at

    @property
    def _place(self) -> int:
        last = len(self._samples) - 1
        return last if self.chosen is None else min(self.chosen, last)

    def _draw(self) -> None:
        if not self._samples:
            self._rule.update("")
            self._text.update("")
            return
        sample = self._samples[self._place]
        count = f"{self._place + 1} of {len(self._samples)}"
        rule = f"── how it writes at step {sample.step:,} ── {count} ──"
        if sample.real_words is not None:
            shares = [s.real_words for s in self._samples if s.real_words is not None]
            rule += f" real words {sample.real_words:.0%} {course(shares)} ──"
        self._rule.update(f"{rule} ← → ──")
        self._text.update(self._timeline())

    def _timeline(self) -> Content:
        """The chosen sample and below it those before it, their steps in the margin."""
        place = self._place
        shown = self._samples[max(0, place + 1 - MOST_BELOW) : place + 1][::-1]
        margin = max(len(f"{sample.step:,}") for sample in shown)
        room = self.size.width - margin - 3  # the scrollbar has its column also where it is not
        rows: list[Content] = []
        for sample in shown:
            text = Content.assemble(
                (visible(sample.prompt), "$text-accent"), visible(sample.text).rstrip()
            )
            lines = text.wrap(max(10, room))
            for n, line in enumerate(lines):
                step = f"{sample.step:,}" if n == 0 else ""
                style = "" if sample is shown[0] else "$foreground 70%"
                rows.append(Content.assemble((f"{step:>{margin}}  ", "$text-accent"),
                                             line.stylize_before(style)))  # fmt: skip
        return Content("\n").join(rows)


def course(shares: Sequence[float]) -> str:
    """Shares from 0 to 1 as a small curve; of very many some."""
    stride = -(-len(shares) // WIDEST)
    newest_last = shares[::-1][::stride][::-1]
    return "".join(_LEVELS[min(7, int(share * 8))] for share in newest_last)


class _Scroll(VerticalScroll):
    """The text, which takes the focus, so that it can be scrolled by keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "sample before", id="samples.before",
                tooltip="Show the sample of the step before"),
        Binding("right", "move(1)", "sample after", id="samples.after",
                tooltip="Show the sample of the step after"),
    ]  # fmt: skip

    def action_move(self, direction: int) -> None:
        assert isinstance(self.parent, Samples)
        self.parent.move(direction)
