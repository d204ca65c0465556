"""Fits the law of `tuigpt/plan/law.py` to the runs of `plan_runs.csv`, and tells how well it holds.

    python benchmarks/fit_law.py

prints the law's numbers, and for each run by how much they miss it, with the run in the fit and
without. What no plan would do is left out: dropout, and a weight decay that is far from the
usual one for so many readings.
"""

from __future__ import annotations

import math
from dataclasses import fields

import torch
from plan_runs import Result, Row, read_table
from torch import Tensor
from torch.nn.functional import huber_loss

from tuigpt.config import GPTConfig
from tuigpt.plan.law import LAW, MOST_READINGS, Law, usual_weight_decay

PAIRS = {"tinyshakespeare": 2.4858, "plays": 2.4845, "plays-100k": 2.5985, "plays-20k": 2.4408}
"""What counting pairs reaches on each text, in nats per character."""

MOST_OFF = 4.0
"""Times by which a weight decay may be off."""

NOISE = 0.02
"""Nats per character beyond which a miss counts by its size alone, not by its square."""

NAMES = tuple(field.name for field in fields(Law))


def table() -> list[tuple[Row, Result]]:
    """The runs that count."""
    chosen = []
    for row, result in read_table().items():
        readings = row.steps * row.batch_size * row.block_size / result.train_tokens
        off = row.weight_decay / usual_weight_decay(readings)
        usual = 1 / MOST_OFF <= off <= MOST_OFF and not row.dropout
        if usual and readings <= 2 * MOST_READINGS:
            chosen.append((row, result))
    return chosen


def losses(numbers: Tensor, runs: list[tuple[Row, Result]]) -> Tensor:
    """What the law with these numbers, (n,) as logarithms, expects of the runs, (runs,)."""
    law = Law(**dict(zip(NAMES, numbers.exp(), strict=True)))

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)

    shapes = [GPTConfig(65, r.block_size, r.n_layer, r.n_head, r.n_embd) for r, _ in runs]
    step = column([r.batch_size * r.block_size for r, _ in runs])
    found: Tensor = law.val_loss(
        entries=column([shape.block_matrices for shape in shapes]),
        block_size=column([r.block_size for r, _ in runs]),
        step_tokens=step,
        tokens=step * column([r.steps for r, _ in runs]),
        train_tokens=column([result.train_tokens for _, result in runs]),
        pairs=column([PAIRS[r.text] for r, _ in runs]),
    )
    return found


def fit(runs: list[tuple[Row, Result]]) -> Tensor:
    """The logarithms of the numbers that miss the runs least, near those that there are."""
    start = torch.tensor([math.log(getattr(LAW, name)) for name in NAMES], dtype=torch.float64)
    measured = torch.tensor([result.val for _, result in runs], dtype=torch.float64)
    numbers = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [numbers], max_iter=1000, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def miss() -> Tensor:
        optimizer.zero_grad()
        off = huber_loss(losses(numbers, runs), measured, delta=NOISE, reduction="sum")
        loss = off / NOISE**2 + ((numbers - start) ** 2).sum() / 10
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(miss)  # type: ignore[no-untyped-call]
    return numbers.detach()


def main() -> None:
    torch.set_num_threads(1)
    runs = table()
    numbers = fit(runs)
    for name, number in zip(NAMES, numbers.exp().tolist(), strict=True):
        print(f"{name} = {number:.4g}")
    with_it = losses(numbers, runs).tolist()
    squares, blind_squares = [], []
    for at, (row, result) in enumerate(runs):
        others = runs[:at] + runs[at + 1 :]
        blind = losses(fit(others), [runs[at]]).item() - result.val
        off = with_it[at] - result.val
        squares.append(off**2)
        blind_squares.append(blind**2)
        print(f"{result.val:.4f} {off:+.4f} {blind:+.4f}  {row}")
    print(
        f"{len(runs)} runs: {math.sqrt(sum(squares) / len(runs)):.4f} off in the mean,"
        f" {math.sqrt(sum(blind_squares) / len(runs)):.4f} where the run is not in the fit"
    )


if __name__ == "__main__":
    main()
