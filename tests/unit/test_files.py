"""All-or-nothing writing; reading of what is half there."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from conftest import checkpoint_header, write_header_only
from json_files import read_json

from tuigpt.files import (
    HEADER_LIMIT,
    UnreadableFile,
    folder_in_the_making,
    open_to_append,
    read_bytes,
    read_record,
    read_safetensors_metadata,
    remove_unfinished,
    to_json,
    write_atomic,
    write_json,
    write_output,
)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


class TestWritingAFile:
    def test_new_and_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        for content in (b"one", b"", b"three" * 100_000):
            write_atomic(path, content)
            assert path.read_bytes() == content
        assert names(tmp_path) == ["a"]

    @pytest.mark.parametrize("step", ["fsync", "fdopen", "replace"])
    def test_a_failure_keeps_the_old_file_and_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        path = tmp_path / "a"
        write_atomic(path, b"old")

        def fail(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space left"):
            write_atomic(path, b"new")
        monkeypatch.undo()
        assert path.read_bytes() == b"old" and names(tmp_path) == ["a"]

    def test_an_interruption_leaves_nothing_either(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(tmp_path / "a", b"new")
        assert names(tmp_path) == []

    def test_a_reader_meets_the_old_or_the_new(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At each call that touches the disk."""
        path = tmp_path / "a"
        write_atomic(path, b"old" * 1000)
        met = set()

        def look(name: str) -> Callable[..., object]:
            really = getattr(os, name)

            def step(*arguments: object, **options: object) -> object:
                met.add(path.read_bytes())
                result = really(*arguments, **options)
                met.add(path.read_bytes())
                return result

            return step

        for name in ("fsync", "replace", "fdopen"):
            monkeypatch.setattr(os, name, look(name))
        write_atomic(path, b"new" * 2000)
        assert met == {b"old" * 1000, b"new" * 2000}

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(OSError):
            write_atomic(tmp_path / "gone" / "a", b"x")

    def test_what_a_link_points_to_is_never_written(self, tmp_path: Path) -> None:
        precious, link = tmp_path / "precious", tmp_path / "link"
        precious.write_bytes(b"precious")
        link.symlink_to(precious)
        write_atomic(link, b"new")
        assert precious.read_bytes() == b"precious"
        assert link.read_bytes() == b"new" and not link.is_symlink()

    def test_nor_is_it_appended_to(self, tmp_path: Path) -> None:
        precious, link = tmp_path / "precious", tmp_path / "link"
        precious.write_bytes(b"precious")
        link.symlink_to(precious)
        with pytest.raises(OSError):
            open_to_append(link)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="no regular file"):
            open_to_append(tmp_path / "pipe")

    def test_nor_does_another_name_of_the_file_change(self, tmp_path: Path) -> None:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        theirs.write_bytes(b"one\n")
        os.link(theirs, ours)
        for _ in range(2):
            descriptor = open_to_append(ours)
            os.write(descriptor, b"two\n")
            os.close(descriptor)
        assert theirs.read_bytes() == b"one\n" and ours.read_bytes() == b"one\ntwo\ntwo\n"
        assert names(tmp_path) == ["ours", "theirs"]

    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
    def test_modes_follow_the_umask(self, tmp_path: Path, umask: int, mode: int) -> None:
        program = (
            "import os, pathlib, sys\n"
            "os.umask(int(sys.argv[1]))\n"
            "from tuigpt.files import write_atomic, folder_in_the_making\n"
            "write_atomic(pathlib.Path(sys.argv[2], 'a'), b'x')\n"
            "with folder_in_the_making(pathlib.Path(sys.argv[2], 'runs', 'b')):\n"
            "    pass\n"
        )
        subprocess.run([sys.executable, "-c", program, str(umask), str(tmp_path)], check=True)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
        folder_mode = stat.S_IMODE((tmp_path / "runs" / "b").stat().st_mode)
        assert folder_mode == 0o777 & ~umask


