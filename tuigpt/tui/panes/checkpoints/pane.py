"""The checkpoints pane: every run and every checkpoint, from their headers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.widgets import Input, Static

from tuigpt.errors import UserError
from tuigpt.runs.browse import SORTS
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.manage import (
    Done,
    TrashFacts,
    delete_checkpoints,
    delete_run,
    empty_trash,
    look_into_trash,
    rename_run,
    thinnable,
    trash_mark,
    undo,
)
from tuigpt.runs.marks import note, star
from tuigpt.runs.poet import hide_poet, poet_is_hidden
from tuigpt.tui.messages import OpenCheckpoint, WatchRun
from tuigpt.tui.panes.checkpoints.details import Past, card, read_past
from tuigpt.tui.panes.checkpoints.rows import (
    CheckpointRow,
    Row,
    RunRow,
    View,
    draw,
    headings,
    rows,
)
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.screens.ask_text import AskText
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.row_list import RowList
from tuigpt.wording import file_size, one_line

EMPTY = "No checkpoints of your own yet. Every run saves its own; press ctrl+n to start one."

CARD_ROWS = 14
"""Most lines of the details card."""


class _Rows(RowList):
    """The list itself, which tells in the footer what enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "open", id="checkpoints.open",
                tooltip="Write with this checkpoint, or watch this run"),
    ]  # fmt: skip

    def action_choose(self) -> None:
        self.choose()


