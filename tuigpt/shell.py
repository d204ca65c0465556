"""Commands as a user can paste them into a shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from tuigpt.paths import default_home

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\udc80-\udcff]")


def tuigpt_line(command: str, subject: str, *flags: str, home: Path) -> str:
    """A command of tuigpt; it names the home that its subject is in, unless that is the default."""
    elsewhere = [] if home == default_home() else [f"--home={home}"]
    return bash_line(["tuigpt", command, subject, *elsewhere, *flags])


def bash_line(words: Iterable[str]) -> str:
    """One line of bash. What a terminal would take for a key, or no text can hold, is escaped."""
    return " ".join(
        _ansi_c(word) if _CONTROLS.search(word) else shlex.quote(word) for word in words
    )


def _ansi_c(word: str) -> str:
    word = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    escaped = _CONTROLS.sub(
        lambda found: "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0])), word
    )
    return f"$'{escaped}'"
