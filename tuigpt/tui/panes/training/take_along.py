"""A run's curves and its chart as files for other programs."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tuigpt.charts.plot import Picture, View, draw
from tuigpt.charts.png import to_png
from tuigpt.files import to_json, write_atomic
from tuigpt.runs.history import History
from tuigpt.runs.loss_log import EVALUATED_EVERY, loss_log

_SIZE = 110, 32
"""Columns and rows of a chart as a picture."""

_COLOURS = {
    "train": "#6cb6ff", "train-raw": "#4b6783", "val": "#f0883e", "best": "#7ee787",
    "other": "#d2a8ff", "ruler": "#9a958a", "gap": "#9a6030", "axis": "#9a958a",
    "milestone": "#7ee787", "message": "#ff7b72", "text": "#e8e4da", "cursor": "#e8e4da",
}  # fmt: skip


BACKGROUND = "#16171c"


def save_csv(path: Path, history: History) -> None:
    """Write the losses as a table: step, train, val; nats per character, blank where none is.

    Raises:
        OSError: it could not be written.
    """
    train, val = dict(history.train), dict(history.val)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["step", "train_loss", "val_loss"])
    for step in sorted(train.keys() | val.keys()):
        writer.writerow([step, train.get(step, ""), val.get(step, "")])
    write_atomic(path, stream.getvalue().encode())


def save_loss_log(path: Path, history: History) -> None:
    """Write the losses as the workshop does; see `runs.loss_log`.

    Raises:
        OSError: it could not be written.
    """
    val = {step: loss for step, loss in history.val if step not in history.early}
    log = loss_log(dict(history.train), val, EVALUATED_EVERY)
    write_atomic(path, (to_json(log) + "\n").encode())


def save_png(path: Path, picture: Picture, view: View) -> None:
    """Write a chart as a PNG picture.

    Raises:
        OSError: it could not be written.
    """
    write_atomic(path, to_png(draw(picture, view, *_SIZE), _COLOURS, BACKGROUND))


def save_svg(path: Path, picture: Picture, view: View) -> None:
    """Write a chart as an SVG picture.

    Raises:
        OSError: it could not be written.
    """
    width, height = _SIZE
    grid = draw(picture, view, width, height)
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    for y in range(height):
        row = Text()
        for text, role in grid.runs(y):
            row.append(text, _COLOURS.get(role, _COLOURS["text"]))
        console.print(row, no_wrap=True, overflow="crop", soft_wrap=False)
    write_atomic(path, console.export_svg(title="tuigpt").encode())
