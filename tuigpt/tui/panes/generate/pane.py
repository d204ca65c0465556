"""The generate pane: prompt in, streaming text out, with the sliders that shape it."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import ClassVar, Protocol

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Input, Label, Static

from tuigpt.config import SampleConfig, parse_field
from tuigpt.errors import ConfigError
from tuigpt.generation.client import GeneratorClient
from tuigpt.generation.protocol import Done, Failed, Loading, Report, Started, Tokens
from tuigpt.runs.folder import Checkpoint
from tuigpt.tui.messages import OpenCheckpoint
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.prompt_box import PromptBox
from tuigpt.tui.widgets.slider import Slider
from tuigpt.tui.widgets.transcript import Transcript
from tuigpt.wording import one_line, symbols_shown

NO_CHECKPOINT = (
    "No model is open yet. Train one with ctrl+n: its first checkpoint opens here by itself."
    " Or choose one in the checkpoints, ctrl+o."
)
READY = "Type a beginning, such as ROMEO: and press enter. The model goes on from there."
POET_READY = (
    "The poet is open: a model that comes with tuigpt and has learned from Shakespeare's plays."
    " Type a beginning, such as ROMEO: and press enter; it goes on from there. ctrl+n trains a"
    " model of your own."
)

DEFAULTS = SampleConfig()


class Writer(Protocol):
    """What writes texts: the generator process, or a stand-in."""

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def generate(
        self, checkpoint: Path, prompt: str, config: SampleConfig
    ) -> AsyncGenerator[Report, None]: ...


class GeneratePane(Pane):
    """A transcript, the sampling settings and a prompt box; it owns the generator process."""

    BINDING_GROUP_TITLE = "Generate"
    HELP = """\
Type the beginning of a text and press [b]enter[/b]: the open model continues it. [b]esc[/b] stops \
it and keeps what is written.

