"""Texts that go by a name: the built-in one, and one that is fetched when it is asked for."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.files import open_regular, write_atomic
from tuigpt.paths import asset
from tuigpt.runs.names import text_name
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.read import ProgressCallback, Scan, Text, open_files, silent

BUILT_IN = "shakespeare"
"""Names the text that ships with tuigpt."""

TIMEOUT = 20.0
"""Seconds without a byte after which fetching gives up."""


@dataclass(frozen=True)
class Remote:
    """A text on the network, pinned to its content.

    Attributes:
        sha256: of the file.
        size: of the file, in bytes.
    """

    name: str
    url: str
    sha256: str
    size: int


TINY_SHAKESPEARE = Remote(
    "tinyshakespeare",
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    1_115_394,
)

REMOTES: Mapping[str, Remote] = {TINY_SHAKESPEARE.name: TINY_SHAKESPEARE}


class NotFetched(UserError):
    """A text would have to be fetched first, and that was not allowed."""


def open_text(
    sources: Sequence[str],
    encoding: str = "auto",
    *,
    cache: Path,
    fetch: bool = True,
    progress: ProgressCallback = silent,
    remotes: Mapping[str, Remote] = REMOTES,
) -> Text:
    """Find a text by what a user calls it: names, files, folders, joined in the order given.

    Args:
        cache: folder that keeps what was fetched.
        fetch: whether the network may be used.

    Raises:
        UserError: a text cannot be found, read or fetched.
    """
    names = {BUILT_IN, *remotes}
    paths, notes = [], []
    for source in sources:
        if not source:
            raise UserError("a text's path is empty: give the path of a text file or folder")
        if source in names and os.path.lexists(source):
            notes.append(f"{source} is the text that goes by this name; your own is ./{source}")
        if source == BUILT_IN:
            paths.append(str(asset("shakespeare.txt")))
        elif source in remotes:
            paths.append(str(_fetched(remotes[source], cache, fetch, progress)))
        else:
            paths.append(source)
    text = open_files(text_name(sources), paths, encoding)
    called = [s if s in names else t for s, t in zip(sources, text.sources, strict=True)]
    return replace(text, sources=tuple(called), notes=tuple(notes))


def facts_of(text: Text, found: Scan) -> CorpusFacts:
    """What a run and its checkpoints tell of their text; enough for `reopen` to find it again."""
    return CorpusFacts(
        name=text.name,
        path=text.sources[0],
        sources=list(text.sources),
        encoding=text.encoding,
        sha256=found.sha256,
        characters=found.characters,
        symbols=len(found.symbols),
        changes=list(found.changes),
    )


def reopen(
    facts: CorpusFacts,
    *,
    cache: Path,
    progress: ProgressCallback = silent,
    moved_to: Sequence[str] = (),
) -> Text:
    """Find the text that a run or a checkpoint was trained on, from its `corpus` record.

    Whoever reads it compares its sha256 with the recorded one.

    Args:
        moved_to: where it is now, as `open_text` takes it; empty for where it was.

    Raises:
        UserError: it does not say, or the text is gone.
    """
    sources = list(moved_to) or facts.sources or [facts.path]
    if not all(sources):
        if facts.name not in {BUILT_IN, *REMOTES}:
            raise UserError(f"it does not say where its text {facts.name!r} is")
        sources = [facts.name]
    return open_text(sources, facts.encoding, cache=cache, progress=progress)


def _fetched(remote: Remote, cache: Path, fetch: bool, progress: ProgressCallback) -> Path:
    path = cache / f"{remote.name}.txt"
    try:
        with open_regular(path) as stream:
            content = stream.read(remote.size + 1)
        if hashlib.sha256(content).hexdigest() == remote.sha256:
            return path
    except OSError:
        pass  # not there yet
    if not fetch:
        host = remote.url.split("/")[2]
        raise NotFetched(f"{remote.name} is not on this machine yet: it would come from {host}")
    content = _download(remote, path, progress)
    if hashlib.sha256(content).hexdigest() != remote.sha256:
        raise UserError(
            f"{remote.url} is not the {remote.name} that was pinned: {len(content):,} bytes came,"
            f" {remote.size:,} of another content were expected; give the path of your copy instead"
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return path


def _download(remote: Remote, path: Path, progress: ProgressCallback) -> bytes:
    content = bytearray()
    try:
        with urllib.request.urlopen(remote.url, timeout=TIMEOUT) as response:
            # A byte more than expected is enough to know that it is something else.
            while part := response.read(min(1 << 16, remote.size + 1 - len(content))):
                content += part
                progress(f"fetching {remote.name}", min(len(content), remote.size), remote.size)
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(
            f"cannot fetch {remote.name} from {remote.url}: {reason}; without a network, give the"
            f" path of your own copy, or put it at {str(path)!r}"
        ) from None
    return bytes(content)
