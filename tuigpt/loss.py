"""What a loss is compared with: how far guessing and counting get on the same text."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


class Baselines(msgspec.Struct, frozen=True):
    """Losses on the validation part that need no model, in nats per character.

    Attributes:
        guessing: every symbol is as likely as any other.
        letters: how often each symbol comes; None where a part is too short to measure.
        pairs: what follows one symbol.
        triples: what follows two.
    """

    guessing: float
    letters: float | None = None
    pairs: float | None = None
    triples: float | None = None

    def named(self) -> list[tuple[str, float]]:
        """Name and loss of those that were measured, the highest first."""
        values = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, nats) for name, nats in values if nats is not None]


_FORMER_NAMES = {
    "uniform": "guessing", "unigram": "letters", "bigram": "pairs", "trigram": "triples"
}  # fmt: skip


def read_baselines(record: object) -> Baselines | None:
    """The baselines that a run was recorded with, by these names or the former ones.

    Returns:
        None where there are none that can be read.
    """
    if not isinstance(record, Mapping):
        return None
    named = {_FORMER_NAMES.get(name, name): value for name, value in record.items()}
    try:
        found = msgspec.convert(named, Baselines)
    except msgspec.ValidationError:
        return None
    return found if all(math.isfinite(nats) for _, nats in found.named()) else None
