"""The texts that were written: what each is made of, and its facts in words. Pure."""

from __future__ import annotations

import itertools
import math
from array import array
from dataclasses import dataclass, field, replace

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import (
    Candidate,
    ConfigChanged,
    Copies,
    Done,
    Failed,
    Loading,
    Report,
    Started,
    Tokens,
    Window,
)
from tuigpt.runs.folder import Checkpoint
from tuigpt.wording import symbols_shown

DEFAULTS = SampleConfig()

ENDLESS = 1_000_000_000
"""Tokens of a text that is written until it is stopped."""

Part = tuple[str, str]
"""A style of the transcript, and text in it."""


@dataclass
class WrittenText:
    """One text, from the moment it was asked for.

    Attributes:
        checkpoint: that wrote it.
        prompt: as it was sent, and from `Started` on as the model reads it.
        config: how it began to be drawn; its length is what was asked for.
        ids: the tokens after the prompt, those that it was made to begin with included.
        changes: from which token on another config held.
        doing: what is being waited for; "" when the text is being written, or is over.
        started: whether the model has the prompt.
        over: whether nothing more comes.
        problem: why it failed, or "".
        notes: what there is to say about it, a line each.
        drawn, seconds: how many tokens were drawn, and in what time.
        branched_at: the token where another was chosen than in the text that it comes from.
        copies: what it copies from the training text, while that is marked.
        in_parts: whether it was continued, so that a rolling window moved elsewhere than it would
            have in one go.
        tokens: the text of each token.
        surprises: of each token, in nats, as the model learned it.
    """

    checkpoint: Checkpoint
    prompt: str
    config: SampleConfig
    window: Window = "sliding"
    ids: list[int] = field(default_factory=list)
    changes: list[tuple[int, SampleConfig]] = field(default_factory=list)
    doing: str = ""
    started: bool = False
    over: bool = False
    stopped: bool = False
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    drawn: int = 0
    seconds: float = 0.0
    starred: bool = False
    branched_at: int | None = None
    copies: Copies | None = None
    in_parts: bool = False
    tokens: list[str] = field(default_factory=list)
    surprises: array[float] = field(default_factory=lambda: array("f"))
    _written: list[str] = field(default_factory=list)

    @property
    def written(self) -> str:
        """What stands after the prompt."""
        if len(self._written) > 1:
            self._written = ["".join(self._written)]
        return self._written[0] if self._written else ""

    @property
    def whole(self) -> str:
        """Prompt and text, exactly."""
        return self.prompt + self.written

    @property
    def count(self) -> int:
        """Tokens after the prompt."""
        return len(self.ids)

    @property
    def config_now(self) -> SampleConfig:
        """How the newest token was drawn."""
        return self.changes[-1][1] if self.changes else self.config

    @property
    def one_command(self) -> SampleConfig | None:
        """The settings with which one command prints this text again; None if there are none."""
        if self.changes or self.branched_at is not None or not self.over or self.problem:
            return None
        if self.in_parts and self.window == "rolling":
            return None
        return replace(self.config, max_new_tokens=self.count)

    def add_written(self, text: str) -> None:
        """More of what stands after the prompt."""
        self._written.append(text)

    def add_token(self, candidate: Candidate) -> None:
        """Write one token by hand."""
        self.started = self.over = self.in_parts = True
        self.ids.append(candidate.token)
        self.tokens.append(candidate.text)
        self.surprises.append(-math.log(max(candidate.learned, 1e-30)))
        self._written.append(candidate.text)

    def up_to(self, at: int) -> WrittenText:
        """A text of its own that begins as this one does, up to token number `at`."""
        start = "".join(self.tokens[:at])
        return replace(
            self, ids=self.ids[:at], tokens=self.tokens[:at], surprises=self.surprises[:at],
            changes=[c for c in self.changes if c[0] < at], notes=[], problem="", starred=False,
            copies=None, drawn=0, seconds=0.0, started=True, over=False, stopped=False,
            _written=[start],
        )  # fmt: skip

    def take(self, report: Report) -> list[Part]:
        """Take in what the generator tells of it; what is to be shown below what is there."""
        match report:
            case Loading():
                self.doing = "reading weights …"
            case Started():
                self.doing = ""
                shown: list[Part] = []
                if report.dropped and not self.started:
                    self.notes.append(f"not known here, left out: {symbols_shown(report.dropped)}")
                if not self.started:
                    self.started = True
                    if report.out_of_sight:
                        self.notes.append(
                            f"the first {report.out_of_sight:,} tokens lie outside the model's"
                            f" context of {report.block_size:,}"
                        )
                    self.prompt = report.prompt
                    shown = [("note", f"{note}\n") for note in self.notes]
                    shown.append(("prompt", report.prompt))
                return shown
            case Tokens():
                # A stand-in that knows no ids still tells how many there are.
                self.ids += report.ids or [0] * report.count
                self.drawn += report.count
                self.tokens += [found.chosen.text for found in report.logprobs]
                self.surprises.extend(-found.logprob for found in report.logprobs)
                self._written.append(report.text)
                return [("text", report.text)]
            case ConfigChanged():
                self.changes.append((report.at, report.config))
            case Done():
                self.over, self.doing = True, ""
                self.seconds += report.seconds
                if self.changes:
                    note = "its settings changed on the way: no one command prints it again"
                    return self._last(note)
            case Failed():
                self.over, self.doing, self.problem = True, "", report.message
                return [("error", f"{_new_line(self.whole)}{report.message}")]
        return []

    def stop(self) -> None:
        """Nothing more comes; what is written stays."""
        self.over = self.stopped = True
        self.doing = ""

    def _last(self, note: str) -> list[Part]:
        if note in self.notes:
            return []
        self.notes.append(note)
        return [("note", f"{_new_line(self.whole)}{note}")]

    def parts(self) -> list[Part]:
        """All of it, as it stands in the transcript."""
        first = [n for n in self.notes if not n.startswith("its settings")]
        last = [n for n in self.notes if n not in first]
        parts: list[Part] = [("note", f"{note}\n") for note in first]
        if self.started:
            parts += self._marked() if self.copies else self._unmarked()
        if self.problem:
            parts.append(("error", f"{_new_line(self.whole)}{self.problem}"))
        if self.copies:
            parts.append(("note", f"{_new_line(self.whole)}{copies_in_words(self.copies)}"))
        return parts + [("note", f"{_new_line(self.whole)}{note}") for note in last]

    def _unmarked(self) -> list[Part]:
        return [("prompt", self.prompt), ("text", self.written)]

    def _marked(self) -> list[Part]:
        """Prompt and text, with what is copied in a style of its own."""
        assert self.copies is not None
        parts: list[Part] = []
        prompt_end, at, whole = len(self.prompt), 0, self.whole

        def plain(end: int) -> None:
            middle = min(max(at, prompt_end), end)
            parts.extend([("prompt", whole[at:middle]), ("text", whole[middle:end])])

        for copy in self.copies.copies:
            plain(copy.start)
            at = copy.start + copy.length
            parts.append(("copied", whole[copy.start : at]))
        plain(len(whole))
        return [part for part in parts if part[1]]


