"""`tuigpt inspect`: what a text is understood as, before anything is trained on it."""

from __future__ import annotations

import sys
import time
from argparse import SUPPRESS, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tuigpt.cli import BAD_INPUT
from tuigpt.cli.flags import add_essentials, add_settings, add_text, asked
from tuigpt.cli.ink import print_labelled
from tuigpt.cli.parser import Command, Parser
from tuigpt.cli.progress import ProgressLine, progress_text
from tuigpt.errors import UserError
from tuigpt.paths import cache_dir, home_dir
from tuigpt.plan.choose import Asked
from tuigpt.reports import Offer, TextLine, TextProblem, TextProgress, TextReport, to_line
from tuigpt.signals import end_cleanly_on_signals

if TYPE_CHECKING:
    from tuigpt.text.read import ProgressCallback
    from tuigpt.text.report import Understood

REPORT_EVERY = 0.2
"""Least seconds between two progress lines for the app."""


def run(
    home: Path,
    sources: list[str],
    asked: Asked,
    as_json: bool,
    fetch: bool,
) -> int:
    """Read a text as `tuigpt train` would with the same arguments, and tell what it holds.

    Args:
        as_json: write the lines of `tuigpt.reports` for the app instead.
        fetch: with `as_json`, whether the network may be used; else it always may.

    Raises:
        UserError: the text cannot be read, or no run with these settings can start.
    """
    end_cleanly_on_signals()
    if not as_json:
        with ProgressLine(sys.stderr) as line:
            found = _understand(home, sources, asked, True, line)
        print_labelled(found.lines)
        if found.problem:
            raise found.problem
        return 0
    try:
        found = _understand(home, sources, asked, fetch, _JsonProgress())
    except UserError as error:
        _send(TextProblem(str(error), _offer(error)))
        return BAD_INPUT
    _send(TextReport(found.lines, str(found.problem or ""), found.facts))
    return 0


def _understand(
    home: Path,
    sources: list[str],
    asked: Asked,
    fetch: bool,
    progress: ProgressCallback,
) -> Understood:
    from tuigpt.text.named import BUILT_IN, open_text
    from tuigpt.text.read import scan
    from tuigpt.text.report import understand

    config, sizes = asked.settings(), asked.sizes
    text = open_text(
        sources or [BUILT_IN], config.encoding, cache=cache_dir(home), fetch=fetch,
        progress=progress,
    )  # fmt: skip
    return understand(
        text, scan(text, progress), config, sizes, progress, size_is_open=asked.size_is_open
    )


def _send(line: TextLine) -> None:
    print(to_line(line), flush=True)


def _offer(error: UserError) -> Offer | None:
    from tuigpt.text.detect import OfferError
    from tuigpt.text.named import NotFetched

    match error:
        case OfferError() if error.offer:
            return Offer(f"read as {error.offer}", encoding=error.offer)
        case NotFetched():
            return Offer("fetch it now", fetch=True)
    return None


class _JsonProgress:
    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REPORT_EVERY
            _send(TextProgress(progress_text(what, done, total)))


def _add_flags(parser: Parser) -> None:
    add_text(parser)
    parser.flag("--json", action="store_true", help="JSON lines, for programs")
    parser.flag("--fetch", action="store_true", help=SUPPRESS)
    add_essentials(parser)
    add_settings(parser)


def _run(options: Namespace) -> int:
    return run(
        home=home_dir(options.home),
        sources=options.text,
        asked=asked(options),
        as_json=options.json,
        fetch=options.fetch,
    )


COMMANDS = {
    "inspect": Command(
        usage="[TEXT …] [flags of train]",
        add_flags=_add_flags,
        run=_run,
        examples=(
            "tuigpt inspect poems.txt",
            "tuigpt inspect poems.txt --tokenizer bpe:1024",
        ),
    )
}
