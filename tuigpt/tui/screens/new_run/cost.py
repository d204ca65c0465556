"""How long the chosen training takes, timed by `tuigpt estimate` in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual import work
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuigpt.child import child_command
from tuigpt.config import TrainConfig
from tuigpt.estimate import needed_bytes
from tuigpt.plan.speeds import Expected
from tuigpt.reports import CostReport, read_cost
from tuigpt.tui.process import asked, complaint
from tuigpt.tui.screens.new_run.prospect import Prospect
from tuigpt.wording import duration, file_size, short_count, step_time, times

ESTIMATE = child_command("tuigpt", "estimate", "--json")
"""The command that times some steps."""

SETTLED_AFTER = 0.5
"""Seconds without a change after which they are timed: it takes all of the machine."""

_NO_MATTER = (
    "--max-steps=", "--patience=", "--learning-rate=", "--seed=",
    "--checkpoint-interval=", "--evolution-mb=",
)  # fmt: skip
"""Settings that do not change how long a step takes."""


class Cost(Static):
    """Two lines on a training: what it is and needs, and how long it takes.

    Attributes:
        problem: why the settings that were timed cannot be trained, or "".
    """

    class Timed(Message):
        """Some steps were timed, or could not be.

        Attributes:
            report: what was told; its `problem` says why no such run can start.
        """

        def __init__(self, report: CostReport) -> None:
            super().__init__()
            self.report = report

    class Failed(Message):
        """Nothing could be timed; the training may go well all the same."""

        def __init__(self, problem: str) -> None:
            super().__init__()
            self.problem = problem

    DEFAULT_CSS = "Cost { height: 2; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self.problem = ""
        self._timed: tuple[str, ...] = ()
        self._is_timing = False

    def show(self, prospect: Prospect) -> None:
        """Show what is known of a training."""
        model, expected, found = prospect.model, prospect.expected, prospect.read
        device = expected.device if expected else None
        need = file_size(needed_bytes(model, prospect.train, device.type if device else "cpu"))
        of_all = f" of {file_size(device.memory)}" if device else ""
        reads = [f"reads the text {times(found.epochs)}"] if found is not None else []
        if (plan := prospect.plan) is not None:  # its size stands in its row
            chosen = [f"context {model.block_size}", f"batch {plan.train.batch_size}"]
            parts = [*chosen, f"weight decay {plan.train.weight_decay:g}", *reads]
        else:
            size = f"{'' if found else 'about '}{short_count(model.n_params)} parameters"
            parts = [size, *reads, f"{need}{of_all} memory"]
        words = self._time(prospect.train, expected)
        self.update(Content.assemble(" · ".join(parts), "\n", words))

    def _time(self, config: TrainConfig, expected: Expected | None) -> Content:
        if expected is None:
            waiting = "timing a few steps …" if self._is_timing else "not timed yet"
            return Content.styled(waiting, "$foreground-muted")
        seconds = duration(expected.calibration.seconds(config))
        step = step_time(expected.calibration.step_seconds)
        most = "at most " if config.patience else ""
        about = "" if expected.measured else "about "
        words = f"{most}{about}{seconds}: {config.max_steps:,} steps, {step} each"
        words += f" on {expected.device.name}"
        note = "measured" if expected.measured else "from another size"
        note = "measuring again …" if self._is_timing and expected.measured else note
        note = "measuring …" if self._is_timing and not expected.measured else note
        return Content.assemble(words, (f", {note}", "$foreground-muted"))

    def time(self, arguments: Sequence[str]) -> None:
        """Time some steps, unless that is done or under way.

        Args:
            arguments: of `tuigpt estimate`.
        """
        matter = _what_matters(arguments)
        if matter != self._timed:
            self._timed, self._is_timing = matter, True
            self._try(arguments)

    def drop_other(self, arguments: Sequence[str]) -> None:
        """End a trial under way if it is of other settings than these."""
        if _what_matters(arguments) != self._timed:
            self.stop()

    def stop(self) -> None:
        """End a trial under way."""
        self._timed, self._is_timing, self.problem = (), False, ""
        self.workers.cancel_node(self)

    @work(exclusive=True, group="estimate")
    async def _try(self, arguments: Sequence[str]) -> None:
        await asyncio.sleep(SETTLED_AFTER)
        try:
            async with asked([*ESTIMATE, *arguments]) as process:
                assert process.stdout is not None
                told = await process.stdout.read()
                report = read_cost(told) if told.strip() else None
                problem = "" if report else await complaint(process)
        except (OSError, ValueError) as error:
            report, problem = None, f"cannot time a step: {error}"
        self._is_timing = False
        self.post_message(self.Timed(report) if report else self.Failed(problem))


def _what_matters(arguments: Sequence[str]) -> tuple[str, ...]:
    return tuple(a for a in arguments if not a.startswith(_NO_MATTER))
