"""The messages between the app and its generator process: JSON Lines over two pipes.

The app writes commands to the process's stdin, the process writes reports to its stdout; each is
one JSON object a line, with its class's name as `kind`. Every report names the command it answers
(`id`). Commands are worked off in order; a `Cancel` acts at once.

For a `Generate` the reports are: `Loading` (only when weights must be read), `Started`, any number
of `Tokens`, then exactly one of `Done` and `Failed`. The process greets with `Hello`, and ends when
its stdin does.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, get_args

VERSION = 1
"""Raised when a message changes in a way that an older peer would misread."""


@dataclass(frozen=True)
class Generate:
    """Command: write text after a prompt. The settings are those of `SampleConfig`."""

    id: int
    checkpoint: str
    prompt: str
    max_new_tokens: int
    temperature: float
    top_k: int
    seed: int


@dataclass(frozen=True)
class Cancel:
    """Command: end `Generate` number `id` after the token at hand, or drop it while it waits."""

    id: int


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
class Tokens:
    """Report: the text of the `count` newest tokens."""

    id: int
    text: str
    count: int


@dataclass(frozen=True)
class Done:
    """Report: the text is complete, or was cancelled.

    Attributes:
        count: tokens written.
        seconds: spent writing them, without loading.
        cancelled: whether a `Cancel` ended it.
    """

    id: int
    count: int
    seconds: float
    cancelled: bool


@dataclass(frozen=True)
class Failed:
    """Report: it could not be done; `message` is for the user."""

    id: int
    message: str


Command = Generate | Cancel
Report = Hello | Loading | Started | Tokens | Done | Failed


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
        return next(k for k in kinds if k.__name__ == name)(**record)
    except (ValueError, TypeError, AttributeError, KeyError, StopIteration):
        raise ValueError(f"not a message of the protocol: {line[:80]!r}") from None
