"""The last line of the screen: the keys that can be pressed now."""

from __future__ import annotations

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget


class KeyLine(Widget):
    """Keys and what each does; a click presses one.

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
        self._words = Content("")

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen:
            words = self._line()
            if words != self._words:
                self._words = words
                self.refresh()

    def _line(self) -> Content:
        """Every binding to be shown, those of a group with their one description."""
        shown: dict[str, list[Binding]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled:
                what = binding.group.description if binding.group else binding.description
                others = shown.setdefault(what, [])
                if all(binding.action != other.action for other in others):
                    others.append(binding)
        parts: list[Content | str | tuple[str, str]] = []
        for what, bindings in shown.items():
            parts.append(" ")
            for binding in bindings:
                key = Content.styled(
                    self.app.get_key_display(binding),
                    "bold $footer-key-foreground on $footer-key-background",
                )
                press = Style.from_meta({"@click": f"press({binding.key!r})"})
                parts.append(key.stylize(press))
            parts.append((f" {what} ", "$footer-description-foreground"))
        return Content.assemble(*parts)

    def render(self) -> Content:
        return self._words

    def action_press(self, key: str) -> None:
        self.app.simulate_key(key)
