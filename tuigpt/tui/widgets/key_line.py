"""The last line of the screen: the keys that can be pressed now."""

from __future__ import annotations

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget

from tuigpt.tui.keys import bindings_of

AT_THE_END = ("view.help", "app.quit")
"""Ids of what always stands at the right end, wherever one is."""

COMMANDS, ROOMY = "view.commands", 80
"""What finds all that the line has no room for, and the width from which on it is never cut."""

_LATER = "chart."
"""Beginning of the ids that come after the others: a chart has the focus on its pane."""


class KeyLine(Widget):
    """Keys and what each does; a click presses one. Help and the way out are never cut.

    Textual's own footer makes a widget of each key, and all of them anew whenever the focus moves,
    which takes longer than all else that happens then.
    """

    DEFAULT_CSS = """
    KeyLine {
        dock: bottom; height: 1; background: $footer-background; color: $footer-foreground;
        text-wrap: nowrap; text-overflow: clip;
    }
    """

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False
        self._keys: list[Content] = []
        self._end = Content("")
        self._commands = Content("")

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen:
            read = self._read_bindings()
            if read != (self._keys, self._commands, self._end):
                self._keys, self._commands, self._end = read
                self.refresh()

    def _read_bindings(self) -> tuple[list[Content], Content, Content]:
        """Every binding to be shown, those of a group with their one description; then that of the
        commands, and the end."""
        shown: dict[str, list[Binding]] = {}
        end: dict[str, Binding] = {}
        focused = self.screen.focused
        for key, (_, binding, enabled, _) in self.screen.active_bindings.items():
            if binding.id in AT_THE_END and enabled:
                typed = binding.key if len(binding.key) == 1 else None
                if key == "question_mark":
                    typed = "?"
                if not (typed and focused and focused.check_consume_key(key, typed)):
                    end[binding.id] = binding  # of several keys the last that works here
            elif binding.show and enabled:
                what = binding.group.description if binding.group else binding.description
                others = shown.setdefault(what, [])
                if all(binding.action != other.action for other in others):
                    others.append(binding)
        for binding in bindings_of(self.app):  # above a dialog, those that work everywhere
            if binding.id in AT_THE_END and binding.priority:
                end.setdefault(binding.id, next(iter(binding.make_bindings([binding]))))
        ordered = sorted(shown.items(), key=lambda item: str(item[1][0].id).startswith(_LATER))
        keys, commands = [], Content("")
        for what, bindings in ordered:
            if bindings[0].id == COMMANDS:
                commands = self._one(bindings, what)
            else:
                keys.append(self._one(bindings, what))
        ends = [self._one([end[name]], end[name].description) for name in AT_THE_END if name in end]
        return keys, commands, Content("").join(ends)

    def _one(self, bindings: list[Binding], what: str) -> Content:
        parts: list[Content | str | tuple[str, str]] = [" "]
        for binding in bindings:
            key = Content.styled(
                self.app.get_key_display(binding),
                "bold $footer-key-foreground on $footer-key-background",
            )
            parts.append(key.stylize(Style.from_meta({"@click": f"press({binding.key!r})"})))
        parts.append((f" {what} ", "$footer-description-foreground"))
        return Content.assemble(*parts)

    def render(self) -> Content:
        """As many keys as there is room for, none of them cut, and the end at the right."""
        room = self.size.width - self._end.cell_length
        keys, commands = self._keys, self._commands
        if self.size.width < ROOMY:
            keys, commands = [*keys, commands], Content("")
        room -= commands.cell_length
        line = Content("")
        for key in keys:
            if line.cell_length + key.cell_length > room:
                break
            line = Content.assemble(line, key)
        blank = " " * max(0, room - line.cell_length)
        return Content.assemble(line, commands, blank, self._end)

    def action_press(self, key: str) -> None:
        self.app.simulate_key(key)
