"""What a setting reaches on a text: the runs that the plan for minutes is fitted to.

    python benchmarks/plan_runs.py --tinyshakespeare tinyshakespeare.txt

does the trainings of `ROWS` and `LONG_ROWS` that `plan_runs.csv` does not have yet, and adds each
to it as soon as it is done. Only steps count, no seconds, so that they can run on any machine,
several at a time: `--part 1/2` and `--part 2/2` share the rows out, and `--threads 1` gives each a
core.
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import msgspec
import torch

from tuigpt.config import GPTConfig, TrainConfig, train_defaults
from tuigpt.model.device import faster_precision
from tuigpt.model.gpt import GPT
from tuigpt.paths import asset
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import Evaluated, Stepped
from tuigpt.training.optimizers import set_first_weights
from tuigpt.training.trainer import Trainer

TABLE = Path(__file__).with_suffix(".csv")

CPU = torch.device("cpu")

PLAYS, TINY, LONG_PART, SHORT_PART = "plays", "tinyshakespeare", "plays-100k", "plays-20k"
"""The texts: the built-in one, tiny Shakespeare, and the first 100,000 and 20,000 characters of the
built-in one."""


@dataclass(frozen=True)
class Row:
    """A training with recipe `fast`, but for what it reached."""

    text: str
    n_layer: int
    n_head: int
    n_embd: int
    block_size: int
    steps: int
    weight_decay: float = 0.1
    dropout: float = 0.0
    batch_size: int = 16
    seed: int = 1337


@dataclass(frozen=True)
class Result:
    """What a training reached, in nats per character.

    Attributes:
        val: over the whole validation part, with the last weights.
        best_val, best_step: the lowest of the evaluations on the way.
        train: mean of the last twentieth of the steps.
        parameters: of the model.
        train_tokens: of the training part.
    """

    val: float
    best_val: float
    best_step: int
    train: float
    parameters: int
    train_tokens: int

    @property
    def best(self) -> float:
        """Of the checkpoint that a user would take."""
        return min(self.val, self.best_val)


TINY_SHAPE, SMALL_SHAPE, WIDE_SHAPE, WIDER_SHAPE = (
    (2, 2, 128),
    (4, 4, 128),
    (4, 3, 192),
    (4, 4, 256),
)
"""Layers, heads, width."""

ROWS = [
    Row(TINY, *TINY_SHAPE, 64, 2400),
    Row(TINY, *TINY_SHAPE, 64, 11_000, 0.2),
    Row(TINY, *TINY_SHAPE, 128, 2000),
    Row(TINY, *TINY_SHAPE, 128, 5000),
    Row(TINY, *TINY_SHAPE, 128, 5000, 0.5),
    Row(TINY, *SMALL_SHAPE, 64, 2200, batch_size=8),
    Row(TINY, *SMALL_SHAPE, 64, 1180),
    Row(TINY, *SMALL_SHAPE, 64, 5500, 0.3),
    Row(TINY, *SMALL_SHAPE, 128, 1000, batch_size=8),
    Row(TINY, *SMALL_SHAPE, 128, 2000, 0.2, batch_size=8),
    Row(TINY, *SMALL_SHAPE, 128, 540),
    Row(TINY, *SMALL_SHAPE, 128, 2800, 0.3),
    Row(TINY, *SMALL_SHAPE, 256, 2300, 0.3, batch_size=8),
    Row(TINY, *WIDE_SHAPE, 64, 1100),
    Row(TINY, *WIDE_SHAPE, 128, 1800, 0.3),
    Row(TINY, *WIDE_SHAPE, 256, 1550, 0.3, batch_size=8),
    Row(TINY, *WIDE_SHAPE, 256, 820, 0.3),
    Row(PLAYS, *TINY_SHAPE, 64, 2400),
    Row(PLAYS, *SMALL_SHAPE, 64, 1180),
    Row(PLAYS, *SMALL_SHAPE, 128, 2000, batch_size=8),
    Row(LONG_PART, *TINY_SHAPE, 64, 400, 1.0),
    Row(LONG_PART, *TINY_SHAPE, 64, 1000),
    Row(LONG_PART, *TINY_SHAPE, 64, 1000, 1.0),
    Row(LONG_PART, *TINY_SHAPE, 64, 1000, 1.0, 0.2),
    Row(LONG_PART, *TINY_SHAPE, 64, 1000, 2.0),
    Row(LONG_PART, *TINY_SHAPE, 64, 2400, 2.0),
    Row(LONG_PART, *SMALL_SHAPE, 64, 1000, 1.0),
    Row(LONG_PART, *SMALL_SHAPE, 64, 2000, 1.5),
    Row(LONG_PART, *WIDE_SHAPE, 128, 700, 1.5),
    Row(LONG_PART, *WIDER_SHAPE, 128, 1300, 1.0, batch_size=8),
    Row(SHORT_PART, *TINY_SHAPE, 64, 100, 1.0),
    Row(SHORT_PART, *TINY_SHAPE, 64, 300),
    Row(SHORT_PART, *TINY_SHAPE, 64, 300, 1.0),
    Row(SHORT_PART, *TINY_SHAPE, 64, 300, 1.0, 0.3),
    Row(SHORT_PART, *TINY_SHAPE, 64, 300, 3.0),
    Row(SHORT_PART, *TINY_SHAPE, 64, 600, 1.5),
    Row(SHORT_PART, *TINY_SHAPE, 64, 1000, 3.0),
    Row(SHORT_PART, *SMALL_SHAPE, 64, 300, 1.0),
    Row(SHORT_PART, *SMALL_SHAPE, 64, 300, 2.0),
    Row(SHORT_PART, *WIDER_SHAPE, 64, 600, 1.0, batch_size=8),
]

LONG_ROWS = [
    Row(TINY, *WIDE_SHAPE, 256, 4630, 0.5, batch_size=8),
    Row(TINY, *WIDE_SHAPE, 256, 5347, 1.0),
    Row(PLAYS, *WIDE_SHAPE, 256, 2639),
]
"""A quarter and half an hour on two cores: not for the fit, but to see how far it carries."""


def text_of(name: str, tinyshakespeare: Path | None) -> str | None:
    """A text by its name, or None if it is not at hand."""
    if name == TINY:
        return tinyshakespeare.read_text("utf-8") if tinyshakespeare else None
    text = asset("shakespeare.txt").read_text("utf-8")
    return text[: {LONG_PART: 100_000, SHORT_PART: 20_000}.get(name)]


def train(row: Row, text: str) -> Result:
    """Do a row's training."""
    tokenizer = CharTokenizer.from_text(text)
    shape = GPTConfig(
        tokenizer.vocab_size, row.block_size, row.n_layer, row.n_head, row.n_embd, row.dropout
    )
    settings = dict(
        max_steps=row.steps, batch_size=row.batch_size, weight_decay=row.weight_decay,
        seed=row.seed, eval_interval=max(1, row.steps // 12), checkpoint_interval=row.steps,
        sample_tokens=0, evolution_mb=0, precision=faster_precision(shape, CPU),
    )  # fmt: skip
    config = TrainConfig(**{**train_defaults("fast"), **settings})
    corpus = Corpus.from_text(text, tokenizer, config.val_fraction, shape.block_size, CPU)
    torch.manual_seed(config.seed)
    model = GPT(shape)
    set_first_weights(model, config)
    trainer = Trainer(model, tokenizer, corpus, config)
    model.set_dropout(row.dropout)
    val, best_val, best_step, losses = math.nan, math.inf, 0, []
    for event in trainer.run():
        match event:
            case Stepped():
                losses.append(event.loss)
            case Evaluated(whole=True):
                val = event.val_loss
            case Evaluated(early=False) if event.val_loss < best_val:
                best_val, best_step = event.val_loss, event.step
    newest = losses[-max(1, len(losses) // 20) :]
    return Result(
        round(val, 4), round(best_val, 4), best_step, round(sum(newest) / len(newest), 4),
        shape.n_params, corpus.n_train,
    )  # fmt: skip


def read_table() -> dict[Row, Result]:
    """The rows that are done."""
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="", encoding="utf-8") as stream:
        entries = list(csv.DictReader(stream))
    rows = msgspec.convert(entries, list[Row], strict=False)
    results = msgspec.convert(entries, list[Result], strict=False)
    return dict(zip(rows, results, strict=True))


def add_to_table(row: Row, result: Result) -> None:
    new = not TABLE.exists()
    with TABLE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow([*asdict(row), *asdict(result)])
        writer.writerow([*astuple(row), *astuple(result)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tinyshakespeare", type=Path, help="without it, its rows are left out")
    parser.add_argument("--part", default="1/1", help="which part of the rows, as in 1/2")
    parser.add_argument("--threads", type=int, default=0, help="0 = as PyTorch has it")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    part, parts = map(int, asked.part.split("/"))
    for row in (ROWS + LONG_ROWS)[part - 1 :: parts]:
        text = text_of(row.text, asked.tinyshakespeare)
        if text is not None and row not in read_table():
            result = train(row, text)
            add_to_table(row, result)
            print(row, result, flush=True)


if __name__ == "__main__":
    main()
