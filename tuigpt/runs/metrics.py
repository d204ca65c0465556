"""`metrics.jsonl`: one JSON object a line, appended by the trainer, followed by readers."""

from __future__ import annotations

import errno
import math
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import le
from pathlib import Path

import msgspec

from tuigpt.files import Count, Word, decode, open_regular, open_to_append, to_json
from tuigpt.loss import characters_per_token, per_character

METRICS_FILE = "metrics.jsonl"

PIECE = 1 << 20
"""Bytes that are read at a time, and so the most that a line may have."""

MOST_POINTS = 20_000
"""Points of a curve from which on it is thinned, to at most half as many."""

MOST_SAMPLES = 1000
MOST_EVENTS = 1000
LONGEST_TEXT = 20_000
"""Characters of a sample or an event that are kept."""

Point = tuple[int, float]


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    """What every line has."""

    step: Count


class StepLine(Line, frozen=True, tag="step", gc=False):
    """One update.

    Attributes:
        loss: of the batch, in nats per token.
        grad_norm: before clipping.
        seconds: that the update took.
    """

    loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    seconds: float | None = None
    nonfinite: tuple[str, ...] = ()


class EvalLine(Line, frozen=True, tag="eval"):
    """One evaluation.

    Attributes:
        val_loss: in nats per token.
        val_loss_per_character: the same in nats per character.
        tokens: how many were predicted.
        whole: whether they are the whole validation part.
        early: whether they are few, before the regular evaluations begin.
    """

    val_loss: float | None = None
    val_loss_per_character: float | None = None
    tokens: Count = 0
    whole: bool = False
    early: bool = False
    nonfinite: tuple[str, ...] = ()


class SampleLine(Line, frozen=True, tag="sample"):
    """What the model wrote after a prompt."""

    prompt: str = ""
    text: str = ""


class CheckpointLine(Line, frozen=True, tag="checkpoint"):
    """A checkpoint was saved.

    Attributes:
        keep: False for one that the next better one replaces.
    """

    file: Word = ""
    keep: bool = True


class EventLine(Line, frozen=True, tag="event"):
    """Something to tell in words.

    Attributes:
        state: that the run ended in, or "".
        setting: that was changed, or "".
    """

    message: str = ""
    state: Word = ""
    setting: Word = ""


AnyLine = StepLine | EvalLine | SampleLine | CheckpointLine | EventLine

_decoder = msgspec.json.Decoder(AnyLine)


class MetricsLog:
    """The trainer's end: appends whole lines to a regular file of the run, never through a link."""

    def __init__(self, folder: Path) -> None:
        """Open the log; a line torn by a kill is cut off, so that the next one starts fresh.

        Raises:
            OSError: it cannot be opened, or is a symbolic link or no regular file.
        """
        self._stream = os.fdopen(open_to_append(folder / METRICS_FILE), "ab+", buffering=0)
        end = self._stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - PIECE)
            self._stream.seek(start)
            end = start + self._stream.read(end - start).rfind(b"\n") + 1
            if end > start or not start:
                break
        self._stream.truncate(end)

    def append(self, line: AnyLine) -> None:
        """Write one line.

        Raises:
            OSError: it could not be written, such as on a full disk; the log is as it was.
        """
        content = (to_json(line) + "\n").encode()
        size = os.fstat(self._stream.fileno()).st_size
        try:
            if self._stream.write(content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._stream.fileno(), size)
            raise

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self.sync()
        self._stream.close()


