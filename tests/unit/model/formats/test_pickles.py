"""Pickles are read, never run; whatever a model's file does not need ends the reading."""

from __future__ import annotations

import os
import pickle
import struct
import time
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tuigpt.model.formats.pickles import MOST_BYTES, Record, read_pickle

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
)


class Calls:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


@given(VALUES, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    read = read_pickle(pickle.dumps(value, protocol))
    assert read == value and type(read) is type(value)


def test_shared_and_ordered_values_come_back() -> None:
    inner = [1, 2]
    value = OrderedDict(a=inner, b=inner, c=("x", inner))
    read = read_pickle(pickle.dumps(value))
    assert read == {"a": [1, 2], "b": [1, 2], "c": ("x", [1, 2])} and read["a"] is read["b"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((os.system, "touch PWNED"), "posix.system"),
        ((eval, "open('PWNED', 'w')"), ".eval"),
        ((exec, "open('PWNED', 'w')"), ".exec"),
        ((os.mkdir, "PWNED"), "posix.mkdir"),
        ((Path, "PWNED"), "pathlib"),
        ((getattr, "a", "upper"), ".getattr"),
        ((print, Calls(os.mkdir, "PWNED")), ".print"),
    ],
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_would_run_is_refused_and_named(
    call: tuple[Any, ...],
    name: str,
    protocol: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in (Calls(*call), {"a": [1, (2, Calls(*call))]}):
        content = pickle.dumps(value, protocol)
        with pytest.raises(ValueError, match="contains"):
            read_pickle(content)
        try:
            read_pickle(content)
        except ValueError as error:
            assert name in str(error) or "copy" in str(error)
    assert not list(tmp_path.iterdir())


def test_a_call_of_something_allowed_makes_nothing() -> None:
    for function in ("collections OrderedDict", "torch FloatStorage", "model GPTConfig"):
        content = b"\x80\x02c" + function.replace(" ", "\n").encode() + b"\nK\x05\x85R."
        with pytest.raises(ValueError, match="makes something of"):
            read_pickle(content)


def test_a_class_called_as_the_workshops_config_is_a_record_of_its_fields() -> None:
    content = b"\x80\x02cwhatever.os\nGPTConfig\n)\x81}X\x01\x00\x00\x00aK\x05sb."
    assert read_pickle(content) == Record("whatever.os.GPTConfig", {"a": 5})


DAMAGED = {
    "empty": b"",
    "no end": b"\x80\x02}",
    "no stack": b"\x80\x02sb.",
    "no mark": b"\x80\x02u.",
    "two values": b"K\x01K\x02.",
    "unknown memo": b"\x80\x02h\x05.",
    "unhashable key": b"\x80\x02}]K\x01s.",
    "tuple as a key": b"\x80\x02})K\x01s.",
    "odd items": b"\x80\x02}(K\x01u.",
    "append to a dict": b"\x80\x02}K\x01a.",
    "state of a number": b"\x80\x02K\x01}b.",
    "a call of a number": b"\x80\x02K\x01)R.",
    "a persistent id that is none": b"\x80\x02K\x01Q.",
    "a name that is a number": b"\x80\x04K\x01K\x02\x93.",
    "a decimal of 5,000 digits": b"I" + b"9" * 5000 + b"\n.",
    "text that is longer than the file": b"\x8d" + struct.pack("<Q", 2**40) + b"abc.",
    "bytes that are longer than anything": b"\x8e" + struct.pack("<Q", 2**64 - 1) + b"abc.",
    "a bytearray of a terabyte": b"\x96" + struct.pack("<Q", 2**40) + b"abc.",
    "a frame that is longer than the file": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"K\x01",
    "an extension": b"\x80\x02\x82\x01.",
    "an instance": b"(ios\nsystem\n.",
    "no opcode": b"\xff\xff\xff",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=list(DAMAGED))
def test_damage_is_told(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"its pickle|it contains"):
        read_pickle(content)


HUGE = {
    "a memo at 4 billion": b"\x80\x02]r\xff\xff\xff\xff.",
    "nested for ever": b"\x80\x02" + b"]" * 450_000 + b"a" * 40_000 + b".",
    "tuples that double": b"\x80\x02)" + b"\x85" + b"2\x86" * 200_000 + b".",
    "more instructions than any model": b"\x80\x02" + b"N0" * 300_000 + b"N.",
    "a dict whose key doubles": b"\x80\x02})\x85" + b"2\x86" * 50 + b"K\x01s.",
    "larger than any model's": b"\x80\x02" + b"N" * MOST_BYTES + b".",
}


@pytest.mark.parametrize("content", HUGE.values(), ids=list(HUGE))
def test_time_and_memory_are_bounded(content: bytes) -> None:
    tracemalloc.start()
    began = time.monotonic()
    try:
        read_pickle(content)
    except ValueError:
        pass
    finally:
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert memory < 400e6 and time.monotonic() - began < 30


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
@example(b"\x80\x02c__builtin__\neval\n.")
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        read_pickle(content)
    except ValueError as error:
        assert "\n" not in str(error)
