"""Children get the package that their parent runs, and nothing from where they stand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuigpt.child import child_command, child_environment, last_line

PACKAGE = Path(__file__).resolve().parents[2] / "tuigpt"


def test_a_clone_that_is_not_installed_starts_children_of_its_own(tmp_path: Path) -> None:
    clone = tmp_path / "clone" / "tuigpt"
    shutil.copytree(PACKAGE, clone, ignore=shutil.ignore_patterns("__pycache__"))
    (clone / "version.py").write_text('__version__ = "of the clone"\n')
    program = (
        "import subprocess\n"
        "from tuigpt.child import child_command, child_environment\n"
        "command = child_command('tuigpt', '--version')\n"
        "print(subprocess.check_output(command, text=True, cwd='/', env=child_environment()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=clone.parent, capture_output=True, text=True
    )
    assert done.stdout.strip() == "tuigpt of the clone", done.stderr


def test_arguments_arrive_as_they_are() -> None:
    command = child_command("tuigpt", "list", "--home", "a b\n", "--no-such")
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment())
    assert done.returncode == 2
    assert last_line(done.stderr).startswith("there is no flag '--no-such'")


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("first\ntuigpt: cannot\n\n", "cannot"),
        ("Traceback\n  ValueError: x", "ValueError: x"),
    ],
)
def test_last_line(output: str, line: str) -> None:
    assert last_line(output) == line


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "5")
    assert child_environment()["GOMP_SPINCOUNT"] == "5"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    assert child_environment()["GOMP_SPINCOUNT"] == "1000"
