"""What a run's log adds up to: its curves, samples and events, in bounded memory."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import le
from typing import cast, overload

import msgspec

from tuigpt.loss import characters_per_token, per_character
from tuigpt.runs.metrics import AnyLine, EvalLine, EventLine, SampleLine, StepLine

MOST_UPDATES = 2_000_000
MOST_EVALUATIONS = 20_000
"""Points of the train and the val curve from which on they are thinned."""

MOST_SAMPLES = 1000
MOST_EVENTS = 1000
LONGEST_TEXT = 20_000
"""Characters of a sample or an event that are kept."""

Point = tuple[int, float]


class Points(Sequence[Point]):
    """A curve in order of its steps, 16 bytes a point.

    Of too many points the lowest and the highest of every four stay, and those that are not a
    number, so that no spike is ever lost; the newest stay as they are.

    Attributes:
        steps: ascending.
        values: one a step.
    """

    def __init__(self, most: int) -> None:
        """
        Args:
            most: how many points are kept.
        """
        self.steps = array("q")
        self.values = array("d")
        self._most = most

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, place: int) -> Point: ...

    @overload
    def __getitem__(self, place: slice) -> list[Point]: ...

    def __getitem__(self, place: int | slice) -> Point | list[Point]:
        if isinstance(place, slice):
            return list(zip(self.steps[place], self.values[place], strict=True))
        return self.steps[place], self.values[place]

    def __iter__(self) -> Iterator[Point]:
        return zip(self.steps, self.values, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def extend(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Add points whose steps ascend, in place of those known from the first of them on."""
        if self.steps and steps and steps[0] <= self.steps[-1]:
            self.forget_after(steps[0] - 1)
        self.steps.extend(steps)
        self.values.extend(values)
        while len(self.steps) > self._most:
            self._thin()

    def forget_after(self, step: int) -> None:
        """Forget the points of later steps."""
        kept = bisect_right(self.steps, step)
        del self.steps[kept:], self.values[kept:]

    def _thin(self) -> None:
        end = len(self.steps) - self._most // 8
        kept: list[int] = []
        for start in range(0, end, 4):
            group = range(start, min(start + 4, end))
            finite = [i for i in group if math.isfinite(self.values[i])]
            ends = {i for i in group if i not in finite}
            if finite:
                ends |= {min(finite, key=self.values.__getitem__),
                         max(finite, key=self.values.__getitem__)}  # fmt: skip
            kept += sorted(ends)
        self.steps[:end] = array("q", [self.steps[i] for i in kept])
        self.values[:end] = array("d", [self.values[i] for i in kept])


