"""The settings that the form folds away: how each is called, explained, and asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tuigpt.config import PRESETS, GPTConfig, train_defaults
from tuigpt.plan.choose import USUAL_MINUTES
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES

MODEL_FIELDS = ("block_size", "dropout")
TRAIN_FIELDS = (
    "tokenizer", "encoding", "val_fraction", "recipe", "learning_rate", "batch_size", "seed",
    "checkpoint_interval", "evolution_mb", "max_steps", "minutes", "patience",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A setting in the form.

    Attributes:
        words: what it means, in a line.
        answers: value and words of each, where there are only a few; else it is typed.
        label: what it is called, where that is not its name.
    """

    name: str
    words: str
    answers: tuple[tuple[str, str], ...] = ()
    label: str = ""


GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    ("The run", (Field("name", "left empty, a name is made up"),)),
    ("The text", (
        Field("tokenizer", "what the model reads and writes one at a time",
              (("char", "characters"), ("bpe:1024", "1,024 word pieces"),
               ("bpe:2048", "2,048"), ("bpe:4096", "4,096"))),
        Field("encoding", "auto finds out how letters are stored"),
        Field("val_fraction", "share kept for testing, never learned"),
    )),
    ("The model", (
        Field("block_size", "characters or tokens that it sees at once"),
        Field("dropout", "0.1 to 0.3 slows memorising, 0 is none"),
    )),
    ("Learning", (
        Field("recipe", "how it learns",
              tuple((name, {"fast": "fast: sooner good", "workshop": "as the workshop teaches it"}
                     .get(name, name)) for name in RECIPES)),
        Field("learning_rate", "too high it diverges, too low it crawls"),
        Field("batch_size", "passages of text in each step"),
        Field("seed", "the same seed trains the same model"),
        Field("checkpoint_interval", "steps between two that are kept"),
        Field("evolution_mb", "room for more of them, to read how it grew up",
              label="for evolution, MB"),
    )),
    ("How long", (
        Field("max_steps", "the most steps that a run takes"),
        Field("minutes", "the longer of the two times offered above"),
        Field("patience", "tests without a better val that end it"),
    )),
)  # fmt: skip
"""Headings, and the fields below each."""

FIELDS = {field.name: field for _, fields in GROUPS for field in fields}

HELP = """\
Three answers are enough: what it reads, how big it is, and how long it trains. The arrows choose \
an answer, letters are the path of a text, digits another number of steps or minutes; [b]tab[/b] \
completes a path and goes to the next question. [b]{new-run.start}[/b] starts the training, which \
goes on when you leave the app.

The times are measured on this machine, while you read. With a time, [b]auto[/b] is the size and \
the settings that make the best model in it. A model that is large for its text memorises it \
instead of learning to write: then take a smaller size, or a longer text.

[b]{new-run.more}[/b] unfolds all other settings, each with what it means. They may all stay as \
they are."""

LENGTH_FIELDS: dict[str, tuple[str, ...]] = {
    "steps": ("max_steps",),
    "short": (),
    "long": ("minutes",),
    "patience": ("max_steps", "patience"),
}
"""How long a run is, with the fields that count then: so many steps, the shorter or the longer
time, or until val stops falling."""

LENGTHS = tuple(LENGTH_FIELDS)

SHORT_MINUTES = int(USUAL_MINUTES)

AUTO = "auto"
"""The size that a plan chooses for the time."""

SIZES = (AUTO, *PRESETS)
"""The answers to the question how big."""

_LONG_MINUTES, _PATIENCE = "15", "10"


def defaults(recipe: str = DEFAULT_RECIPE, device_type: str = "cpu") -> dict[str, str]:
    """What each field holds where the user types nothing."""
    model = {name: GPTConfig.__dataclass_fields__[name].default for name in MODEL_FIELDS}
    settings = train_defaults(recipe, device_type)
    values = {**{name: settings[name] for name in TRAIN_FIELDS}, **model}
    texts = {n: v if isinstance(v, str) else f"{v:.15g}" for n, v in values.items()}
    return {"name": "", **texts, "minutes": _LONG_MINUTES, "patience": _PATIENCE}


@dataclass(frozen=True)
class Answers:
    """All that a form asks.

    Attributes:
        text: paths with semicolons between; "" is the built-in text.
        preset: the size, or `AUTO`.
        length: one of `LENGTHS`.
        fields: those of `FIELDS` that the user has changed.
    """

    text: str
    preset: str
    length: str
    fields: dict[str, str]


NO_ANSWERS = Answers("", AUTO, "short", {})
