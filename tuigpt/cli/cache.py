"""`tuigpt cache`: what is kept because making it again takes long."""

import time
from argparse import Namespace
from pathlib import Path

from tuigpt.cli.parser import Command, Parser
from tuigpt.files import read_json
from tuigpt.paths import cache_dir, home_dir
from tuigpt.text.disk_cache import Cache, Entry
from tuigpt.wording import age, file_size, visible


def run(home: Path, clear: bool) -> int:
    """List the cache, or clear it."""
    cache = Cache(cache_dir(home))
    if clear:
        print(f"{file_size(cache.clear())} freed in {cache.folder}")
        return 0
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    print(f"{cache.folder}: {file_size(total)} of at most {file_size(cache.limit)}")
    for entry in entries:
        used = age(time.time() - entry.used)
        print(f"{file_size(entry.size):>8}  {used:>6}  {visible(_what(entry))}")
    return 0


def _what(entry: Entry) -> str:
    try:
        about = read_json(entry.path / "about.json")
        tokens, size = int(about["tokens"]), int(about["vocab_size"])
        return f"{about['text']}: {tokens:,} tokens of {size:,} different ones"
    except (OSError, ValueError, KeyError, TypeError):
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
