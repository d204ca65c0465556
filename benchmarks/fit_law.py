"""Fits the law of `tuigpt/plan/law.py` to the runs of `plan_runs.csv`, and tells how well it holds.

    python benchmarks/fit_law.py

prints the law's numbers, and for each run by how much they miss it, with the run in the fit and
without. The longest runs are never in it, so that they show how far it carries. What no plan would
do is left out: dropout, and a weight decay that is far from the usual one for so many readings.
"""

from __future__ import annotations

import math
from dataclasses import fields

import torch
from plan_runs import LONG_ROWS, Row, read_table
from torch import Tensor
from torch.nn.functional import huber_loss

from tuigpt.config import GPTConfig
from tuigpt.plan.law import LAW, Law, most_readings, usual_weight_decay

Run = tuple[Row, float, int]
"""What was trained, the val loss that it reached, and the tokens of the text's training part."""

PUBLISHED = {1: 1.4532, 2: 1.4694, 3: 1.4541}
"""What `published_loss.py` measured, by seed."""

TRIPLES = {"tinyshakespeare": 2.0492, "plays": 2.0723, "plays-100k": 2.2767, "plays-20k": 2.2110}
"""What counting triples reaches on each text, in nats per character."""

MOST_OFF = 3.0
"""Times by which a weight decay may be off."""

NOISE = 0.02
"""Nats per character beyond which a miss counts by its size alone, not by its square."""

WEIGHTS = {"plays-20k": 0.15}
"""What a miss counts on a text whose validation part is no more than 2,000 characters."""

NAMES = tuple(field.name for field in fields(Law))

HARDER = {"plays": 0.03, "plays-100k": 0.1, "plays-20k": 0.1}
"""Nats per character by which a text's validation part may well be harder than counting says; they
are fitted as well, and not kept."""


def tables() -> tuple[list[Run], list[Run]]:
    """The runs that count, and the longest, which the fit does not know."""
    long = []
    chosen = [
        (Row("tinyshakespeare", 4, 3, 192, 256, 1800, 0.3, seed=seed), val, 1_003_854)
        for seed, val in PUBLISHED.items()
    ]
    for row, result in read_table().items():
        tokens, unique = row.steps * row.batch_size * row.block_size, result.train_tokens
        usual = usual_weight_decay(shape(row).block_matrices, tokens, unique)
        near = 1 / MOST_OFF <= row.weight_decay / usual <= MOST_OFF
        if row in LONG_ROWS:
            long.append((row, result.best, unique))
        elif near and not row.dropout and tokens <= 2 * most_readings(unique) * unique:
            chosen.append((row, result.best, unique))
    return chosen, long


def shape(row: Row) -> GPTConfig:
    return GPTConfig(65, row.block_size, row.n_layer, row.n_head, row.n_embd)


def losses(numbers: Tensor, runs: list[Run]) -> Tensor:
    """What a fit expects of the runs, (runs,).

    Args:
        numbers: the law's as logarithms, then what is fitted of `HARDER`, (n,).
    """
    law = Law(**dict(zip(NAMES, numbers.exp(), strict=False)))

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)

    rows = [row for row, _, _ in runs]
    steps = column([row.steps for row in rows])
    found: Tensor = law.val_loss(
        entries=column([shape(row).block_matrices for row in rows]),
        block_size=column([row.block_size for row in rows]),
        windows=steps * column([row.batch_size for row in rows]),
        steps=steps,
        train_tokens=column([unique for _, _, unique in runs]),
        triples=column([TRIPLES[row.text] for row in rows]),
    )
    places = [[row.text == name for name in HARDER] for row in rows]
    return found + torch.tensor(places, dtype=torch.float64) @ numbers[len(NAMES) :]


def fit(runs: list[Run]) -> Tensor:
    """The numbers, as `losses` takes them, that miss the runs least, near those that there are."""
    now = [math.log(getattr(LAW, name)) for name in NAMES]
    start = torch.tensor([*now, *(0.0 for _ in HARDER)], dtype=torch.float64)
    likely = torch.tensor([*(3.0 for _ in NAMES), *HARDER.values()], dtype=torch.float64)
    measured = torch.tensor([val for _, val, _ in runs], dtype=torch.float64)
    weights = torch.tensor([WEIGHTS.get(row.text, 1.0) for row, _, _ in runs], dtype=torch.float64)
    numbers = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [numbers], max_iter=1000, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def miss() -> Tensor:
        optimizer.zero_grad()
        off = huber_loss(losses(numbers, runs), measured, delta=NOISE, reduction="none")
        loss = (weights * off).sum() / NOISE**2 + (((numbers - start) / likely) ** 2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(miss)  # type: ignore[no-untyped-call]
    return numbers.detach()


def main() -> None:
    torch.set_num_threads(1)
    runs, long = tables()
    numbers = fit(runs)
    for name, number in zip(NAMES, numbers.exp().tolist(), strict=False):
        print(f"{name} = {number:.4g}")
    print(dict(zip(HARDER, numbers[len(NAMES) :].tolist(), strict=True)))
    with_it = losses(numbers, runs).tolist()
    squares, blind_squares = [], []
    for at, (row, val, _) in enumerate(runs):
        others = runs[:at] + runs[at + 1 :]
        blind = losses(fit(others), [runs[at]]).item() - val
        off = with_it[at] - val
        squares.append(off**2)
        blind_squares.append(blind**2)
        print(f"{val:.4f} {off:+.4f} {blind:+.4f}  {row}")
    print("a quarter and half an hour, not in the fit:")
    for (row, val, _), found in zip(long, losses(numbers, long).tolist(), strict=True):
        print(f"{val:.4f} {found - val:+.4f}  {row}")
    print(
        f"{len(runs)} runs: {math.sqrt(sum(squares) / len(runs)):.4f} off in the mean,"
        f" {math.sqrt(sum(blind_squares) / len(runs)):.4f} where the run is not in the fit"
    )


if __name__ == "__main__":
    main()
