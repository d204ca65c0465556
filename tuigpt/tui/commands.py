"""What can be done, as a list: every binding of the app and its panes, named `area: verb`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.actions import parse
from textual.app import App
from textual.dom import DOMNode
from textual.widget import Widget
from textual.widgets import Input

from tuigpt.tui.keys import bindings_of, spelled, with_keys
from tuigpt.tui.panes.pane import Pane
from tuigpt.tui.widgets.slider import Slider


@dataclass(frozen=True)
class Command:
    """Something that can be done now.

    Attributes:
        title: `area: verb`.
        key: as people write it, or "" where there is none.
        run: does it.
    """

    title: str
    help: str
    key: str
    run: Callable[[], Awaitable[object] | object]


def all_commands(app: App[Any], places: Sequence[Widget], *extra: Command) -> list[Command]:
    """Everything that can be done now: training anew, then what these places can do, in order.

    What leads away from the app comes last, not to be met by chance.
    """
    own = [command for command in commands_of(app) if command.title != "view: commands"]
    nodes = [node for place in places for node in place.walk_children(with_self=True)]
    nodes.sort(key=lambda node: isinstance(node, Slider))
    theirs = [command for node in nodes for command in (*commands_of(node), *_to_field(node))]
    away = [command for command in own if command.title.startswith("app: ")]
    rest = [command for command in own[1:] if command not in away]
    return [own[0], *theirs, *rest, *extra, *away]


def commands_of(node: DOMNode) -> Iterator[Command]:
    """One for each binding with an id and a tooltip, as all of tuigpt's have, that is allowed now.

    The area is what the binding's id begins with; of a slider, which there are several of, it is
    the label.
    """
    for binding in bindings_of(node):
        if not binding.tooltip:
            continue
        _, name, parameters = parse(binding.action)
        if not node.check_action(name, parameters):
            continue
        area = node.label if isinstance(node, Slider) else str(binding.id).partition(".")[0]
        yield Command(
            f"{area}: {binding.description.lower()}", with_keys(node, binding.tooltip),
            spelled(node.app, binding),
            partial(_run, node.app, node, binding.action),
        )  # fmt: skip


def _to_field(node: DOMNode) -> Iterator[Command]:
    """Going to a field that has a name; that is the title of it."""
    if isinstance(node, Input) and node.name:
        yield Command(node.name, str(node.tooltip), "", partial(_go_to, node))


def _go_to(node: Widget) -> None:
    """Focus a field, on the pane that it stands in."""
    pane = next(at for at in node.ancestors if isinstance(at, Pane))
    app: Any = node.app
    app.action_show_pane(pane.id)
    node.focus()


async def _run(app: App[Any], node: DOMNode, action: str) -> None:
    """Do it as if its key had been pressed where it belongs."""
    if isinstance(node, Widget) and node.can_focus:
        node.focus()
    await app.run_action(action, node)
