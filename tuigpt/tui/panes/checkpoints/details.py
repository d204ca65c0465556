"""The card of the row under the cursor: what it is, how it came about, and what it wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from tuigpt.runs.describe import describe
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.history import History, Point
from tuigpt.runs.metrics import MetricsTail, SampleLine
from tuigpt.tui.panes.checkpoints.rows import Row, RunRow
from tuigpt.wording import duration, loss_text, one_line

LARGEST_LOG = 32 << 20
"""Bytes of a log that is read for the card; of a larger one the checkpoints tell the curve."""

_LEVELS = "▁▂▃▄▅▆▇█"

LABEL_WIDTH = 11

FIRST = ("cannot be opened", "note", "val")
THEN = ("model", "text", "training", "train", "whole val", "kept")
"""Facts above the curve and the sample, and below them."""


@dataclass(frozen=True)
class Past:
    """What a run's log tells.

    Attributes:
        early: steps of `val` that measured little text.
    """

    val: Sequence[Point]
    samples: Sequence[SampleLine]
    early: Set[int]


def read_past(run: Run) -> Past:
    """Read a run's log, of any state; an empty one where there is none."""
    history = History(train_characters_per_token=run.train_characters_per_token)
    try:
        small = run.metrics.stat().st_size <= LARGEST_LOG
    except OSError:
        small = False
    tail = MetricsTail(run.metrics)
    more = small
    while more:
        lines, _ = tail.read_new()
        history.add(lines)
        more = tail.more
    return Past(history.val, history.samples, history.early)


def card(row: Row, past: Past | None, width: int, height: int) -> Content:
    """All that fits of a row's details.

    Args:
        past: None until the log has been read.
    """
    if isinstance(row, RunRow):
        lines = _of_run(row.run, past, width)
    else:
        lines = _of_checkpoint(row.run, row.checkpoint, past, width)
    indent = 0 if isinstance(row, RunRow) else LABEL_WIDTH
    if len(whole := [part for line in lines for part in _wrapped(line, width, indent)]) <= height:
        lines = whole
    return Content("\n").join(line.truncate(width, ellipsis=True) for line in lines[:height])


def _wrapped(line: Content, width: int, indent: int) -> list[Content]:
    """A fact on as many lines as it takes, its value in one column."""
    if line.cell_length <= width or width < 3 * LABEL_WIDTH or " · " not in line.plain:
        return [line]
    first, *others = line.wrap(width)
    more = Content(" ").join(others).wrap(width - indent)
    return [first, *(Content.assemble(" " * indent, part) for part in more)]


def _of_checkpoint(
    run: Run, checkpoint: Checkpoint, past: Past | None, width: int
) -> list[Content]:
    star = " ★" if checkpoint == run.best else ""
    lines = [_rule(f"{checkpoint.label}{star}", width)]
    facts = dict(describe(checkpoint, run))
    lines += _facts(facts, FIRST)
    if not checkpoint.problem:
        lines.append(_curve(_losses(run, past), checkpoint.step, width))
        lines += _sample(past, checkpoint.step)
    return [*lines, *_facts(facts, THEN), _path(checkpoint.path, width)]


def _facts(facts: Mapping[str, str], names: Sequence[str]) -> list[Content]:
    lines = []
    for name in names:
        if name in facts:
            style = "$text-error" if name == "cannot be opened" else ""
            value = one_line(facts[name]).replace(" a character", "")
            lines.append(
                Content.assemble((f"{name:{LABEL_WIDTH}}", "$foreground-muted"), (value, style))
            )
    return lines


def _label(name: str) -> tuple[str, str]:
    return f"{name:{LABEL_WIDTH}}", "$foreground-muted"


