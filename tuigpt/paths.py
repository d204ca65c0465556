"""Where runs, settings and the shipped assets live."""

import os
from pathlib import Path

from platformdirs import user_data_path


def home_dir(override: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds everything tuigpt keeps.

    Args:
        override: a folder named by the user; else `TUIGPT_HOME`, else the platform's data folder.
    """
    chosen = override or os.environ.get("TUIGPT_HOME")
    return user_path(chosen).absolute() if chosen else default_home()


def default_home() -> Path:
    """The home where the user names none."""
    return user_data_path("tuigpt")


def user_path(typed: str | os.PathLike[str]) -> Path:
    """A path as a user types it: `~` is their home; `~somebody` that nobody is called stays."""
    return Path(os.path.expanduser(typed))


def runs_dir(home: Path) -> Path:
    """The folder with one folder for each run."""
    return home / "runs"


def cache_dir(home: Path) -> Path:
    """The folder for what can be made again; it may be deleted at any time."""
    return home / "cache"


def asset(name: str) -> Path:
    """A file shipped with tuigpt: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "assets" / name
    return installed if installed.exists() else package.parent / "assets" / name
