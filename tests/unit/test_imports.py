"""Who imports whom: a first frame waits for no torch, and the contracts between the parts hold."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tuigpt.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]

HEAVY = ["torch", "numpy", "safetensors", "tokenizers"]


def loaded_by(statement: str, watched: Sequence[str] = HEAVY) -> str:
    program = f"{statement}\nimport sys\nprint(*set({watched}) & sys.modules.keys())"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        "tuigpt.cli.main",
        "tuigpt.config",
        "tuigpt.estimate",
        "tuigpt.tui.app",
        "tuigpt.runs.folder",
        "tuigpt.runs.follow",
        "tuigpt.runs.launch",
        "tuigpt.runs.lock",
        "tuigpt.runs.control",
        "tuigpt.charts.scale",
        "tuigpt.reports",
        "tuigpt.generation.client",
    ],
)
def test_nothing_heavy_is_loaded_by(module: str) -> None:
    assert loaded_by(f"import {module}") == ""


def test_the_first_frame_waits_for_nothing_that_it_does_not_show() -> None:
    later = [
        "tuigpt.tui.panes.training.pane", "tuigpt.tui.panes.checkpoints.pane",
        "tuigpt.tui.screens.new_run.form", "tuigpt.tui.screens.palette", "tuigpt.runs.folder",
        "tuigpt.charts.plot", "filelock", "tomlkit", "tomllib", "argparse",
    ]  # fmt: skip
    shown = "import tuigpt.cli.main, tuigpt.cli.app, tuigpt.tui.app, tuigpt.tui.panes.generate.pane"
    assert loaded_by(shown, later) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "poet", "--prompt=To", "--max-new-tokens=2"],
        ["train", "--n-layer=1", "--n-head=1", "--n-embd=8", "--block-size=8", "--max-steps=2",
         "--eval-tokens=16", "--device=cpu"],
        ["train", "--recipe=workshop", "--n-layer=1", "--n-head=1", "--n-embd=8", "--block-size=8",
         "--max-steps=2", "--eval-tokens=16", "--device=cpu"],
    ],
)  # fmt: skip
def test_the_compiler_is_not_loaded_unasked(arguments: list[str], tmp_path: Path) -> None:
    """It takes longer to load than all the rest."""
    statement = running([*arguments, f"--home={tmp_path}"], tmp_path)
    assert loaded_by(statement, ["torch", "torch._dynamo"]) == "torch"


def running(arguments: Sequence[str], home: Path) -> str:
    return (
        "import os\n"
        f"os.environ['TUIGPT_HOME'] = {str(home)!r}\n"
        "import contextlib, io\n"
        "from tuigpt.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()),"
        " contextlib.suppress(SystemExit):\n"
        f"    main({list(arguments)})\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["list"],
        *([command, "--help"] for command in COMMANDS),
        ["ask", "x", "pause"],
        ["stop", "x"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded_for(arguments: list[str], tmp_path: Path) -> None:
    assert loaded_by(running(arguments, tmp_path / "home")) == ""


@pytest.mark.parametrize(
    "arguments",
    [["inspect"], ["inspect", "--json", "--tokenizer=bpe:300"], ["cache"], ["recite", "poet"]],
    ids=" ".join,
)
def test_no_torch_is_loaded_for(arguments: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("to be or not to be\n" * 300, "utf-8")
    texts = [str(path)] if arguments[0] in ("inspect", "recite") else []
    assert loaded_by(running([*arguments, *texts], tmp_path / "home"), ["torch"]) == ""


def test_the_app_is_not_loaded_by_the_commands_that_train() -> None:
    program = (
        "import tuigpt.training.process, tuigpt.cli.generate, tuigpt.generation.server, sys\n"
        "print([m for m in sys.modules if m.split('.')[0] == 'textual'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert (result.returncode, result.stdout) == (0, "[]\n"), result.stderr


def test_the_contracts_hold() -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("import-linter is not installed")
    result = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
