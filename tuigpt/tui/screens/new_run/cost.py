"""What the chosen training will cost: reckoned at once, timed in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from textual import work
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuigpt.child import child_command
from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.estimate import Calibration, Reading, needed_bytes, reading
from tuigpt.reports import TextFacts, read_cost
from tuigpt.tui.process import asked, complaint
from tuigpt.tui.screens.new_run.text_preview import LABEL_WIDTH
from tuigpt.wording import duration, file_size, short_count, step_time, times

ESTIMATE = child_command("tuigpt", "estimate", "--json")
"""The command that times some steps."""

SETTLED_AFTER = 0.5
"""Seconds without a change after which they are timed: it takes all of the machine."""

_NO_MATTER = ("--max-steps=", "--minutes=", "--learning-rate=", "--seed=", "--checkpoint-interval=")
"""Settings that do not change how long a step takes."""


class Cost(Static):
    """Shows parameters, memory and length of a training; a timing of older settings is ended."""

    class Timed(Message):
        """Some steps were timed, so that the training can be reckoned anew.

        Attributes:
            device_type: of the device that they were timed on, "cpu", "cuda" or "mps".
        """

        def __init__(self, device_type: str) -> None:
            super().__init__()
            self.device_type = device_type

    DEFAULT_CSS = "Cost { height: 2; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self._figures = ""
        self._train_config = TrainConfig()
        self._arguments: tuple[str, ...] = ()
        self._timed: tuple[str, ...] = ()
        self._timing: Calibration | None = None
        self._device, self._device_type = "cpu", "cpu"  # until a trial tells

    def reckon(
        self,
        model: GPTConfig,
        train_config: TrainConfig,
        text: TextFacts | None,
        arguments: Sequence[str],
    ) -> Reading | None:
        """Show what needs no trial.

        Args:
            text: the facts that `tuigpt inspect` tells, if they are known yet; the model's
                vocabulary is the text's then.
            arguments: of `tuigpt estimate`, for the trial.

        Returns:
            how often the text is read, if that is known.
        """
        self._arguments = tuple(arguments)
        if self._what_matters() != self._timed:
            self._end_trial()
        minutes, timing = train_config.minutes, self._timing
        if minutes and timing is not None:
            steps = timing.steps_within(60 * minutes, train_config)
            train_config = replace(train_config, max_steps=steps)
        self._train_config = train_config
        need = file_size(needed_bytes(model, train_config, self._device_type))
        about = "" if text else "about "
        self._figures = f"{about}{short_count(model.n_params)} parameters · {need} or more"
        found = None
        unknown = minutes and timing is None
        if text and not unknown and (train_config.tokenizer == "char" or text.unit == "tokens"):
            found = reading(model, train_config, text.train, text.train_characters)
            self._figures += f" · text read {times(found.epochs)}"
        self._show_time()
        return found

    def time(self) -> None:
        """Time some steps of the training that is shown, unless that is done or under way."""
        if self._what_matters() != self._timed:
            self._timed = self._what_matters()
            self._try()

    def forget(self) -> None:
        """Show nothing, and end a trial under way."""
        self._end_trial()
        self.update("")

    def _what_matters(self) -> tuple[str, ...]:
        return tuple(a for a in self._arguments if not a.startswith(_NO_MATTER))

    def _end_trial(self) -> None:
        self._timed, self._timing = (), None
        self.workers.cancel_node(self)

    @work(exclusive=True, group="estimate")
    async def _try(self) -> None:
        self._show(Content.styled("timing a few steps …", "$foreground-muted"))
        await asyncio.sleep(SETTLED_AFTER)
        try:
            async with asked([*ESTIMATE, *self._arguments]) as process:
                assert process.stdout is not None
                told = await process.stdout.read()
                if not told.strip():
                    self._show(Content.styled(await complaint(process), "$text-error"))
                    return
                report = read_cost(told)
        except (OSError, ValueError) as error:
            self._show(Content.styled(f"cannot time a step: {error}", "$text-error"))
            return
        if report.problem:
            self._show(Content.styled(report.problem, "$text-error"))
            return
        self._timing = report.calibration
        self._device, self._device_type = report.device, report.device_type
        self.post_message(self.Timed(self._device_type))

    def _show_time(self) -> None:
        if self._timing is None:
            busy = bool(self._timed)
            self._show(Content.styled("timing a few steps …" if busy else "", "$foreground-muted"))
            return
        config = self._train_config
        seconds = self._timing.seconds(config)
        step = step_time(self._timing.step_seconds)
        length = f"{config.max_steps:,} steps in " if config.minutes else ""
        self._show(Content(f"{length}{duration(seconds)} in all: {step} a step on {self._device}"))

    def _show(self, time: Content) -> None:
        rows = (("cost", Content(self._figures)), ("time", time))
        labelled = [
            Content.assemble((f"{label:>{LABEL_WIDTH}}  ", "$foreground-muted"), words)
            for label, words in rows
        ]
        self.update(Content("\n").join(labelled))
