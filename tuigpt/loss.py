"""A loss and its unit, in one place.

A model is optimised in nats per token, and files say what was measured in that unit. What a person
sees is nats per character everywhere, because only that compares runs with different tokenizers.
Whoever reads a file converts there, with these functions, and nobody else does:

- a val loss by the characters per token of the evaluation that measured it;
- a train loss by the characters per token of the training part, where they are recorded, else by
  those of the newest evaluation.

Where tokens are characters, both factors are 1 and the units are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec


def characters_per_token(characters: float | None, tokens: float | None) -> float | None:
    """Mean length of a token in characters, or None where it is not known."""
    return characters / tokens if characters and tokens else None


def per_character(nats_per_token: float | None, characters_per_token: float | None) -> float | None:
    """A loss in nats per token as nats per character; an unknown factor counts as 1."""
    return None if nats_per_token is None else nats_per_token / (characters_per_token or 1.0)


def per_token(nats_per_character: float | None, characters_per_token: float | None) -> float | None:
    """A loss in nats per character as nats per token; an unknown factor counts as 1."""
    return (
        None if nats_per_character is None else nats_per_character * (characters_per_token or 1.0)
    )


def bits(nats: float) -> float:
    """A loss in nats as the same loss in bits."""
    return nats / math.log(2)


def is_measured(loss: float | None) -> bool:
    """Whether this can be a cross-entropy: a finite number that is not negative."""
    return loss is not None and math.isfinite(loss) and loss >= 0


def can_be_best(step: int, early: bool = False) -> bool:
    """Whether an evaluation counts when the best of a run is sought.

    The untrained model is never the best, and an early evaluation measures too little to decide.
    """
    return step > 0 and not early


class Baselines(msgspec.Struct, frozen=True):
    """What counting alone reaches on the validation part of a text, in nats per character.

    Attributes:
        guessing: every character is as likely as any other: ln of their number.
        letters: knowing how often each character comes.
        pairs: knowing what follows one character.
        triples: knowing what follows two characters.

    None stands for what was not measured, because a part of the text is too short.
    """

    guessing: float | None = None
    letters: float | None = None
    pairs: float | None = None
    triples: float | None = None

    @classmethod
    def of_symbols(cls, count: int) -> Baselines:
        """What is known of a text from its number of different characters alone."""
        return cls(guessing=math.log(max(1, count)))

    @classmethod
    def named(cls, found: Mapping[str, float]) -> Baselines:
        """From a record of them by name; also by the names in runs of the first version."""
        current = {_FIRST_NAMES.get(name, name): nats for name, nats in found.items()}
        return cls(**{n: x for n, x in current.items() if n in cls.__struct_fields__})

    def items(self) -> Iterator[tuple[str, float]]:
        """Name and value of those that were measured, the easiest first."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                yield name, value


_FIRST_NAMES = {
    "uniform": "guessing",
    "unigram": "letters",
    "bigram": "pairs",
    "trigram": "triples",
}
