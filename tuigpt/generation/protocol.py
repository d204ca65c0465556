"""The messages between the app and its generator process: JSON Lines over two pipes.

The app writes commands to the process's stdin, the process writes reports to its stdout; each is
one JSON object a line, with its class's name as `kind`. Every report names the command it answers
(`id`, chosen by the app, never used twice). Commands are worked off in order, except that `Cancel`
and `Steer` act at once, at the next token.

The process greets with `Hello`, and ends when its stdin does. Each command but those two is
answered by `Loading` when weights must be read, and exactly one last report: `Failed`, or

    Generate  Started, any number of Tokens and Steered, then Done
    Look      Looked
    Score     any number of Working, then Scored
    Recite    any number of Working, then Recited
    Verify    any number of Working, then Verified

A cancelled command ends with `Done` too. When the pipe is full the process waits, so an app that
reads slowly slows the writing down and loses nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

VERSION = 3
"""Raised when a message changes in a way that an older peer would misread."""


@dataclass(frozen=True)
class Generate:
    """Command: write text after a prompt. The settings are those of `SampleConfig`.

    Attributes:
        samples: number of texts, written side by side; number i has the seed `seed + i`.
        window: "sliding" is the reference; "rolling" is flat in cost and another text past the
            model's context.
        given: ids that stand after the prompt already, as if they had been drawn: to go on, or to
            branch off with another token at the end.
        alternatives: how many of the likeliest tokens each place is reported with, 0 = no report.
    """

    id: int
    checkpoint: str
    prompt: str
    max_new_tokens: int
    temperature: float
    top_k: int
    seed: int
    top_p: float = 1.0
    min_p: float = 0.0
    samples: int = 1
    window: str = "sliding"
    given: list[int] = field(default_factory=list)
    alternatives: int = 0


@dataclass(frozen=True)
class Steer:
    """Command: write `Generate` number `id` on with other settings from the next token."""

    id: int
    temperature: float
    top_k: int
    top_p: float = 1.0
    min_p: float = 0.0


@dataclass(frozen=True)
class Cancel:
    """Command: end command number `id` after the token at hand, or drop it while it waits."""

    id: int


@dataclass(frozen=True)
class Look:
    """Command: tell the next-token distribution after a prompt, without writing.

    Attributes:
        given: ids that stand after the prompt, as in `Generate`.
        count: how many of the likeliest tokens are wanted.
    """

    id: int
    checkpoint: str
    prompt: str
    temperature: float
    top_k: int
    seed: int
    top_p: float = 1.0
    min_p: float = 0.0
    given: list[int] = field(default_factory=list)
    count: int = 100


@dataclass(frozen=True)
class Score:
    """Command: tell how surprising a text is to the model."""

    id: int
    checkpoint: str
    text: str


@dataclass(frozen=True)
class Recite:
    """Command: find the parts of a text, `at_least` characters long, that stand in the corpus."""

    id: int
    checkpoint: str
    text: str
    at_least: int = 20


@dataclass(frozen=True)
class Verify:
    """Command: compare ids that were written with what the plain loop writes."""

    id: int
    checkpoint: str
    prompt: str
    max_new_tokens: int
    temperature: float
    top_k: int
    seed: int
    ids: list[int]
    top_p: float = 1.0
    min_p: float = 0.0


@dataclass(frozen=True)
class Hello:
    """Report: the process is up."""

    version: int
    device: str


@dataclass(frozen=True)
class Loading:
    """Report: weights are being read."""

    id: int


@dataclass(frozen=True)
class Started:
    """Report: the model has the prompt.

    Attributes:
        prompt: as the model reads it.
        dropped: characters of the prompt that the model does not know, each once.
        out_of_sight: how many tokens at the prompt's start lie before the model's context.
        vocab_size: of the model, the highest top_k that differs from off.
    """

    id: int
    prompt: str
    dropped: str
    out_of_sight: int
    vocab_size: int


@dataclass(frozen=True)
class Option:
    """A token that could stand in a place; its probability as learned, after temperature, and
    after all samplers."""

    text: str
    token: int
    learned: float
    tempered: float
    drawn_from: float


@dataclass(frozen=True)
class Place:
    """What the model thought in one place.

    Attributes:
        chosen: what stands there.
        logprob: natural logarithm of its learned probability.
        rank: 1 for the likeliest.
        likeliest: in order, as many as were asked for.
    """

    chosen: Option
    logprob: float
    rank: int
    likeliest: list[Option]


@dataclass(frozen=True)
class Tokens:
    """Report: the text of the `count` newest tokens of one sample. At most 30 come in a second,
    in which several samples take turns.

    Attributes:
        ids: the tokens.
        places: one for each token, if they were asked for.
    """

    id: int
    text: str
    count: int
    sample: int = 0
    ids: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Steered:
    """Report: from token number `at` (0 is the first after the prompt) other settings hold.

    No single command prints such a text again.
    """

    id: int
    at: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float


@dataclass(frozen=True)
class Done:
    """Report: the text is complete, or the command was cancelled.

    Attributes:
        count: tokens written, in each sample.
        seconds: spent writing them, without loading.
        reproducible: whether the same `Generate` writes this text again: it was not steered, and
            not computed in a type that only a measurement chose.
        reference: whether the workshop's program writes it too, with this prompt and settings: no
            tokens were given, no top-p or min-p used, and the window slid, if it moved at all.
        rolled_in: the number type in use since a rolling window moved, such as "float32"; None
            when it did not move.
    """

    id: int
    count: int
    seconds: float
    cancelled: bool
    reproducible: bool = True
    reference: bool = True
    rolled_in: str | None = None


@dataclass(frozen=True)
class Looked:
    """Report: what could come next, and what the seed picks."""

    id: int
    prompt: str
    dropped: str
    place: Place


@dataclass(frozen=True)
class Working:
    """Report: `done` of `total` of a command's work are done; at most 30 come in a second."""

    id: int
    done: int
    total: int