class MetricsTail:
    """A reader's end: each call gives lines that came since the last one.

    Attributes:
        more: whether there are more lines to read at once.
    """

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: the log, which need not be there yet.
        """
        self._path = path
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._skipping = False
        self.more = False

    def read_new(self) -> tuple[list[AnyLine], bool]:
        """Read whole new lines, at most `PIECE` bytes of them.

        Lines that are none, or of a kind that this tuigpt does not know, are skipped.

        Returns:
            the lines, and whether they are the first of a log that was replaced or cut short: what
            was read before holds no more.
        """
        self.more = False
        try:
            with open_regular(self._path) as stream:
                stat = os.fstat(stream.fileno())
                file, restarted = (stat.st_dev, stat.st_ino), False
                if self._file != file or stat.st_size < self._offset:
                    restarted = self._restart(file)
                stream.seek(self._offset)
                piece = stream.read(PIECE)
        except (OSError, ValueError):
            return [], self._restart(None)
        end = piece.rfind(b"\n") + 1
        if not end and len(piece) == PIECE:  # a line that is too long
            self._skipping, end, piece = True, len(piece), b""
        elif self._skipping and end:
            self._skipping, piece = False, piece[piece.find(b"\n") + 1 : end]
        else:
            piece = piece[:end]
        self._offset += end
        self.more = bool(end) and self._offset < stat.st_size
        return _lines(piece), restarted

    def _restart(self, file: tuple[int, int] | None) -> bool:
        """Begin at the front of a file; whether one was read before."""
        before = self._file is not None and self._offset > 0
        self._file, self._offset, self._skipping = file, 0, False
        return before


def _lines(piece: bytes) -> list[AnyLine]:
    try:
        lines: list[AnyLine] = _decoder.decode_lines(piece)
        return lines
    except (ValueError, RecursionError):  # at least one is none: find out which
        found: list[AnyLine] = []
        for line in piece.splitlines():
            with suppress(ValueError):
                found.append(decode(line, AnyLine))
        return found


@dataclass
class History:
    """The series of a run, built from its log's lines in order, in bounded memory.

    A curve of more than `MOST_POINTS` points is thinned: of every few steps the lowest and the
    highest stay, and so does one that is not a number.

    Attributes:
        train: (step, loss) for each update, in nats per character.
        val: (step, val_loss) for each evenly spread evaluation, in nats per character.
        early: steps of those evaluations that measured little, before the regular ones begin.
        samples: newest text for each step that was sampled; of very many every second one.
        events: what was told in words, such as that a setting was changed; the newest.
        changes: (step, setting) of each setting that was changed; the newest.
        n_events: how many there were, those included that are kept no more.
        updates: learning rate, gradient norm and time of the updates.
        train_characters_per_token: of the training part, or None where that is not known.
        characters_per_token: of the newest evaluation.
    """

    train_characters_per_token: float | None = None
    train: list[Point] = field(default_factory=list)
    val: list[Point] = field(default_factory=list)
    early: set[int] = field(default_factory=set)
    samples: list[SampleLine] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    changes: list[tuple[int, str]] = field(default_factory=list)
    n_events: int = 0
    characters_per_token: float = 1.0
    updates: Updates = field(default_factory=lambda: Updates(), compare=False)
    _train_thinner: _Thinner = field(default_factory=lambda: _Thinner(), compare=False)
    _val_thinner: _Thinner = field(default_factory=lambda: _Thinner(), compare=False)

    def add(self, lines: Sequence[AnyLine]) -> None:
        """Take in lines. One at an earlier step makes what was ahead of it forgotten: the run was
        resumed from there, and does those steps again."""
        steps = [self._newest(), *(line.step for line in lines)]
        # Cut where a run was resumed, and take the rest in bulk: a log has a million lines.
        cuts = [0, *(i for i, ascends in enumerate(map(le, steps, steps[1:])) if not ascends)]
        for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True):
            if start < end:
                self._forget_after(lines[start].step)
                self._extend(lines[start:end])

    def _extend(self, lines: Sequence[AnyLine]) -> None:
        """Take in lines whose steps ascend."""
        updates = [line for line in lines if type(line) is StepLine]
        if len(updates) < len(lines):
            for line in lines:
                match line:
                    case EvalLine(whole=False):
                        self._add_evaluation(line)
                    case SampleLine():
                        self._add_sample(line)
                    case EventLine() if line.message:
                        self.events.append(line.message[:LONGEST_TEXT])
                        self.n_events += 1
                        del self.events[:-MOST_EVENTS]
                        if line.setting:
                            self.changes.append((line.step, line.setting))
                            del self.changes[:-MOST_EVENTS]
        if not updates:
            return
        factor = self.train_characters_per_token or self.characters_per_token
        losses = [line.loss for line in updates]
        if None in losses:
            updates = [u for u in updates if u.loss is not None or "loss" in u.nonfinite]
            losses = [u.loss for u in updates]
        points = {
            update.step: math.nan if loss is None else loss / factor
            for update, loss in zip(updates, losses, strict=True)
        }
        if self.train and self.train[-1][0] in points:
            self.train.pop()
        self.train += points.items()
        if len(self.train) > MOST_POINTS:
            self._train_thinner.thin(self.train)
        self.updates.extend(updates)

    def _newest(self) -> int:
        ends = [s[-1][0] for s in (self.train, self.val) if s]
        return max([*ends, *(s.step for s in self.samples[-1:])], default=0)

    def _forget_after(self, step: int) -> None:
        for series in (self.train, self.val):
            del series[bisect_left(series, (step + 1,)) :]
        self.updates.forget_after(step)
        while self.samples and self.samples[-1].step > step:
            self.samples.pop()
        while self.changes and self.changes[-1][0] > step:
            self.changes.pop()

    def _add_evaluation(self, line: EvalLine) -> None:
        measured = characters_per_token(line.val_loss, line.val_loss_per_character)
        if measured and math.isfinite(measured):
            self.characters_per_token = measured
        loss = line.val_loss_per_character
        if loss is None:
            loss = per_character(line.val_loss, self.characters_per_token)
        if self.val and self.val[-1][0] == line.step:
            self.val.pop()
        self.early.discard(line.step)
        if line.early and len(self.early) < MOST_SAMPLES:
            self.early.add(line.step)
        if loss is not None:
            self.val.append((line.step, loss))
            if len(self.val) > MOST_POINTS:
                self._val_thinner.thin(self.val)
        elif {"val_loss", "val_loss_per_character"} & set(line.nonfinite):
            self.val.append((line.step, math.nan))

    def _add_sample(self, line: SampleLine) -> None:
        if self.samples and self.samples[-1].step == line.step:
            self.samples.pop()
        short = {"prompt": line.prompt[:LONGEST_TEXT], "text": line.text[:LONGEST_TEXT]}
        self.samples.append(msgspec.structs.replace(line, **short))
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[1:-1:2]


MOST_GROUPS = 2000
"""Groups of updates of which more are put together two by two."""


class Updates:
    """How the updates of a run went, in groups of so many steps that memory is bounded.

    Attributes:
        steps: the last step of each group.
        learning_rates: of that step.
        grad_norms: the largest of the group, before clipping; NaN where none was finite.
        seconds: mean time of an update of the group.
        elapsed: seconds spent on all updates up to that step.
    """

    def __init__(self) -> None:
        self.steps = array("q")
        self.learning_rates = array("d")
        self.grad_norms = array("d")
        self.seconds = array("d")
        self.elapsed = array("d")
        self._size = 1

    def extend(self, lines: Sequence[StepLine]) -> None:
        """Take in updates whose steps ascend, in place of those known from the first of them on."""
        if lines:
            self.forget_after(lines[0].step - 1)
        for start in range(0, len(lines), self._size):
            self._add(lines[start : start + self._size])
        while len(self.steps) > MOST_GROUPS:
            self._halve()

    def _add(self, group: Sequence[StepLine]) -> None:
        last = group[-1]
        norms = [line.grad_norm for line in group if line.grad_norm is not None]
        spent = sum(line.seconds or 0.0 for line in group)
        self.steps.append(last.step)
        self.learning_rates.append(math.nan if last.learning_rate is None else last.learning_rate)
        self.grad_norms.append(max(norms, default=math.nan))
        self.seconds.append(spent / len(group))
        self.elapsed.append(spent + (self.elapsed[-1] if self.elapsed else 0.0))

    def forget_after(self, step: int) -> None:
        """Forget what was ahead of a step that a run was resumed from."""
        kept = bisect_right(self.steps, step)
        for column in (
            self.steps,
            self.learning_rates,
            self.grad_norms,
            self.seconds,
            self.elapsed,
        ):
            del column[kept:]

    def _halve(self) -> None:
        odd = len(self.steps) % 2
        pairs = zip(self.grad_norms[odd::2], self.grad_norms[odd + 1 :: 2], strict=True)
        self.grad_norms[odd:] = array("d", [max(pair) for pair in pairs])
        pairs = zip(self.seconds[odd::2], self.seconds[odd + 1 :: 2], strict=True)
        self.seconds[odd:] = array("d", [sum(pair) / 2 for pair in pairs])
        self.steps[odd:] = self.steps[odd + 1 :: 2]
        self.learning_rates[odd:] = self.learning_rates[odd + 1 :: 2]
        self.elapsed[odd:] = self.elapsed[odd + 1 :: 2]
        self._size *= 2


class _Thinner:
    """Thins a curve in place, ever coarser as it grows."""

    def __init__(self) -> None:
        self._steps = 1
        self._done = 0

    def thin(self, points: list[Point]) -> None:
        """Keep the extremes of every few steps, so that at most `MOST_POINTS` / 2 points stay."""
        done = min(self._done, len(points))
        # The newest points stay as they are: a curve is read at its end.
        end = len(points) - MOST_POINTS // 8
        points[done:end] = self._thinned(points[done:end])
        while len(points) > MOST_POINTS // 2:
            self._steps *= 2
            end = len(points) - MOST_POINTS // 8
            points[:end] = self._thinned(points[:end])
        self._done = len(points) - MOST_POINTS // 8

    def _thinned(self, points: Sequence[Point]) -> list[Point]:
        kept: list[Point] = []
        start, size = 0, self._steps
        while start < len(points):
            limit = (points[start][0] // size + 1) * size
            end = bisect_left(points, (limit,), start)
            kept += _extremes(points[start:end])
            start = end
        return kept


def _extremes(points: Sequence[Point]) -> Sequence[Point]:
    if len(points) <= 2:
        return points
    values = [value for _, value in points]
    if math.isfinite(sum(values)):
        ends = {values.index(min(values)), values.index(max(values))}
    else:
        finite = [i for i, value in enumerate(values) if math.isfinite(value)]
        ends = {next(i for i, value in enumerate(values) if not math.isfinite(value))}
        if finite:
            ends |= {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)}
    return [points[i] for i in sorted(ends)]
