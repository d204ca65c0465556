"""`tuigpt cache`: what is kept because making it again takes long."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tuigpt.cli.parser import Command, Parser
from tuigpt.files import UnreadableFile
from tuigpt.paths import cache_dir, home_dir
from tuigpt.wording import age, file_size, one_line

if TYPE_CHECKING:
    from tuigpt.text.disk_cache import Entry


def run(home: Path, clear: bool) -> int:
    """List the cache, or clear it."""
    from tuigpt.text.disk_cache import Cache

    cache = Cache(cache_dir(home))
    if clear:
        print(f"{file_size(cache.clear())} freed in {cache.folder}")
        return 0
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    print(f"{cache.folder}: {file_size(total)} of at most {file_size(cache.limit)}")
    for entry in entries:
        used = age(time.time() - entry.used)
        print(f"{file_size(entry.size):>8}  {used:>6}  {one_line(_what(entry))}")
    return 0


def _what(entry: Entry) -> str:
    from tuigpt.text.token_file import read_about

    try:
        about = read_about(entry.path)
        return f"{about.text}: {about.tokens:,} tokens of {about.vocab_size:,} different ones"
    except UnreadableFile:
        return entry.path.name


def _add_flags(parser: Parser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=["show", "clear"], default="show", help="(default show)"
    )


def _run(options: Namespace) -> int:
    return run(home_dir(options.home), options.action == "clear")


COMMANDS = {
    "cache": Command(
        usage="[show|clear]",
        add_flags=_add_flags,
        run=_run,
        examples=("tuigpt cache", "tuigpt cache clear"),
    )
}
