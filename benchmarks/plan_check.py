"""Whether a plan is as good as other uses of the same time, on texts that its law does not know.

    python benchmarks/plan_check.py choose --minutes 0.5 1 3
    python benchmarks/plan_check.py train [--part 1/2 --threads 1]
    python benchmarks/plan_check.py tell

`choose` writes into `plan_check.csv` what the plan takes for each text and time, and five others:
the best of every other shape that is a rival, then the next in the plan's order. Each of them is
timed, for the steps that fit. `train` does their trainings; only steps count by then, so that the
machine may do other work meanwhile, and two halves may have a core each. `tell` compares.
"""

from __future__ import annotations

import argparse
import csv
import pydoc_data.topics
import tempfile
from dataclasses import asdict, dataclass, replace
from inspect import getsource
from pathlib import Path

import msgspec
import torch
from plan_runs import CPU, Row, train

from tuigpt.paths import asset
from tuigpt.plan.choose import Asked, Choice
from tuigpt.plan.law import TextSize
from tuigpt.text.baselines import baselines
from tuigpt.text.named import open_text
from tuigpt.text.read import scan, silent
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.process_group import ProcessGroup
from tuigpt.training.trials import Trials

TABLE = Path(__file__).with_suffix(".csv")

OTHERS = 5
HOPELESS = 0.15
"""Nats per character by which a shape is so far behind that it is no rival."""

MANUAL, CODE, ACT = "manual", "code", "act"
"""Python's own manual and the source of its argparse, as this Python has them, and 300,000
characters from the middle of the built-in plays."""


@dataclass(frozen=True)
class Entry:
    """A training of the check.

    Attributes:
        rank: 0 is what the plan chooses.
        expected: val loss, in nats per character.
        val: that it reached, or 0 before it is trained.
    """

    text: str
    minutes: float
    rank: int
    n_layer: int
    n_head: int
    n_embd: int
    block_size: int
    batch_size: int
    steps: int
    weight_decay: float
    expected: float
    val: float = 0.0

    @property
    def row(self) -> Row:
        return Row(
            self.text, self.n_layer, self.n_head, self.n_embd, self.block_size, self.steps,
            self.weight_decay, batch_size=self.batch_size,
        )  # fmt: skip


def text_of(name: str) -> str:
    """A text by its name."""
    if name == MANUAL:
        return "\n".join(pydoc_data.topics.topics.values())
    if name == CODE:
        return getsource(argparse)
    return asset("shakespeare.txt").read_text("utf-8")[2_000_000:2_300_000]


def choose(name: str, minutes: float, home: Path) -> list[Entry]:
    """What is to be compared, the plan's choice first; each is timed."""
    text = text_of(name)
    path = home / f"{name}.txt"
    path.write_text(text, encoding="utf-8")
    triples = baselines(scan(open_text([str(path)], cache=home), silent), 0.1).triples
    tokenizer = CharTokenizer.from_text(text)
    corpus = Corpus.from_text(text, tokenizer, 0.1, 64, CPU)
    trials = Trials(tokenizer, corpus, CPU, home, ProcessGroup(), silent)
    size = TextSize(tokenizer.vocab_size, corpus.n_train, corpus.n_val, triples)
    asked = Asked(train={"minutes": minutes})
    for choice in compared(trials.best(asked, size)):
        trials.time(choice.model, choice.train)
    order = trials.best(asked, size)
    return [
        Entry(
            name, minutes, rank, choice.model.n_layer, choice.model.n_head, choice.model.n_embd,
            choice.model.block_size, choice.train.batch_size, choice.train.max_steps,
            choice.train.weight_decay, round(choice.val_loss or 0.0, 4),
        )
        for rank, choice in enumerate(compared(order))
    ]  # fmt: skip


def compared(order: list[Choice]) -> list[Choice]:
    """The first, the best of every shape that is a rival, and the next until there are enough."""

    def shape(choice: Choice) -> tuple[int, int]:
        return choice.model.n_layer, choice.model.n_embd

    others: list[Choice] = []
    for choice in order[1:]:
        behind = (choice.val_loss or 0.0) - (order[0].val_loss or 0.0)
        taken = {shape(known) for known in (order[0], *others)}
        if shape(choice) not in taken and behind < HOPELESS:
            others.append(choice)
    others += [choice for choice in order[1:] if choice not in others]
    return [order[0], *others[:OTHERS]]


def read_table() -> list[Entry]:
    """What is chosen so far."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as stream:
        return msgspec.convert([*csv.DictReader(stream)], list[Entry], strict=False)


def write_table(entries: list[Entry]) -> None:
    with TABLE.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*asdict(entries[0])], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, entries))


def train_part(part: int, parts: int) -> None:
    """Train what is not trained yet; other processes may do the same for their part."""
    for at, entry in enumerate(read_table()):
        if at % parts == part - 1 and not entry.val:
            val = train(entry.row, text_of(entry.text)).val
            entries = read_table()
            entries[at] = replace(entry, val=val)
            write_table(entries)
            print(entries[at], flush=True)


def tell() -> None:
    """Say by how much the plan's choice is behind the best of the others."""
    entries = [entry for entry in read_table() if entry.val]
    for text, minutes in dict.fromkeys((entry.text, entry.minutes) for entry in entries):
        found = [e for e in entries if (e.text, e.minutes) == (text, minutes)]
        plan = next((e for e in found if e.rank == 0), None)
        others = [e for e in found if e.rank]
        if plan and others:
            best = min(others, key=lambda e: e.val)
            print(
                f"{text}, {minutes:g} min: plan {plan.n_layer}/{plan.n_head}/{plan.n_embd},"
                f" {plan.block_size}: {plan.val:.4f} (expected {plan.expected:.4f}); best of"
                f" {len(others)} others {best.n_layer}/{best.n_head}/{best.n_embd},"
                f" {best.block_size}: {best.val:.4f} ({plan.val - best.val:+.4f})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["choose", "train", "tell"])
    parser.add_argument("--minutes", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--part", default="1/1", help="which part of the trainings, as in 1/2")
    parser.add_argument("--threads", type=int, default=0, help="0 = as PyTorch has it")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    if asked.what == "choose":
        with tempfile.TemporaryDirectory() as folder:
            write_table([
                entry
                for minutes in asked.minutes
                for name in (MANUAL, CODE, ACT)
                for entry in choose(name, minutes, Path(folder))
            ])  # fmt: skip
    elif asked.what == "train":
        train_part(*map(int, asked.part.split("/")))
    tell()


if __name__ == "__main__":
    main()