def copies_in_words(found: Copies) -> str:
    """How much of a text is copied, and where the longest parts stand in the training text."""
    if not found.copies:
        return f"nothing in it is copied from {found.corpus}, 20 characters or more at a time"
    longest = sorted(found.copies, key=lambda copy: -copy.length)[:3]
    places = ", ".join(f"{copy.length:,} characters at line {copy.line:,}" for copy in longest)
    more = f" and {len(found.copies) - 3} more" if len(found.copies) > 3 else ""
    return f"{100 * found.share:.0f}% is copied from {found.corpus}: {places}{more}"


@dataclass
class Entry:
    """A place in the transcript: a text, and the others that were written in its stead.

    Attributes:
        texts: the siblings, in the order they were asked for; never empty.
        at: which of them shows.
    """

    number: int
    texts: list[WrittenText]
    at: int = 0

    @property
    def text(self) -> WrittenText:
        """The one that shows."""
        return self.texts[self.at]

    def left(self) -> str:
        """What stands on the left of its rule: what it is, and how it was drawn."""
        text = self.text
        facts = [f"{self.number}{' ★' * text.starred}", text.checkpoint.label]
        if len(self.texts) > 1:
            facts.append(f"‹ {self.at + 1} of {len(self.texts)} ›")
        if text.branched_at is not None:
            facts.append(f"branched at {text.branched_at:,}")
        facts += _settings(text)
        facts.append(f"seed {text.config.seed}")
        return " · ".join([*facts, *["rolling"] * (text.window == "rolling")])

    def right(self, speed: float | None = None) -> str:
        """What stands on the right of its rule: how far it is.

        Args:
            speed: tokens a second, where it is being written.
        """
        text = self.text
        if text.doing:
            return text.doing
        if text.problem and not text.count:
            return "failed"
        if text.over:
            how = f"stopped at {text.count:,}" if text.stopped else f"{text.count:,}"
            pace = text.drawn / text.seconds if text.seconds else 0.0
            return f"{how} · {pace:,.0f}/s" if pace >= 1 else how
        length = text.config_now.max_new_tokens
        of = "" if length >= ENDLESS else f" of {length:,}"
        return f"{text.count:,}{of}" + (f" · {speed:,.0f}/s" if speed else "")


