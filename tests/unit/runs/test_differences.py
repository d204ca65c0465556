"""In what two checkpoints differ."""

from __future__ import annotations

from pathlib import Path

from conftest import SHAPE, checkpoint_header, write_header_only

from tuigpt.runs.differences import differences
from tuigpt.runs.folder import read_checkpoint


def test_only_what_differs_is_told_and_the_rest_named(tmp_path: Path) -> None:
    shapes = (SHAPE, {**SHAPE, "n_layer": 3})
    for n, shape in enumerate(shapes):
        train = {"seed": n, "batch_size": 8, "device": f"cuda:{n}"}
        header = checkpoint_header(7, val_loss=1.5, model=shape, train=train)
        write_header_only(tmp_path / f"{n}.safetensors", header)
    left, right = (read_checkpoint(tmp_path / f"{n}.safetensors") for n in range(2))
    found, same = differences(left, right)
    assert found == [("parameters", "1.1k", "2.8k"), ("seed", "0", "1"), ("layers", "1", "3")]
    assert {"step", "val", "text", "batch size", "width"} <= set(same)
    assert "device" not in same
