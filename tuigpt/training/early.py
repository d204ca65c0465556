"""When a model is measured before the regular evaluations begin, and on how much text.

It goes by counts alone, so that a resumed run measures where an uninterrupted one does.
"""

from __future__ import annotations

from itertools import takewhile

SHARE = 0.03
"""Of the time of the updates before it that an early evaluation may cost."""

UPDATE_PER_FORWARD = 2.5
"""How often the time of reading its tokens an update takes: forward and twice that backward, less
what an evaluation loses by its small batches."""


def early_tokens(step: int, eval_interval: int, update_tokens: int) -> int:
    """How many tokens are to be measured after `step` updates; 0 for none.

    Early evaluations come after 10, 25, 50, 100, 250 … updates, until `eval_interval` takes over.

    Args:
        update_tokens: that one process computes in an update.
    """
    steps = [0, *takewhile(lambda s: s < eval_interval, _rounds(step))]
    if step == 0 or steps[-1] != step:
        return 0
    return int(SHARE * UPDATE_PER_FORWARD * (step - steps[-2]) * update_tokens)


def _rounds(last: int) -> list[int]:
    """10, 25, 50 and their multiples by powers of ten, to `last` at most."""
    found, power = [], 1
    while 10 * power <= last:
        found += [n * power for n in (10, 25, 50) if n * power <= last]
        power *= 10
    return found