def _settings(text: WrittenText) -> list[str]:
    """Those that differ from the default, and what they became on the way."""
    facts = []
    shown: tuple[tuple[str, str, str], ...] = (
        ("temperature", "T", ".2f"),
        ("top_k", "k", "d"),
        ("top_p", "p", "g"),
        ("min_p", "min-p", "g"),
    )
    for name, letter, format_ in shown:
        first = getattr(text.config, name)
        steps = [(0, first)]
        for at, config in text.changes:
            value = getattr(config, name)
            if value != steps[-1][1]:
                if steps[-1][0] == at and at:
                    steps.pop()
                steps.append((at, value))
        if len(steps) > 3:
            steps = [steps[0], steps[-1]]
        default = getattr(DEFAULTS, name)
        if name == "top_k":  # a small vocabulary allows no more than all of it
            default = min(default, text.checkpoint.vocab_size)
        if len(steps) > 1 or first != default:
            words = " → ".join(
                ("off" if name == "top_k" and value == 0 else format(value, format_))
                + (f" at {at:,}" if at else "")
                for at, value in steps
            )
            facts.append(f"{letter} {words}")
    return facts


def _new_line(before: str) -> str:
    return "" if not before or before.endswith("\n") else "\n"


class Texts:
    """All entries, oldest first, and which one is meant."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.chosen: int | None = None
        self._numbers = itertools.count(1)
        self._deleted: list[tuple[int, Entry]] = []

    @property
    def entry(self) -> Entry | None:
        """The one that is meant: the chosen one, else the newest."""
        if self.chosen in self.entries:
            return self.entries[self.chosen]
        return next(reversed(self.entries.values()), None)

    def add(self, text: WrittenText) -> Entry:
        """A new entry at the end."""
        entry = Entry(next(self._numbers), [text])
        self.entries[entry.number] = entry
        self.chosen = None
        return entry

    def add_sibling(self, entry: Entry, text: WrittenText) -> None:
        """Another text in an entry's place; it shows."""
        entry.texts.append(text)
        entry.at = len(entry.texts) - 1

    def step(self, count: int) -> Entry | None:
        """Choose the entry so many further down."""
        numbers = list(self.entries)
        if not numbers:
            return None
        now = self.entry
        assert now is not None
        at = min(max(numbers.index(now.number) + count, 0), len(numbers) - 1)
        self.chosen = numbers[at]
        return self.entries[self.chosen]

    def delete(self, entry: Entry) -> None:
        """Take an entry out; `restore` brings it back."""
        place = list(self.entries).index(entry.number)
        self._deleted.append((place, self.entries.pop(entry.number)))
        self.chosen = None

    def restore(self) -> Entry | None:
        """Bring the entry back that was deleted last, to where it stood."""
        if not self._deleted:
            return None
        place, entry = self._deleted.pop()
        items = list(self.entries.items())
        items.insert(place, (entry.number, entry))
        self.entries = dict(items)
        self.chosen = entry.number
        return entry

    @property
    def can_restore(self) -> bool:
        return bool(self._deleted)
