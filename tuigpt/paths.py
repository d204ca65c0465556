"""Where runs, settings and the shipped assets live."""

import os
from pathlib import Path

from platformdirs import user_data_path

from tuigpt.errors import Setting, UserError


def home_dir(override: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds everything tuigpt keeps.

    Args:
        override: a folder named by the user; else `TUIGPT_HOME`, else the platform's data folder.

    Raises:
        UserError: there is none, or it is named from a current folder that is gone.
    """
    chosen = override or os.environ.get("TUIGPT_HOME")
    try:
        return user_path(chosen).absolute() if chosen else default_home()
    except FileNotFoundError:
        raise UserError(f"the current folder is gone, so {str(chosen)!r} leads nowhere") from None


def default_home() -> Path:
    """The home where the user names none.

    Raises:
        UserError: this account has no folder of its own.
    """
    try:
        return user_data_path("tuigpt")
    except RuntimeError:  # neither HOME nor an entry in the list of accounts
        raise UserError(
            "this account has no home folder: name a folder for runs with ", Setting("home"),
            " or with TUIGPT_HOME",
        ) from None  # fmt: skip


def user_path(typed: str | os.PathLike[str]) -> Path:
    """A path as a user types it: `~` is their home; `~somebody` that nobody is called stays."""
    return Path(os.path.expanduser(typed))


def runs_dir(home: Path) -> Path:
    """The folder with one folder for each run."""
    return home / "runs"


def names_of_runs(home: Path) -> list[str]:
    """What lies in the folder of runs, in no order; nothing where there is no such folder.

    Raises:
        UserError: it cannot be read.
    """
    folder = runs_dir(home)
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {str(folder)!r}: {error.strerror or error}") from None


def cache_dir(home: Path) -> Path:
    """The folder for what can be made again; it may be deleted at any time."""
    return home / "cache"


def asset(name: str) -> Path:
    """A file shipped with tuigpt: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "assets" / name
    return installed if installed.exists() else package.parent / "assets" / name
