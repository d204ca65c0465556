"""The box a prompt is typed into: enter sends it, a paste never does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tuigpt.wording import with_line_feeds


class PromptBox(TextArea):
    """A text area of a few lines with a history of what was sent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", tooltip="Let the model continue this prompt",
                id="prompt.send"),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", "new line", key_display="^j",
                tooltip="Start a new line in the prompt", id="prompt.new-line", show=False),
        # ctrl+z, Textual's key for it, suspends the app as it does every program in a terminal.
        Binding("ctrl+underscore,super+z", "undo", "undo", key_display="^_",
                tooltip="Take back what was typed last", id="prompt.undo", show=False),
    ]  # fmt: skip

    @dataclass
    class Sent(Message):
        """The user sent the prompt."""

        box: PromptBox
        text: str

        @property
        def control(self) -> PromptBox:
            return self.box

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:  # noqa: A002
        super().__init__(
            placeholder=placeholder, id=id, compact=True, soft_wrap=True, tab_behavior="focus",
            highlight_cursor_line=False,
        )  # fmt: skip
        self.border_subtitle = "enter send · ^j new line · ↑ earlier prompts"
        self._history: list[str] = []
        self._at = 0

    def action_send(self) -> None:
        """Send what is there and keep it, so that it can be sent again or changed."""
        if not self._history or self._history[-1] != self.text:
            self._history.append(self.text)
        self._at = len(self._history)
        self.post_message(self.Sent(self, self.text))

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; from the first line on, to the prompt sent before."""
        if not select and self.cursor_at_first_line and self._at > 0:
            self._recall(self._at - 1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; from the last line on, to the prompt sent after."""
        if not select and self.cursor_at_last_line and self._at < len(self._history) - 1:
            self._recall(self._at + 1)
        else:
            super().action_cursor_down(select)

    def _recall(self, at: int) -> None:
        self._at = at
        self.text = self._history[at]
        self.move_cursor(self.document.end)

    async def on_key(self, event: events.Key) -> None:
        """Send by its key, which a text area would take for a new line."""
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self and active.binding.action == "send":
            event.stop()
            event.prevent_default()
            await self.run_action("send")

    def on_paste(self, event: events.Paste) -> None:
        """Insert a paste whole, newlines and all, with LF line ends."""
        event.prevent_default()
        event.stop()
        text = with_line_feeds(event.text)
        self.replace(text, *self.selection, maintain_selection_offset=False)
