"""Keys as the screen names them: those that the user has chosen, else the usual ones.

A text names a key as `{id of its action}`, such as "{train.new-run} trains a model".
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode

_ACTION = re.compile(r"\{([a-z][a-z-]*\.[a-z0-9-]+)\}")


def bindings_of(node: DOMNode) -> Iterator[Binding]:
    """The bindings with an id that a node's class declares, with the keys that hold now."""
    chosen: Mapping[str, str] = getattr(node.app, "chosen_keys", {})
    for binding in _declared(type(node)):
        key = chosen.get(str(binding.id))
        yield replace(binding, key=key, key_display=None) if key else binding


def spelled(app: App[Any], binding: Binding) -> str:
    """The first key of a binding as people write it: ^g, f3, esc."""
    return app.get_key_display(next(iter(binding.make_bindings([binding]))))


def with_keys(node: DOMNode, text: str) -> str:
    """A text with the keys for the actions that it names.

    They are those of the node, of what it stands in, or of the app; another name stays as it is.
    """
    named = set(_ACTION.findall(text))
    if not named:
        return text
    keys = {
        binding.id: spelled(node.app, binding)
        for owner in reversed(node.ancestors_with_self)
        for binding in bindings_of(owner)
        if binding.id in named
    }
    return _ACTION.sub(lambda match: keys.get(match[1], match[0]), text)


def all_actions() -> list[tuple[str, str, str]]:
    """Id, keys and meaning of everything that a key can be chosen for, by their ids."""
    package = importlib.import_module("tuigpt.tui")
    for module in pkgutil.walk_packages(package.__path__, "tuigpt.tui."):
        importlib.import_module(module.name)
    bindings = {str(b.id): b for node in _subclasses(DOMNode) for b in _declared(node)}
    return [(name, bindings[name].key, bindings[name].tooltip) for name in sorted(bindings)]


def unknown_actions(chosen: Iterable[str]) -> list[str]:
    """What is wrong with the ids of actions that keys were chosen for, each in a line."""
    known = {action for action, _, _ in all_actions()}
    problems = []
    for action in sorted(set(chosen) - known):
        near = difflib.get_close_matches(action, known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        problems.append(f"the settings choose a key for {action!r}, which is no action{meant}")
    return problems


def _declared(kind: type[DOMNode]) -> Iterator[Binding]:
    """What a class and those it is built on declare, but for Textual's own."""
    for base in kind.__mro__:
        if not base.__module__.startswith("textual."):
            for binding in base.__dict__.get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.id:
                    yield binding


def _subclasses(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    yield kind
    for further in kind.__subclasses__():
        yield from _subclasses(further)
