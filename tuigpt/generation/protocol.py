"""The messages between the app and its generator process: JSON Lines over two pipes.

The app writes commands to the process's stdin, the process writes reports to its stdout; each is
one JSON object a line, with its class's name as `type`. Every report names the command it answers
(`id`, chosen by the app, never used twice). Commands are carried out in order, except that
`Cancel`, `SetConfig` and `SetPace` act at once, at the next token.

The process ends when its stdin does. Each command but those three is answered by `Loading` when
weights must be read, any number of `CommandProgress`, and exactly one last report: `Failed`, or

    Generate    Started, any number of Tokens and ConfigChanged, then Done
    NextToken   NextTokenFound
    Score       Scored
    FindCopies  CopiesFound
    Compare     Compared
    ReadUnseen  UnseenRead
    TimeWindows WindowsTimed
    Verify      Verified

A cancelled command ends with `Done` too. When the pipe is full the process waits, so an app that
reads slowly slows generation down and loses nothing.

What a command finds is one value of its own (`Logprobs`, `TextScore`, `Copies`), which the shell
prints as well.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from tuigpt.config import SampleConfig

LONGEST_COMMAND = 4 * 1024 * 1024
"""Bytes of a command's line; the process skips longer ones."""

LONGEST_REPORT = 64 * 1024 * 1024
"""Bytes of a report's line: what the longest text scores fits into one."""

MAX_SAMPLES = 100
"""Texts in one batch; more at once would take memory without being faster."""

Window = Literal["sliding", "rolling"]
"""What the model sees once its context is full: "sliding" is the reference, always the newest
tokens; "rolling" keeps the newest half and fills up again, which is flat in cost and another text.
"""

