"""What is known of a training that is asked for, before anything starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuigpt.config import GPTConfig, TrainConfig, bpe_size
from tuigpt.estimate import Reading, reading
from tuigpt.plan.choose import Asked, Choice, ranked
from tuigpt.plan.law import TextSize
from tuigpt.plan.speeds import Expected, Speeds
from tuigpt.reports import TextFacts


@dataclass(frozen=True)
class Prospect:
    """A training that could be started. What cannot be known yet is None.

    Attributes:
        model: with the text's vocabulary, if that is known.
        train: with the steps that fit into its minutes, if that is known.
        expected: how long it takes.
        read: how it reads the text.
        plan: what a plan chooses for its minutes.
    """

    model: GPTConfig
    train: TrainConfig
    expected: Expected | None = None
    read: Reading | None = None
    plan: Choice | None = None

    @property
    def seconds(self) -> float | None:
        """What the whole run takes."""
        return self.expected.calibration.seconds(self.train) if self.expected else None

    @classmethod
    def of(
        cls, asked: Asked, speeds: Speeds, facts: TextFacts | None, device_type: str
    ) -> Prospect:
        """
        Args:
            facts: of the text, if that was read.
            device_type: of what trains: "cpu", "cuda" or "mps".

        Raises:
            ConfigError: what was asked for cannot work.
        """
        model, train = asked.sizes, asked.settings(device_type)
        vocabulary = facts.vocab_size if facts else bpe_size(train.tokenizer)
        if vocabulary:
            model = replace(model, vocab_size=vocabulary)
        if asked.planned:
            if facts is None:
                return cls(model, train)
            size = TextSize(facts.vocab_size, facts.train, facts.val, facts.baselines.triples)
            order = ranked(asked, size, speeds, device_type)
            if not order:
                return cls(model, train)
            plan = order[0]
            read = _reading(plan.model, plan.train, facts)
            return cls(plan.model, plan.train, plan.expected, read, plan)
        expected = speeds.expected(model, train, facts.val if facts else None)
        if train.minutes:
            if expected is None:
                return cls(model, train)
            steps = expected.calibration.steps_within(60 * train.minutes, train)
            train = replace(train, max_steps=steps)
        return cls(model, train, expected, _reading(model, train, facts))


def _reading(model: GPTConfig, train: TrainConfig, facts: TextFacts | None) -> Reading | None:
    if facts is None or not (train.tokenizer == "char" or facts.unit == "tokens"):
        return None
    return reading(model, train, facts.train, facts.train_characters)
