"""In the place of `tuigpt estimate`: keeps the speeds that it is told of, without training."""

from __future__ import annotations

import sys
from pathlib import Path

from tuigpt.config import GPTConfig, TrainConfig, parse_field
from tuigpt.estimate import Calibration
from tuigpt.plan.choose import Asked, candidates
from tuigpt.plan.law import TextSize
from tuigpt.plan.speeds import Device, Speeds
from tuigpt.reports import CostReport, read_cost, to_line

SIZE = TextSize(65, 1_000_000, 100_000, 2.05)


def main(told: str) -> None:
    """Keep that every setting asked for is as fast as a report tells, and print the report."""
    report: CostReport = read_cost(told.encode())
    home, flags = Path(sys.argv[2]), [a for a in sys.argv if a.startswith("--") and "=" in a]
    given = {f[2:].partition("=")[0].replace("-", "_"): f.partition("=")[2] for f in flags}
    preset = given.pop("preset", None)
    model = {n: parse_field(GPTConfig, n, x) for n, x in given.items() if _is(GPTConfig, n)}
    train = {n: parse_field(TrainConfig, n, x) for n, x in given.items() if _is(TrainConfig, n)}
    asked = Asked(preset, model, train)
    if isinstance(report.calibration, Calibration):
        keep(home, asked, report)
    print(to_line(report))


def keep(home: Path, asked: Asked, report: CostReport) -> None:
    """Keep the calibration of a report for all that a plan could choose."""
    assert report.calibration is not None
    device = Device(report.device, report.device_type, report.device_memory)
    speeds = Speeds(home)
    found = [(asked.sizes, asked.settings(device.type))]
    if asked.planned:
        found = candidates(asked, SIZE, device.type)
    for sizes, settings in found:
        speeds.keep(sizes, settings, SIZE.val_tokens, report.calibration, device)


def _is(config: type, name: str) -> bool:
    return name in config.__dataclass_fields__  # type: ignore[attr-defined]
