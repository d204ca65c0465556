"""The places of the transcript: which texts stand in each, and their facts in words. Pure."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tuigpt.config import SampleConfig
from tuigpt.tui.panes.generate.texts import ENDLESS, WrittenText
from tuigpt.tui.widgets.transcript import Rule

DEFAULTS = SampleConfig()


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

    def place(self, text: WrittenText) -> int:
        """Which of the texts it is, from 0 on."""
        return next(n for n, other in enumerate(self.texts) if other is text)

    def rule(self, speed: float | None = None, slowed: bool = False) -> Rule:
        """Its facts; the seed, which repeats the text, is the last to go.

        Args:
            speed: tokens a second, where it is being written.
            slowed: whether it is being written more slowly, because a run trains.
        """
        seed = f"seed {self.text.config.seed}"
        return Rule(self._facts(seed), seed, self.progress(speed, slowed))

    def _facts(self, seed: str) -> list[str]:
        """What it is, and how it was drawn."""
        text = self.text
        facts = [f"{self.number}{' ★' * text.starred}", text.checkpoint.label, seed]
        if len(self.texts) > 1:
            facts.append(f"‹ {self.at + 1} of {len(self.texts)} ›")
        if text.branched_at is not None:
            origin = f" from {text.branched_from}" if text.branched_from else ""
            facts.append(f"branched{origin} at {text.branched_at:,}")
        facts += _settings(text)
        if text.past_context:
            how = "rolling" if text.window == "rolling" else "exact"
            facts.append(f"{how} past {text.checkpoint.block_size:,}")
        return facts

    def progress(self, speed: float | None = None, slowed: bool = False) -> list[str]:
        """How far it is, and how quick; then in fewer words, and without the speed.

        Args:
            speed: tokens a second, where it is being written.
            slowed: whether it is being written more slowly, because a run trains.
        """
        text = self.text
        if text.doing:
            return [text.doing]
        if text.problem and not text.count:
            return ["failed"]
        if text.over:
            how = f"stopped at {text.count:,}" if text.stopped else f"{text.count:,}"
            speed = text.drawn / text.seconds if text.seconds else 0.0
        else:
            length = text.config_now.max_new_tokens
            how = f"{text.count:,}" + ("" if length >= ENDLESS else f" of {length:,}")
        if slowed and not speed:
            return [f"{how} · slower while a run trains", how]
        if not speed or speed < 1:
            return [how]
        unit = "characters" if text.count == len(text.written) else "tokens"
        return [f"{how} · {speed:,.0f} {unit}/s", f"{how} · {speed:,.0f}/s", how]


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

    def add(self, *texts: WrittenText) -> Entry:
        """A new entry at the end, of one text or several siblings."""
        entry = Entry(next(self._numbers), list(texts))
        self.entries[entry.number] = entry
        self.chosen = None
        return entry

    def let_go(self, most: int) -> list[Entry]:
        """Take the oldest entries out until so many are left; those with a star stay."""
        plain = (e for e in list(self.entries.values()) if not any(t.starred for t in e.texts))
        gone = list(itertools.islice(plain, max(0, len(self.entries) - most)))
        for entry in gone:
            del self.entries[entry.number]
        return gone

    def add_siblings(self, entry: Entry, *texts: WrittenText) -> None:
        """More texts in an entry's place; the first of them shows."""
        entry.at = len(entry.texts)
        entry.texts += texts

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
