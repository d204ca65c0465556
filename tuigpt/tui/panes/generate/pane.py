"""The generate pane: prompt in, text out that can be watched, steered, and looked into."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Protocol

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click, Resize
from textual.reactive import reactive
from textual.widgets import Input, Label, Static, TextArea

from tuigpt.config import SampleConfig, parse_field
from tuigpt.errors import ConfigError, UserError
from tuigpt.files import write_output
from tuigpt.generation.card import card, tuigpt_command, workshop_command
from tuigpt.generation.client import GeneratorClient
from tuigpt.generation.protocol import (
    Copies,
    Failed,
    Logprobs,
    NextTokenFound,
    Report,
    Tokens,
    Verified,
    Window,
)
from tuigpt.paths import user_path
from tuigpt.runs.folder import Checkpoint
from tuigpt.settings import read_settings
from tuigpt.tui.messages import OpenCheckpoint
from tuigpt.tui.panes.generate.inside import MOST, Inside, OtherToken
from tuigpt.tui.panes.generate.kept import (
    Kept,
    KeptText,
    keep,
    keep_prompt,
    read_prompts,
    read_texts,
)
from tuigpt.tui.panes.generate.save import SaveAs
from tuigpt.tui.panes.generate.texts import ENDLESS, Entry, Texts, WrittenText
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.next_line import NextLine
from tuigpt.tui.widgets.prompt_box import PromptBox
from tuigpt.tui.widgets.slider import Slider
from tuigpt.tui.widgets.transcript import Transcript
from tuigpt.wording import one_line

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

PACE, LONGEST_WAIT = 120.0, 10.0
"""Tokens a second at which text appears, and the seconds that a long one is given at most."""

TOP = 12
"""How many of the likeliest next tokens are looked at."""

PAUSE = 0.15
"""Seconds without a change before the next token's distribution is asked for."""


class Writer(Protocol):
    """What writes texts: the generator process, or a stand-in."""

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def generate(
        self,
        checkpoint: Path,
        prompt: str,
        config: SampleConfig,
        *,
        window: Window = "sliding",
        forced_ids: Sequence[int] = (),
        top_logprobs: int | None = None,
        pace: float = 0.0,
    ) -> AsyncGenerator[Report, None]: ...

    async def set_config(self, number: int, config: SampleConfig) -> None: ...

    async def set_pace(self, number: int, pace: float) -> None: ...

    async def next_token(
        self,
        checkpoint: Path,
        prompt: str,
        config: SampleConfig,
        *,
        forced_ids: Sequence[int] = (),
        top_logprobs: int = 100,
    ) -> NextTokenFound: ...

    async def copies(self, checkpoint: Path, text: str) -> Copies: ...

    async def verify(
        self, checkpoint: Path, prompt: str, config: SampleConfig, ids: Sequence[int]
    ) -> Verified: ...


class TextsView(Transcript):
    """The transcript of the pane, and what can be done with a text in it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "text('edit')", "edit", id="text.edit",
                tooltip="Put the text into the prompt, to change it and go on from there"),
        Binding("s", "text('star')", "star", id="text.star", tooltip="Mark the text with a star"),
        Binding("x,delete", "text('delete')", "delete", id="text.delete",
                tooltip="Take the text out of the list; u brings it back"),
        Binding("m", "text('mark_copies')", "mark copies", id="text.mark-copies",
                tooltip="Mark what is copied word for word from the training text, and say where"),
        Binding("w", "text('save')", "save", id="text.save",
                tooltip="Write the text to a file, exactly as it is"),
        Binding("v", "text('verify')", "verify", id="text.verify", show=False,
                tooltip="Compare the text with what the plain loop writes, without any cache"),
        Binding("d", "text('card')", "card", id="text.card", show=False,
                tooltip="Verify the text and save it with all that prints it again: a submission"),
        Binding("u", "text('undo_delete')", "undo delete", id="text.undo-delete",
                tooltip="Bring back the text that was deleted last"),
        Binding("p", "text('choose(-1)')", "text above", id="text.above", show=False,
                tooltip="Choose the text above"),
        Binding("n", "text('choose(1)')", "text below", id="text.below", show=False,
                tooltip="Choose the text below"),
        Binding("left", "text('sibling(-1)')", "other version", id="text.version-before",
                tooltip="Show what was written in this place before"),
        Binding("right", "text('sibling(1)')", "other version", id="text.version-after",
                show=False, tooltip="Show what was written in this place after"),
    ]  # fmt: skip

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        pane = next((node for node in self.ancestors if isinstance(node, GeneratePane)), None)
        if action == "text" and pane is not None:
            name, _, argument = str(parameters[0]).rstrip(")").partition("(")
            return pane.check_action(name, (int(argument),) if argument else ())
        return True

    async def action_text(self, action: str) -> None:
        pane = next(node for node in self.ancestors if isinstance(node, GeneratePane))
        await self.app.run_action(action, pane)


class GeneratePane(Pane):
    """A transcript, the sampling settings and a prompt box; it owns the generator process."""

    BINDING_GROUP_TITLE = "Generate"
    HELP = """\
