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

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen:
            keys, end = self._read_bindings()
            if (keys, end) != (self._keys, self._end):
                self._keys, self._end = keys, end
                self.refresh()

    def _read_bindings(self) -> tuple[list[Content], Content]:
        """Every binding to be shown, those of a group with their one description."""
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
        keys = [self._one(bindings, what) for what, bindings in shown.items()]
        ends = [self._one([end[name]], end[name].description) for name in AT_THE_END if name in end]
        return keys, Content("").join(ends)

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
        line = Content("")
        for key in self._keys:
            if line.cell_length + key.cell_length > room:
                break
            line = Content.assemble(line, key)
        return Content.assemble(line, " " * max(0, room - line.cell_length), self._end)

    def action_press(self, key: str) -> None:
        self.app.simulate_key(key)