@dataclass
class History:
    """The series of a run, built from its log's lines in order.

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
    train: Points = field(default_factory=lambda: Points(MOST_UPDATES))
    val: Points = field(default_factory=lambda: Points(MOST_EVALUATIONS))
    early: set[int] = field(default_factory=set)
    samples: list[SampleLine] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    changes: list[tuple[int, str]] = field(default_factory=list)
    n_events: int = 0
    characters_per_token: float = 1.0
    updates: Updates = field(default_factory=lambda: Updates(), compare=False)

    def add(self, lines: Sequence[AnyLine]) -> None:
        """Take in lines. One at an earlier step makes what was ahead of it forgotten: the run was
        resumed from there, and does those steps again."""
        steps = [self._newest(), *[line.step for line in lines]]
        if steps == sorted(steps):
            self._extend(lines)
            return
        cuts = [i for i, ascends in enumerate(map(le, steps, steps[1:])) if not ascends]
        for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
            if start < end:
                self._forget_after(lines[start].step)
                self._extend(lines[start:end])

    def _extend(self, lines: Sequence[AnyLine]) -> None:
        """Take in lines whose steps ascend: a log has a million, so what most are goes in bulk."""
        updates = [line for line in lines if type(line) is StepLine]
        if len(updates) < len(lines):
            for line in lines:
                if type(line) is not StepLine:
                    self._add(line)
        steps = [update.step for update in updates]
        if len(set(steps)) < len(steps):  # some were done again
            updates = list({update.step: update for update in updates}.values())
        try:
            losses = array("d", cast("list[float]", [update.loss for update in updates]))
        except TypeError:  # at least one has none
            updates = [u for u in updates if u.loss is not None or "loss" in u.nonfinite]
            losses = array("d", [_or_nan(update.loss) for update in updates])
        if not updates:
            return
        if len(steps) != len(updates):
            steps = [update.step for update in updates]
        factor = self.train_characters_per_token or self.characters_per_token
        if factor != 1:
            losses = array("d", [loss / factor for loss in losses])
        self.train.extend(array("q", steps), losses)
        self.updates.extend(updates)

    def _add(self, line: AnyLine) -> None:
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

    def _newest(self) -> int:
        ends = [s.steps[-1] for s in (self.train, self.val) if s]
        return max([*ends, *(s.step for s in self.samples[-1:])], default=0)

    def _forget_after(self, step: int) -> None:
        for series in (self.train, self.val, self.updates):
            series.forget_after(step)
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
        if loss is None and {"val_loss", "val_loss_per_character"} & set(line.nonfinite):
            loss = math.nan
        self.early.discard(line.step)
        if line.early and len(self.early) < MOST_SAMPLES:
            self.early.add(line.step)
        if loss is not None:
            self.val.extend([line.step], [loss])

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
        memories: bytes in use on the GPU; NaN without one.
    """

    def __init__(self) -> None:
        self.steps = array("q")
        self.learning_rates = array("d")
        self.grad_norms = array("d")
        self.seconds = array("d")
        self.elapsed = array("d")
        self.memories = array("d")
        self._size = 1

    def extend(self, lines: Sequence[StepLine]) -> None:
        """Take in updates whose steps ascend, in place of those known from the first of them on."""
        if lines:
            self.forget_after(lines[0].step - 1)
        while len(self.steps) + math.ceil(len(lines) / self._size) > MOST_GROUPS:
            self._halve()
        norms = [math.nan if line.grad_norm is None else line.grad_norm for line in lines]
        seconds = [line.seconds or 0.0 for line in lines]
        elapsed = self.elapsed[-1] if self.elapsed else 0.0
        for start in range(0, len(lines), self._size):
            group = slice(start, min(start + self._size, len(lines)))
            last, spent = lines[group.stop - 1], sum(seconds[group])
            elapsed += spent
            self.steps.append(last.step)
            self.learning_rates.append(_or_nan(last.learning_rate))
            self.grad_norms.append(_highest(norms[group]))
            self.seconds.append(spent / (group.stop - start))
            self.elapsed.append(elapsed)
            self.memories.append(_or_nan(last.gpu_memory))

    def forget_after(self, step: int) -> None:
        """Forget what was ahead of a step that a run was resumed from."""
        kept = bisect_right(self.steps, step)
        for column in (
            self.steps,
            self.learning_rates,
            self.grad_norms,
            self.seconds,
            self.elapsed,
            self.memories,
        ):
            del column[kept:]

    def _halve(self) -> None:
        odd = len(self.steps) % 2
        pairs = zip(self.grad_norms[odd::2], self.grad_norms[odd + 1 :: 2], strict=True)
        self.grad_norms[odd:] = array("d", map(_highest, pairs))
        pairs = zip(self.seconds[odd::2], self.seconds[odd + 1 :: 2], strict=True)
        self.seconds[odd:] = array("d", [sum(pair) / 2 for pair in pairs])
        self.steps[odd:] = self.steps[odd + 1 :: 2]
        self.learning_rates[odd:] = self.learning_rates[odd + 1 :: 2]
        self.elapsed[odd:] = self.elapsed[odd + 1 :: 2]
        self.memories[odd:] = self.memories[odd + 1 :: 2]
        self._size *= 2


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _highest(values: Sequence[float]) -> float:
    """The highest number; NaN where none is one."""
    if math.isfinite(sum(values)):
        return max(values)
    return max((value for value in values if not math.isnan(value)), default=math.nan)
