"""What is being written, from asking for it to its end: one text, or several side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import Candidate, ConfigChanged, Failed, Report, Tokens, Window
from tuigpt.tui.messages import Acknowledged
from tuigpt.tui.panes.generate.entries import Entry
from tuigpt.tui.panes.generate.texts import ENDLESS, WrittenText
from tuigpt.tui.panes.generate.writer import Writer

if TYPE_CHECKING:
    from textual.timer import Timer

    from tuigpt.tui.panes.generate.texts_view import TextsView

PACE, LONGEST_WAIT = 120.0, 10.0
"""Tokens a second at which text appears, and the seconds that a long one is given at most."""

READING_PACE = 24.0
"""Tokens a second beside a training that needs the processor: letters as quickly as one reads.

Source: Brysbaert, "How many words do we read per minute?" (2019): 238, of five letters and a space.
"""

TOP = 12
"""How many of the likeliest next tokens are looked at."""

TELL_EVERY = 0.2
"""Least seconds between two times that facts and likeliest tokens are shown: nobody reads them
faster. They come together with new text wherever that comes as seldom."""

_FIRST_LETTERS = 0.04
"""Seconds at most that the app draws nothing for a text that begins, so that its first letters need
not wait until Textual draws again after it has drawn the entry without them: up to two frames."""

_MEASURE = 1.0
"""Seconds over which the speed is taken."""


class Writing:
    """Has the texts of one entry at a time written, and shows them as they come.

    Attributes:
        entry: what is being written, or None.
        hurried: whether it comes as fast as the model writes.
        calm: whether it is to leave the processor to a training.
        likeliest: what could have come in the place of the newest token.
    """

    def __init__(self, view: TextsView, writer: Writer) -> None:
        self._view, self._writer = view, writer
        self.entry: Entry | None = None
        self.hurried = self.calm = False
        self._texts: Sequence[WrittenText] = ()
        self._number: int | None = None
        self._usual = self._pace = 0.0  # without a training, and as it was asked for
        self.likeliest: list[Candidate] = []
        self._held = ExitStack()  # what keeps the app from drawing
        self._told: set[tuple[int, Window]] = set()
        self._told_at, self._untold = 0.0, False
        self._timer: Timer | None = None
        self._measured = (0.0, 0)
        self._speed: float | None = None

    def begin(self, entry: Entry, texts: Sequence[WrittenText]) -> None:
        """Have texts written side by side, or go on with one; what is being written is stopped.

        Args:
            texts: of the entry; several have seeds in a row, and are alike in all else.
        """
        self.stop()
        self._held.enter_context(self._view.app.batch_update())
        self._view.set_timer(_FIRST_LETTERS, self._let_draw)
        self._view.run_worker(self._write(entry, texts), group="write", exclusive=True)

    def stop(self) -> None:
        """Nothing more comes; what is written stays."""
        view = self._view
        view.workers.cancel_group(view, "write")
        entry = self.entry
        if entry is not None:
            self._end()
            for text in self._texts:
                text.stop()
            view.keeper.keep(entry, *self._texts)
            if view.is_attached:
                if not entry.text.started:
                    view.redraw(entry)
                view.show_rule(entry)
                view.post_message(view.Ended())

    def _let_draw(self) -> None:
        self._held.close()
        if self._view.is_attached:
            self._view.screen.check_idle()

    async def hurry(self) -> None:
        """Let the rest of the text come as fast as the model writes."""
        if self._number is not None:
            self.hurried = True
            self._view.refresh_bindings()
            await self._keep_pace()

    async def steer(self, config: SampleConfig) -> None:
        """Let the text go on with other settings; its length and seed stay."""
        if self._number is not None and self.entry is not None:
            text = self.entry.text
            length, seed = text.config.max_new_tokens, text.config.seed
            wanted = replace(config, max_new_tokens=length, seed=seed)
            await self._writer.set_config(self._number, wanted)

    def slowed(self, entry: Entry) -> bool:
        """Whether an entry is being written more slowly, because a run trains."""
        return entry is self.entry and self.calm and not self.hurried

    def speed(self, entry: Entry) -> float | None:
        """Tokens a second of an entry that is being written, where that tells of the model."""
        return self._speed if entry is self.entry else None

    async def _write(self, entry: Entry, texts: Sequence[WrittenText]) -> None:
        view, text = self._view, texts[0]
        self.entry, self._texts, self._number = entry, texts, None
        self._told_at = 0.0  # the first letters come with their facts
        self.hurried, self._speed = len(texts) > 1, None
        view.writing = True
        self._measured = (time.monotonic(), text.count)
        left = text.config.max_new_tokens - text.count
        self._usual = PACE if left >= ENDLESS // 2 else max(PACE, left / LONGEST_WAIT)
        self._pace = self._wanted_pace
        reports = self._writer.generate(
            text.checkpoint.path,
            text.prompt,
            text.config,
            samples=len(texts),
            window=text.window,
            forced_ids=list(text.ids),
            top_logprobs=0 if self.hurried else TOP,
            pace=self._pace,
        )
        self._timer = view.set_interval(TELL_EVERY, self._tell_late)
        async with aclosing(reports):
            async for report in reports:
                self._take(entry, report)
                await self._keep_pace()
        self._tell()
        self._end()
        view.keeper.keep(entry, *texts)
        if not text.problem:
            view.post_message(view.Ended())
        view.show_rule(entry)

    @property
    def _wanted_pace(self) -> float:
        """Tokens a second as things are now; 0 for as many as the model writes."""
        if self.hurried:
            return 0.0
        return READING_PACE if self.calm else self._usual

    async def _keep_pace(self) -> None:
        """Let the text go on at another pace, if things have changed."""
        pace = self._wanted_pace
        if self._number is not None and pace != self._pace:
            self._pace, self._speed = pace, None
            self._measured = (time.monotonic(), sum(text.count for text in self._texts))
            await self._writer.set_pace(self._number, pace)

    def _take(self, entry: Entry, report: Report) -> None:
        """Take in what the generator tells of the texts that it writes."""
        view, texts = self._view, self._texts
        self._number = report.id
        for text in texts if not isinstance(report, Tokens) else [texts[report.sample]]:
            if isinstance(report, ConfigChanged):
                report = msgspec.structs.replace(
                    report, config=replace(report.config, seed=text.config.seed)
                )
            parts = text.take(report)
            if isinstance(report, Failed) and text.count:
                text.stopped = True
            if text is entry.text:
                for style, words in parts:
                    view.append(words, style, entry.number)
        if isinstance(report, Tokens):
            if report.logprobs:
                self.likeliest = report.logprobs[-1].top_logprobs
            self._measure()
            self._tell_context(entry.text)
            self._untold = True
            self._tell_after(TELL_EVERY)
            self._let_draw()
        else:
            self._tell()

    def _tell_context(self, text: WrittenText) -> None:
        """Say once of each model and window what happens past the context."""
        size = text.checkpoint.block_size
        if text.past_context and (size, text.window) not in self._told:
            self._told.add((size, text.window))
            seen = f"{size:,}" if text.window == "sliding" else f"{max(1, size // 2):,} to {size:,}"
            words = f"past the context: it sees the newest {seen} tokens"
            self._view.post_message(Acknowledged(words))

    def _tell_late(self) -> None:
        """Show what no new text has brought along: what the newest has changed, or a setting."""
        self._tell_after(TELL_EVERY if self._untold else 2 * TELL_EVERY)

    def _tell_after(self, seconds: float) -> None:
        """Show what there is to know, if that is so many seconds old."""
        now = time.monotonic()
        if now - self._told_at >= seconds:
            self._told_at = now
            self._tell()

    def _tell(self) -> None:
        """Show what there is to know of the text as it stands."""
        view, self._untold = self._view, False
        if self.entry is not None:
            view.show_rule(self.entry)
        view.grown += 1

    def _end(self) -> None:
        self._let_draw()
        if self._timer is not None:
            self._timer.stop()
        self.entry, self._timer, self.likeliest = None, None, []
        if self._view.is_attached:  # the end of the app is no time to tell of it
            self._view.writing = False

    def _measure(self) -> None:
        since, count = self._measured
        now = time.monotonic()
        if now - since >= _MEASURE:
            written = sum(text.count for text in self._texts)
            speed = (written - count) / (now - since)
            # The pace that it is held to would say nothing of the model.
            self._speed = speed if self.hurried or speed < 0.8 * self._pace else None
            self._measured = (now, written)