@dataclass(frozen=True)
class Scored:
    """Report: how surprising a text is.

    Attributes:
        text: as the model read it.
        dropped: the characters it does not know, each once.
        surprises: in nats, for each token but the first.
        nats, bits: for each character, on average; None when nothing could be measured.
        perplexity: for each token.
    """

    id: int
    text: str
    dropped: str
    surprises: list[float]
    nats: float | None
    bits: float | None
    perplexity: float | None


@dataclass(frozen=True)
class Copy:
    """A part of a text, and where the corpus has it: offset in characters, line from 1."""

    start: int
    length: int
    place: int
    line: int


@dataclass(frozen=True)
class Recited:
    """Report: the parts that were copied from the corpus named `corpus`, and their share."""

    id: int
    corpus: str
    share: float
    copies: list[Copy]


@dataclass(frozen=True)
class Verified:
    """Report: where the text first differs from the plain loop's (None: nowhere), and the
    checkpoint's sha256."""

    id: int
    differs_at: int | None
    sha256: str


@dataclass(frozen=True)
class Failed:
    """Report: it could not be done; `message` is for the user."""

    id: int
    message: str


Work = Generate | Look | Score | Recite | Verify
Command = Work | Steer | Cancel
Last = Done | Looked | Scored | Recited | Verified | Failed
Report = Hello | Loading | Started | Tokens | Steered | Working | Last


def encode(message: Command | Report) -> bytes:
    """One line for the pipe."""
    record = {"kind": type(message).__name__} | asdict(message)
    return (json.dumps(record, ensure_ascii=True) + "\n").encode("ascii")


def decode_command(line: bytes) -> Command:
    """Read what the app wrote. Raises ValueError for anything that is no command."""
    return _decode(line, get_args(Command))  # type: ignore[no-any-return]


def decode_report(line: bytes) -> Report:
    """Read what the process wrote. Raises ValueError for anything that is no report."""
    return _decode(line, get_args(Report))  # type: ignore[no-any-return]


def _decode(line: bytes, kinds: tuple[type, ...]) -> Any:
    try:
        record: dict[str, Any] = json.loads(line)
        name = record.pop("kind")
        kind = next(k for k in kinds if k.__name__ == name)
        if "place" in record and kind is Looked:
            record["place"] = _place(record["place"])
        if "places" in record:
            record["places"] = [_place(place) for place in record["places"]]
        if "copies" in record:
            record["copies"] = [Copy(**copy) for copy in record["copies"]]
        return kind(**record)
    except (ValueError, TypeError, AttributeError, KeyError, StopIteration):
        raise ValueError(f"not a message of the protocol: {line[:80]!r}") from None


def _place(record: dict[str, Any]) -> Place:
    likeliest = [Option(**option) for option in record["likeliest"]]
    chosen = Option(**record["chosen"])
    return Place(chosen, record["logprob"], record["rank"], likeliest)
