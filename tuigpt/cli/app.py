"""`tuigpt` without a command: the app, where there is a terminal to show it on."""

import gc
import os
import sys

from tuigpt.errors import UserError
from tuigpt.paths import home_dir, names_of_runs


def run(home: str | None) -> int:
    """Open the app and stay until the user leaves it.

    Args:
        home: the folder for runs, where one is named.

    Raises:
        UserError: there is no terminal, or the home cannot be used.
    """
    # Textual draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM") == "dumb":
        raise UserError(
            "the app needs a terminal; without one use `tuigpt train`, `tuigpt generate`"
            " and `tuigpt list` (see tuigpt --help)"
        )
    # All that is made until the first frame stays: looking for garbage in it only costs time.
    gc.disable()
    from tuigpt.tui.app import TuigptApp

    folder = home_dir(home)
    names_of_runs(folder)  # one that cannot be read is refused here, where a person reads why
    app = TuigptApp(folder)
    app.run()
    return app.return_code or 0
