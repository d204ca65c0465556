"""Keys that the user has chosen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tuigpt import tui
from tuigpt.tui.keys import unknown_actions


def test_a_key_for_what_is_no_action_is_named_with_the_one_that_was_meant() -> None:
    assert unknown_actions(["view.trainning", "view.help", "train.pause"]) == [
        "the settings choose a key for 'view.trainning', which is no action;"
        " did you mean view.training?"
    ]


def test_texts_name_keys_of_actions_that_there_are() -> None:
    """So that they follow when somebody binds another key."""
    named = set()
    for file in Path(tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(re.findall(r"\{([a-z-]+\.[a-z0-9-]+)\}", node.value))
    assert len(named) > 15 and unknown_actions(named) == []
