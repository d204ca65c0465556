"""`tuigpt` without a command: the app, where there is a terminal to show it on."""

import os
import sys
from argparse import Namespace

from tuigpt.errors import UserError
from tuigpt.paths import home_dir


def run(options: Namespace) -> int:
    """Open the app and stay until the user leaves it.

    Raises:
        UserError: there is no terminal, or the home cannot be used.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UserError(
            "the app needs a terminal; without one use `tuigpt train`, `tuigpt generate`"
            " and `tuigpt list` (see tuigpt --help)"
        )
    from tuigpt.tui.app import TuigptApp

    app = TuigptApp(home_dir(options.home))
    app.run()
    return app.return_code or 0
