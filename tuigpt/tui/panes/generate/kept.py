"""Texts and prompts over sessions: two files of the home, of bounded size.

`texts.jsonl` is appended to: a line for each text as it is then, and another when it changes; of
several lines about one text the last holds. So two apps on one home keep all texts of both, and a
line that was cut short by a full disk takes nothing with it but itself.
"""

from __future__ import annotations

import errno
import os
import sys
import uuid
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tuigpt.config import SampleConfig
from tuigpt.files import UnreadableFile, open_to_append, read_bytes, write_atomic
from tuigpt.generation.protocol import TokenId, Window
from tuigpt.tui.panes.generate.entries import Entry, Texts
from tuigpt.tui.panes.generate.texts import WrittenText

TEXTS_FILE = "texts.jsonl"
PROMPTS_FILE = "prompts.json"

FILE_BYTES = 8 * 1024 * 1024
"""Size of the file of texts at which its older half is dropped."""

TEXT_CHARACTERS = 500_000
"""A longer text is not kept: it can be saved to a file of its own."""

MOST_TEXTS, MOST_PROMPTS = 200, 500
"""How many there are at a time, here and at the next start; a text with a star is one more."""

PROMPT_CHARACTERS = 20_000
"""A longer prompt is not kept."""

_Name = Annotated[str, Meta(max_length=4096)]
_Long = Annotated[str, Meta(max_length=TEXT_CHARACTERS)]
_Number = Annotated[int, Meta(ge=0, lt=2**53)]
_Tokens = Annotated[list[TokenId], Meta(max_length=TEXT_CHARACTERS)]