class TestMakingAFolder:
    def test_it_appears_at_the_end(self, tmp_path: Path) -> None:
        final = tmp_path / "runs" / "a"
        with folder_in_the_making(final) as draft:
            (draft / "file").write_text("x")
            assert not final.exists() and draft.name.startswith(".partial-")
        assert names(final) == ["file"] and names(tmp_path / "runs") == ["a"]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    def test_or_vanishes(self, tmp_path: Path, error: type[BaseException]) -> None:
        with pytest.raises(error), folder_in_the_making(tmp_path / "a") as draft:
            (draft / "file").write_text("x")
            raise error
        assert names(tmp_path) == []

    @pytest.mark.parametrize("filled", [False, True])
    def test_it_never_replaces_another(self, tmp_path: Path, filled: bool) -> None:
        final = tmp_path / "a"
        with pytest.raises(FileExistsError), folder_in_the_making(final):
            final.mkdir()  # somebody was faster
            if filled:
                (final / "theirs").write_text("x")
        assert names(tmp_path) == ["a"] and names(final) == ["theirs"] * filled

    def test_nor_one_that_comes_at_the_last_moment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the look whether there is one and the renaming."""
        final = tmp_path / "a"
        monkeypatch.setattr(Path, "exists", lambda path: False)
        with pytest.raises(FileExistsError), folder_in_the_making(final):
            final.mkdir()
            (final / "theirs").write_text("x")
        assert names(tmp_path) == ["a"] and names(final) == ["theirs"]

    def test_a_file_in_the_way_is_no_folder_of_that_name(self, tmp_path: Path) -> None:
        (tmp_path / "runs").write_text("x")
        with pytest.raises(NotADirectoryError), folder_in_the_making(tmp_path / "runs" / "a"):
            pass


class TestRemovingWhatIsUnfinished:
    def test_files_and_folders_go_and_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "far").mkdir()
        (tmp_path / "far" / "file").write_text("x")
        folder = tmp_path / "run"
        (folder / ".partial-folder" / "checkpoints").mkdir(parents=True)
        (folder / ".partial-file").write_text("x")
        (folder / ".partial-link").symlink_to(tmp_path / "far")
        (folder / "below").mkdir()
        (folder / "below" / ".partial-file").write_text("x")
        (folder / "file").write_text("x")
        remove_unfinished(folder)
        assert names(folder) == ["below", "file"]
        assert names(folder / "below") == [".partial-file"]
        assert names(tmp_path / "far") == ["file"]

    def test_what_is_young_is_spared(self, tmp_path: Path) -> None:
        for name, time in ((".partial-old", 1000), (".partial-young", 3000)):
            (tmp_path / name).mkdir()
            os.utime(tmp_path / name, (time, time))
        remove_unfinished(tmp_path, before=2000)
        assert names(tmp_path) == [".partial-young"]

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        remove_unfinished(tmp_path / "gone")


class TestJson:
    @pytest.mark.parametrize(
        "record",
        [
            {},
            {"a": 1, "b": 1.5, "c": None, "d": True, "e": [1, {"f": "g"}]},
            {"text": 'größe 日本 🙂 \n \u2028 \x00 \x1b " \\'},
            {"path": "odd\udcff"},
        ],
    )
    def test_records_come_back(self, record: dict[str, object], tmp_path: Path) -> None:
        line = to_json(record)
        assert "\n" not in line and json.loads(line) == record
        write_json(tmp_path / "a.json", record)
        assert read_json(tmp_path / "a.json") == record

    def test_what_is_no_number_is_null_and_named(self) -> None:
        line = to_json({"a": math.nan, "b": 1.0, "c": -math.inf})
        assert json.loads(line) == {"a": None, "b": 1.0, "c": None, "nonfinite": ["a", "c"]}

    def test_deep_inside_it_is_refused_not_written(self) -> None:
        with pytest.raises(ValueError):
            to_json({"a": {"b": math.nan}})

    def test_text_is_kept_readable(self) -> None:
        assert to_json({"name": "größe"}) == '{"name": "größe"}'


class TestSafetensors:
    def write(self, path: Path, header: Mapping[str, object], data: bytes = b"") -> Path:
        raw = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
        return path

    def test_metadata(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        write_header_only(path, checkpoint_header(5))
        assert read_safetensors_metadata(path) == checkpoint_header(5)
        write_header_only(path, None)
        assert read_safetensors_metadata(path) == {}

    def test_tensors_are_not_read(self, tmp_path: Path) -> None:
        tensor = {"dtype": "U8", "shape": [10**12], "data_offsets": [0, 10**12]}
        path = self.write(tmp_path / "a", {"w": tensor, "__metadata__": {"x": "y"}})
        os.truncate(path, path.stat().st_size + 10**12)  # sparse: a terabyte of holes
        assert read_safetensors_metadata(path) == {"x": "y"}

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "the file is empty"),
            (b"\x05\0\0", "cut short"),
            (b"<!DOCTYPE html><html>", "not a safetensors file"),
            (b"\xff" * 8 + b"{}", "not a safetensors file"),
            (struct.pack("<Q", 2**62) + b"{}", "not a safetensors file"),
            (struct.pack("<Q", 500) + b"{}", "not a safetensors file, or cut short"),
            (struct.pack("<Q", 2) + b"[]", "not a safetensors file"),
            (struct.pack("<Q", 4) + b"null", "not a safetensors file"),
            (struct.pack("<Q", 4) + b'{"a"', "not a safetensors file"),
            (struct.pack("<Q", 10) + b'{"a": "b"}', "not a safetensors file"),
            (struct.pack("<Q", 19) + b'{"__metadata__": 5}', "not a safetensors file"),
            (struct.pack("<Q", 2) + b"{}trailing", "cut short|not a whole"),
            (struct.pack("<Q", 100_000) + b"[" * 100_000, "not a safetensors file"),
            (b"PK\x03\x04" + b"\0" * 64, "a PyTorch .pt file"),
            (b"\x80\x02}q\x00" + b"\0" * 64, "a PyTorch .pt file"),
        ],
    )
    def test_other_files_are_told_apart(self, tmp_path: Path, content: bytes, words: str) -> None:
        path = tmp_path / "a"
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=words):
            read_safetensors_metadata(path)

    def test_every_cut_is_noticed(self, tmp_path: Path) -> None:
        header = {"w": {"dtype": "U8", "shape": [6], "data_offsets": [0, 6]}}
        path = self.write(tmp_path / "a", header, b"123456")
        whole = path.read_bytes()
        assert read_safetensors_metadata(path) == {}
        for end in range(len(whole)):
            path.write_bytes(whole[:end])
            with pytest.raises(UnreadableFile):
                read_safetensors_metadata(path)

    def test_what_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableFile, match="No such file") as error:
            read_safetensors_metadata(tmp_path / "a")
        assert error.value.missing
        with pytest.raises(UnreadableFile, match="it is a folder"):
            read_safetensors_metadata(tmp_path)

    def test_a_header_larger_than_any_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with open(path, "wb") as stream:
            stream.write(struct.pack("<Q", HEADER_LIMIT + 1))
            stream.truncate(1 << 30)
        with pytest.raises(UnreadableFile, match="larger than the 8,388,608 bytes"):
            read_safetensors_metadata(path)


class Facts(msgspec.Struct):
    name: str = ""
    loss: float | None = None


class TestReading:
    def test_by_type_with_defaults_for_what_is_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text('{"loss": 1, "mood": [{}], "loss": 2}')
        assert read_record(path, Facts) == Facts("", 2.0)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "it is not JSON, or cut short"),
            (b'{"name": "a"', "it is not JSON, or cut short"),
            (b'{"name": "\xff"}', "it is not JSON, or cut short"),
            (b'{"name": NaN}', "it is not JSON, or cut short"),
            (b"[]", "it should be object, not array"),
            (b'{"name": 1}', "name should be str, not int"),
            (b'{"name": 1, "x": "\\ud800"}', "name should be str, not int"),
            (b'{"loss": 1e999}', "loss is out of range"),
            (b'{"x": ' + b"[" * 100_000, "it is nested too deeply"),
            (b'{"name": "\\ud800", "x": ' + b"[" * 100_000, "it is nested too deeply"),
            (b'{"nonfinite": 3}', "nonfinite should be array, not int"),
        ],
    )
    def test_anything_else_is_refused_in_a_line(
        self, tmp_path: Path, content: bytes, reason: str
    ) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(content)
        with pytest.raises(UnreadableFile) as error:
            read_record(path, Facts)
        assert error.value.reason == reason and not error.value.missing
        assert str(error.value) == f"cannot read '{path}': {reason}"

    def test_only_empty_fields_become_nan(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(
            '{"name": "a", "loss": null, "nonfinite": ["loss", "name", "x", "__init__"]}'
        )
        back = read_record(path, Facts)
        assert back.name == "a" and math.isnan(back.loss or 0.0)

    def test_bytes_of_a_path_that_are_no_utf8_come_back(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", Facts("odd\udcff", math.nan))
        back = read_record(tmp_path / "a.json", Facts)
        assert back.name == "odd\udcff" and math.isnan(back.loss or 0.0)

    def test_a_file_as_large_as_allowed_but_no_larger(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(b"12345")
        assert read_bytes(path, 5) == b"12345"
        with pytest.raises(UnreadableFile, match="larger than the 4 bytes"):
            read_bytes(path, 4)

    def test_a_pipe_keeps_nobody_waiting(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(UnreadableFile, match="no regular file"):
            read_bytes(tmp_path / "pipe", 10)

    def test_a_name_that_no_file_has(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableFile, match="null byte"):
            read_bytes(tmp_path / "a\0b", 10)


class TestWritingWhereTheUserSaid:
    def test_through_a_link(self, tmp_path: Path) -> None:
        real, link = tmp_path / "real", tmp_path / "link"
        real.write_bytes(b"old")
        link.symlink_to(real)
        write_output(link, b"new")
        assert link.is_symlink() and real.read_bytes() == b"new"

    def test_a_device_stays_one(self, tmp_path: Path) -> None:
        before = os.stat(os.devnull)
        write_output(Path(os.devnull), b"new")
        assert os.stat(os.devnull).st_rdev == before.st_rdev

    def test_into_a_pipe(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        write_output(path, b"new")
        assert os.read(reader, 10) == b"new" and stat.S_ISFIFO(path.stat().st_mode)
        os.close(reader)
