"""The rows of the checkpoints pane: what is in the list, and how each is drawn."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from textual.content import Content

from tuigpt.runs.browse import facts_of, find, gap, kept_as, sort_checkpoints, sort_runs, state_of
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.wording import age, file_size, loss_text, one_line, val_text

MIDDLE, WIDE = 52, 72
"""Columns from which on a row has room for gap and size, and for the gap as a bar and what is
kept."""

LONGEST_BAR = 12
"""Cells of a gap of one nat and more."""


@dataclass
class View:
    """What the user has chosen to see.

    Attributes:
        sort: the column, of `SORTS`.
        backwards: whether it is sorted the other way round.
        words: of the filter.
        folded: runs that the user has folded or unfolded, by name.
        marked: checkpoints to act on together.
    """

    sort: str = "step"
    backwards: bool = False
    words: str = ""
    folded: dict[str, bool] = field(default_factory=dict)
    marked: set[Path] = field(default_factory=set)


@dataclass(frozen=True)
class RunRow:
    """A run's own row."""

    run: Run
    folded: bool
    found: int

    @property
    def key(self) -> str:
        return f"run {self.run.name}"


@dataclass(frozen=True)
class CheckpointRow:
    """A row below its run's."""

    run: Run
    checkpoint: Checkpoint

    @property
    def key(self) -> str:
        return str(self.checkpoint.path)


Row = RunRow | CheckpointRow


def rows(runs: Sequence[Run], poet: Run | None, view: View, unfolded: Set[str]) -> Iterator[Row]:
    """All rows in order.

    Args:
        runs: newest first.
        poet: the built-in model, which comes last.
        unfolded: names of the runs that are not folded unless the user says so.
    """
    for run in (*sort_runs(runs, view.sort, view.backwards), *((poet,) if poet else ())):
        found = find(run, view.words)
        if found is None:
            continue
        folded = view.folded.get(run.name, run.name not in unfolded) and not view.words
        yield RunRow(run, folded, len(found))
        if not folded:
            for checkpoint in sort_checkpoints(run, found, view.sort, view.backwards):
                yield CheckpointRow(run, checkpoint)


def headings(width: int, view: View) -> Content:
    """The names of the columns, with the one that is sorted by."""
    arrow = "▴" if view.backwards else "▾"
    parts: list[str | tuple[str, str]] = [" "]
    for name, cells in _columns(width).items():
        word = f"{arrow}{name}" if name == view.sort else name
        text = f"{word:<{cells}}" if name == "kept" else f"{word:>{cells}}"
        if name == "kept":
            parts.append("  ")
        if name == "bar":
            text = " " * cells
        parts.append((text, "bold $text-primary") if name == view.sort else text)
    return Content.assemble(*parts)


def column_at(width: int, x: int) -> str | None:
    """The column that the headings have at a cell, or None."""
    end = 1
    for name, cells in _columns(width).items():
        end += cells + (2 if name == "kept" else 0)
        if x < end:
            return name
    return None


def _columns(width: int) -> Mapping[str, int]:
    """Cells of each column, its distance from the one before included."""
    columns = {"step": 10, "val": 7, "train": 9, "gap": 7, "bar": 0, "kept": 0, "size": 9, "age": 8}
    if width < MIDDLE:
        del columns["gap"], columns["size"]
        columns["step"] = max(7, min(10, width - 25))
    elif width >= WIDE:
        columns["kept"] = 14
        columns["bar"] = min(LONGEST_BAR + 1, max(0, width - sum(columns.values()) - 4))
    return {name: cells for name, cells in columns.items() if cells}


def draw(row: Row, width: int, view: View, open_path: Path | None) -> Content:
    """A row as it is shown."""
    if isinstance(row, RunRow):
        return _run_line(row, width)
    is_open = row.checkpoint.path == open_path
    return _checkpoint_line(row, width, row.checkpoint.path in view.marked, is_open)


_STATE_COLOURS = {
    "training": "$text-success", "finished": "$text-success", "paused": "$text-warning",
    "failed": "$text-error", "lost": "$text-error",
}  # fmt: skip


def _run_line(row: RunRow, width: int) -> Content:
    run = row.run
    state = one_line(state_of(run))
    colour = "$text-error" if run.problem else _STATE_COLOURS.get(run.status.state, "")
    if run.built_in:
        colour = ""
    facts = one_line(facts_of(run))
    if row.folded and width >= MIDDLE:
        count = f"{len(run.checkpoints):,} × "
        facts = count + facts
        if run.best is not None:
            facts = f"{loss_text(run.best.val_loss)} ★  {facts}"
    if run.marks.note:
        facts = f"“{one_line(run.marks.note)}”  {facts}"
    fold = "▸" if row.folded else "▾"
    name = Content(one_line(run.name)).truncate(max(1, width - len(state) - 5), ellipsis=True)
    room = width - name.cell_length - len(state) - 6
    shown = Content(facts).truncate(room, ellipsis=True) if room >= 8 else Content("")
    left = Content.assemble((f"{fold} ", "$foreground-muted"), (name.plain, "bold"))
    right = Content.assemble(
        (shown.plain, "$foreground-muted"), "  ", (state, colour or "$foreground-muted")
    )
    gap_width = max(1, width - left.cell_length - right.cell_length)
    return Content.assemble(left, " " * gap_width, right)


def _checkpoint_line(row: CheckpointRow, width: int, marked: bool, is_open: bool) -> Content:
    checkpoint, run = row.checkpoint, row.run
    columns = _columns(width)
    mark = ("●", "$text-primary") if marked else ("▸", "$text-primary") if is_open else " "
    step = f"{checkpoint.step:>{columns['step']},}"
    if checkpoint.problem:
        problem = (f"  {one_line(checkpoint.problem)}", "$text-error")
        return Content.assemble(mark, step, problem).truncate(width, ellipsis=True)
    best = checkpoint == run.best
    parts: list[str | tuple[str, str]] = [mark, (step, "bold") if is_open else step]
    muted = "$foreground-muted"
    for name, cells in columns.items():
        match name:
            case "val":
                val = val_text(checkpoint.val_loss, checkpoint.early_val_loss)
                parts.append(f"{val:>{cells}}")
            case "train":
                parts.append(("★", "$text-success") if best else " ")
                parts.append((f"{loss_text(checkpoint.train_loss):>{cells - 1}}", muted))
            case "gap":
                parts.append((f"{loss_text(gap(checkpoint)):>{cells}}", muted))
            case "bar":
                parts.append((f" {_bar(gap(checkpoint), cells - 1)}", "$text-warning"))
            case "kept":
                words = kept_as(run, checkpoint)
                note = run.marks.notes.get(checkpoint.step, "")
                text = f"“{one_line(note)}”" if note else words
                shown = Content(text).truncate(cells, ellipsis=True)
                parts.append(("  " + shown.plain + " " * (cells - shown.cell_length), muted))
            case "size":
                parts.append((f"{file_size(checkpoint.size):>{cells}}", muted))
            case "age":
                # The age of a file that was installed tells nothing.
                since = "" if checkpoint.built_in else age(time.time() - checkpoint.modified)
                parts.append((f"{since:>{cells}}", muted))
    return Content.assemble(*parts).truncate(width)


def _bar(distance: float | None, cells: int) -> str:
    """A gap as a bar, of which one nat fills all cells."""
    if distance is None or not math.isfinite(distance) or distance <= 0:
        return " " * cells
    eighths = round(min(1.0, distance) * cells * 8)
    whole, part = divmod(eighths, 8)
    bar = "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")
    return f"{bar:{cells}}"