class KeptText(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file.

    Attributes:
        id: of the text.
        entry: of the place that it shares with its siblings.
        deleted: whether it is gone; nothing else counts then.
        chosen: whether it was put into its place; nothing else counts then.
        shown: whether it stands in its place, among its siblings.
        pieces, surprises: the text of each token and its surprise, in nats.
    """

    id: _Name
    entry: _Name = ""
    deleted: bool = False
    chosen: bool = False
    shown: bool = False
    path: _Name = ""
    run: _Name = ""
    step: _Number = 0
    vocab_size: _Number = 0
    block_size: _Number = 0
    built_in: bool = False
    prompt: _Long = ""
    written: _Long = ""
    config: SampleConfig = SampleConfig()
    changes: Annotated[list[tuple[_Number, SampleConfig]], Meta(max_length=10_000)] = []
    window: Window = "sliding"
    ids: _Tokens = []
    pieces: Annotated[list[_Name], Meta(max_length=TEXT_CHARACTERS)] = []
    surprises: Annotated[list[float], Meta(max_length=TEXT_CHARACTERS)] = []
    notes: Annotated[list[_Name], Meta(max_length=100)] = []
    problem: _Name = ""
    stopped: bool = False
    in_parts: bool = False
    starred: bool = False
    hidden: bool = False
    prompt_tokens: _Number = 0
    branched_at: _Number | None = None
    branched_from: _Number | None = None
    drawn: _Number = 0
    seconds: Annotated[float, Meta(ge=0)] = 0.0


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(KeptText)
_prompts = msgspec.json.Decoder(Annotated[list[str], Meta(max_length=100_000)])


def read_texts(home: Path) -> list[KeptText]:
    """What was kept, each text once, in the order they were first written; damaged lines are
    skipped."""
    try:
        content = read_bytes(home / TEXTS_FILE, 4 * FILE_BYTES)
    except UnreadableFile:
        return []
    found: dict[str, KeptText] = {}
    shown: dict[str, str] = {}
    for line in content.splitlines():
        try:
            text = _decoder.decode(line)
        # A config refuses impossible values with an error of its own; deep nesting is another.
        except Exception:
            continue
        if text.deleted:
            found.pop(text.id, None)
        elif text.chosen:
            if text.id in found:
                shown[found[text.id].entry] = text.id
        else:
            found[text.id] = text
            if text.shown:
                shown[text.entry] = text.id
    texts = list(found.values())
    newest = [t for n, t in enumerate(texts, MOST_TEXTS - len(texts)) if n >= 0 or t.starred]
    return [msgspec.structs.replace(t, shown=shown.get(t.entry) == t.id) for t in newest]


def keep(home: Path, texts: list[KeptText]) -> None:
    """Add texts, or what became of them.

    Raises:
        OSError: they cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / TEXTS_FILE
    lines = b"".join(_encoder.encode(text) + b"\n" for text in texts)
    descriptor = open_to_append(path)
    try:
        size = os.fstat(descriptor).st_size
        # One write: what another app adds at the same time comes before or behind it.
        lines = (b"\n" if size else b"") + lines
        if os.write(descriptor, lines) < len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if size + len(lines) > FILE_BYTES:
        kept = read_texts(home)
        encoded = [_encoder.encode(text) + b"\n" for text in kept]
        while sum(map(len, encoded)) > FILE_BYTES // 2:
            del encoded[: max(1, len(encoded) // 4)]
        write_atomic(path, b"".join(encoded))


def read_prompts(home: Path) -> list[str]:
    """Prompts that were sent, oldest first."""
    try:
        return _prompts.decode(read_bytes(home / PROMPTS_FILE, FILE_BYTES))[-MOST_PROMPTS:]
    except (UnreadableFile, ValueError, RecursionError):
        return []


def keep_prompt(home: Path, prompt: str) -> None:
    """Add a prompt, behind those that another app may have added.

    Raises:
        OSError: it cannot be written.
    """
    if prompt.strip() and len(prompt) <= PROMPT_CHARACTERS:
        before = [other for other in read_prompts(home) if other != prompt]
        home.mkdir(parents=True, exist_ok=True)
        safe = prompt.encode("utf-8", "replace").decode()
        prompts = [*before, safe][-MOST_PROMPTS:]
        while sum(map(len, prompts)) > PROMPT_CHARACTERS * 10:
            del prompts[0]
        write_atomic(home / PROMPTS_FILE, msgspec.json.encode(prompts))


@dataclass
class Kept:
    """Knows under which ids the texts of this session are kept."""

    home: Path
    _ids: dict[int, str] = field(default_factory=dict)
    _places: dict[int, str] = field(default_factory=dict)

    def load(self, texts: Texts, found: list[KeptText]) -> None:
        """Put what was kept before the texts of this session."""
        places: dict[str, Entry] = {}
        shown: dict[str, int] = {}
        for kept in found:
            text = _restored(kept)
            self._ids[id(text)] = kept.id
            if kept.entry in places:
                texts.add_siblings(places[kept.entry], text)
            else:
                places[kept.entry] = entry = texts.add(text)
                self._places[entry.number] = kept.entry
            if kept.shown or (kept.starred and kept.entry not in shown):
                shown[kept.entry] = places[kept.entry].place(text)
        for name, at in shown.items():
            places[name].at = at

    def record(self, entry: Entry, text: WrittenText) -> KeptText | None:
        """A text as it is now; None if it is too long to be kept, or empty."""
        if (
            not (text.started or text.prompt)
            or len(text.whole) > TEXT_CHARACTERS
            or text.count > TEXT_CHARACTERS
        ):
            return None
        place = self._places.setdefault(entry.number, uuid.uuid4().hex)
        name = self._ids.setdefault(id(text), uuid.uuid4().hex)
        checkpoint = text.checkpoint
        return KeptText(
            name, place, path=_clean(os.fsdecode(checkpoint.path)), run=_clean(checkpoint.run),
            step=checkpoint.step, vocab_size=checkpoint.vocab_size,
            block_size=checkpoint.block_size, built_in=checkpoint.built_in,
            prompt=_clean(text.prompt), written=_clean(text.written), config=text.config,
            changes=text.changes[-10_000:], window=text.window, ids=text.ids, pieces=text.tokens,
            surprises=[round(surprise, 3) for surprise in text.surprises], notes=text.notes,
            problem=text.problem[:4096], stopped=text.stopped, in_parts=text.in_parts,
            starred=text.starred, hidden=text.hidden, branched_at=text.branched_at,
            branched_from=text.branched_from, prompt_tokens=text.prompt_tokens,
            shown=text is entry.text, drawn=text.drawn, seconds=text.seconds,
        )  # fmt: skip

    def choice(self, entry: Entry) -> list[KeptText]:
        """The line that says which of an entry's texts stands in its place."""
        name = self._ids.get(id(entry.text))
        return [KeptText(name, chosen=True)] if name else []

    def deleted(self, entry: Entry) -> list[KeptText]:
        """The lines that say that an entry's texts are gone."""
        names = [self._ids.get(id(text)) for text in entry.texts]
        return [KeptText(name, deleted=True) for name in names if name]


def _restored(kept: KeptText) -> WrittenText:
    from tuigpt.runs.folder import Checkpoint  # the first frame does not wait for it

    checkpoint = Checkpoint(
        Path(kept.path), kept.run, kept.step, None, None, kept.vocab_size, 0, "", 0, 0.0,
        built_in=kept.built_in, block_size=kept.block_size,
    )  # fmt: skip
    text = WrittenText(
        checkpoint, kept.prompt, kept.config, kept.window, list(kept.ids), list(kept.changes),
        started=bool(kept.prompt_tokens or kept.ids), over=True, stopped=kept.stopped,
        problem=kept.problem, notes=list(kept.notes), drawn=kept.drawn, seconds=kept.seconds,
        starred=kept.starred, hidden=kept.hidden, branched_at=kept.branched_at,
        branched_from=kept.branched_from, prompt_tokens=kept.prompt_tokens, in_parts=kept.in_parts,
        tokens=list(map(sys.intern, kept.pieces)), surprises=array("f", kept.surprises),
    )  # fmt: skip
    text.add_written(kept.written)
    return text


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
