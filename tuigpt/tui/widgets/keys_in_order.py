"""Text fields that keep up with fast fingers, and with a burst of keys from a slow line."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input


async def run_own_binding(field: Widget, event: events.Key) -> None:
    """Run the field's action for this key, if it has one, before the next key is read.

    Textual inserts letters at once but runs bindings only after their key has bubbled up, so that
    in a burst a backspace would come after the letters behind it.
    """
    action = _actions(type(field)).get(event.key)
    if action is not None:
        event.stop()
        event.prevent_default()
        await field.run_action(action)


class Field(Input):
    """A line of text."""

    async def on_key(self, event: events.Key) -> None:
        await run_own_binding(self, event)


def _actions(kind: type) -> dict[str, str]:
    """Key and action of every binding that the class and its bases declare."""
    actions: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for binding in base.__dict__.get("BINDINGS", ()):
            assert isinstance(binding, Binding)
            actions |= {key.strip(): binding.action for key in binding.key.split(",")}
    return actions
