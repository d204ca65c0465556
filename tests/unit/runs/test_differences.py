"""In what two checkpoints differ."""

from __future__ import annotations

from pathlib import Path

from conftest import SHAPE, checkpoint_header, write_header_only

from tuigpt.runs.describe import describe
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


def test_an_estimate_is_told_as_one_and_what_nobody_measured_not_at_all(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.safetensors" for n in range(3)]
    for path, early in zip(paths, (None, None, 2.54), strict=True):
        write_header_only(path, checkpoint_header(7, early_val_loss=early))
    neither, nor, estimated = map(read_checkpoint, paths)
    assert "val" not in differences(neither, nor)[1]
    assert differences(neither, estimated)[0] == [("val", "–", "~2.54 nats, estimated")]
    assert estimated.val_loss is None and "val" not in dict(describe(neither, None))
    assert dict(describe(estimated, None))["val"].startswith("~2.54 nats a character")
