"""Draws the README's pictures of the app: `python assets/make_screenshots.py [FOLDER]`.

The app runs without a terminal, in a home with one run, the one that became the poet, and writes
after `ROMEO:`, 240 characters with seed 7. The links to web fonts are taken out of the pictures.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

ASSETS = Path(__file__).resolve().parent
STEP = 2180
LENGTH = 240
"""Characters that are written: all of them within the model's context."""

STATUS = {
    "state": "finished", "step": STEP, "max_steps": STEP, "device": "cpu",
    "val_loss": 1.447, "best_val_loss": 1.447, "best_step": STEP,
}  # fmt: skip


def make_home(home: Path) -> None:
    """A home whose only run is the poet's own."""
    run = home / "runs" / "bard"
    (run / "checkpoints").mkdir(parents=True)
    shutil.copy(ASSETS / "poet-run.json", run / "run.json")
    shutil.copy(ASSETS / "poet-metrics.jsonl", run / "metrics.jsonl")
    shutil.copy(ASSETS / "poet.safetensors", run / "checkpoints" / f"step-{STEP:06d}.safetensors")
    (run / "status.json").write_text(json.dumps(STATUS), "utf-8")


def shown(app: App[None]) -> str:
    return re.sub(r"<[^>]*>", "", app.export_screenshot()).replace("&#160;", " ")


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait, for a minute at most, until something is on the screen."""
    for _ in range(600):
        if condition():
            return
        await pilot.pause(0.1)
    raise SystemExit(f"it never came; the screen was:\n{shown(pilot.app)}")


async def draw(home: Path, columns: int, rows: int, pane: str, name: Path) -> None:
    from tuigpt.tui.app import TuigptApp

    app = TuigptApp(home)
    async with app.run_test(size=(columns, rows)) as pilot:
        await until(pilot, lambda: "bard@" in shown(app))
        app.query_one("#length", Input).value = str(LENGTH)
        app.query_one("#seed", Input).value = "7"
        await pilot.press("ctrl+g", *"ROMEO:", "enter")
        over = rf"(?<!of ){LENGTH} · [\d,]+/s"
        await until(pilot, lambda: pane != "ctrl+g" or re.search(over, shown(app)))
        await pilot.press(pane)
        for box in app.query(TextArea):
            box.cursor_blink = False
        await pilot.pause(1.5)
        picture = re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.S)
        name.write_text(picture, "utf-8")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS
    os.environ |= {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
    for columns, rows, pane in ((160, 45, "ctrl+g"), (80, 24, "ctrl+t")):
        with tempfile.TemporaryDirectory(prefix="tuigpt-") as home:
            settings = Path(home) / "settings.toml"
            settings.write_text("hide_poet = true\n", "utf-8")
            os.environ["TUIGPT_CONFIG"] = str(settings)
            make_home(Path(home))
            name = folder / f"screenshot-{columns}x{rows}.svg"
            asyncio.run(draw(Path(home), columns, rows, pane, name))


if __name__ == "__main__":
    main()
