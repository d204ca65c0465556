"""Files of torch.save, read without its loader: whatever is in them."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tuigpt.model.formats.pickles import Storage, StoredTensor
from tuigpt.model.formats.torch_file import open_torch_file


def read(path: Path) -> Any:
    """Everything in a file, its tensors loaded."""
    with open_torch_file(path) as file:
        return {
            name: file.tensor(value) if isinstance(value, StoredTensor) else value
            for name, value in file.content.items()
        }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.pt"


def repack(path: Path, change: Callable[[str, bytes], bytes | None], kind: int = 0) -> None:
    """Write a zip's parts again; `change` gives the new content of each, None leaves it out."""
    parts = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    with zipfile.ZipFile(path, "w", kind) as new:
        for name in parts.namelist():
            content = change(name, parts.read(name))
            if content is not None:
                new.writestr(name, content)


TYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_tensors_come_back_to_the_bit(path: Path, kind: torch.dtype) -> None:
    base = (torch.randn(6, 8) * 3).to(kind)
    saved = {
        "plain": base, "turned": base.t(), "part": base[2:4, 1:5], "every second": base[::2],
        "one": base[3, 3], "none": base[:0], "widened": base[:1].expand(5, 8)[0:1],
        "parameter": base if kind in TYPES[4:] else torch.nn.Parameter(base),
    }  # fmt: skip
    for name, tensor in saved.items():
        torch.save({"a": tensor}, path)
        found = read(path)["a"]
        assert found.dtype == kind and torch.equal(found, tensor.detach()), name


def test_a_file_saved_on_another_device_opens(path: Path) -> None:
    torch.save({"a": torch.arange(4.0)}, path)
    for device in ("cuda:1", "mps:0", "mps"):
        named = b"X" + len(device).to_bytes(4, "little") + device.encode()
        repack(path, lambda _, content: content.replace(b"X\x03\x00\x00\x00cpu", named))  # noqa: B023
        assert torch.equal(read(path)["a"], torch.arange(4.0))
        repack(path, lambda _, content: content.replace(named, b"X\x03\x00\x00\x00cpu"))  # noqa: B023


OTHER_KINDS = {
    b"": "empty",
    b"<!doctype html><title>404</title>": "web page",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 43\n": "git lfs pull",
    b"PK\x03\x04": "damaged or cut short",
    b"PK\x03\x04" + b"\0" * 1000: "damaged or cut short",
    b"hello": "not a file of torch.save",
    b"\x80\x02}q\x00.": "not a file of torch.save",
}


@pytest.mark.parametrize(("content", "words"), OTHER_KINDS.items())
def test_other_files_are_called_what_they_are(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read(path)


def test_the_format_before_1_6_is_named(path: Path) -> None:
    torch.save({"a": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"before 1\.6"):
        read(path)


def test_a_program_is_no_checkpoint(path: Path) -> None:
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))  # type: ignore[no-untyped-call]
    with pytest.raises(ValueError, match="TorchScript|not one of torch.save|contains"):
        read(path)


def test_another_zip_is_none(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b/data.pkl", pickle.dumps({}))
    with pytest.raises(ValueError, match="not one of torch.save"):
        read(path)


def test_every_truncation_is_refused(path: Path) -> None:
    torch.save({"a": torch.randn(50), "b": torch.randn(50)}, path)
    whole = path.read_bytes()
    for size in range(0, len(whole) - 1, 37):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError):
            read(path)


def test_flipped_bits_are_refused_or_change_nothing(path: Path) -> None:
    torch.save({"a": torch.arange(50.0)}, path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            content = read(path)
        except ValueError:
            continue
        assert all(
            torch.equal(tensor, torch.arange(50.0)) for tensor in content.values()
        )  # flips in names and in what is unused


def test_a_zip_bomb_is_refused_unopened(path: Path) -> None:
    torch.save({"a": torch.zeros(10_000_000)}, path)
    repack(path, lambda _, content: content, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="compressed"):
        read(path)


def test_a_directory_of_many_megabytes_is_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(200):
            archive.writestr(f"file/data/{number:060000}", b"")
    with pytest.raises(ValueError, match="damaged"):
        read(path)


def test_names_that_lead_elsewhere_write_nothing(path: Path, tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../outside", b"x")
        archive.writestr("/tmp/absolute", b"x")
    before = sorted(tmp_path.rglob("*"))
    assert torch.equal(read(path)["a"], torch.ones(2))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("offset", "shape", "stride", "numbers"),
    [
        (0, (11,), (1,), 10),
        (1, (10,), (1,), 10),
        (-1, (2,), (1,), 10),
        (0, (2,), (-1,), 10),
        (0, (-2,), (1,), 10),
        (0, (2, 2), (9, 9), 10),
        (0, (10**12,), (0,), 10),
        (0, (10**6, 10**6, 10**6), (0, 0, 0), 10),
        (0, (2,), (1, 1), 10),
        (0, (2,), (2**62,), 10),
        (0, (10,), (1,), 10**15),
        (0, (9,), (1,), 9),
        (0, (1,), (1,), -1),
    ],
)
def test_a_tensor_outside_its_storage_is_refused(
    path: Path, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], numbers: int
) -> None:
    torch.save({"a": torch.ones(10)}, path)
    with open_torch_file(path) as file:
        stored = StoredTensor(Storage("0", "float32", numbers), offset, shape, stride)
        with pytest.raises(ValueError, match="tensor|numbers|larger"):
            file.tensor(stored)


def test_no_more_is_read_than_the_file_has(path: Path) -> None:
    """A thousand names for one storage would fill the memory a thousand times."""
    torch.save({"a": torch.ones(100_000)}, path)
    with open_torch_file(path) as file:
        stored = file.content["a"]
        file.tensor(stored)
        with pytest.raises(ValueError, match="larger than the file"):
            for _ in range(3):
                file.tensor(stored)


def test_a_pipe_or_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(Exception, match="regular file|folder"):
            read(place)


def test_two_gigabytes_of_zeros_are_refused_at_once(path: Path) -> None:
    with open(path, "wb") as stream:
        stream.truncate(2 << 30)
    with pytest.raises(ValueError, match="not a file of torch.save"):
        read(path)
    shutil.copyfile(__file__, path)
    with pytest.raises(ValueError, match="not a file of torch.save"):
        read(path)
