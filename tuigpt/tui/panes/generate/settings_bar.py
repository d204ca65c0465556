"""How the next text is drawn: temperature and top-k, length, seed, and how many at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.events import Click, Resize
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from tuigpt.config import SampleConfig, parse_field
from tuigpt.errors import ConfigError, UserError
from tuigpt.generation.protocol import MAX_SAMPLES, Window, WindowSpeeds
from tuigpt.settings import Settings
from tuigpt.tui.keys import with_keys
from tuigpt.tui.panes.generate.texts import ENDLESS
from tuigpt.tui.panes.generate.writer import Writer
from tuigpt.tui.widgets.slider import Slider
from tuigpt.tui.widgets.value_box import ValueBox
from tuigpt.wording import short_count

if TYPE_CHECKING:
    from tuigpt.runs.folder import Checkpoint

DEFAULTS = SampleConfig()

QUIET = 1.0
"""Seconds without a change before what can wait is asked of the model."""

FIELDS_WIDTH = 49
"""Columns that length, seed and samples take side by side."""

PAST_CONTEXT = """\
The model sees {size:,} tokens at a time. A longer text is written with a rolling window, which \
forgets all but the newest {half:,} whenever it is full, or with the exact one, which always sees \
the newest {size:,} and reads them anew for each token. A click changes it, as \
{{generate.window}} does."""


class SettingsBar(Vertical):
    """Sliders and fields; they hold what the user wants, and give it as a config.

    Attributes:
        exact: whether a text past the model's context is written with the exact window.
    """

    DEFAULT_CSS = """
    SettingsBar {
        height: auto;
        & > #sliders, & > #finer { height: 1; }
        & > #finer { display: none; }
        &.-finer > #finer { display: block; }
        & Slider { width: 1fr; }
        & #temperature, & #top-p { margin-right: 3; }
        & > #fields { height: 1; layout: horizontal; }
        & > #fields Horizontal { height: 1; }
        & > #fields > .first { width: auto; }
        & > #fields Static { width: auto; color: $foreground 60%; padding-right: 1; }
        & > #fields #past { width: 1fr; padding: 0; text-wrap: nowrap; }
        & > #fields #length { width: 8; margin-right: 1; }
        & > #fields #seed { width: 14; margin-right: 1; }
        & > #fields #sample-count { width: 4; margin-right: 1; }
        &.-tight > #fields { height: 2; layout: vertical; }
        &.-tight > #fields > .first { width: 1fr; }
        &.-stacked > #sliders, &.-stacked > #finer { height: 2; layout: vertical; }
        &.-stacked #temperature, &.-stacked #top-p { margin-right: 0; }
    }
    """

    class Steered(Message):
        """A slider moved: the next token is drawn otherwise."""

    class Resized(Message):
        """Another length is wanted, or another window past the context."""

    def __init__(self, kept: Settings, writer: Writer, id: str | None = None) -> None:  # noqa: A002
        """
        Args:
            kept: what the user left it at.
            writer: tells how quick it is.
        """
        super().__init__(id=id)
        temperature = DEFAULTS.temperature if kept.temperature is None else kept.temperature
        top_k = DEFAULTS.top_k if kept.top_k is None else kept.top_k
        self.exact = False
        self._writer = writer
        self._speeds: dict[str, WindowSpeeds] = {}
        self._told: tuple[Checkpoint | None, str] = None, ""
        self._wanted_top_k = top_k
        self._temperature = Slider(
            0.0, 2.0, step=0.05, value=temperature, label="temperature",
            id="temperature", tooltip="0 = always the likeliest, 1 = as learned, more = wilder",
        )  # fmt: skip
        self._top_k = Slider(
            0, 65, step=1, value=min(65, top_k), label="top-k", format="{:d}", off_at=0,
            id="top-k", tooltip="Only the k likeliest tokens may be drawn",
        )  # fmt: skip
        self._top_p = Slider(
            0.05, 1.0, step=0.05, value=DEFAULTS.top_p, label="top-p", off_at=1.0,
            id="top-p", tooltip="Only the likeliest that add up to this share may be drawn",
        )  # fmt: skip
        self._min_p = Slider(
            0.0, 0.5, step=0.01, value=DEFAULTS.min_p, label="min-p", off_at=0.0, id="min-p",
            tooltip="Only those may be drawn that are at least this share as likely as the first",
        )  # fmt: skip
        self._length = ValueBox(
            str(kept.length or DEFAULTS.max_new_tokens), id="length", compact=True,
            restrict=r"\d{0,7}", name="generate: length",
            placeholder="endless",
            tooltip="How many tokens to write; empty: until it is stopped",
        )  # fmt: skip
        self._seed = ValueBox(
            placeholder="new each time", id="seed", compact=True, restrict=r"\d{0,18}",
            name="generate: seed",
            tooltip="The same seed writes the same text again; empty draws one each time",
        )  # fmt: skip
        self._samples = ValueBox(
            "1", id="sample-count", compact=True, restrict=r"\d{0,3}", placeholder="1",
            name="generate: number of samples",
            tooltip="How many texts to write at once, side by side, with seeds in a row",
        )  # fmt: skip
        self._past = Static(id="past", markup=False)

    def compose(self) -> ComposeResult:
        with Horizontal(id="sliders"):
            yield self._temperature
            yield self._top_k
        with Container(id="fields"):
            with Horizontal(classes="first"):
                yield Static("length")
                yield self._length
                yield Static("seed")
                yield self._seed
            with Horizontal():
                yield Static("samples")
                yield self._samples
                yield self._past

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < FIELDS_WIDTH, "-tight")
        self.call_after_refresh(lambda: self.tell_window(*self._told))

    @property
    def fields(self) -> Sequence[Widget]:
        """What can have the focus, in order."""
        finer = (self._top_p, self._min_p) if self.has_class("-finer") else ()
        return (
            self._temperature, self._top_k, *finer, self._length, self._seed, self._samples,
        )  # fmt: skip

    def to_keep(self) -> dict[str, object]:
        """What the next start of the app is to find again."""
        kept: dict[str, object] = {
            "temperature": round(float(self._temperature.value), 2),
            "top_k": self._wanted_top_k,
        }
        length = self._length.value
        return kept | {"length": int(length)} if length.isdigit() and int(length) else kept

    def fit(self, checkpoint: Checkpoint) -> None:
        """Let top-k go as far as the vocabulary: a smaller one pulls it down, a larger one lets it
        back up to where it was wanted."""
        wanted = self._wanted_top_k
        self._top_k.maximum = checkpoint.vocab_size
        self._top_k.value = min(wanted, checkpoint.vocab_size)
        self._wanted_top_k = wanted

    def config(self, seed: int | None = None) -> SampleConfig:
        """As the fields say.

        Args:
            seed: instead of the one in the field, or of a new one where the field is empty.

        Raises:
            ConfigError: a field holds what cannot be.
        """
        typed = self._seed.value
        if seed is None:
            seed = parse_field(SampleConfig, "seed", typed) if typed else random.randrange(10**6)
        length = self._length.value
        return SampleConfig(
            max_new_tokens=parse_field(SampleConfig, "max_new_tokens", length)
            if length
            else ENDLESS,
            temperature=float(self._temperature.value),
            top_k=int(self._top_k.value),
            top_p=float(self._top_p.value),
            min_p=float(self._min_p.value),
            seed=seed,
        )

    @property
    def samples(self) -> int:
        """How many texts are wanted.

        Raises:
            ConfigError: none, or too many.
        """
        samples = int(self._samples.value or 1)
        if not 1 <= samples <= MAX_SAMPLES:
            raise ConfigError("samples", samples, f"from 1 to {MAX_SAMPLES}")
        return samples

    def window(self, checkpoint: Checkpoint, config: SampleConfig, prompt: str) -> Window:
        """What the model sees of a text past its context."""
        size = checkpoint.block_size
        past = bool(size) and config.max_new_tokens + len(prompt) > size
        return "rolling" if past and not self.exact else "sliding"

    def tell_window(self, checkpoint: Checkpoint | None, prompt: str) -> None:
        """Say what becomes of a text that outgrows the context."""
        self._told = checkpoint, prompt
        ways = list[str]()
        size = checkpoint.block_size if checkpoint else 0
        if checkpoint and size and int(self._length.value or ENDLESS) + len(prompt) > size:
            how, other = ("exact", "rolling") if self.exact else ("rolling", "exact")
            ways = [f"{how} past {size:,} · {{generate.window}} {other}"]
            speeds = self._speeds.get(_model_of(checkpoint))
            if speeds is None:
                self._time_windows(checkpoint)
            else:
                each = {"exact": speeds.sliding, "rolling": speeds.rolling}
                now, then = (short_count(round(each[name])) for name in (how, other))
                ways = [
                    f"{how} {now}{unit}/s {{generate.window}} {other} {then}{unit}/s"
                    for unit in (" tokens", "")
                ]
            ways.append(f"{how} {{generate.window}} {other}")
            about = PAST_CONTEXT.format(size=size, half=max(1, size // 2))
            self._past.tooltip = with_keys(self, about)
        told = (with_keys(self, way) for way in ways)
        self._past.update(next((w for w in told if cell_len(w) <= self._past.size.width), ""))

    @work(group="speeds", exclusive=True)
    async def _time_windows(self, checkpoint: Checkpoint) -> None:
        """Find out how quickly a model writes past its context, once and at a quiet moment."""
        await asyncio.sleep(QUIET)
        with suppress(UserError):  # whoever writes with it is told
            speeds = await self._writer.window_speeds(checkpoint.path)
            self._speeds[_model_of(checkpoint)] = speeds
            self.tell_window(*self._told)

    async def show_finer(self) -> None:
        """Show top-p and min-p; or hide them and switch them off, as nothing acts unseen."""
        if not self._top_p.is_attached:
            sliders = Horizontal(self._top_p, self._min_p, id="finer")
            await self.mount(sliders, after="#sliders")
        if self.toggle_class("-finer").has_class("-finer"):
            self._top_p.focus()
            return
        if self._top_p.has_focus or self._min_p.has_focus:
            self._temperature.focus()
        self._top_p.value, self._min_p.value = DEFAULTS.top_p, DEFAULTS.min_p

    def change_window(self) -> None:
        """The exact window instead of the rolling one, or the other way round."""
        self.exact = not self.exact
        self.post_message(self.Resized())

    def step_temperature(self, count: int) -> str:
        """Move the slider; the settings in words."""
        self._temperature.action_step(count)
        k = f"k {int(self._top_k.value)}" if self._top_k.value else "no top-k"
        words = f"temperature {self._temperature.value:.2f}, {k}"
        finer = (slider for slider in (self._top_p, self._min_p) if slider.value != slider.off_at)
        return words + "".join(
            f", {slider.label.removeprefix('top-')} {slider.value:g}" for slider in finer
        )

    @on(Input.Changed, "#length")
    def _length_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Resized())

    @on(Slider.Changed)
    def _slid(self, event: Slider.Changed) -> None:
        event.stop()
        bounded = min(self._wanted_top_k, int(self._top_k.maximum))
        if event.slider is self._top_k and event.value != bounded:  # else the model's size did it
            self._wanted_top_k = int(event.value)
        self.post_message(self.Steered())

    def on_click(self, event: Click) -> None:
        if event.widget is self._past:
            self.change_window()


def _model_of(checkpoint: Checkpoint) -> str:
    """What all checkpoints of one model share."""
    return checkpoint.run or str(checkpoint.path)
