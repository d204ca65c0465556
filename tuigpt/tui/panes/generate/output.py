"""What leaves the app: a text as it is, the command that prints it again, and its card."""

from __future__ import annotations

from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import write_output
from tuigpt.paths import user_path
from tuigpt.tui.clipboard import LONGEST
from tuigpt.tui.panes.generate.texts import WrittenText
from tuigpt.tui.panes.generate.writer import Writer
from tuigpt.tui.widgets.transcript import Transcript


class Output:
    """Copies, saves and verifies texts, and says what came of it."""

    def __init__(self, view: Transcript, writer: Writer, home: Path) -> None:
        """
        Args:
            view: a widget of the app that says it.
        """
        self._view, self._writer, self._home = view, writer, home

    def copy(self, text: WrittenText | None) -> None:
        """Copy prompt and text, exactly as written."""
        if text is None or not text.whole:
            self._view.app.notify("there is no text to copy yet")
        else:
            self._copy(text.whole, f"{len(text.whole):,} characters")

    def copy_command(self, text: WrittenText) -> None:
        """Copy what prints the text again, where one command does."""
        config = text.one_command
        if config is None:
            why = text.why_no_command
            self._view.app.notify(
                f"no one command prints this text again: {why}", severity="warning"
            )
            return
        from tuigpt.generation.card import tuigpt_command  # not before it is asked for

        extra = ["--window", "rolling"] if text.window == "rolling" else []
        command = tuigpt_command(text.checkpoint, self._home, text.prompt, config, extra)
        self._copy(command, "the command")

    def _copy(self, text: str, what: str) -> None:
        self._view.app.copy_to_clipboard(text)
        # A terminal does not answer whether it took it.
        why = "if the terminal allows"
        if len(text.encode("utf-8", "replace")) > LONGEST:
            why = "if the terminal takes so much"
        self._view.app.notify(f"copied {what}, {why}; w in the texts saves a file")

    def save(self, text: WrittenText, number: int) -> None:
        """Ask for a file, and write the text to it."""
        self._save("the text", f"text-{number}.txt", text.whole)

    def _save(self, what: str, name: str, content: str) -> None:
        app = self._view.app

        def chosen(path: str | None) -> None:
            if path is None:
                return
            try:
                write_output(user_path(path), content.encode("utf-8", "backslashreplace"))
            except (OSError, ValueError) as error:
                app.notify(f"cannot write {path!r}: {error}", severity="error")
            else:
                app.notify(f"saved {what} to {path}")

        from tuigpt.tui.panes.generate.save import SaveAs

        app.push_screen(SaveAs(what, name), chosen)

    async def verify(self, text: WrittenText) -> str | None:
        """Whether the reference computation writes the same text, which its notes tell.

        Returns:
            the checkpoint's sha256 if it does, else None.
        """
        app = self._view.app
        config = text.one_command
        if config is None or text.window == "rolling":
            why = "a rolling window is another" if config else text.why_no_command
            app.notify(f"the plain loop does not write this text: {why}", severity="warning")
            return None
        app.notify("verifying …")
        try:
            found = await self._writer.verify(text.checkpoint.path, text.prompt, config, text.ids)
        except UserError as error:
            app.notify(str(error), severity="error")
            return None
        same = found.differs_at is None
        note = (
            "verified: the plain loop, without a cache, writes the same text"
            if same
            else f"the plain loop writes another text from token {found.differs_at:,} on"
        )
        if note not in text.notes:
            text.notes.append(note)
        return found.sha256 if same else None

    def save_card(self, text: WrittenText, number: int, sha256: str) -> None:
        """Ask for a file, and write to it a verified text with all that prints it again.

        Args:
            sha256: of its checkpoint.
        """
        from tuigpt.generation.card import card, tuigpt_command, workshop_command

        config = text.one_command
        assert config is not None
        checkpoint = text.checkpoint
        command = tuigpt_command(checkpoint, self._home, text.prompt, config)
        theirs = workshop_command(
            f"{checkpoint.path.stem}.pt", text.prompt, config, checkpoint.vocab_size
        )
        content = card(text.whole, command, theirs, checkpoint.path, sha256)
        self._save("the card", f"card-{number}.txt", content)