class CheckpointsPane(Pane):
    """A row for each run, below it one for each of its checkpoints, and a card of details."""

    BINDING_GROUP_TITLE = "Checkpoints"
    HELP = """\
A checkpoint is the model as it was at one step. [b]enter[/b] opens it in the generate pane; on a \
run's own row it shows that run's training. ★ is the lowest validation loss of its run: usually \
the best writer. ▸ is the one that is open, ● those that are marked.

[b]val[/b] is the loss on text that the model never trains on, [b]train[/b] that on the text it \
reads. The [b]gap[/b] between them is what it has learned by heart; when it opens, the run \
memorises.

What is deleted lies in the trash for a week, and [b]u[/b] brings it back.

The [b]poet[/b] comes with tuigpt: it has learned from Shakespeare's plays and is there before you \
train."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark", id="checkpoints.mark",
                tooltip="Mark this checkpoint, to act on several together"),
        Binding("slash", "filter", "filter", id="checkpoints.filter", key_display="/",
                tooltip="Show only what has the words that you type"),
        Binding("s", "sort", "sort", id="checkpoints.sort", show=False,
                tooltip="Sort by the next column: step, val, train, gap, size, age"),
        Binding("S", "reverse", "reverse", id="checkpoints.reverse", show=False,
                tooltip="Sort the other way round"),
        Binding("left", "fold(True)", "fold", id="checkpoints.fold", show=False,
                tooltip="Hide the checkpoints of this run"),
        Binding("right", "fold(False)", "unfold", id="checkpoints.unfold", show=False,
                tooltip="Show the checkpoints of this run"),
        Binding("x,delete", "delete", "delete", id="checkpoints.delete", key_display="x",
                tooltip="Put the marked checkpoints, or this one, or this run into the trash"),
        Binding("u", "undo", "undo", id="checkpoints.undo",
                tooltip="Take back what was deleted, thinned out or renamed last"),
        Binding("r", "rename", "rename", id="checkpoints.rename", tooltip="Rename this run"),
        Binding("t", "thin", "thin out", id="checkpoints.thin", show=False,
                tooltip="Delete all checkpoints of this run but those worth keeping"),
        Binding("asterisk", "star", "star", id="checkpoints.star", key_display="*", show=False,
                tooltip="Star these checkpoints, or take their stars away"),
        Binding("n", "note", "note", id="checkpoints.note", show=False,
                tooltip="Note something on this checkpoint or run"),
        Binding("y", "copy_path", "copy path", id="checkpoints.copy-path", show=False,
                tooltip="Copy the path of this file or folder"),
        Binding("escape", "back", "unmark", id="checkpoints.back", show=False,
                tooltip="Show everything again, with nothing marked"),
        Binding("E", "empty_trash", "empty the trash", id="checkpoints.empty-trash", show=False,
                tooltip="Delete for good what lies in the trash"),
        Binding("h", "hide_poet", "hide the poet", id="checkpoints.hide-poet",
                tooltip="Leave the built-in model out of the lists"),
        Binding("H", "show_poet", "show the poet", id="checkpoints.show-poet", show=False,
                tooltip="Have the built-in model in the lists again"),
    ]  # fmt: skip

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(entry, session)
        self._view = View()
        self._rows: dict[str, Row] = {}
        self._seen: tuple[object, ...] = ()
        self._been_at: set[str] = set()
        self._pasts: dict[str, tuple[object, Past]] = {}
        self._trash, self._trash_mark = TrashFacts(), 0
        self._filter = Input(placeholder="filter: a name, a text, @step, best …", id="filter",
                             compact=True)  # fmt: skip
        self._headings = Static(id="headings", markup=False)
        self._list = _Rows("list", self._draw_row)
        self._card = Static(id="card", markup=False)
        self._total = Static(EMPTY, id="total", markup=False)

    def compose(self) -> ComposeResult:
        yield self._filter
        yield self._headings
        yield self._list
        yield self._card
        yield self._total

    def on_mount(self) -> None:
        self._filter.display = self._headings.display = self._card.display = False
        self._list.display = False

    # --- what is shown ---

    def show(self) -> None:
        """List all runs, and the built-in one below them; nothing is done when nothing changed."""
        session = self.session
        mark = trash_mark(session.home)
        if mark != self._trash_mark:
            self._trash_mark, self._trash = mark, look_into_trash(session.home)
        open_path = session.checkpoint.path if session.checkpoint else None
        minute = int(time.time() / 60)
        watched = session.watched.name if session.watched else ""
        now = (session.runs, session.poet, open_path, watched, minute, self._trash)
        if now != self._seen:
            self._seen = now
            self._fill()

    def _fill(self) -> None:
        session = self.session
        found = rows(session.runs, session.poet, self._view, self._unfolded())
        self._rows = {row.key: row for row in found}
        keys = list(self._rows)
        existing = {c.path for run in session.runs for c in run.checkpoints}
        self._view.marked &= existing
        cursor = self._list.cursor_key
        # The poet is where the cursor stands before there are runs, not where anybody put it.
        of_poet = session.poet is not None and cursor in (
            f"run {session.poet.name}",
            *(str(c.path) for c in session.poet.checkpoints),
        )
        if of_poet and not self._list.has_focus:
            cursor = keys[0] if keys else None
        self._list.set_rows(keys, cursor)
        self._list.display = self._headings.display = bool(keys)
        self._draw_headings()
        self._tell_total()
        self._show_card()
        self.refresh_bindings()

    def _unfolded(self) -> set[str]:
        """The runs one is at: the newest, the watched one, that of the open checkpoint.

        One that was unfolded for that stays so, or rows would jump when another run begins.
        """
        session, names = self.session, self._been_at
        names.update(run.name for run in session.runs[:1])
        if session.watched:
            names.add(session.watched.name)
        if session.checkpoint:
            names.add(session.checkpoint.run)
        if session.poet:
            names.add(session.poet.name)
        return names

    def _tell_total(self) -> None:
        checkpoints = [c for run in self.session.runs for c in run.checkpoints]
        number, size = len(checkpoints), file_size(sum(c.size for c in checkpoints))
        words = f"{number:,} checkpoint{'s' if number != 1 else ''} · {size}"
        if not checkpoints:
            words = "No checkpoint has been saved yet." if self.session.runs else EMPTY
        if self._view.marked:
            marked = [c for c in checkpoints if c.path in self._view.marked]
            words = f"{len(marked):,} marked, {file_size(sum(c.size for c in marked))} · {words}"
        if self._trash.size:
            words += f" · {file_size(self._trash.size)} in the trash"
        if self._view.words and not self._rows:
            words = f"nothing has “{self._view.words}” · {words}"
        if self._total.content != words:
            self._total.update(words)

    def _draw_row(self, key: str, width: int) -> Content:
        open_path = self.session.checkpoint.path if self.session.checkpoint else None
        return draw(self._rows[key], width, self._view, open_path)

    def _draw_headings(self) -> None:
        width = max(1, self.content_size.width - 1)  # beside the list's scroll bar
        words = headings(width, self._view)
        if self._headings.content != words:
            self._headings.update(words)

    def on_resize(self, event: Resize) -> None:
        self._draw_headings()
        self.call_after_refresh(self._show_card)

    # --- the row under the cursor ---

    @property
    def _row(self) -> Row | None:
        return self._rows.get(self._list.cursor_key or "")

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        self._show_card()
        self.refresh_bindings()

    def _show_card(self) -> None:
        row, room = self._row, self.content_size
        height = min(CARD_ROWS, room.height * 2 // 5)
        self._card.display = row is not None and height >= 5
        if row is None or not self._card.display:
            return
        past = self._past(row.run)
        self._card.update(card(row, past, max(1, room.width), height))

    def _past(self, run: Run) -> Past | None:
        """What its log tells; one that is not watched is read in the background."""
        history = self.session.history
        if self.session.watched is not None and run.folder == self.session.watched.folder:
            return Past(history.val, history.samples)
        mark = (run.folder, _mark_of_log(run))
        known = self._pasts.get(run.name)
        if known is not None and known[0] == mark:
            return known[1]
        self._read_past(run, mark)
        return known[1] if known else None

    @work(group="past", exclusive=True, thread=True)
    def _read_past(self, run: Run, mark: object) -> None:
        past = read_past(run)
        self.app.call_from_thread(self._past_read, run.name, mark, past)

    def _past_read(self, name: str, mark: object, past: Past) -> None:
        while len(self._pasts) >= 20:
            self._pasts.pop(next(iter(self._pasts)))
        self._pasts[name] = (mark, past)
        if self._row is not None and self._row.run.name == name:
            self._show_card()

    @on(RowList.Chosen)
    def _choose(self, event: RowList.Chosen) -> None:
        event.stop()
        row = self._rows.get(event.key)
        if isinstance(row, RunRow):
            if event.x is not None and event.x < 2:
                self.action_fold(not row.folded)
            else:
                self.post_message(WatchRun(row.run.name))
        elif row is not None and row.checkpoint.problem:
            self._tell_error(f"{row.checkpoint.path.name} cannot be opened:"
                             f" {row.checkpoint.problem}")  # fmt: skip
        elif row is not None:
            self.post_message(OpenCheckpoint(row.checkpoint))

    def _targets(self) -> list[tuple[Run, list[Checkpoint]]]:
        """What an action is for: what is marked, else the checkpoint under the cursor."""
        marked = self._view.marked
        found = [
            (run, [c for c in run.checkpoints if c.path in marked]) for run in self.session.runs
        ]
        chosen = [(run, checkpoints) for run, checkpoints in found if checkpoints]
        if not chosen and isinstance(self._row, CheckpointRow):
            chosen = [(self._row.run, [self._row.checkpoint])]
        return chosen

    # --- looking ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be done with the row under the cursor."""
        row = self._row
        own = row is not None and not row.run.built_in
        match action:
            case "hide_poet":
                return row is not None and row.run.built_in
            case "show_poet":
                return self.session.poet is None and poet_is_hidden(self.session.home)
            case "undo":
                return self._trash.entries > 0
            case "empty_trash":
                return self._trash.size > 0
            case "delete" | "rename" | "thin" | "star" | "note":
                return own
            case "mark":
                return own and isinstance(row, CheckpointRow)
            case "sort" | "reverse" | "filter" | "copy_path" | "fold":
                return row is not None or bool(self._view.words)
        return True

    def action_fold(self, folded: bool) -> None:
        row = self._row
        if row is not None and not self._view.words:
            self._view.folded[row.run.name] = folded
            self._fill()
            self._list.set_rows(self._list.keys, f"run {row.run.name}" if folded else row.key)

    def action_sort(self) -> None:
        names = list(SORTS)
        self._view.sort = names[(names.index(self._view.sort) + 1) % len(names)]
        self._view.backwards = False
        self._fill()

    def action_reverse(self) -> None:
        self._view.backwards = not self._view.backwards
        self._fill()

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self._view.words = event.value
        self._fill()

    @on(Input.Submitted, "#filter")
    def _filter_done(self, event: Input.Submitted) -> None:
        event.stop()
        self._filter.display = bool(event.value)
        self._list.focus()

    def action_back(self) -> None:
        """End the filter and forget what is marked."""
        self._view.marked.clear()
        self._filter.value = ""
        self._filter.display = False
        self._fill()
        self._list.focus()

    def action_mark(self) -> None:
        row = self._row
        if isinstance(row, CheckpointRow):
            self._view.marked ^= {row.checkpoint.path}
            self._tell_total()
            self._list.refresh()
            self._list.action_move(1)

    # --- doing ---

    def _do(self, what: Callable[[], Done]) -> None:
        """Do something that a user may want to take back, and tell what became of it."""
        try:
            done = what()
        except UserError as error:
            self._tell_error(str(error))
        else:
            self._view.marked.clear()
            self.app.notify(done.words, timeout=4)
            self.refresh_bindings()

    def _tell_error(self, words: str) -> None:
        self.app.notify(words, severity="error")

    async def action_delete(self) -> None:
        home, row = self.session.home, self._row
        targets = self._targets()
        if targets:
            for run, checkpoints in targets:
                self._do(lambda run=run, some=checkpoints: delete_checkpoints(home, run, some))  # type: ignore[misc]
        elif isinstance(row, RunRow):
            run = row.run

            def answered(answer: str | None) -> None:
                if answer == "delete":
                    self._do(lambda: delete_run(home, run))

            count = len(run.checkpoints)
            what = f"{run.name} and its {count:,} checkpoint{'s' * (count != 1)}"
            answers = [("keep", "Keep it"), ("delete", "Delete it; u brings it back")]
            await self.app.push_screen(Confirm(f"Delete {what}?", answers), answered)

    def action_undo(self) -> None:
        self._do(lambda: undo(self.session.home))

    async def action_empty_trash(self) -> None:
        home, size = self.session.home, file_size(self._trash.size)

        def answered(answer: str | None) -> None:
            if answer == "empty":
                self._do(lambda: empty_trash(home))

        answers = [("keep", "Keep it"), ("empty", f"Delete it for good: frees {size}")]
        await self.app.push_screen(Confirm("Empty the trash?", answers), answered)

    async def action_rename(self) -> None:
        if self._row is None:
            return
        home, run = self.session.home, self._row.run

        def answered(name: str | None) -> None:
            if name and name != run.name:
                self._do(lambda: rename_run(home, run, name))

        question = f"What is {run.name} to be called?"
        await self.app.push_screen(AskText(question, run.name, "Rename"), answered)

    async def action_thin(self) -> None:
        if self._row is None:
            return
        home, run = self.session.home, self._row.run
        last = run.checkpoints[-1].step if run.checkpoints else 0
        answers = [("keep", "Keep all")]
        plans: dict[str, tuple[Checkpoint, ...]] = {}
        for every in (None, *_round_intervals(last)):
            going = thinnable(run, every)
            if going and len(going) not in {len(other) for other in plans.values()}:
                what = "best, last, starred" + (f", every {every:,}th" if every else "")
                size = file_size(sum(c.size for c in going))
                plans[f"every-{every or 0}"] = going
                answers.append(
                    (f"every-{every or 0}", f"Keep {what}: {len(going):,} go, frees {size}")
                )

        def answered(answer: str | None) -> None:
            if answer in plans:
                self._do(lambda: delete_checkpoints(home, run, plans[answer]))

        if not plans:
            self.app.notify(f"{run.name} has only checkpoints that are worth keeping")
            return
        await self.app.push_screen(Confirm(f"Thin out {run.name}?", answers), answered)

    def action_star(self) -> None:
        for run, checkpoints in self._targets():
            steps = [c.step for c in checkpoints]
            starred = not set(steps) <= set(run.marks.stars)
            try:
                star(run.folder, steps, starred)
            except UserError as error:
                self._tell_error(str(error))

    async def action_note(self) -> None:
        row = self._row
        if row is None:
            return
        step = row.checkpoint.step if isinstance(row, CheckpointRow) else None
        marks = row.run.marks
        value = marks.note if step is None else marks.notes.get(step, "")
        label = row.checkpoint.label if isinstance(row, CheckpointRow) else row.run.name

        def answered(words: str | None) -> None:
            if words is not None:
                try:
                    note(row.run.folder, step, words)
                except UserError as error:
                    self._tell_error(str(error))

        await self.app.push_screen(AskText(f"A note on {label}:", value, "Note"), answered)

    def action_copy_path(self) -> None:
        row = self._row
        if row is not None:
            path = row.checkpoint.path if isinstance(row, CheckpointRow) else row.run.folder
            self.app.copy_to_clipboard(str(path))
            self.app.notify(f"sent to the clipboard: {one_line(str(path))}", timeout=4)

    def action_hide_poet(self) -> None:
        if self._hide_poet(True):
            self.app.notify("the poet is hidden; ctrl+p, checkpoints: show the poet", timeout=5)

    def action_show_poet(self) -> None:
        self._hide_poet(False)

    def _hide_poet(self, hidden: bool) -> bool:
        try:
            hide_poet(hidden)
        except UserError as error:
            self._tell_error(str(error))
            return False
        return True


def _mark_of_log(run: Run) -> tuple[int, int]:
    try:
        stat = os.stat(run.metrics)
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


def _round_intervals(last: int) -> list[int]:
    """Round numbers of steps that leave some of a run's checkpoints: from many to few."""
    candidates = [n * 10**power for power in range(1, 7) for n in (1, 2, 5)]
    return [n for n in candidates if last / 20 <= n <= last / 2]
