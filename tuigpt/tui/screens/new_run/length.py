"""The question how long a run trains: its number can be typed over where it stands."""

from __future__ import annotations

from textual import events
from textual.message import Message

from tuigpt.tui.screens.new_run.fields import LENGTH_FIELDS
from tuigpt.tui.screens.new_run.radio import Answers, Radio

_NUMBERS = {"steps": "max_steps", "short": "minutes", "long": "minutes"}
"""For the answers with a number the setting that it is; the shorter time itself is fixed."""

_DIGITS = tuple("0123456789")

_MOST_DIGITS = 9


class Length(Radio):
    """Digits change the number of the chosen answer: the first one begins a new number."""

    class Typed(Message):
        """A number was typed.

        Attributes:
            setting: what it is: `max_steps` or `minutes`.
            digits: all of it, or "" where everything was taken back.
        """

        def __init__(self, setting: str, digits: str) -> None:
            super().__init__()
            self.setting = setting
            self.digits = digits

    def __init__(self, answers: Answers, *, chosen: str, id: str) -> None:  # noqa: A002
        super().__init__(answers, chosen=chosen, across=True, id=id,
                         tooltip="Digits change the number that is chosen")  # fmt: skip
        self._typed = ""

    def on_key(self, event: events.Key) -> None:
        setting = _NUMBERS.get(self.chosen)
        if setting is None:
            return
        if event.character in _DIGITS:
            typed = (self._typed + str(event.character))[:_MOST_DIGITS]
        elif event.key == "backspace" and self._typed:
            typed = self._typed[:-1]
        else:
            return
        event.stop()
        if self.chosen == "short":
            self.choose("long")
        self._typed = typed
        self.post_message(self.Typed(setting, typed))

    def choose_for(self, setting: str) -> None:
        """Choose the answer that a setting counts for, unless it counts for the chosen one."""
        if setting in LENGTH_FIELDS[self.chosen]:
            return
        for length, settings in LENGTH_FIELDS.items():
            if setting in settings:
                self.choose(length)
                return

    def on_blur(self) -> None:
        self._typed = ""

    def watch_chosen(self) -> None:
        self._typed = ""
