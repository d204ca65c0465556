"""The generate pane: prompt in, streaming text out, with the sliders that shape it."""

from __future__ import annotations

import random
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Input, Label, Static

from tuigpt.config import SampleConfig, parse_field
from tuigpt.errors import ConfigError
from tuigpt.generation.protocol import Done, Failed, Loading, Report, Started, Tokens
from tuigpt.runs.folder import Checkpoint
from tuigpt.tui.messages import StopWriting, Write
from tuigpt.tui.widgets.keys_in_order import Field
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


class GeneratePane(Vertical):
    """A transcript, the sampling settings and a prompt box."""

    BINDING_GROUP_TITLE = "Generate"
    HELP = """\
### Generate

Type the beginning of a text and press **enter**: the open model goes on from it.
**esc** stops it and keeps what is written.

- **temperature**: 0 always takes the likeliest character, 1 draws as learned, more is wilder.
- **top-k**: only the k likeliest characters may be drawn; 0 is off.
- **seed**: the same seed, settings and checkpoint write the same text again. Left empty, each text
  gets a seed of its own, which stands below it.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", id="generate.stop",
                tooltip="Stop writing and keep the text"),
        Binding("ctrl+y", "copy", "copy text", id="generate.copy", priority=True,
                tooltip="Copy the newest text, prompt included, exactly as written"),
    ]  # fmt: skip

    checkpoint: reactive[Checkpoint | None] = reactive(None)
    writing: reactive[bool] = reactive(False, bindings=True)

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.border_title = "^g Generate"
        self._transcript = Transcript(id="transcript", placeholder=NO_CHECKPOINT)
        self._doing = Static(id="doing", markup=False)
        self._written = ""
        self._config = DEFAULTS
        self._writer = ""

    def compose(self) -> ComposeResult:
        yield self._transcript
        yield self._doing
        with Horizontal(id="sliders"):
            yield Slider(
                0.0, 2.0, step=0.05, value=DEFAULTS.temperature, label="temperature",
                id="temperature",
                tooltip="0 = always the likeliest, 1 = as learned, more = wilder",
            )  # fmt: skip
            yield Slider(
                0, 65, step=1, value=DEFAULTS.top_k, label="top-k", format="{:d}", off_at=0,
                id="top-k", tooltip="Only the k likeliest characters may be drawn",
            )  # fmt: skip
        with Horizontal(id="settings"):
            yield Label("length")
            yield Field(
                str(DEFAULTS.max_new_tokens), id="length", compact=True, restrict=r"\d{0,7}",
                tooltip="How many characters to write",
            )  # fmt: skip
            yield Label("seed")
            yield Field(
                placeholder="a new one each time", id="seed", compact=True, restrict=r"\d{0,18}",
                tooltip="The same seed writes the same text again; empty draws one each time",
            )  # fmt: skip
        yield PromptBox(id="prompt", placeholder="type a beginning …")

    def watch_checkpoint(self, checkpoint: Checkpoint | None) -> None:
        title = f"^g Generate · {checkpoint.label}" if checkpoint else "^g Generate"
        self.border_title = Content(title)
        ready = POET_READY if checkpoint and checkpoint.built_in else READY
        self._transcript.placeholder = ready if checkpoint else NO_CHECKPOINT
        label = one_line(checkpoint.label) if checkpoint else "no model open"
        self.query_one("#prompt", PromptBox).border_title = Content(label)
        if checkpoint:
            self.query_one("#top-k", Slider).maximum = checkpoint.vocab_size

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.writing if action == "stop" else True

    @on(PromptBox.Sent)
    def _send(self, event: PromptBox.Sent) -> None:
        event.stop()
        try:
            config = self._settings()
        except ConfigError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.post_message(Write(event.text, config))

    def _settings(self) -> SampleConfig:
        seed = self.query_one("#seed", Input).value
        length = self.query_one("#length", Input).value
        return SampleConfig(
            max_new_tokens=parse_field(SampleConfig, "max_new_tokens", length),
            temperature=float(self.query_one("#temperature", Slider).value),
            top_k=int(self.query_one("#top-k", Slider).value),
            seed=parse_field(SampleConfig, "seed", seed) if seed else random.randrange(10**6),
        )

    def begin(self, config: SampleConfig) -> None:
        """A text has been asked for; its reports follow."""
        self.stopped()
        self._config = config
        self._writer = self.checkpoint.label if self.checkpoint else ""
        self.writing = True
        self._transcript.start_entry()
        self._tell("waking the generator …")

    def report(self, report: Report) -> None:
        """Take in what the generator tells of the text at hand."""
        match report:
            case Loading():
                self._tell("reading weights …")
            case Started():
                self._tell("")
                if report.dropped:
                    self._note(f"the model does not know {symbols_shown(report.dropped)}: left out")
                if report.out_of_sight:
                    self._note(f"the first {report.out_of_sight:,} characters are out of its sight")
                self._written = report.prompt
                self._transcript.append(report.prompt, "prompt")
            case Tokens():
                self._written += report.text
                self._transcript.append(report.text)
            case Done():
                speed = report.count / report.seconds if report.seconds else 0.0
                self._close(f"{report.count:,} characters, {speed:,.0f} a second")
            case Failed():
                self.writing = False
                self._tell("")
                self._transcript.end_line()
                self._transcript.append(f"{report.message}\n", "error")

    def stopped(self) -> None:
        """The text at hand was stopped; what is written stays."""
        if self.writing:
            self._close("stopped")

    def _close(self, how: str) -> None:
        self.writing = False
        self._tell("")
        config = self._config
        top_k = config.top_k or "off"
        self._note(
            f"\n{how} · {self._writer} · temperature {config.temperature:.2f} · top-k {top_k}"
            f" · seed {config.seed}"
        )

    def _note(self, text: str) -> None:
        self._transcript.append(f"{text}\n", "note")

    def _tell(self, text: str) -> None:
        """Say what is being waited for, below where the text will be."""
        self._doing.update(text)
        self._doing.display = bool(text)

    def action_stop(self) -> None:
        self.post_message(StopWriting())

    def action_copy(self) -> None:
        if not self._written:
            self.notify("there is no text to copy yet")
            return
        self.app.copy_to_clipboard(self._written)
        self.notify(f"copied {len(self._written):,} characters")
