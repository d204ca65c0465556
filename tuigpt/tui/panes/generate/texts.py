"""A text that was written: what it is made of. Pure."""

from __future__ import annotations

import math
import sys
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

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
    TextFacts,
    Tokens,
    Window,
)
from tuigpt.wording import symbols_shown

if TYPE_CHECKING:
    from tuigpt.runs.folder import Checkpoint

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
        hidden: whether it is out of sight among the texts written beside it.
        prompt_tokens: how many the prompt has; 0 while the model has not read it.
        facts: what it has of the training text, once that was asked for.
        branched_at: the token where another was chosen than in the text that it comes from.
        branched_from: the number of that text among its siblings, from 1 on.
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
    hidden: bool = False
    facts: TextFacts | None = None
    prompt_tokens: int = 0
    branched_at: int | None = None
    branched_from: int | None = None
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
    def past_context(self) -> bool:
        """Whether it has outgrown what the model sees."""
        size = self.checkpoint.block_size
        return 0 < size < self.prompt_tokens + self.count

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

    @property
    def why_no_command(self) -> str:
        """Why no one command prints this text again."""
        if self.changes:
            return "its settings changed on the way"
        if not self.over:
            return "it has not ended"
        if self.branched_at is not None:
            return "another token was chosen in it"
        if self.in_parts:
            return "it was written in parts, with a rolling window"
        return "it could not be written"

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

    def was_drawn_by_hand(self, config: SampleConfig) -> None:
        """The newest token, written by hand, was drawn with this config."""
        config = replace(config, max_new_tokens=self.count)
        if self.count == 1:
            self.config = config
        elif config != replace(self.config_now, max_new_tokens=self.count):
            self.changes.append((self.count - 1, config))

    def branch(self, at: int, other: Candidate, config: SampleConfig) -> WrittenText:
        """A text of its own that begins as this one does, with another token at number `at`."""
        start = "".join(self.tokens[:at])
        text = replace(
            self, ids=self.ids[:at], tokens=self.tokens[:at], surprises=self.surprises[:at],
            changes=[c for c in self.changes if c[0] < at], notes=[], problem="", starred=False,
            copies=None, facts=None, hidden=False, drawn=0, seconds=0.0, started=True,
            stopped=False, branched_at=at, _written=[start],
        )  # fmt: skip
        text.add_token(other)
        text.over = False
        length = max(self.config.max_new_tokens, text.count)
        text.config = replace(config, max_new_tokens=length)
        return text

    def go_on(self, config: SampleConfig, window: Window) -> None:
        """Be continued, with this config and length."""
        length = config.max_new_tokens
        if config != replace(self.config_now, max_new_tokens=length):
            self.changes.append((self.count, config))
        self.over, self.stopped, self.in_parts = False, False, self.count > 0
        self.problem, self.copies, self.facts = "", None, None
        self.config = replace(self.config, max_new_tokens=length)
        self.window = window
        self.doing = "reading the text …"

    def take(self, report: Report) -> list[Part]:
        """Take in what the generator tells of it; what is to be shown below what is there."""
        match report:
            case Loading():
                self.doing = "reading weights …"
            case Started():
                self.doing, self.prompt_tokens = "", report.prompt_tokens
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
                # The same few over and over: one string for each of them takes a third.
                self.tokens += [sys.intern(found.chosen.text) for found in report.logprobs]
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
                first: list[Part] = [] if self.started else [("prompt", self.prompt)]
                return [*first, ("error", f"{_new_line(self.whole)}{report.message}")]
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
        if self.started or self.over:
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


def _new_line(before: str) -> str:
    return "" if not before or before.endswith("\n") else "\n"