Type the beginning of a text and press [b]enter[/b]: the open model continues it. [b]esc[/b] stops \
it and keeps what is written; [b]tab[/b] goes from the prompt to temperature, top-k, length, seed \
and the texts.

[b]next[/b]         what could come next, and how likely each is; the sliders change it at once, \
also while a text is being written.
[b]temperature[/b]  0 always takes the likeliest token, 1 draws as learned, more is wilder.
[b]top-k[/b]        only the k likeliest tokens may be drawn; 0 is off.
[b]length[/b]       in tokens; left empty, it writes until it is stopped.
[b]seed[/b]         the same seed, settings and checkpoint write the same text again. Left empty, \
each text gets a seed of its own, which its rule tells.

A text longer than the model's context is written with a rolling window, which is fast; \
[b]f7[/b] chooses the exact one, which reads the whole context again for each token."""

    DEFAULT_CSS = """
    GeneratePane {
        & > #offer { display: none; height: 1; color: $text-accent; }
        & > #next { margin-top: 1; }
        & > #sliders { height: 1; }
        & > #sliders Slider { width: 1fr; }
        & > #sliders #temperature { margin-right: 3; }
        & > #settings { height: 1; }
        & > #settings Label { color: $foreground 60%; padding-right: 1; }
        & > #settings #past { width: 1fr; color: $foreground 60%; padding: 0; text-wrap: nowrap;
            text-overflow: ellipsis; }
        & > #settings #length { width: 8; margin-right: 1; }
        & > #settings #seed { width: 14; margin-right: 1; }
        &.-stacked > #sliders { height: 2; layout: vertical; }
        &.-stacked > #sliders #temperature { margin-right: 0; }
    }
    .-short GeneratePane > #next { margin-top: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", id="generate.stop",
                tooltip="Stop writing and keep the text"),
        Binding("ctrl+l", "hurry", "all at once", id="generate.hurry", priority=True,
                tooltip="Let this text come as fast as the model writes"),
        Binding("f5", "again", "again", id="generate.again",
                tooltip="Write the text anew in its place, with another seed unless one is set;"
                        " left and right go through them"),
        Binding("f2", "continue", "continue", id="generate.continue",
                tooltip="Let the text go on from where it ends"),
        Binding("f3", "inside", "look inside", id="generate.inside",
                tooltip="See what the model thought at each token, and all that could come next;"
                        " write one token at a time"),
        Binding("ctrl+y", "copy", "copy text", id="generate.copy", priority=True,
                tooltip="Copy the text, prompt included, exactly as written"),
        Binding("f8", "copy_command", "copy command", id="generate.copy-command", show=False,
                tooltip="Copy the command that prints this text again in a shell"),
        Binding("f7", "change_window", "window", id="generate.window", show=False, priority=True,
                tooltip="Past the model's context: a rolling window, which is fast, or the exact"
                        " one, which reads the whole context again for each token"),
        Binding("f6", "open_offer", "newer weights", id="generate.open-newer", show=False,
                priority=True,  # else the prompt selects a line
                tooltip="Write with the newer checkpoint that is offered"),
        Binding("tab", "next_field(1)", "next field", id="generate.next-field", show=False,
                tooltip="From the prompt to temperature, top-k, length, seed and the texts"),
        Binding("shift+tab", "next_field(-1)", "field before", id="generate.previous-field",
                show=False, tooltip="The same way back"),
    ]  # fmt: skip

    writing: reactive[bool] = reactive(False, bindings=True)

    def __init__(self, entry: PaneEntry, session: Session, writer: Writer | None = None) -> None:
        """
        Args:
            writer: None for a generator process.
        """
        super().__init__(entry, session)
        kept = session.settings
        temperature = DEFAULTS.temperature if kept.temperature is None else kept.temperature
        top_k = DEFAULTS.top_k if kept.top_k is None else kept.top_k
        self._generator: Writer = writer or GeneratorClient(session.home)
        self._transcript = TextsView(id="transcript", placeholder=NO_CHECKPOINT, from_below=True)
        self._offer = Static(id="offer", markup=False)
        self._next = NextLine(id="next")
        self._length = Input(
            str(kept.length or DEFAULTS.max_new_tokens), id="length", compact=True,
            restrict=r"\d{0,7}",
            placeholder="endless",
            tooltip="How many tokens to write; empty: until it is stopped",
        )  # fmt: skip
        self._seed = Input(
            placeholder="new each time", id="seed", compact=True, restrict=r"\d{0,18}",
            tooltip="The same seed writes the same text again; empty draws one each time",
        )  # fmt: skip
        self._past = Label(id="past", markup=False)
        self._temperature = Slider(
            0.0, 2.0, step=0.05, value=temperature, label="temperature",
            id="temperature", tooltip="0 = always the likeliest, 1 = as learned, more = wilder",
        )  # fmt: skip
        self._top_k = Slider(
            0, 65, step=1, value=min(65, top_k), label="top-k", format="{:d}", off_at=0,
            id="top-k", tooltip="Only the k likeliest tokens may be drawn",
        )  # fmt: skip
        self._wanted_top_k = top_k
        self._exact = False
        self._prompt = PromptBox(id="prompt", placeholder="type a beginning …")
        self._shown: Checkpoint | None = None
        self._texts = Texts()
        self._kept = Kept(session.home)
        self._keeping = False
        self._keep_lock = asyncio.Lock()
        self._at_work: Entry | None = None
        self._number: int | None = None
        self._hurried = False
        self._measured = (0.0, 0)
        self._speed: float | None = None
        self._typed = True  # whether the prompt changed after the newest text

    def to_keep(self) -> dict[str, object]:
        length = self._length.value
        kept: dict[str, object] = {
            "temperature": round(float(self._temperature.value), 2),
            "top_k": self._wanted_top_k,
        }
        return kept | {"length": int(length)} if length.isdigit() and int(length) else kept

    def compose(self) -> ComposeResult:
        yield self._transcript
        yield self._offer
        yield self._next
        with Horizontal(id="sliders"):
            yield self._temperature
            yield self._top_k
        with Horizontal(id="settings"):
            yield Label("length")
            yield self._length
            yield Label("seed")
            yield self._seed
            yield self._past
        yield self._prompt

    def on_mount(self) -> None:
        self._read_kept()

    async def on_unmount(self) -> None:
        if self._at_work is not None:
            self.action_stop()
        await self._generator.close()

    # --- over sessions ---

    @work(group="kept")
    async def _read_kept(self) -> None:
        """Show what was written before, unless the user has switched that off."""
        home = self.session.home
        self._keeping = (await asyncio.to_thread(read_settings, home)).keep_texts
        if not self._keeping:
            return
        self._prompt.set_history(await asyncio.to_thread(read_prompts, home))
        found = await asyncio.to_thread(read_texts, home)
        if found:
            now, self._texts.entries = self._texts.entries, {}
            self._kept.load(self._texts, found)
            self._texts.entries |= now
            self._redraw()
            self.refresh_bindings()

    def _keep(self, entry: Entry, *texts: WrittenText) -> None:
        """Keep texts as they are now."""
        records = [self._kept.record(entry, text) for text in texts]
        self._write_down([record for record in records if record is not None])

    def _write_down(self, records: list[KeptText]) -> None:
        if self._keeping and records:
            self.app.run_worker(self._add_to_file(records), group="keep", exit_on_error=False)

    async def _add_to_file(self, records: list[KeptText]) -> None:
        try:
            async with self._keep_lock:
                await asyncio.to_thread(keep, self.session.home, records)
        except OSError as error:
            self.app.notify(f"texts cannot be kept: {error}", severity="error")

    async def _add_prompt(self, prompt: str) -> None:
        try:
            async with self._keep_lock:
                await asyncio.to_thread(keep_prompt, self.session.home, prompt)
        except OSError as error:
            self.app.notify(f"prompts cannot be kept: {error}", severity="error")

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < 78 and event.size.height >= 24, "-stacked")

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
            # A smaller vocabulary pulls the slider down; a larger one lets it back up.
            wanted = self._wanted_top_k
            self._top_k.maximum = checkpoint.vocab_size
            self._top_k.value = min(wanted, checkpoint.vocab_size)
            self._wanted_top_k = wanted
        self._tell_window()
        self._look_ahead()

    def action_open_offer(self) -> None:
        if self.session.offer is not None:
            self.post_message(OpenCheckpoint(self.session.offer))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        entry = self._texts.entry
        match action:
            case "stop":
                return self.writing
            case "hurry":
                return self.writing and not self._hurried
            case "open_offer":
                return self.session.offer is not None
            case "undo_delete":
                return self._texts.can_restore
            case "sibling":
                step = parameters[0]
                assert isinstance(step, int)
                return entry is not None and 0 <= entry.at + step < len(entry.texts)
            case "mark_copies" | "save" | "verify" | "card":
                return entry is not None and entry.text.over
            case "again" | "edit" | "star" | "delete" | "choose" | "copy_command":
                return entry is not None
            case "continue":
                return entry is not None and entry.text.over
        return True

    # --- the way through the fields ---

    def action_next_field(self, count: int) -> None:
        """From the prompt to what shapes the text, then to the texts, then out of the pane."""
        fields = [self._prompt, self._temperature, self._top_k, self._length, self._seed,
                  self._transcript]  # fmt: skip
        at = next((n for n, field in enumerate(fields) if field.has_focus), None)
        if at is not None and -1 <= at + count < len(fields):
            fields[at + count].focus()
            return
        chain = self.screen.focus_chain
        own = [n for n, widget in enumerate(chain) if self in widget.ancestors]
        if own and len(own) < len(chain):
            place = own[-1] + 1 if count > 0 else own[0] - 1
            chain[place % len(chain)].focus()
        else:
            fields[0 if count > 0 else -1].focus()

    # --- settings ---

    def _settings(self, seed: int | None = None) -> SampleConfig:
        """As the fields say. Raises ConfigError."""
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
            seed=seed,
        )

    def _window(self, checkpoint: Checkpoint, config: SampleConfig, prompt: str) -> Window:
        size = checkpoint.block_size
        past = bool(size) and config.max_new_tokens + len(prompt) > size
        return "rolling" if past and not self._exact else "sliding"

    def action_change_window(self) -> None:
        self._exact = not self._exact
        self._tell_window()

    def _tell_window(self) -> None:
        """Say what becomes of a text that outgrows the context."""
        checkpoint = self.session.checkpoint
        words = ""
        if checkpoint and checkpoint.block_size:
            length = int(self._length.value or ENDLESS)
            if length + len(self._prompt.text) > checkpoint.block_size:
                how = "exact" if self._exact else "rolling"
                words = f"past {checkpoint.block_size:,}: {how} f7"
        self._past.update(words)

    @on(Input.Changed, "#length")
    def _length_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell_window()

    @on(Slider.Changed)
    async def _steer(self, event: Slider.Changed) -> None:
        """A slider acts at the next token, also of the text that is being written."""
        event.stop()
        bounded = min(self._wanted_top_k, int(self._top_k.maximum))
        if event.slider is self._top_k and event.value != bounded:  # else the model's size did it
            self._wanted_top_k = int(event.value)
        if self.writing and self._at_work is not None:
            if self._number is not None:
                text = self._at_work.text
                config = replace(
                    text.config,
                    temperature=float(self._temperature.value),
                    top_k=int(self._top_k.value),
                )
                await self._generator.set_config(self._number, config)
        else:
            self._look_ahead()

    # --- what comes next ---

    @on(TextArea.Changed)
    def _prompt_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._typed = True
        self._tell_window()
        if not self.writing:
            self._look_ahead()

    @work(group="next", exclusive=True)
    async def _look_ahead(self) -> None:
        """Show the distribution of the next token: after the newest text, or after the prompt."""
        checkpoint = self.session.checkpoint
        if checkpoint is None:
            self._next.show([])
            return
        await asyncio.sleep(PAUSE)
        text = self._subject(checkpoint)
        try:
            found = await self._look(text, text.count, TOP)
        except UserError:  # whoever sends the prompt is told
            self._next.show([])
        else:
            self._next.show(found.top_logprobs)

    def _subject(self, checkpoint: Checkpoint) -> WrittenText:
        """The text whose next token is meant: the newest, or one of the prompt alone."""
        entry = self._texts.entry
        if not self._typed and entry is not None and entry.text.checkpoint == checkpoint:
            return entry.text
        return WrittenText(checkpoint, self._prompt.text, self._settings())

    async def _look(self, text: WrittenText, at: int, top: int = MOST) -> Logprobs:
        """The distribution of a text's token number `at`, as the sliders are now."""
        prompt, ids = text.prompt, text.ids[:at]
        # Of what lies before the context nothing is seen, but the draws go by the token's number.
        keep = 2 * (text.checkpoint.block_size or len(ids))
        if len(ids) > max(keep, 10_000):
            prompt, ids = "", ids[-keep:]
        config = replace(self._settings(text.config.seed), max_new_tokens=1)
        found = await self._generator.next_token(
            text.checkpoint.path, prompt, config, forced_ids=ids, top_logprobs=top
        )
        return found.logprobs

    # --- looking inside ---

    @on(NextLine.Opened)
    def _open_inside(self, event: NextLine.Opened) -> None:
        event.stop()
        self.action_inside()

    def action_inside(self) -> None:
        """Look inside the chosen text, or at what could come after the prompt."""
        checkpoint = self.session.checkpoint
        entry = self._texts.entry
        if checkpoint is None:
            return
        self.action_stop()
        if entry is not None and (not self._typed or self._transcript.has_focus):
            text, at = entry.text, 0 if self._transcript.has_focus else entry.text.count
        else:
            entry, text, at = None, self._subject(checkpoint), 0
        text.doing = ""

        def drew() -> None:
            nonlocal entry
            if entry is None:
                entry = self._texts.add(text)
                self._typed = False
            config = replace(self._settings(text.config.seed), max_new_tokens=text.count)
            if text.count == 1:
                text.config = config
            elif config != replace(text.config_now, max_new_tokens=text.count):
                text.changes.append((text.count - 1, config))
            self._redraw()

        def closed(other: OtherToken | None) -> None:
            self._look_ahead()
            if entry is not None and text.in_parts:
                self._keep(entry, text)
            if other is not None and entry is not None:
                self._branch(entry, text, other)

        self.app.push_screen(Inside(text, at, self._look, self._step_temperature, drew), closed)

    def _step_temperature(self, count: int) -> str:
        """Move the slider; the settings in words."""
        self._temperature.action_step(count)
        top_k = int(self._top_k.value)
        k = f"top-k {top_k}" if top_k else "no top-k"
        return f"temperature {self._temperature.value:.2f}, {k}"

    def _branch(self, entry: Entry, text: WrittenText, other: OtherToken) -> None:
        """Let another token stand in a text, and the model go on from it, beside that text."""
        sibling = text.up_to(other.at)
        sibling.add_token(other.candidate)
        sibling.branched_at, sibling.over = other.at, False
        sibling.config = replace(
            self._settings(text.config.seed),
            max_new_tokens=max(text.config.max_new_tokens, sibling.count),
        )
        self._begin(sibling, instead_of=entry)

    # --- writing ---

    @on(PromptBox.Sent)
    def _send(self, event: PromptBox.Sent) -> None:
        event.stop()
        if (asked := self._ask()) is not None:
            checkpoint, config = asked
            if self._keeping:
                prompt = self._add_prompt(event.text)
                self.app.run_worker(prompt, group="keep", exit_on_error=False)
            window = self._window(checkpoint, config, event.text)
            self._begin(WrittenText(checkpoint, event.text, config, window))

    def _ask(self) -> tuple[Checkpoint, SampleConfig] | None:
        """What writes and how; None, and a notice, where that cannot be."""
        checkpoint = self.session.checkpoint
        if checkpoint is None:
            self.app.notify("no model is open yet: train one with ctrl+n", severity="warning")
            return None
        try:
            return checkpoint, self._settings()
        except ConfigError as error:
            self.app.notify(str(error), severity="error")
            return None

    def _begin(self, text: WrittenText, instead_of: Entry | None = None) -> None:
        """Have a text written, in a new entry or in another text's place."""
        self.action_stop()
        text.doing = "waking the generator …"
        if instead_of is None:
            entry = self._texts.add(text)
            self._transcript.open_entry(entry.number)
        else:
            entry = instead_of
            self._texts.add_sibling(entry, text)
        if instead_of is not None or text.ids:
            self._redraw()
        self._show_rule(entry)
        self._choose(entry if instead_of else None)
        self._transcript.anchor()
        self._write(entry, text)

    @work(group="write", exclusive=True)
    async def _write(self, entry: Entry, text: WrittenText) -> None:
        self.writing, self._at_work, self._number = True, entry, None
        self._hurried, self._typed, self._speed = False, False, None
        self._measured = (time.monotonic(), text.count)
        left = text.config.max_new_tokens - text.count
        reports = self._generator.generate(
            text.checkpoint.path,
            text.prompt,
            text.config,
            window=text.window,
            forced_ids=list(text.ids),
            top_logprobs=TOP,
            pace=PACE if left >= ENDLESS // 2 else max(PACE, left / LONGEST_WAIT),
        )
        async with aclosing(reports):
            async for report in reports:
                self._report(entry, text, report)
        self.writing = False
        self._at_work = None
        self._keep(entry, text)
        if not text.problem:
            self._look_ahead()
        self._show_rule(entry)

    def _report(self, entry: Entry, text: WrittenText, report: Report) -> None:
        """Take in what the generator tells of the text that it writes."""
        self._number = report.id
        is_last = next(reversed(self._texts.entries.values()), None) is entry
        for style, words in text.take(report):
            if is_last:
                self._transcript.append(words, style)
        if not is_last and (text.over or isinstance(report, Tokens)):
            self._redraw()
        if isinstance(report, Tokens):
            if report.logprobs:
                self._next.show(report.logprobs[-1].top_logprobs)
            since, count = self._measured
            now = time.monotonic()
            if now - since >= 0.5:
                speed = (text.count - count) / (now - since)
                # The pace that it is held to would say nothing of the model.
                self._speed = speed if self._hurried or speed < 0.9 * PACE else None
                self._measured = (now, text.count)
        if isinstance(report, Failed) and text.count:
            text.stopped = True
        self._show_rule(entry)

    def _show_rule(self, entry: Entry) -> None:
        speed = self._speed if entry is self._at_work else None
        self._transcript.set_rule(entry.number, entry.left(), entry.right(speed))

    def action_stop(self) -> None:
        self.workers.cancel_group(self, "write")
        entry, self._at_work = self._at_work, None
        if self.writing and entry is not None:
            entry.text.stop()
            self._keep(entry, entry.text)
            self._show_rule(entry)
            if self.is_running:
                self._look_ahead()
        self.writing = False

    async def action_hurry(self) -> None:
        """Let the rest of the text come as fast as the model writes."""
        if self._number is not None:
            self._hurried = True
            self.refresh_bindings()
            await self._generator.set_pace(self._number, 0.0)

    # --- each text ---

    def _redraw(self) -> None:
        """Draw all texts anew, as after one was changed that is not the last."""
        entries = self._texts.entries
        self._transcript.clear()
        for entry in entries.values():
            self._transcript.open_entry(entry.number)
            for style, words in entry.text.parts():
                self._transcript.append(words, style)
            self._show_rule(entry)

    def _choose(self, entry: Entry | None) -> None:
        self._texts.chosen = entry.number if entry else None
        self._transcript.chosen = self._texts.chosen
        self.refresh_bindings()

    @on(Transcript.Picked)
    def _picked(self, event: Transcript.Picked) -> None:
        event.stop()
        if (entry := self._texts.entries.get(event.entry)) is not None:
            self._choose(entry)

    def action_choose(self, count: int) -> None:
        if (entry := self._texts.step(count)) is not None:
            self._choose(entry)
            self._transcript.show_entry(entry.number)

    def action_sibling(self, count: int) -> None:
        """Show another of the texts that were written in this place."""
        entry = self._texts.entry
        if entry is not None and 0 <= entry.at + count < len(entry.texts):
            if entry is self._at_work:
                self.action_stop()
            entry.at += count
            self._redraw()
            self._transcript.show_entry(entry.number)
            self.refresh_bindings()

    def action_again(self) -> None:
        """The same prompt in the same place, as the settings are now."""
        entry = self._texts.entry
        if entry is not None and (asked := self._ask()) is not None:
            checkpoint, config = asked
            prompt = entry.text.prompt
            window = self._window(checkpoint, config, prompt)
            self._begin(WrittenText(checkpoint, prompt, config, window), instead_of=entry)

    def action_continue(self) -> None:
        """More of the same text, with its own seed, as the settings are now."""
        entry = self._texts.entry
        if entry is None or not entry.text.over or (asked := self._ask()) is None:
            return
        text, config = entry.text, asked[1]
        length = min(ENDLESS, text.count + config.max_new_tokens)
        config = replace(config, max_new_tokens=length, seed=text.config.seed)
        before = replace(text.config_now, max_new_tokens=length)
        if config != before:
            text.changes.append((text.count, config))
        text.over, text.stopped, text.in_parts = False, False, text.count > 0
        text.problem, text.copies = "", None
        text.config = replace(text.config, max_new_tokens=length)
        text.window = self._window(text.checkpoint, config, text.prompt)
        text.doing = "reading the text …"
        if entry is not next(reversed(self._texts.entries.values())):
            self._redraw()
        self.action_stop()
        self._show_rule(entry)
        self._transcript.anchor()
        self._write(entry, text)

    def action_edit(self) -> None:
        """The text as a prompt, to be changed before it goes on."""
        if (entry := self._texts.entry) is not None:
            self.action_stop()
            self._prompt.text = entry.text.whole
            self._prompt.move_cursor(self._prompt.document.end)
            self._prompt.focus()

    def action_star(self) -> None:
        if (entry := self._texts.entry) is not None:
            entry.text.starred = not entry.text.starred
            if entry.text.over:
                self._keep(entry, entry.text)
            self._show_rule(entry)

    def action_delete(self) -> None:
        if (entry := self._texts.entry) is not None:
            if entry is self._at_work:
                self.action_stop()
            self._texts.delete(entry)
            self._write_down(self._kept.deleted(entry))
            self._choose(None)
            self._redraw()

    def action_undo_delete(self) -> None:
        if (entry := self._texts.restore()) is not None:
            self._keep(entry, *entry.texts)
            self._redraw()
            self._choose(entry)
            self._transcript.show_entry(entry.number)

    @work(group="mark", exclusive=True)
    async def action_mark_copies(self) -> None:
        """Mark what is copied from the training text, or take the marks away."""
        if (entry := self._texts.entry) is None:
            return
        text = entry.text
        if text.copies is not None:
            text.copies = None
        else:
            try:
                text.copies = await self._generator.copies(text.checkpoint.path, text.whole)
            except UserError as error:
                self.app.notify(str(error), severity="error")
                return
        self._redraw()
        self._transcript.show_entry(entry.number)

    def action_save(self) -> None:
        if (entry := self._texts.entry) is not None:
            self._save("the text", f"text-{entry.number}.txt", entry.text.whole)

    def _save(self, what: str, name: str, content: str) -> None:
        def chosen(path: str | None) -> None:
            if path is None:
                return
            try:
                write_output(user_path(path), content.encode("utf-8", "backslashreplace"))
            except (OSError, ValueError) as error:
                self.app.notify(f"cannot write {path!r}: {error}", severity="error")
            else:
                self.app.notify(f"saved {what} to {path}")

        self.app.push_screen(SaveAs(what, name), chosen)

    @work(group="verify", exclusive=True)
    async def action_verify(self) -> None:
        """Say whether the reference computation writes the same text."""
        if (entry := self._texts.entry) is not None:
            await self._verified(entry)

    async def _verified(self, entry: Entry) -> str | None:
        """The checkpoint's sha256 if the plain loop writes the same text, else None; either is
        noted below the text."""
        text = entry.text
        config = text.one_command
        if config is None or text.window == "rolling":
            why = "a rolling window is another" if config else self._why_no_command(text)
            self.app.notify(f"the plain loop does not write this text: {why}", severity="warning")
            return None
        self.app.notify("verifying …")
        try:
            found = await self._generator.verify(
                text.checkpoint.path, text.prompt, config, text.ids
            )
        except UserError as error:
            self.app.notify(str(error), severity="error")
            return None
        same = found.differs_at is None
        note = (
            "verified: the plain loop, without a cache, writes the same text"
            if same
            else f"the plain loop writes another text from token {found.differs_at:,} on"
        )
        if note not in text.notes:
            text.notes.append(note)
            self._keep(entry, text)
        self._redraw()
        self._transcript.show_entry(entry.number)
        return found.sha256 if same else None

    @work(group="verify", exclusive=True)
    async def action_card(self) -> None:
        """Verify a text, and save it with all that is needed to print it again."""
        entry = self._texts.entry
        if entry is None or (sha256 := await self._verified(entry)) is None:
            return
        text = entry.text
        config = text.one_command
        assert config is not None
        checkpoint = text.checkpoint
        command = tuigpt_command(checkpoint, self.session.home, text.prompt, config)
        theirs = workshop_command(
            f"{checkpoint.path.stem}.pt", text.prompt, config, checkpoint.vocab_size
        )
        content = card(text.whole, command, theirs, checkpoint.path, sha256)
        self._save("the card", f"card-{entry.number}.txt", content)

    def action_copy(self) -> None:
        entry = self._texts.entry
        if entry is None or not entry.text.whole:
            self.app.notify("there is no text to copy yet")
            return
        self._copy(entry.text.whole, f"{len(entry.text.whole):,} characters")

    def action_copy_command(self) -> None:
        """Copy what prints the text again, where one command does."""
        entry = self._texts.entry
        if entry is None:
            return
        text = entry.text
        config = text.one_command
        if config is None:
            why = self._why_no_command(text)
            self.app.notify(f"no one command prints this text again: {why}", severity="warning")
            return
        extra = ["--window", "rolling"] if text.window == "rolling" else []
        home = self.session.home
        self._copy(tuigpt_command(text.checkpoint, home, text.prompt, config, extra), "the command")

    def _why_no_command(self, text: WrittenText) -> str:
        if text.changes:
            return "its settings changed on the way"
        if not text.over:
            return "it has not ended"
        if text.branched_at is not None:
            return "another token was chosen in it"
        if text.in_parts:
            return "it was written in parts, with a rolling window"
        return "it could not be written"

    def _copy(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(text)
        # A terminal does not answer whether it took it.
        self.app.notify(f"copied {what}, if the terminal allows; w in the texts saves a file")

    def on_click(self, event: Click) -> None:
        if event.widget is self._past:
            self.action_change_window()
