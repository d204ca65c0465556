"""Keys that the user has chosen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tuigpt import tui
from tuigpt.cli.main import main
from tuigpt.settings import change_settings
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


def test_the_shell_lists_all_actions_with_the_keys_that_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    change_settings(keys={"train.pause": "f12"})
    assert main(["keys"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(re.match(r"train\.pause +f12 +\w", row) for row in rows)
    assert any(re.match(r"view\.help +f1,question_mark +\w", row) for row in rows)
