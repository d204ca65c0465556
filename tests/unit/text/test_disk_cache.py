"""What is kept under a limit: the longest unused goes first, and nothing foreign ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tuigpt.errors import UserError
from tuigpt.text import disk_cache as cache_module
from tuigpt.text.disk_cache import Cache


def put(folder: Path, name: str, seconds: float | None = None) -> Path:
    """An entry of 100 bytes, last used so many seconds after the epoch."""
    entry = folder / name
    entry.mkdir(parents=True)
    (entry / "tokens.bin").write_bytes(b"x" * 100)
    if seconds is not None:
        for path in (entry / "tokens.bin", entry):
            os.utime(path, (seconds, seconds))
    return entry


OLD, USED, NEW = (f"tokens-{digit * 32}" for digit in "abc")


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=250)
    for number, name in enumerate((OLD, USED, NEW)):
        put(tmp_path, name, 1000 + number)
    os.utime(tmp_path / OLD, (2000, 2000))
    assert [entry.path.name for entry in cache.entries()] == [OLD, NEW, USED]
    cache.make_room(50)
    assert {path.name for path in tmp_path.iterdir()} == {OLD, NEW}
    with pytest.raises(UserError, match="no room"):
        cache.make_room(1 << 60)


def test_what_a_killed_writer_left_is_swept_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, ".partial-dead", 1000)
    put(tmp_path, ".partial-live")
    Cache(tmp_path).make_room(1)
    assert [path.name for path in tmp_path.iterdir()] == [".partial-live"]
    monkeypatch.setattr(cache_module, "ABANDONED_AFTER", -1.0)
    assert Cache(tmp_path).clear() == 0
    assert list(tmp_path.iterdir()) == []


def test_nothing_foreign_is_counted_or_deleted(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "photos", 1000)
    inside = tmp_path / "cache"
    put(inside, OLD, 1000)
    put(inside, "photos", 1000)
    (inside / "letter.txt").write_text("dear")
    (inside / f"suffixes-{'0' * 64}.npy").write_bytes(b"x" * 50)
    (inside / USED).symlink_to(outside)
    (inside / ".partial-link").symlink_to(outside)
    put(inside, ".partial-mine", 1000)
    (inside / ".partial-mine" / "draft.txt").write_text("mine")
    os.utime(inside / ".partial-mine", (1000, 1000))
    cache = Cache(inside, limit=1)
    assert [entry.size for entry in cache.entries()] == [50, 100]
    assert cache.clear() == 150
    cache.make_room(1)
    left = {path.name for path in inside.iterdir()}
    assert left == {"photos", "letter.txt", USED, ".partial-link", ".partial-mine"}
    assert (inside / ".partial-mine" / "draft.txt").exists()
    assert (outside / "tokens.bin").exists()


def test_a_linked_cache_loses_its_own_entries_only(tmp_path: Path) -> None:
    real = tmp_path / "real"
    put(real, OLD)
    put(real, "photos")
    (tmp_path / "cache").symlink_to(real)
    assert Cache(tmp_path / "cache").clear() == 100
    assert [path.name for path in real.iterdir()] == ["photos"]