[b]temperature[/b]  0 always takes the likeliest token, 1 draws as learned, more is wilder.
[b]top-k[/b]        only the k likeliest tokens may be drawn; 0 is off.
[b]seed[/b]         the same seed, settings and checkpoint write the same text again. Left empty, \
each text gets a seed of its own, which stands below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", id="generate.stop",
                tooltip="Stop writing and keep the text"),
        Binding("ctrl+y", "copy", "copy text", id="generate.copy", priority=True,
                tooltip="Copy the newest text, prompt included, exactly as written"),
        Binding("f6", "open_offer", "open newer", id="generate.open-newer", show=False,
                priority=True,  # else the prompt selects a line
                tooltip="Write with the newer checkpoint that is offered"),
    ]  # fmt: skip

    writing: reactive[bool] = reactive(False, bindings=True)

    def __init__(self, entry: PaneEntry, session: Session, writer: Writer | None = None) -> None:
        """
        Args:
            writer: None for a generator process.
        """
        super().__init__(entry, session)
        self._generator = writer or GeneratorClient(session.home)
        self._transcript = Transcript(id="transcript", placeholder=NO_CHECKPOINT)
        self._doing = Static(id="doing", markup=False)
        self._offer = Static(id="offer", markup=False)
        self._length = Input(
            str(DEFAULTS.max_new_tokens), id="length", compact=True, restrict=r"\d{0,7}",
            tooltip="How many tokens to write",
        )  # fmt: skip
        self._seed = Input(
            placeholder="a new one each time", id="seed", compact=True, restrict=r"\d{0,18}",
            tooltip="The same seed writes the same text again; empty draws one each time",
        )  # fmt: skip
        self._temperature = Slider(
            0.0, 2.0, step=0.05, value=DEFAULTS.temperature, label="temperature",
            id="temperature", tooltip="0 = always the likeliest, 1 = as learned, more = wilder",
        )  # fmt: skip
        self._top_k = Slider(
            0, 65, step=1, value=DEFAULTS.top_k, label="top-k", format="{:d}", off_at=0,
            id="top-k", tooltip="Only the k likeliest tokens may be drawn",
        )  # fmt: skip
        self._prompt = PromptBox(id="prompt", placeholder="type a beginning …")
        self._shown: Checkpoint | None = None
        self._written = ""
        self._config = DEFAULTS
        self._label = ""

    def compose(self) -> ComposeResult:
        yield self._transcript
        yield self._doing
        with Horizontal(id="sliders"):
            yield self._temperature
            yield self._top_k
        with Horizontal(id="settings"):
            yield Label("length")
            yield self._length
            yield Label("seed")
            yield self._seed
        yield self._offer
        yield self._prompt

    async def on_unmount(self) -> None:
        await self._generator.close()

    # --- the open checkpoint ---

    def show(self) -> None:
        checkpoint, offer = self.session.checkpoint, self.session.offer
        if checkpoint != self._shown or not self._prompt.border_title:
            self._name_checkpoint(checkpoint)
        words = f"{one_line(offer.label)} is new: f6 opens it" if offer else ""
        if words != self._offer.content:
            self._offer.update(words)
            self._offer.display = bool(words)
            self.refresh_bindings()

    def _name_checkpoint(self, checkpoint: Checkpoint | None) -> None:
        self._shown = checkpoint
        self.name_subject(checkpoint.label if checkpoint else "")
        ready = POET_READY if checkpoint and checkpoint.built_in else READY
        self._transcript.placeholder = ready if checkpoint else NO_CHECKPOINT
        label = one_line(checkpoint.label) if checkpoint else "no model open"
        self._prompt.border_title = Content(label)
        if checkpoint:
            self._top_k.maximum = checkpoint.vocab_size
            self._warm_up()

    @work(group="warm-up", exclusive=True)
    async def _warm_up(self) -> None:
        await self._generator.warm_up()

    def action_open_offer(self) -> None:
        if self.session.offer is not None:
            self.post_message(OpenCheckpoint(self.session.offer))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "stop":
                return self.writing
            case "open_offer":
                return self.session.offer is not None
        return True

    # --- writing ---

    @on(PromptBox.Sent)
    def _send(self, event: PromptBox.Sent) -> None:
        event.stop()
        checkpoint = self.session.checkpoint
        if checkpoint is None:
            self.app.notify("no model is open yet: train one with ctrl+n", severity="warning")
            return
        try:
            config = self._settings()
        except ConfigError as error:
            self.app.notify(str(error), severity="error")
            return
        self._begin(checkpoint, config)
        self._write(checkpoint, event.text, config)

    def _settings(self) -> SampleConfig:
        seed = self._seed.value
        return SampleConfig(
            max_new_tokens=parse_field(SampleConfig, "max_new_tokens", self._length.value),
            temperature=float(self._temperature.value),
            top_k=int(self._top_k.value),
            seed=parse_field(SampleConfig, "seed", seed) if seed else random.randrange(10**6),
        )

    @work(group="write", exclusive=True)
    async def _write(self, checkpoint: Checkpoint, prompt: str, config: SampleConfig) -> None:
        async with aclosing(self._generator.generate(checkpoint.path, prompt, config)) as reports:
            async for report in reports:
                self._report(report)

    def _begin(self, checkpoint: Checkpoint, config: SampleConfig) -> None:
        """A text has been asked for; its reports follow."""
        self._stopped()
        self._config = config
        self._label = checkpoint.label
        self.writing = True
        self._transcript.start_entry()
        self._tell("waking the generator …")

    def _report(self, report: Report) -> None:
        """Take in what the generator tells of the text at hand."""
        match report:
            case Loading():
                self._tell("reading weights …")
            case Started():
                self._tell("")
                if report.dropped:
                    self._note(f"the model does not know {symbols_shown(report.dropped)}: left out")
                if report.out_of_sight:
                    self._note(f"the first {report.out_of_sight:,} tokens are out of its sight")
                self._written = report.prompt
                self._transcript.append(report.prompt, "prompt")
            case Tokens():
                self._written += report.text
                self._transcript.append(report.text)
            case Done():
                speed = report.count / report.seconds if report.seconds else 0.0
                self._close(f"{report.count:,} tokens, {speed:,.0f} a second")
            case Failed():
                self.writing = False
                self._tell("")
                self._transcript.end_line()
                self._transcript.append(f"{report.message}\n", "error")

    def _stopped(self) -> None:
        """The text at hand was stopped; what is written stays."""
        if self.writing:
            self._close("stopped")

    def _close(self, how: str) -> None:
        self.writing = False
        self._tell("")
        config = self._config
        top_k = config.top_k or "off"
        self._note(
            f"\n{how} · {self._label} · temperature {config.temperature:.2f} · top-k {top_k}"
            f" · seed {config.seed}"
        )

    def _note(self, text: str) -> None:
        self._transcript.append(f"{text}\n", "note")

    def _tell(self, text: str) -> None:
        """Say what is being waited for, below where the text will be."""
        self._doing.update(text)
        self._doing.display = bool(text)

    def action_stop(self) -> None:
        self.workers.cancel_group(self, "write")
        self._stopped()

    def action_copy(self) -> None:
        if not self._written:
            self.app.notify("there is no text to copy yet")
            return
        self.app.copy_to_clipboard(self._written)
        self.app.notify(f"copied {len(self._written):,} characters")
