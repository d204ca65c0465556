"""What tuigpt is for, as a user in a terminal sees it: train, watch, open, prompt, come back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from json_files import read_json
from system.conftest import Tuigpt
from system.terminal import Terminal

from tuigpt.tui.screens.new_run.fields import FIELDS

BRAILLE = r"[\u2801-\u28ff]"

OpenTerminal = Callable[..., Terminal]

FIRST_SCREEN = "No run yet|The poet is open"
"""Without a run: with the built-in model in this tree, and without it."""


def start_run(terminal: Terminal, name: str, max_steps: int, text: str = "") -> None:
    """Fill in the form by keys: the size stays as it is, the rest is made tiny."""
    typed = {"name": name, "max_steps": str(max_steps), "batch_size": "8", "block_size": "32"}
    terminal.press("ctrl+n")
    terminal.until("Start training")
    if text:
        terminal.press(text)
        terminal.until(rf"● your file or folder  {re.escape(text)} ")
    terminal.press("f2")
    for field in FIELDS:
        if field in typed:
            terminal.press(typed[field])
            terminal.until(rf"{field.replace('_', ' ')} +┃?{re.escape(typed[field])} ")
        terminal.press("tab")
    terminal.until(r"\d+k parameters · ")
    terminal.press("ctrl+s")
    terminal.until(lambda screen: "Start training" not in screen)


@pytest.mark.parametrize(
    ("columns", "rows", "text", "symbols"),
    [(160, 45, "", 65), (80, 24, "verse.txt", 29)],
)
def test_train_watch_open_prompt_and_come_back(
    open_terminal: OpenTerminal,
    tuigpt: Tuigpt,
    home: Path,
    verse_file: Path,
    columns: int,
    rows: int,
    text: str,
    symbols: int,
) -> None:
    terminal = open_terminal(columns=columns, rows=rows)
    terminal.until(FIRST_SCREEN)
    start_run(terminal, "first", max_steps=60, text=text)

    # The curve comes up, and falls from pure guessing.
    terminal.until(r"first ● training")
    terminal.until(rf"─ train(.|\n)*{BRAILLE}")
    terminal.until(r"first ✓ finished +60/60")
    best = terminal.until(r"(?:best )?(\d\.\d\d) @ 60")
    assert best and float(best[1]) < math.log(symbols) - 0.3
    levels = [float(level) for level in re.findall(r" (\d(?:\.\d)?) ?┤", terminal.text)]
    assert max(levels) > math.log(symbols) - 0.5, terminal.text

    # Its checkpoint is listed, and enter opens it in the generate pane.
    terminal.press("ctrl+o")
    terminal.until(r"first .*finished(.|\n)* 60  +\d\.\d\d ?★ .*[\d.]+ MB")
    terminal.press("home", "down", "enter")
    terminal.until("⏎ send(.|\n)*$")
    terminal.until("Type a beginning, such as ROMEO:")

    # A prompt is gone on from, and the text streams in.
    terminal.press("Juliet")
    terminal.until("│ Juliet +│")
    terminal.press("enter")
    terminal.until(r"first@60 .* 200 · [\d,]+(?: characters)?/s(.|\n)*Juliet")

    terminal.press("ctrl+q")
    assert terminal.until_ended() == 0
    assert b"Traceback" not in terminal.output

    listed = tuigpt("list")
    assert listed.returncode == 0
    assert re.search(r"^first  finished  step 60/60$", listed.stdout, re.MULTILINE)
    assert re.search(r"^ +60 +\d\.\d\d ★ +\d\.\d\d ", listed.stdout, re.MULTILINE)

    again = open_terminal(columns=columns, rows=rows)
    again.until(r"first ✓ finished +60/60")
    again.until("type a beginning")
    again.press("ctrl+q")
    assert again.until_ended() == 0
    assert read_json(home / "runs" / "first" / "status.json")["state"] == "finished"


def test_leaving_a_run_at_work_and_stopping_it_later(
    open_terminal: OpenTerminal, tuigpt: Tuigpt, home: Path, verse_file: Path
) -> None:
    """Quitting asks; the run trains on; the next start shows it, and `s` saves and stops it."""
    terminal = open_terminal()
    terminal.until(FIRST_SCREEN)
    start_run(terminal, "long", max_steps=1_000_000, text="verse.txt")
    terminal.until(r"long ● training.* [1-9][\d,]*/1,000,000")
    terminal.press("ctrl+q")
    terminal.until("long is still training")
    terminal.press("escape")  # stay
    terminal.until(lambda screen: "still training" not in screen)
    terminal.press("ctrl+q")
    terminal.until("Leave it training, quit")
    terminal.press("enter")
    assert terminal.until_ended() == 0

    left_at = read_json(home / "runs" / "long" / "status.json")["step"]
    again = open_terminal()
    again.until(
        lambda screen: (
            (seen := re.search(r"long ● training.* ([\d,]+)/1,000,000", screen))
            and int(seen[1].replace(",", "")) > left_at
        )
    )
    again.press("ctrl+t", "s")
    stopped = again.until(r"long ■ stopped +([\d,]+)/1,000,000")
    assert stopped
    step = int(stopped[1].replace(",", ""))
    again.press("ctrl+q")  # nothing is at work, so nothing is asked
    assert again.until_ended() == 0
    assert (home / "runs" / "long" / "checkpoints" / f"step-{step:06d}.safetensors").exists()
    assert f"long  stopped  step {step:,}/1,000,000" in tuigpt("list").stdout
