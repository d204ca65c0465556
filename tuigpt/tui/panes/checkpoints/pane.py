"""The checkpoints pane: every run and every checkpoint, from their headers."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tuigpt.errors import UserError
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.poet import hide_poet, poet_is_hidden
from tuigpt.tui.messages import OpenCheckpoint, WatchRun
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.choices import Choices
from tuigpt.wording import age, file_size, loss_text, one_line, short_count

EMPTY = "No checkpoints of your own yet. Every run saves its own; press ctrl+n to start one."

Row = Run | Checkpoint


class _Rows(Choices):
    """The list itself, which tells in the footer what enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "open", id="checkpoints.open",
                tooltip="Generate from this checkpoint, or watch this run"),
    ]  # fmt: skip


class CheckpointsPane(Pane):
    """A list: a row for each run, and below it one for each of its checkpoints, newest first."""

    BINDING_GROUP_TITLE = "Checkpoints"
    HELP = """\
A checkpoint is the model as it was at one step. [b]enter[/b] opens it in the generate pane; on a \
run's own row it shows that run's training. ★ is the lowest validation loss of its run: usually \
the best writer. ▸ is the one that is open.

The [b]poet[/b] comes with tuigpt: it has learned from Shakespeare's plays and is there before you \
train."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h", "hide_poet", "hide the poet", id="checkpoints.hide-poet",
                tooltip="Leave the built-in model out of the lists"),
        Binding("H", "show_poet", "show the poet", id="checkpoints.show-poet", show=False,
                tooltip="Have the built-in model in the lists again"),
    ]  # fmt: skip

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(entry, session)
        self._list = _Rows(id="list", compact=True, markup=False)
        self._list.display = False
        self._total = Static(EMPTY, id="total", markup=False)
        self._rows: dict[str, Row] = {}
        self._shown: dict[str, Content] = {}
        self._open: Checkpoint | None = None

    def compose(self) -> ComposeResult:
        yield self._list
        yield self._total

    def show(self) -> None:
        """List all runs, and the built-in one below them.

        The cursor stays on its row, wherever that moves to.
        """
        runs, poet = self.session.runs, self.session.poet
        rows: dict[str, Row] = {}
        for run in (*runs, poet) if poet else runs:
            rows[f"run {run.name}"] = run
            rows |= {str(c.path): c for c in reversed(run.checkpoints)}
        self._rows, self._open = rows, self.session.checkpoint
        self._draw()
        checkpoints = [c for run in runs for c in run.checkpoints]
        number, size = len(checkpoints), file_size(sum(c.size for c in checkpoints))
        total = f"{number:,} checkpoint{'s' if number != 1 else ''} · {size}"
        words = total if checkpoints else ("No checkpoint has been saved yet." if runs else EMPTY)
        self._list.display = bool(rows)
        if self._total.content != words:
            self._total.update(words)

    def on_resize(self, event: Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        width = max(20, self.content_size.width - 3)  # beside the cursor's margin and scroll bar
        best = {run.name: run.best for run in self._rows.values() if isinstance(run, Run)}
        shown = {
            key: _run_line(row, width)
            if isinstance(row, Run)
            else _line(row, width, best.get(row.run) == row, _same(row, self._open))
            for key, row in self._rows.items()
        }
        before, self._shown = self._shown, shown
        if list(before) != list(shown):
            self._refill()
            return
        for key, line in shown.items():
            if line != before[key]:
                self._list.replace_option_prompt(key, line)

    def _refill(self) -> None:
        options, offset = self._list, self._list.scroll_offset
        cursor = options.highlighted_option
        options.clear_options()
        options.add_options(Option(line, id=key) for key, line in self._shown.items())
        keys = list(self._shown)
        row = self._rows.get(str(cursor.id)) if cursor else None
        # The poet is where the cursor stands before there are runs, not where anybody put it.
        stays = row is not None and (options.has_focus or not row.built_in)
        at = keys.index(str(cursor.id)) if cursor and stays else 0
        options.highlighted = at if keys else None
        options.scroll_to(offset.x, offset.y, animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the poet can be hidden, and only a hidden one be shown."""
        match action:
            case "hide_poet":
                cursor = self._list.highlighted_option
                row = self._rows.get(str(cursor.id)) if cursor else None
                return row is not None and row.built_in
            case "show_poet":
                return self.session.poet is None and poet_is_hidden(self.session.home)
        return True

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        self.refresh_bindings()

    def action_hide_poet(self) -> None:
        if self._hide_poet(True):
            self.app.notify("the poet is hidden; ctrl+p, checkpoints: show the poet", timeout=5)

    def action_show_poet(self) -> None:
        self._hide_poet(False)

    def _hide_poet(self, hidden: bool) -> bool:
        try:
            hide_poet(self.session.home, hidden)
        except UserError as error:
            self.app.notify(str(error), severity="error")
            return False
        return True

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self._rows.get(str(event.option.id))
        if isinstance(row, Run):
            self.post_message(WatchRun(row.name))
        elif row is not None and row.problem:
            self.app.notify(
                f"{row.path.name} cannot be opened: {row.problem}", severity="error", markup=False
            )
        elif row is not None:
            self.post_message(OpenCheckpoint(row))


def _same(one: Checkpoint, other: Checkpoint | None) -> bool:
    return other is not None and one.path == other.path


def _run_line(run: Run, width: int) -> Content:
    state = "built in" if run.built_in else run.status.state
    name = Content(one_line(run.name)).truncate(width - len(state) - 1, ellipsis=True)
    gap = " " * (width - name.cell_length - len(state))
    return Content.assemble((name.plain, "bold"), gap, (state, "$foreground-muted"))


def _line(checkpoint: Checkpoint, width: int, best: bool, is_open: bool) -> Content:
    # Narrower in the column that the pane has beside the others, so that all facts fit.
    start = f"{'▸' if is_open else ' '} {checkpoint.step:>{9 if width >= 36 else 7},}"
    if checkpoint.problem:
        line = Content.assemble(start, "  ", (one_line(checkpoint.problem), "$text-error"))
        return line.truncate(width, ellipsis=True)
    val = f"  {loss_text(checkpoint.val_loss):>5} "
    # The age of a file that was installed tells nothing.
    since = "" if checkpoint.built_in else age(time.time() - checkpoint.modified)
    facts = f" {file_size(checkpoint.size):>7} {since:>7}"
    more = (
        f"  train {loss_text(checkpoint.train_loss):>5}  {short_count(checkpoint.n_params):>5}"
        " parameters "
    )
    star = ("★", "$text-success") if best else " "
    line = Content.assemble(start, val, star, (more + facts, "$foreground-muted"))
    if line.cell_length > width:
        line = Content.assemble(start, val, star, (facts, "$foreground-muted"))
    return line.truncate(width, ellipsis=True)
