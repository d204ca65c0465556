"""A run's growing up, read again from its checkpoints."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from system.terminal import Terminal

FIXTURES = Path(__file__).parents[1] / "fixtures"

Tuigpt = Callable[..., "subprocess.CompletedProcess[str]"]
OpenTerminal = Callable[..., Terminal]

COLOURS = r"\x1b\[[\d;]*m"


def test_each_step_writes_what_generate_writes_for_it(
    tuigpt: Tuigpt, open_terminal: OpenTerminal, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(FIXTURES / "run-v1-char", home / "runs" / "verse")
    shutil.copy(FIXTURES / "verse.txt", tmp_path)
    drawn = ["--prompt=It", "--seed=7", "--max-new-tokens=200"]
    evolved = tuigpt("evolve", "verse", *drawn)
    assert evolved.returncode == 0, evolved.stderr
    parts = re.split(r"^── ", evolved.stdout, flags=re.MULTILINE)[1:]
    assert [part.split()[:2] for part in parts] == [["step", "3"], ["step", "6"]]
    assert all("0% copied" in part and "val " in part for part in parts)
    alone = tuigpt("generate", "verse@3", *drawn).stdout
    assert parts[0].split("\n", 1)[1].rstrip() == alone.rstrip()

    terminal = open_terminal("evolve", "verse", *drawn)
    terminal.until_ended()
    written = terminal.output.decode().replace("\r\n", "\n")
    written = written[written.index("── ") :]
    assert re.sub(COLOURS, "", written).strip() == evolved.stdout.strip()
    first, second = written.split("── ")[1:]
    assert "\x1b" not in first, "nothing came before it that could differ"
    untouched, *painted = re.split(COLOURS, second)
    assert untouched.startswith("step 6") and "\nIt" in untouched, "the prompt is not new"
    assert any(part.strip() for part in painted[::2]), "what is new is in colour"
