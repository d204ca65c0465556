"""The list of runs and checkpoints: what it shows, and how one looks around in it."""

from __future__ import annotations

import asyncio
import os
import time
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.widgets import Input, Static

from tuigpt.runs.browse import SORTS
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.manage import TrashFacts, look_into_trash, trash_mark
from tuigpt.tui.keys import with_keys
from tuigpt.tui.messages import OpenCheckpoint, WatchRun
from tuigpt.tui.panes.checkpoints.details import Past, card, read_past
from tuigpt.tui.panes.checkpoints.rows import (
    CheckpointRow,
    Row,
    RunRow,
    View,
    column_at,
    draw,
    headings,
    rows,
)
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.row_list import RowList
from tuigpt.wording import file_size

EMPTY = (
    "No checkpoints of your own yet. Every run saves its own; press {train.new-run} to start one."
)

CARD_ROWS = 18
"""Most lines of the details card."""


class _Rows(RowList):
    """The list itself, which tells in the footer what enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "open", id="checkpoints.open",
                tooltip="Write with this checkpoint, or watch this run"),
    ]  # fmt: skip

    def action_choose(self) -> None:
        self.choose()


class Browser(Pane):
    """A row for each run, below it one for each of its checkpoints, and a card of details.

    Attributes:
        trash: what lies in the trash, as of the last look.
    """

    def __init__(self, entry: PaneEntry, session: Session) -> None:
        super().__init__(entry, session)
        self._view = View()
        self._rows: dict[str, Row] = {}
        self._seen: tuple[object, ...] = ()
        self._been_at: set[str] = set()
        self._wanted = ""
        self._card_lines = 0
        self._card_words: Content | None = None
        self._pasts: dict[str, tuple[object, Past]] = {}
        self.trash, self._trash_mark = TrashFacts(), 0
        self._filter = Input(placeholder="filter: a name, a text, @step, best …", id="filter",
                             compact=True)  # fmt: skip
        self._headings = Static(id="headings", markup=False)
        self._list = _Rows("list", self._draw_row)
        self._card = Static(id="card", markup=False)
        self._total = Static(id="total", markup=False)

    def compose(self) -> ComposeResult:
        yield self._filter
        yield self._headings
        yield self._list
        yield self._card
        yield self._total

    def on_mount(self) -> None:
        self._filter.display = self._headings.display = self._card.display = False
        self._list.display = False
        self._tell_total()

    # --- what is shown ---

    def show(self) -> None:
        """List all runs, and the built-in one below them; nothing is done when nothing changed."""
        session = self.session
        mark = trash_mark(session.home)
        if mark != self._trash_mark:
            self._trash_mark, self.trash = mark, look_into_trash(session.home)
        open_path = session.checkpoint.path if session.checkpoint else None
        minute = int(time.time() / 60)
        watched = session.watched.name if session.watched else ""
        now = (session.runs, session.poet, open_path, watched, minute, self.trash)
        if now != self._seen:
            self._seen = now
            self._fill()

    def _fill(self) -> None:
        session = self.session
        found = rows(session.runs, session.poet, self._view, self._unfolded())
        self._rows = {row.key: row for row in found}
        keys = list(self._rows)
        if self._view.marked:
            self._view.marked &= {c.path for run in self._all_runs for c in run.checkpoints}
        cursor = self._list.cursor_key
        # The poet is where the cursor stands before there are runs, not where anybody put it.
        of_poet = session.poet is not None and cursor in (
            f"run {session.poet.name}",
            *(str(c.path) for c in session.poet.checkpoints),
        )
        if of_poet and not self._list.has_focus:
            cursor = keys[0] if keys else None
        if self._wanted in self._rows:
            cursor, self._wanted = self._wanted, ""
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
            words = (
                "No checkpoint has been saved yet." if self.session.runs else with_keys(self, EMPTY)
            )
        if self._view.marked:
            marked = [c for _, c in self.targets]
            words = f"{len(marked):,} marked, {file_size(sum(c.size for c in marked))} · {words}"
        if self.trash.size:
            words += f" · {file_size(self.trash.size)} in the trash"
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
    def row(self) -> Row | None:
        return self._rows.get(self._list.cursor_key or "")

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        self._show_card()
        self.refresh_bindings()

    def _show_card(self) -> None:
        row, room = self.row, self.content_size
        height = min(CARD_ROWS, room.height * 2 // 5)
        self._card.display = row is not None and height >= 5
        if row is None or not self._card.display:
            return
        words = card(row, self._past(row.run), max(1, room.width), height)
        # Laying everything out anew takes longer than all else that a key does here.
        lines = words.plain.count("\n") + 1
        if self._card_words is None or not words.is_same(self._card_words):
            self._card.update(words, layout=lines != self._card_lines)
        self._card_words, self._card_lines = words, lines

    def _past(self, run: Run) -> Past | None:
        """What its log tells; one that is not watched is read in the background."""
        history = self.session.history
        if self.session.watched is not None and run.folder == self.session.watched.folder:
            return Past(history.val, history.samples, history.early)
        mark = (run.folder, _mark_of_log(run))
        known = self._pasts.get(run.name)
        if known is not None and known[0] == mark:
            return known[1]
        self._read_past(run, mark)
        return known[1] if known else None

    @work(group="past", exclusive=True)
    async def _read_past(self, run: Run, mark: object) -> None:
        past = await asyncio.to_thread(read_past, run)
        while len(self._pasts) >= 20:
            self._pasts.pop(next(iter(self._pasts)))
        self._pasts[run.name] = (mark, past)
        if self.row is not None and self.row.run.name == run.name:
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
            self.tell_error(f"{row.checkpoint.path.name} cannot be opened:"
                             f" {row.checkpoint.problem}")  # fmt: skip
        elif row is not None:
            self.post_message(OpenCheckpoint(row.checkpoint))

    @property
    def targets(self) -> list[tuple[Run, Checkpoint]]:
        """What an action is for: what is marked, by run and step, else the checkpoint under the
        cursor."""
        marked = self._view.marked
        rows = [self._rows.get(str(path)) for path in marked]
        chosen = [(row.run, row.checkpoint) for row in rows if isinstance(row, CheckpointRow)]
        if len(chosen) < len(marked):  # some are folded away
            chosen = [(r, c) for r in self._all_runs for c in r.checkpoints if c.path in marked]
        chosen.sort(key=lambda pair: (pair[0].folder, pair[1].step))
        if not chosen and isinstance(self.row, CheckpointRow):
            chosen = [(self.row.run, self.row.checkpoint)]
        return chosen

    @property
    def _all_runs(self) -> tuple[Run, ...]:
        session = self.session
        return (*session.runs, session.poet) if session.poet else session.runs

    def find(self, checkpoint: Checkpoint | None) -> list[tuple[Run, Checkpoint]]:
        """A checkpoint with its run, if it is in one that is listed."""
        if checkpoint is None:
            return []
        return [(run, checkpoint) for run in self._all_runs if run.name == checkpoint.run][:1]

    @property
    def list_has_focus(self) -> bool:
        return self._list.has_focus

    def show_run(self, name: str) -> None:
        """Put the cursor on a run's own row, as soon as the run is listed."""
        self._wanted = f"run {name}"
        self._fill()

    def unmark(self) -> None:
        """Forget what is marked."""
        self._view.marked.clear()
        self._tell_total()
        self._list.refresh()
        self.refresh_bindings()

    def tell_error(self, words: str) -> None:
        """Show an error above everything."""
        self.app.notify(words, severity="error")

    # --- looking around ---

    def action_fold(self, folded: bool) -> None:
        row = self.row
        if row is not None and not self._view.words:
            self._view.folded[row.run.name] = folded
            self._fill()
            self._list.set_rows(self._list.keys, f"run {row.run.name}" if folded else row.key)

    def action_sort(self) -> None:
        names = list(SORTS)
        self._view.sort = names[(names.index(self._view.sort) + 1) % len(names)]
        self._view.backwards = False
        self._fill()

    def on_click(self, event: Click) -> None:
        """A click on a heading sorts by that column; the next one the other way round."""
        if event.widget is not self._headings:
            return
        name = column_at(max(1, self.content_size.width - 1), event.x)
        if name in SORTS:
            self._view.backwards = name == self._view.sort and not self._view.backwards
            self._view.sort = name
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
        row = self.row
        if isinstance(row, CheckpointRow):
            self._view.marked ^= {row.checkpoint.path}
            self._tell_total()
            self._list.refresh()
            self.refresh_bindings()
            self._list.action_move(1)


def _mark_of_log(run: Run) -> tuple[int, int]:
    try:
        stat = os.stat(run.metrics)
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)
