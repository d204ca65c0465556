"""The box a prompt is typed into: enter sends it, a paste never does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from tuigpt.tui.guarded import GuardedApp
from tuigpt.tui.keys import with_keys
from tuigpt.wording import with_line_feeds

_PASTE_ENDS = 0.25
"""Seconds without a key after which what was pasted as keys is over."""


class PromptBox(TextArea):
    """A text area of a few lines with a history of what was sent.

    A terminal without bracketed paste sends what is pasted as keys, all in one go. So an enter with
    more typing right behind it is a line's end, and so are those that follow until a pause.
    """

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
        # Each blink is an update of the screen, for a slow line and for a training beside it too.
        self.cursor_blink = False
        self._history: list[str] = []
        self._draft = ""
        self._at = 0
        self._pasting_until = 0.0

    def on_mount(self) -> None:
        words = "enter write · {prompt.new-line} line · ↑ older"
        self.border_subtitle = Content(with_keys(self, words))

    def set_history(self, prompts: Sequence[str]) -> None:
        """Prompts of earlier times, oldest first, for ↑ to bring back."""
        self._history = list(prompts)
        self._at = len(self._history)

    def action_send(self) -> None:
        """Send what is there and select it: typing begins anew, an arrow key keeps it."""
        if self.text and (not self._history or self._history[-1] != self.text):
            self._history.append(self.text)
        self._at, self._draft = len(self._history), ""
        self.post_message(self.Sent(self, self.text))
        self.select_all()

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; from the first line on, to the prompt sent before."""
        if select or not self.cursor_at_first_line:
            super().action_cursor_up(select)
            return
        if self._at == len(self._history):
            self._draft = self.text
        # What was just sent is still there: the one before it is meant.
        older = (n for n in range(self._at - 1, -1, -1) if self._history[n] != self.text)
        if (at := next(older, None)) is not None:
            self._recall(at)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; from the last line on, to the prompt sent after, and at last to the draft."""
        if not select and self.cursor_at_last_line and self._at < len(self._history):
            self._recall(self._at + 1)
        else:
            super().action_cursor_down(select)

    def _recall(self, at: int) -> None:
        self._at = at
        self.text = self._history[at] if at < len(self._history) else self._draft
        self.move_cursor(self.document.end)

    async def on_key(self, event: events.Key) -> None:
        """Send by its key, which a text area would take for a new line."""
        now = time.monotonic()
        pasting = now < self._pasting_until
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self and active.binding.action == "send":
            event.stop()
            event.prevent_default()
            if pasting or (isinstance(self.app, GuardedApp) and self.app.more_typing):
                pasting = True
                self.insert("\n")
            else:
                await self.run_action("send")
        if pasting:
            self._pasting_until = now + _PASTE_ENDS

    def on_paste(self, event: events.Paste) -> None:
        """Insert a paste whole, newlines and all, with LF line ends."""
        event.prevent_default()
        event.stop()
        self.put(with_line_feeds(event.text))

    def put(self, text: str) -> None:
        """Write text where the cursor is, instead of what is selected."""
        self.replace(text, *self.selection, maintain_selection_offset=False)
