"""What `inspect --json` and `estimate --json` print: the app's form starts both and reads them.

`inspect` prints JSON lines: any number of `TextProgress`, then a `TextReport` or a `TextProblem`.
`estimate` prints one `CostReport`. What cannot be read, such as a line of a process that was ended
half-way, is a `ValueError`.
"""

from __future__ import annotations

import json

import msgspec

from tuigpt.estimate import Calibration, Memory
from tuigpt.files import decode
from tuigpt.loss import Baselines


class TextProgress(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    """How far a long reading is.

    Attributes:
        words: for people.
    """

    words: str


class TextFacts(msgspec.Struct, frozen=True):
    """A text in numbers.

    Attributes:
        symbols: how many different characters.
        train: size of the training part in `unit`.
        val: size of the validation part in `unit`; 0 for none.
        unit: "characters" or "tokens"; characters also where tokens were not counted.
        vocab_size: of a model of this text.
        advised: the tokenizer that suits the text.
    """

    characters: int
    lines: int
    symbols: int
    sha256: str
    train: int
    val: int
    unit: str
    train_characters: int
    vocab_size: int
    baselines: Baselines
    advised: str


class TextReport(msgspec.Struct, frozen=True, tag_field="kind", tag="report"):
    """What a text is understood as.

    Attributes:
        lines: (label, words), in the order in which they are read; a label may be "".
        problem: why no run with these settings can start, or "".
    """

    lines: list[tuple[str, str]]
    problem: str
    facts: TextFacts


class Offer(msgspec.Struct, frozen=True):
    """How a text can be read after all, if the user agrees.

    Attributes:
        words: what agreeing does.
        encoding: the encoding to name, or "".
        fetch: whether to allow the network.
    """

    words: str
    encoding: str = ""
    fetch: bool = False


class TextProblem(msgspec.Struct, frozen=True, tag_field="kind", tag="problem"):
    """Why a text cannot be read."""

    message: str
    offer: Offer | None = None


TextLine = TextProgress | TextReport | TextProblem


class CostReport(msgspec.Struct, frozen=True):
    """What a training would cost.

    Attributes:
        parameters: by part of the model, and "total".
        memory: that training takes, in bytes.
        device: name of what would train, for people.
        device_type: "cpu", "cuda" or "mps".
        device_memory: in bytes.
        step_flops: floating-point operations of a step.
        step_tokens: of one step.
        tokens: of all steps.
        epochs: how many times as many as the training part holds.
        parameters_per_character: of the training part.
        overfits: whether the model will memorise the text.
        calibration: what was timed; None where there is too little memory to try.
        seconds: of the whole run.
        plan: what is chosen for its time, in words; "" where nothing is.
        compiling: whether `torch.compile` pays, in words; "" where that is not known.
        problem: why no such run can start, or "".
    """

    parameters: dict[str, int]
    memory: Memory
    device: str
    device_type: str
    device_memory: int
    max_steps: int
    step_flops: int
    step_tokens: int
    tokens: int
    epochs: float
    parameters_per_character: float
    overfits: bool
    train_tokens: int
    train_characters: int
    calibration: Calibration | None
    seconds: float | None
    plan: str
    compiling: str
    problem: str


def to_line(report: TextLine | CostReport) -> str:
    """One line of JSON without its line end; ASCII, so that no locale can spoil it."""
    return json.dumps(msgspec.to_builtins(report))


def read_text_line(line: bytes) -> TextLine:
    """A line of `inspect --json`.

    Raises:
        ValueError: it is none.
    """
    return decode(line, TextLine)


def read_cost(content: bytes) -> CostReport:
    """What `estimate --json` printed.

    Raises:
        ValueError: it is no report.
    """
    return decode(content, CostReport)
