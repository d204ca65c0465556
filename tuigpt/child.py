"""Python processes of tuigpt's own: started in one way, and understood when they fail.

A child imports nothing from the folder it stands in. It gets the very package that its parent
runs, wherever that lies: installed, or in a clone that is not. For this it is started by this
file's path, which loads the package from beside itself.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from pathlib import Path

SPIN_BRIEFLY = {"GOMP_SPINCOUNT": "1000"}
"""Lets OpenMP's threads that wait for each other spin only for microseconds before they sleep.

On two cores with other work, spinning on costs a training most of its speed; sleeping at once costs
a small model a quarter of it when there is none. OpenMP reads it when torch is loaded."""

_LONGEST_LINE = 500


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of tuigpt, such as "tuigpt" itself, in a new process."""
    return [sys.executable, *child_arguments(module, *arguments)]


def child_arguments(module: str, *arguments: str) -> list[str]:
    """`child_command` for who starts the interpreter itself."""
    return ["-P", str(Path(__file__).absolute()), module, *arguments]


def child_environment() -> dict[str, str]:
    """The environment of a child: ours, with what tuigpt needs where the user set nothing."""
    ours = {**SPIN_BRIEFLY, **os.environ, "PYTHONSAFEPATH": "1"}
    return ours | ({"PYTHONUTF8": "1"} if sys.flags.utf8_mode else {})


def last_line(output: str) -> str:
    """The last line that a child wrote for the user before it ended, or ""."""
    lines = output.strip().splitlines()
    return lines[-1].strip().removeprefix("tuigpt: ")[:_LONGEST_LINE] if lines else ""


def _load_own_package() -> None:
    folder = Path(__file__).absolute().parent
    spec = importlib.util.spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _load_own_package()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