CommandId = Annotated[int, Meta(ge=0, lt=2**53)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Pace = Annotated[float, Meta(ge=0, le=1e9)]
PathBytes = Annotated[bytes, Meta(max_length=65_536)]
"""A file's path as the system knows it: a name need not be text."""


class _Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A line for the pipe."""


class Candidate(msgspec.Struct, frozen=True):
    """A token that could stand in a place.

    Attributes:
        token: its id.
        learned: its probability as the model learned it.
        tempered: after temperature.
        drawn_from: after all samplers; 0 when they leave it out.
    """

    token: int
    text: str
    learned: float
    tempered: float
    drawn_from: float


class Logprobs(msgspec.Struct, frozen=True):
    """What the model thought in one place of a text.

    Attributes:
        chosen: the token that stands there.
        logprob: natural logarithm of its probability as learned; minus this is the surprise.
        rank: 1 for the likeliest token; of equals, the lower id comes first.
        top_logprobs: the likeliest tokens, in order. The samplers keep that order, so these are the
            top alternatives before them and, while `drawn_from` is above 0, after them.
    """

    chosen: Candidate
    logprob: float
    rank: int
    top_logprobs: list[Candidate]


class TextScore(msgspec.Struct, frozen=True):
    """How surprising a text is to a model.

    Attributes:
        text: as the model read it.
        dropped: the characters it does not know, each once.
        left_out: how many characters of the text those were.
        characters: of the tokens that were measured: all but the first.
        surprises: in nats, for each token but the first.
        nats_per_character, bits_per_character: on average; None when nothing could be measured.
        perplexity: for each token: among how many equally likely ones the model would be as unsure.
        token_characters: how many characters of `text` each token has, the first one included.
    """

    text: str
    dropped: str
    left_out: int
    characters: int
    surprises: list[float]
    nats_per_character: float | None
    bits_per_character: float | None
    perplexity: float | None
    token_characters: list[int] = []


class Copy(msgspec.Struct, frozen=True):
    """A part of a text, and where the training text has it: offset in characters, line from 1."""

    start: int
    length: int
    place: int
    line: int


class Copies(msgspec.Struct, frozen=True):
    """What a text copies from the text that a model was trained on.

    Attributes:
        corpus: name of the training text.
        share: of the text's characters that lie in copies, from 0 to 1.
        copies: in order; they do not overlap.
    """

    corpus: str
    share: float
    copies: list[Copy]


class TextFacts(msgspec.Struct, frozen=True):
    """A text beside the text that a model was trained on.

    Attributes:
        copied: the share of its characters that lie in copies, from 0 to 1.
        real_words: the share of its words that occur there, from 0 to 1; None without any words.
    """

    copied: float
    real_words: float | None


class Unseen(msgspec.Struct, frozen=True):
    """The beginning of the validation part of a training text.

    Attributes:
        corpus: name of the training text.
    """

    corpus: str
    text: str


class WindowSpeeds(msgspec.Struct, frozen=True):
    """Tokens a second, past the model's context, of one text."""

    sliding: float
    rolling: float


class Generate(_Message, frozen=True):
    """Command: write text after a prompt.

    Attributes:
        samples: number of texts, written side by side; number i has the seed `seed + i`.
        forced_ids: tokens that the text is made to begin with, as if they had been drawn: to
            continue it, or to branch off with another token at the end.
        top_logprobs: how many of the likeliest tokens are reported with each token; 0 = how likely
            it was itself, None = no logprobs at all.
        pace: most tokens a second, so that somebody can watch the text being written and steer it;
            0 = as fast as it goes.
    """

    id: CommandId
    checkpoint: PathBytes
    prompt: str
    config: SampleConfig
    samples: Count = 1
    window: Window = "sliding"
    forced_ids: list[TokenId] = []
    top_logprobs: Count | None = None
    pace: Pace = 0.0


class SetConfig(_Message, frozen=True):
    """Command: let `Generate` number `id` draw with another config from the next token on.

    Its length and its seed stay as they were.
    """

    id: CommandId
    config: SampleConfig


class SetPace(_Message, frozen=True):
    """Command: let `Generate` number `id` go on at another pace."""

    id: CommandId
    pace: Pace


class Cancel(_Message, frozen=True):
    """Command: end command number `id` after the present token, or drop it while it waits."""

    id: CommandId


class NextToken(_Message, frozen=True):
    """Command: report the distribution after a prompt, and what the seed picks.

    Attributes:
        forced_ids: tokens that stand after the prompt, as in `Generate`.
        top_logprobs: how many of the likeliest tokens are wanted.
    """

    id: CommandId
    checkpoint: PathBytes
    prompt: str
    config: SampleConfig
    forced_ids: list[TokenId] = []
    top_logprobs: Count = 100


class Score(_Message, frozen=True):
    """Command: measure how surprising a text is to the model."""

    id: CommandId
    checkpoint: PathBytes
    text: str


class FindCopies(_Message, frozen=True):
    """Command: find the parts of a text, `at_least` characters long, that stand in the corpus."""

    id: CommandId
    checkpoint: PathBytes
    text: str
    at_least: Annotated[int, Meta(ge=1, lt=2**31)] = 20


class Compare(_Message, frozen=True):
    """Command: find how much of each text is copied from the corpus, in parts of `at_least`
    characters, and how many of its words are real."""

    id: CommandId
    checkpoint: PathBytes
    texts: Annotated[list[str], Meta(max_length=MAX_SAMPLES)]
    at_least: Annotated[int, Meta(ge=1, lt=2**31)] = 20


class ReadUnseen(_Message, frozen=True):
    """Command: read the beginning of the text that the model was measured on, and did not learn
    from: the validation part of its training text."""

    id: CommandId
    checkpoint: PathBytes


class TimeWindows(_Message, frozen=True):
    """Command: measure how quickly the model writes past its context."""

    id: CommandId
    checkpoint: PathBytes


class Verify(_Message, frozen=True):
    """Command: compare tokens that were generated with what the plain loop generates."""

    id: CommandId
    checkpoint: PathBytes
    prompt: str
    config: SampleConfig
    ids: list[TokenId]


class Loading(_Message, frozen=True):
    """Report: weights are being read."""

    id: CommandId


class CommandProgress(_Message, frozen=True):
    """Report: `done` of `total` steps of a command are done; at most 30 come in a second."""

    id: CommandId
    done: int
    total: int


class Started(_Message, frozen=True):
    """Report: the model has the prompt.

    Attributes:
        prompt: as the model reads it.
        dropped: characters of the prompt that the model does not know, each once.
        out_of_sight: how many tokens at the prompt's start lie before the model's context.
        vocab_size: of the model, the highest top_k that differs from off.
        block_size: of the model, its context in tokens.
        prompt_tokens: how many tokens the prompt has.
    """

    id: CommandId
    prompt: str
    dropped: str
    out_of_sight: int
    vocab_size: int
    block_size: int = 0
    prompt_tokens: int = 0


class Tokens(_Message, frozen=True):
    """Report: the text of the `count` newest tokens of one sample. At most 30 come in a second,
    in which several samples take turns.

    Attributes:
        ids: the tokens.
        logprobs: one for each token, if they were asked for.
    """

    id: CommandId
    text: str
    count: int
    sample: int = 0
    ids: list[int] = []
    logprobs: list[Logprobs] = []


class ConfigChanged(_Message, frozen=True):
    """Report: from token number `at` (0 is the first after the prompt) another config holds.

    No single command prints such a text again.
    """

    id: CommandId
    at: int
    config: SampleConfig


class Done(_Message, frozen=True):
    """Report: the text is complete, or the command was cancelled.

    Attributes:
        count: tokens that were drawn, in each sample.
        seconds: spent drawing them, without loading, and without waiting for the pace.
        reproducible: whether the same `Generate` writes this text again: its config stayed.
        reference: whether the workshop's program writes it too, with this prompt and config: no
            tokens were forced, no top-p or min-p used, and no window rolled.
    """

    id: CommandId
    count: int
    seconds: float
    cancelled: bool
    reproducible: bool = True
    reference: bool = True


class NextTokenFound(_Message, frozen=True):
    """Report: what could come next after the prompt as the model reads it."""

    id: CommandId
    prompt: str
    dropped: str
    logprobs: Logprobs


class Scored(_Message, frozen=True):
    """Report: how surprising the text is."""

    id: CommandId
    score: TextScore


class CopiesFound(_Message, frozen=True):
    """Report: what the text copies."""

    id: CommandId
    found: Copies


class Compared(_Message, frozen=True):
    """Report: the facts of each text, in order."""

    id: CommandId
    found: list[TextFacts]


class UnseenRead(_Message, frozen=True):
    """Report: the beginning of the validation part."""

    id: CommandId
    found: Unseen


class WindowsTimed(_Message, frozen=True):
    """Report: tokens a second with each window."""

    id: CommandId
    speeds: WindowSpeeds


class Verified(_Message, frozen=True):
    """Report: where the text first differs from the plain loop's (None: nowhere), and the
    checkpoint's sha256."""

    id: CommandId
    differs_at: int | None
    sha256: str


class Failed(_Message, frozen=True):
    """Report: it could not be done; `message` is for the user."""

    id: CommandId
    message: str


Work = Generate | NextToken | Score | FindCopies | Compare | ReadUnseen | TimeWindows | Verify
Command = Work | SetConfig | SetPace | Cancel
Found = NextTokenFound | Scored | CopiesFound | Compared | UnseenRead | WindowsTimed | Verified
Last = Done | Found | Failed
Report = Loading | CommandProgress | Started | Tokens | ConfigChanged | Last


class _Addressed(msgspec.Struct, frozen=True):
    id: CommandId


_LONGEST_REASON = 300
"""Most characters of a reason why a line is refused."""

_T = TypeVar("_T")
_encoder = msgspec.json.Encoder()
_addresses = msgspec.json.Decoder(_Addressed)


@cache
def _commands() -> msgspec.json.Decoder[Command]:
    """Made when a line comes: the app's first frame waits for no decoder."""
    return msgspec.json.Decoder(Command)


@cache
def _reports() -> msgspec.json.Decoder[Report]:
    return msgspec.json.Decoder(Report)


def encode(message: Command | Report) -> bytes:
    """One line for the pipe."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate is no character, and no model knows it
        record: dict[str, Any] = msgspec.to_builtins(message)
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode_command(line: bytes) -> Command:
    """Read what the app wrote. Raises ValueError for anything that is no command."""
    return _decode(_commands(), line)


def decode_report(line: bytes) -> Report:
    """Read what the process wrote. Raises ValueError for anything that is no report."""
    return _decode(_reports(), line)


def addressee(line: bytes) -> int | None:
    """The `id` in a line that is no message otherwise, so that it can be answered."""
    try:
        return _decode(_addresses, line).id
    except ValueError:
        return None


def _decode(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T:
    try:
        return decoder.decode(line)
    # A config refuses impossible values with an error of its own, and nesting too deep is a
    # RecursionError; whatever comes, a line that cannot be read is just that.
    except Exception as error:
        reason = str(error)[:_LONGEST_REASON]  # it may repeat what is wrong, and that may be long
        raise ValueError(f"not a message of the protocol: {reason}") from None
