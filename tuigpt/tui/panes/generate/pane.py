"""The generate pane: prompt in, text out that can be watched, steered, and looked into."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Key, Resize
from textual.widgets import Static, TextArea

from tuigpt.errors import ConfigError
from tuigpt.generation.client import GeneratorClient
from tuigpt.generation.protocol import Logprobs, TextScore
from tuigpt.tui.keys import with_keys
from tuigpt.tui.messages import OpenCheckpoint
from tuigpt.tui.panes.generate.ahead import Ahead
from tuigpt.tui.panes.generate.entries import Entry
from tuigpt.tui.panes.generate.settings_bar import SettingsBar
from tuigpt.tui.panes.generate.texts import ENDLESS, WrittenText
from tuigpt.tui.panes.generate.texts_view import TextsView
from tuigpt.tui.panes.generate.words import (
    HELP,
    NO_CHECKPOINT,
    NO_MODEL,
    POET_PROMPT,
    POET_READY,
    READY,
    newer_weights,
)
from tuigpt.tui.panes.generate.writer import Writer
from tuigpt.tui.panes.pane import Pane, PaneEntry
from tuigpt.tui.session import Session
from tuigpt.tui.widgets.next_line import NextLine
from tuigpt.tui.widgets.prompt_box import PromptBox
from tuigpt.tui.widgets.slider import Slider
from tuigpt.wording import one_line

if TYPE_CHECKING:
    from tuigpt.runs.folder import Checkpoint
    from tuigpt.tui.panes.generate.inside import OtherToken


class GeneratePane(Pane):
    """A transcript, the sampling settings and a prompt box; it owns the generator process."""

    BINDING_GROUP_TITLE = "Generate"
    HELP = HELP

    SCOPED_CSS = False
    DEFAULT_CSS = """
    GeneratePane {
        & > #offer { display: none; height: auto; max-height: 2; color: $text-accent; }
        & > #next { margin-top: 1; }
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
        Binding("ctrl+s", "finer", "top-p, min-p", id="generate.finer", show=False,
                tooltip="Show two more ways to leave out unlikely tokens; again hides them and"
                        " switches them off"),
        Binding("f9", "follow", "follow", id="generate.follow", show=False, priority=True,
                tooltip="Always write with the newest checkpoint of the run; again to stay with"
                        " this one"),
        Binding("tab", "next_field(1)", "next field", id="generate.next-field", show=False,
                tooltip="From the prompt to temperature, top-k, length, seed and the texts"),
        Binding("shift+tab", "next_field(-1)", "field before", id="generate.previous-field",
                show=False, tooltip="The same way back"),
    ]  # fmt: skip

    def __init__(self, entry: PaneEntry, session: Session, writer: Writer | None = None) -> None:
        """
        Args:
            writer: None for a generator process.
        """
        super().__init__(entry, session)
        self._generator: Writer = writer or GeneratorClient(session.home)
        self._view = TextsView(self._generator, session.home, id="transcript")
        self._offer = Static(id="offer", markup=False)
        self._next = Ahead(self._generator, id="next")
        self._settings = SettingsBar(session.settings, self._generator, id="settings")
        self._prompt = PromptBox(id="prompt", placeholder="type a beginning …")
        self._shown: Checkpoint | None = None
        self._typed = False  # whether another prompt stands there than that of the newest text

    def to_keep(self) -> dict[str, object]:
        return self._settings.to_keep()

    def compose(self) -> ComposeResult:
        yield self._view
        yield self._offer
        yield self._next
        yield self._settings
        yield self._prompt

    def on_mount(self) -> None:
        # Watched, not told by a message: so it is drawn in one frame with the new text.
        self.watch(self._view, "grown", self._show_next, init=False)
        self.watch(self._view, "writing", self._tell_writing)
        self.call_after_refresh(self._show_kept)

    @work(group="kept")
    async def _show_kept(self) -> None:
        """Show what was written before, unless the user has switched that off."""
        view = self._view
        texts, prompts = await view.keeper.read()
        self._prompt.set_history(prompts)
        if texts:
            view.keeper.load(view.texts, texts)
            view.redraw()
            self.refresh_bindings()
            self._look_ahead()

    async def on_unmount(self) -> None:
        self._view.desk.stop()
        await self._generator.close()
        await self._view.keeper.finish()

    def on_resize(self, event: Resize) -> None:
        stacked = event.size.width < 78 and event.size.height >= 24
        self._settings.set_class(stacked, "-stacked")

    # --- the open checkpoint ---

    def show(self) -> None:
        self._view.desk.calm = self.session.trains_here
        checkpoint = self.session.checkpoint
        if checkpoint != self._shown or not self._prompt.border_title:
            self._name_checkpoint(checkpoint)
        words = one_line(with_keys(self, newer_weights(self.session)))
        if words != self._offer.content:
            self._offer.update(words)
            self._offer.display = bool(words)
            self.refresh_bindings()

    def _name_checkpoint(self, checkpoint: Checkpoint | None) -> None:
        self._shown = checkpoint
        self.name_subject(checkpoint.label if checkpoint else "")
        ready = POET_READY if checkpoint and checkpoint.built_in else READY
        self._view.placeholder = with_keys(self, ready if checkpoint else NO_CHECKPOINT)
        label = one_line(checkpoint.label) if checkpoint else "no model open"
        self._prompt.border_title = Content(label)
        if checkpoint:
            self._settings.fit(checkpoint)
        self._tell_window()
        self._look_ahead()

    def on_click(self, event: Click) -> None:
        """A click on the line about newer weights does what its first key does."""
        if event.widget is self._offer:
            if self.session.following:
                self.action_follow()
            else:
                self.action_open_offer()

    def action_open_offer(self) -> None:
        if self.session.offer is not None:
            self.post_message(OpenCheckpoint(self.session.offer))

    def action_follow(self) -> None:
        """Let the newest checkpoint of a run write, whichever that is; or no longer."""
        session = self.session
        session.follow(None if session.following else session.to_follow)
        self.show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        entry = self._view.entry
        match action:
            case "stop":
                return self._view.writing
            case "hurry":
                return self._view.writing and not self._view.desk.hurried
            case "open_offer":
                return self.session.offer is not None
            case "follow":
                return bool(self.session.following or self.session.to_follow)
            case "again" | "copy_command":
                return entry is not None
            case "continue":
                return entry is not None and entry.text.over
        return True

    # --- the way through the fields ---

    def action_next_field(self, count: int) -> None:
        """From the prompt to what shapes the text, then to the texts, then out of the pane."""
        fields = [self._prompt, *self._settings.fields, self._view]
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

    async def action_finer(self) -> None:
        await self._settings.show_finer()

    def action_change_window(self) -> None:
        self._settings.change_window()

    @on(SettingsBar.Resized)
    def _tell_window(self) -> None:
        """Say what becomes of a text that outgrows the context."""
        self._settings.tell_window(self.session.checkpoint, self._prompt.text)

    @on(SettingsBar.Steered)
    async def _steer(self) -> None:
        """A slider acts at the next token, also of the text that is being written."""
        if self._view.writing:
            await self._view.desk.steer(self._settings.config())
        else:
            self._look_ahead()

    def on_key(self, event: Key) -> None:
        """What is typed on a slider and is no number is meant for the prompt."""
        typed = event.character if event.is_printable else None
        bound = event.key in self.screen.active_bindings
        if typed and isinstance(self.app.focused, Slider) and typed not in "+-.," and not bound:
            event.stop()
            event.prevent_default()
            self._prompt.focus()
            self._prompt.put(typed)

    # --- what comes next ---

    @on(TextArea.Changed)
    def _prompt_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._typed = bool(self._prompt.text)
        self._tell_window()
        if not self._view.writing:
            self._look_ahead()

    def _tell_writing(self) -> None:
        self.session.writing = self._view.writing

    def _show_next(self) -> None:
        if likeliest := self._view.desk.likeliest:
            self._next.show(likeliest)

    @on(TextsView.Ended)
    def _ended(self) -> None:
        self._look_ahead()
        self._tell_window()

    def _look_ahead(self) -> None:
        """Show the distribution of the next token: after the newest text, or after the prompt."""
        checkpoint = self.session.checkpoint
        text = self._subject(checkpoint) if checkpoint else None
        self._next.look(text, self._settings.config())

    def _subject(self, checkpoint: Checkpoint) -> WrittenText:
        """The text whose next token is meant: the newest, or one of the prompt alone."""
        entry = self._view.entry
        if not self._typed and entry is not None:
            # What an earlier session wrote does not know all about its checkpoint.
            if entry.text.checkpoint.path == checkpoint.path:
                return entry.text
        return WrittenText(checkpoint, self._prompt.text, self._settings.config())

    # --- looking inside ---

    @on(NextLine.Opened)
    def _open_inside(self, event: NextLine.Opened) -> None:
        event.stop()
        self.action_inside()

    def action_inside(self) -> None:
        """Look inside the chosen text, or at what could come after the prompt."""
        view, checkpoint = self._view, self.session.checkpoint
        entry = view.entry
        if checkpoint is None:
            return
        view.desk.stop()
        if entry is not None and (not self._typed or view.has_focus):
            self._open_text(entry.text, 0 if view.has_focus else entry.text.count, entry)
        else:
            self._open_text(self._subject(checkpoint), 0)

    def _open_text(
        self, text: WrittenText, at: int, entry: Entry | None = None, *, beside: bool = False
    ) -> None:
        """Look inside a text, from a token on.

        Args:
            entry: of the text; None for one that is still to be written.
            beside: whether to go back to the entry's texts side by side.
        """
        from tuigpt.tui.panes.generate.inside import Inside, OtherPrompt  # when it is asked for

        view = self._view
        text.doing = ""

        def look(text: WrittenText, at: int) -> Awaitable[Logprobs]:
            return self._next.at(text, at, self._settings.config())

        def measure(text: WrittenText) -> Awaitable[TextScore]:
            return self._generator.score(text.checkpoint.path, text.prompt)

        def drew() -> None:
            nonlocal entry
            if entry is None:
                entry = view.texts.add(text)
                self._typed = False
            text.was_drawn_by_hand(self._settings.config(text.config.seed))
            view.redraw()

        def closed(other: OtherToken | OtherPrompt | None) -> None:
            self._look_ahead()
            if entry is not None and text.in_parts:
                view.keeper.keep(entry, text)
            if isinstance(other, OtherPrompt):
                self._write_anew(other.prompt)
            elif other is not None and entry is not None:
                config = self._settings.config(text.config.seed)
                self._typed = False
                branch = text.branch(other.at, other.candidate, config)
                branch.branched_from = entry.place(text) + 1
                view.write(branch, instead_of=entry)
            elif beside and entry is not None:
                self._open_grid(entry)

        steer = self._settings.step_temperature
        self.app.push_screen(Inside(text, at, look, measure, steer, drew), closed)

    # --- writing ---

    @on(PromptBox.Sent)
    def _send(self, event: PromptBox.Sent) -> None:
        event.stop()
        checkpoint = self.session.checkpoint
        prompt = event.text or (POET_PROMPT if checkpoint and checkpoint.built_in else "")
        if self._write_anew(prompt):
            self._view.keeper.keep_prompt(event.text)

    def _write_anew(self, prompt: str, instead_of: Entry | None = None) -> bool:
        """Have a prompt continued, as the settings are now; whether that can be."""
        checkpoint = self._can_write()
        if checkpoint is None:
            return False
        try:
            config, samples = self._settings.config(), self._settings.samples
        except ConfigError as error:
            self.app.notify(str(error), severity="error")
            return False
        window = self._settings.window(checkpoint, config, prompt)
        seeds = [(config.seed + number) % 2**63 for number in range(samples)]
        texts = [
            WrittenText(checkpoint, prompt, replace(config, seed=seed), window) for seed in seeds
        ]
        self._typed = False
        entry = self._view.write(*texts, instead_of=instead_of)
        if samples > 1:
            self._open_grid(entry)
        return True

    def _can_write(self) -> Checkpoint | None:
        """The checkpoint that writes; None, and a notice, where there is none."""
        if self.session.checkpoint is None:
            self.app.notify(with_keys(self, NO_MODEL), severity="warning")
        return self.session.checkpoint

    @on(TextsView.SideBySide)
    def _side_by_side(self, event: TextsView.SideBySide) -> None:
        event.stop()
        self._open_grid(event.entry)

    def _open_grid(self, entry: Entry) -> None:
        from tuigpt.tui.panes.generate.grid import Grid  # not before it is asked for

        def closed(looked_into: Entry | None) -> None:
            if looked_into is not None:
                self._open_text(looked_into.text, 0, looked_into, beside=True)

        self.app.push_screen(Grid(self._view, entry), closed)

    def action_stop(self) -> None:
        self._view.desk.stop()

    async def action_hurry(self) -> None:
        """Let the rest of the text come as fast as the model writes."""
        await self._view.desk.hurry()

    def action_again(self) -> None:
        """The same prompt in the same place, as the settings are now."""
        if (entry := self._view.entry) is not None:
            self._write_anew(entry.text.prompt, entry)

    def action_continue(self) -> None:
        """More of the same text, with its own seed, as the settings are now."""
        entry = self._view.entry
        if entry is None or not entry.text.over or self._can_write() is None:
            return
        text, config = entry.text, self._settings.config()
        length = min(ENDLESS, text.count + config.max_new_tokens)
        config = replace(config, max_new_tokens=length, seed=text.config.seed)
        window = self._settings.window(text.checkpoint, config, text.prompt)
        text.go_on(config, window)
        self._typed = False
        self._view.go_on(entry)

    @on(TextsView.Edit)
    def _edit(self, event: TextsView.Edit) -> None:
        event.stop()
        self._prompt.text = event.text
        self._prompt.move_cursor(self._prompt.document.end)
        self._prompt.focus()

    def action_copy(self) -> None:
        entry = self._view.entry
        self._view.output.copy(entry.text if entry else None)

    def action_copy_command(self) -> None:
        """Copy what prints the text again, where one command does."""
        if (entry := self._view.entry) is not None:
            self._view.output.copy_command(entry.text)
