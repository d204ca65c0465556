"""The list of runs: which is watched, and which are laid over its chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from tuigpt.runs.folder import Run
from tuigpt.tui.panes.training.overlays import LETTERS
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.choices import Choices
from tuigpt.tui.widgets.run_status import MARKS
from tuigpt.wording import loss_text


@dataclass(frozen=True)
class Chosen:
    """What the list was left with.

    Attributes:
        watch: name of another run to watch, or "".
        over: names of the runs that are laid over the chart.
    """

    watch: str
    over: tuple[str, ...]


class ChooseRuns(Dialog[Chosen]):
    """Enter watches a run, space lays it over the chart or takes it away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "lay_over", "lay over", id="runs.lay-over",
                tooltip="Lay this run over the chart, or take it away"),
        Binding("escape,o", "back", "close", key_display="esc", id="runs.close",
                tooltip="Close the list"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    ChooseRuns #dialog { max-width: 76; }
    ChooseRuns #runs {
        height: auto; max-height: 16; border: none; padding: 0; background: $surface;
    }
    """

    def __init__(self, runs: Sequence[Run], watched: str, over: Sequence[str]) -> None:
        super().__init__()
        self._runs = runs
        self._watched = watched
        self._over = list(over)
        self._list = Choices(id="runs")

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield self._list
            yield Static(id="hint")
            with Horizontal(id="buttons"):
                yield Button("Watch", id="watch", variant="primary", compact=True)
                yield Button("Lay over", id="lay-over", compact=True)
                yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        dialog = self.query_one("#dialog")
        dialog.border_title = "Runs"
        dialog.border_subtitle = "enter watch · space lay over · esc close"
        self._list.add_options([Option(Content(run.name)) for run in self._runs])
        names = [run.name for run in self._runs]
        self._list.highlighted = names.index(self._watched) if self._watched in names else 0

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        for at, run in enumerate(self._runs):
            self._list.replace_option_prompt_at_index(at, self._row(run))

    def _row(self, run: Run) -> Content:
        status = run.status
        sign = "▸" if run.name == self._watched else "+" if run.name in self._over else " "
        best = run.best
        val = f"val {loss_text(best.val_loss)} ★" if best else ""
        state = "built in" if run.built_in else f"{MARKS.get(status.state, '?')} {status.state}"
        step = "" if run.built_in else f"{status.step:,}"
        facts = Content.assemble(f"  {state:11}{step:>10}  ", (f"{val:10}", "$text-success"))
        room = max(8, self._list.scrollable_content_region.width - 2 - facts.cell_length)
        name = Content(run.name).truncate(room, ellipsis=True, pad=True)
        return Content.assemble((f"{sign} ", "$text-accent"), name, facts)

    @on(Button.Pressed, "#lay-over")
    def action_lay_over(self) -> None:
        """Lay the run under the cursor over the chart, or take it away."""
        at = self._list.highlighted
        if at is None or self._runs[at].name == self._watched:
            return
        run = self._runs[at]
        if run.name in self._over:
            self._over.remove(run.name)
        elif len(self._over) < len(LETTERS):
            self._over.append(run.name)
        self._list.replace_option_prompt_at_index(at, self._row(run))

    @on(OptionList.OptionSelected)
    @on(Button.Pressed, "#watch")
    def action_watch(self) -> None:
        """Watch the run under the cursor."""
        if (at := self._list.highlighted) is not None:
            name = self._runs[at].name
            self.answer(Chosen("" if name == self._watched else name, tuple(self._over)))

    @on(Button.Pressed, "#close")
    def action_back(self) -> None:
        """Close the list; what was laid over the chart is."""
        self.answer(Chosen("", tuple(self._over)))