def _of_run(run: Run, past: Past | None, width: int) -> list[Content]:
    status = run.status
    lines = [_rule(run.name, width)]
    if run.problem:
        lines.append(Content.styled(f"damaged: {one_line(run.problem)}", "$text-error"))
    if run.marks.note:
        lines.append(Content(f"“{one_line(run.marks.note)}”"))
    if run.record is not None:
        model = run.record.model
        text = run.record.corpus
        words = [f"{model.n_layer} × {model.n_embd}, block {model.block_size}"]
        words.append(f"{one_line(text.name)}, {text.characters:,} characters")
        words.append(f"{run.record.train.recipe}, seed {run.record.train.seed}")
        lines.append(Content(" · ".join(words)))
    news = one_line(status.news)
    told = f"{status.state}, step {status.step:,} of {status.max_steps:,}"
    if status.seconds_left and status.alive:
        told += f", about {duration(status.seconds_left)} left"
    if not run.built_in:
        lines.append(Content(f"{told}{f': {news}' if news else ''}"))
    best = run.best
    if best is not None:
        lines.append(Content(f"best val {loss_text(best.val_loss)} ★ at step {best.step:,}"))
    lines.append(_curve(_losses(run, past), best.step if best else -1, width))
    lines += _sample(past, run.status.step)
    if not run.built_in:
        lines.append(_path(run.folder, width))
    return lines


def _rule(title: str, width: int) -> Content:
    title = one_line(title)
    start = Content.assemble(("── ", "$foreground 50%"), (title, "bold"), " ")
    return Content.assemble(start, ("─" * max(0, width - start.cell_length), "$foreground 50%"))


def _path(path: Path, width: int) -> Content:
    """A path of which the end matters most."""
    text = one_line(str(path))
    if len(text) > width:
        text = f"…{text[len(text) - width + 1 :]}"
    return Content.styled(text, "$foreground-muted")


def _losses(run: Run, past: Past | None) -> Sequence[Point]:
    if past is not None and past.val:
        return past.val
    return [(c.step, c.val_loss) for c in run.checkpoints if c.val_loss is not None]


def _curve(val: Sequence[Point], step: int, width: int) -> Content:
    """The val losses as a row of bars with one step marked, and their ends."""
    points = [(at, loss) for at, loss in val if math.isfinite(loss)]
    if len(points) < 2:
        return Content.styled(
            f"{'curve':{LABEL_WIDTH}}not enough evaluations yet", "$foreground-muted"
        )
    start, end = (f"{loss_text(points[i][1])} " for i in (0, -1))
    cells = max(1, min(60, width - LABEL_WIDTH - 2 * len(end) - 2, len(points)))
    groups = [
        points[i * len(points) // cells : (i + 1) * len(points) // cells] for i in range(cells)
    ]
    heights = [sum(loss for _, loss in group) / len(group) for group in groups]
    # What changes after the first steps is what one looks at; they only reach the top.
    low, high = min(heights), max(heights[len(heights) // 8 :])
    scale = (len(_LEVELS) - 1) / (high - low) if high > low else 0.0
    here = min(range(cells), key=lambda i: min(abs(at - step) for at, _ in groups[i]))
    parts: list[str | tuple[str, str]] = [_label("curve"), start]
    for i, loss in enumerate(heights):
        level = _LEVELS[min(len(_LEVELS) - 1, round((loss - low) * scale))]
        parts.append((level, "bold $text-success" if i == here else "$text-warning"))
    return Content.assemble(*parts, f" {end}")


def _sample(past: Past | None, step: int) -> list[Content]:
    """What it wrote at the newest step up to this one, over several lines; where that is another
    step, it says so."""
    if past is None:
        return []
    earlier = [sample for sample in past.samples if sample.step <= step]
    if not earlier:
        return []
    newest = earlier[-1]
    text = f"{newest.prompt}{newest.text}".strip()
    lines = [one_line(line) for line in text.split("\n") if line.strip()]
    lines = lines[: 3 - (newest.step != step)]
    bar = ("  │ ", "$foreground 50%")
    shown = [Content.assemble(bar, line) for line in lines]
    if newest.step != step:
        when = (f"at step {newest.step:,} it wrote:", "$foreground-muted")
        shown.insert(0, Content.assemble(bar, when))
    return shown
