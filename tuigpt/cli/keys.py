"""`tuigpt keys`: what can be done in the app, and by which keys."""

from __future__ import annotations

from pathlib import Path

from tuigpt.cli.parser import Command
from tuigpt.paths import home_dir


def keys(home: Path) -> int:
    """Print each action's id, its keys as the settings write them, and what it does."""
    from tuigpt.settings import read_settings
    from tuigpt.tui.keys import all_actions

    chosen = read_settings(home).keys
    rows = [(action, chosen.get(action, key), about) for action, key, about in all_actions()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for action, key, about in rows:
        print(f"{action:{widths[0]}}  {key:{widths[1]}}  {about}")
    return 0


COMMANDS = {
    "keys": Command(
        usage="[flags]",
        add_flags=lambda parser: None,
        run=lambda options: keys(home_dir(options.home)),
        examples=["tuigpt keys", "tuigpt keys | grep train"],
    )
}
