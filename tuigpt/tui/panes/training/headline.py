"""The story of a run in two lines above its chart, with its numbers at the right."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tuigpt.loss import bits
from tuigpt.story import Mood, Story
from tuigpt.wording import val_text

_COLOURS = {
    Mood.WAITING: "$foreground",
    Mood.LEARNING: "$text-success",
    Mood.FLAT: "$text-warning",
    Mood.MEMORISING: "$text-warning",
    Mood.WORSE: "$text-warning",
    Mood.DIVERGED: "$text-error",
}

_SIGNS = {Mood.MEMORISING: "⚠ ", Mood.WORSE: "⚠ ", Mood.DIVERGED: "✗ "}
"""For those who see no colours."""


class Headline(Widget):
    """What the model can do, and whether it still learns, in two lines; advice may be a third.

    What needs attention comes first: of a model that memorises that it does so.
    """

    DEFAULT_CSS = "Headline { height: auto; min-height: 2; max-height: 3; }"

    lines: reactive[tuple[tuple[Content, Content], ...]] = reactive(())
    """Left and right of each line."""

    def watch_lines(self, before: tuple[object, ...], lines: tuple[object, ...]) -> None:
        if len(before) != len(lines):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines)

    def tell(self, story: Story, readout: str = "", ending: str = "") -> None:
        """Show a story.

        Args:
            readout: what the cursor reads; takes the place of the numbers.
            ending: how the run ended and what to do now; takes the place of the advice.
        """
        colour = _COLOURS[story.mood]
        stage = Content.styled(story.stage, f"bold {colour}")
        verdict = Content.styled(_SIGNS.get(story.mood, "") + story.verdict, colour)
        first, second = stage, verdict
        if story.mood in _SIGNS:
            first = Content.styled(_SIGNS[story.mood] + story.verdict, f"bold {colour}")
            second = Content(ending or story.advice or story.stage)
        elif ending:
            second = Content(ending)
        best, numbers = story.best, ""
        if best is not None:
            numbers = f"val {best.val:.3f} ★ = {bits(best.val):.2f} bits"
        elif story.estimate is not None:
            numbers = f"val {val_text(None, story.estimate)}"
        gap = "" if story.gap is None else f"gap {story.gap:.2f}"
        if story.gap is not None and story.gap < 0:
            gap = f"val {-story.gap:.2f} below train"
        right = [Content.styled(text, "$foreground 80%") for text in (numbers, gap)]
        if readout:
            right = [Content(""), Content.styled(readout, "$foreground")]
        more = [Content(story.advice)] if ending and story.advice else []
        self.lines = ((first, right[0]), (second, right[1]), *((a, Content("")) for a in more))

    def say(self, *words: Content | str) -> None:
        """Show plain words in place of a story, a line each."""
        self.lines = tuple((Content(w) if isinstance(w, str) else w, Content("")) for w in words)

    def render(self) -> Content:
        width = self.size.width
        rows = []
        for left, right in self.lines[: self.size.height]:
            room = width - right.cell_length - 2
            if left.cell_length > room and right.cell_length and "step" not in right.plain:
                right, room = Content(""), width  # the sentence matters more than the number
            left = left.truncate(max(1, room), ellipsis=True)
            gap = " " * max(1, width - left.cell_length - right.cell_length)
            rows.append(Content.assemble(left, gap, right))
        return Content("\n").join(rows)
