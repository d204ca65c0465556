"""The transcript of the pane: the texts as they stand there, and what can be done with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive, var

from tuigpt.errors import UserError
from tuigpt.tui.panes.generate.entries import Entry, Texts
from tuigpt.tui.panes.generate.keeping import Keeper
from tuigpt.tui.panes.generate.kept import MOST_TEXTS
from tuigpt.tui.panes.generate.output import Output
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.panes.generate.writer import Writer
from tuigpt.tui.panes.generate.writing import Writing
from tuigpt.tui.widgets.transcript import Transcript


class TextsView(Transcript):
    """All texts, oldest first, with the one that is being written.

    Attributes:
        texts: what is shown.
        keeper: keeps it for the next start.
        output: takes texts out of the app.
        desk: where texts are written.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "edit", id="text.edit",
                tooltip="Put the text into the prompt, to change it and go on from there"),
        Binding("s", "star", "star", id="text.star",
                tooltip="Mark the text with a star: it stays when old ones make room for new ones"),
        Binding("x,delete", "delete", "delete", id="text.delete",
                tooltip="Take the text out of the list; u brings it back"),
        Binding("m", "mark_copies", "mark copies", id="text.mark-copies",
                tooltip="Mark what is copied word for word from the training text, and say where"),
        Binding("g", "side_by_side", "side by side", id="text.side-by-side",
                tooltip="Show all that was written in this place, to compare and choose"),
        Binding("w", "save", "save", id="text.save",
                tooltip="Write the text to a file, exactly as it is"),
        Binding("v", "verify", "verify", id="text.verify", show=False,
                tooltip="Compare the text with what the plain loop writes, without any cache"),
        Binding("d", "card", "card", id="text.card", show=False,
                tooltip="Verify the text and save it with all that prints it again: a submission"),
        Binding("u", "undo_delete", "undo delete", id="text.undo-delete",
                tooltip="Bring back the text that was deleted last"),
        Binding("p", "choose(-1)", "text above", id="text.above", show=False,
                tooltip="Choose the text above"),
        Binding("n", "choose(1)", "text below", id="text.below", show=False,
                tooltip="Choose the text below"),
        Binding("left", "sibling(-1)", "other version", id="text.version-before",
                tooltip="Show what was written in this place before"),
        Binding("right", "sibling(1)", "other version", id="text.version-after",
                show=False, tooltip="Show what was written in this place after"),
    ]  # fmt: skip

    writing: reactive[bool] = reactive(False, repaint=False, bindings=True)
    """Whether a text is being written."""

    grown: var[int] = var(0)
    """Counts the reports on what is being written."""

    class Ended(Message):
        """A text has come to its end, or was stopped."""

    @dataclass
    class Edit(Message):
        """A text is to be changed in the prompt."""

        text: str

    @dataclass
    class SideBySide(Message):
        """All texts of an entry are to be shown beside each other."""

        entry: Entry

    def __init__(self, writer: Writer, home: Path, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, from_below=True)
        self.texts = Texts()
        self.keeper = Keeper(home, self)
        self.output = Output(self, writer, home)
        self.desk = Writing(self, writer)
        self._writer = writer

    @property
    def entry(self) -> Entry | None:
        """The one that is meant: the chosen one, else the newest."""
        return self.texts.entry

    # --- writing ---

    def write(self, *texts: WrittenText, instead_of: Entry | None = None) -> Entry:
        """Have a text written, in a new entry or in another text's place; or several siblings."""
        self.desk.stop()
        for text in texts:
            text.doing = "waking the generator …"
        if instead_of is None:
            entry = self.texts.add(*texts)
            for old in self.texts.let_go(MOST_TEXTS):
                self.drop_entry(old.number)
            self.open_entry(entry.number)
        else:
            entry = instead_of
            self.texts.add_siblings(entry, *texts)
        self.redraw(entry)
        self._choose(instead_of)
        self._begin(entry, texts)
        return entry

    def go_on(self, entry: Entry) -> None:
        """Have more of an entry's text written."""
        self.redraw(entry)
        self._begin(entry, [entry.text])

    def _begin(self, entry: Entry, texts: Sequence[WrittenText]) -> None:
        self.show_rule(entry)
        self.anchor()
        self.desk.begin(entry, texts)

    async def compare(self, texts: Sequence[WrittenText]) -> None:
        """Find out what each of an entry's texts has of the training text. Raises UserError."""
        written = [text.written for text in texts]
        facts = await self._writer.compare(texts[0].checkpoint.path, written)
        for text, found in zip(texts, facts, strict=True):
            text.facts = found

    # --- showing them ---

    def redraw(self, entry: Entry | None = None) -> None:
        """Draw an entry anew, as after it was changed; or all of them."""
        if entry is not None:
            self.replace_entry(entry.number, entry.text.parts())
            self.show_rule(entry)
            return
        self.clear()
        for entry in self.texts.entries.values():
            self.open_entry(entry.number)
            for style, words in entry.text.parts():
                self.append(words, style)
            self.show_rule(entry)

    def show_rule(self, entry: Entry) -> None:
        """Show an entry's facts as they are now."""
        self.set_rule(entry.number, entry.rule(self.desk.speed(entry), self.desk.slowed(entry)))

    def _choose(self, entry: Entry | None) -> None:
        self.texts.chosen = entry.number if entry else None
        self.chosen = self.texts.chosen
        self.refresh_bindings()

    @on(Transcript.Picked)
    def _picked(self, event: Transcript.Picked) -> None:
        event.stop()
        if (entry := self.texts.entries.get(event.entry)) is not None:
            self._choose(entry)

    # --- each text ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        entry = self.entry
        match action:
            case "undo_delete":
                return self.texts.can_restore
            case "sibling":
                step = parameters[0]
                assert isinstance(step, int)
                return entry is not None and 0 <= entry.at + step < len(entry.texts)
            case "mark_copies" | "save" | "verify" | "card":
                return entry is not None and entry.text.over
            case "side_by_side":
                return entry is not None and len(entry.texts) > 1
            case "edit" | "star" | "delete" | "choose":
                return entry is not None
        return True

    def action_choose(self, count: int) -> None:
        if (entry := self.texts.step(count)) is not None:
            self._choose(entry)
            self.show_entry(entry.number)

    def action_sibling(self, count: int) -> None:
        """Show another of the texts that were written in this place."""
        entry = self.entry
        if entry is not None and 0 <= entry.at + count < len(entry.texts):
            self.show_sibling(entry, entry.at + count)

    def show_sibling(self, entry: Entry, at: int) -> None:
        """Let an entry's text number `at` stand in the transcript."""
        entry.at = at
        self.keeper.keep_choice(entry)
        self.redraw(entry)
        self.show_entry(entry.number)
        self.refresh_bindings()

    def action_side_by_side(self) -> None:
        if (entry := self.entry) is not None:
            self.post_message(self.SideBySide(entry))

    def action_edit(self) -> None:
        """The text as a prompt, to be changed before it goes on."""
        if (entry := self.entry) is not None:
            self.desk.stop()
            self.post_message(self.Edit(entry.text.whole))

    def action_star(self) -> None:
        if (entry := self.entry) is not None:
            entry.text.starred = not entry.text.starred
            if entry.text.over:
                self.keeper.keep(entry, entry.text)
            self.show_rule(entry)

    def action_delete(self) -> None:
        if (entry := self.entry) is not None:
            if entry is self.desk.entry:
                self.desk.stop()
            self.texts.delete(entry)
            self.keeper.forget(entry)
            self._choose(None)
            self.redraw()

    def action_undo_delete(self) -> None:
        if (entry := self.texts.restore()) is not None:
            self.keeper.keep(entry, *entry.texts)
            self.redraw()
            self._choose(entry)
            self.show_entry(entry.number)

    @work(group="mark", exclusive=True)
    async def action_mark_copies(self) -> None:
        """Mark what is copied from the training text, or take the marks away."""
        if (entry := self.entry) is None:
            return
        text = entry.text
        if text.copies is not None:
            text.copies = None
        else:
            try:
                text.copies = await self._writer.copies(text.checkpoint.path, text.whole)
            except UserError as error:
                self.app.notify(str(error), severity="error")
                return
        self.redraw(entry)
        self.show_entry(entry.number)

    def action_save(self) -> None:
        if (entry := self.entry) is not None:
            self.output.save(entry.text, entry.number)

    @work(group="verify", exclusive=True)
    async def action_verify(self) -> None:
        """Say whether the reference computation writes the same text."""
        if (entry := self.entry) is not None:
            await self._verified(entry)

    @work(group="verify", exclusive=True)
    async def action_card(self) -> None:
        """Verify a text, and save it with all that is needed to print it again."""
        if (entry := self.entry) is not None:
            text = entry.text
            if (sha256 := await self._verified(entry)) is not None:
                self.output.save_card(text, entry.number, sha256)

    async def _verified(self, entry: Entry) -> str | None:
        """The checkpoint's sha256 if the plain loop writes the same text, else None; either is
        noted below the text."""
        noted = len(entry.text.notes)
        sha256 = await self.output.verify(entry.text)
        if len(entry.text.notes) > noted:
            self.keeper.keep(entry, entry.text)
            self.redraw(entry)
            self.show_entry(entry.number)
        return sha256
