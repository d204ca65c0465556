"""Reads pickles without running them.

A pickle is a program for a small stack machine, and Python's own machine imports and calls whatever
the program names. This one has no instruction that imports or calls: it builds dictionaries, lists,
tuples, strings and numbers, and inert records in place of the few things that a model's file holds
beside them. Any other name ends the reading and is told. So nothing that is read here can run,
whatever the versions of Python and torch, and memory and time stay in proportion to the bytes.
(`torch.load(weights_only=True)` gives neither bound, and would need the classes of the config.)
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 8 << 20
"""Of a pickle; that of a GPT-2 with its optimizer has a tenth of it."""

MOST_INSTRUCTIONS = 500_000
"""Of a pickle; that of a GPT-2 has 15,000, and one of 40,000 characters 300,000. Each costs some
microseconds, and a hundred bytes or so."""

CONFIG_CLASS = "GPTConfig"
"""What the workshop calls the class of its configuration, in whatever module it stands."""

STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
"""torch's names for stored numbers, and for their types."""

_REBUILD_TENSOR = "torch._utils._rebuild_tensor_v2"
_REBUILD_PARAMETER = "torch._utils._rebuild_parameter"
_ORDERED_DICT = "collections.OrderedDict"
_VALUES = ("torch.Size", "torch.device")

_ALLOWED = frozenset(
    {_REBUILD_TENSOR, _REBUILD_PARAMETER, _ORDERED_DICT, *_VALUES}
    | {f"torch.{name}" for name in STORAGES}
    | {f"torch.{kind}" for kind in STORAGES.values()}
)

_CONSTANTS = frozenset(
    "NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT"
    " STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8"
    " BINBYTES SHORT_BINBYTES BINBYTES8".split()
)
_FIXED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Global:
    """A name that a pickle refers to; nothing of that name is ever looked up."""

    name: str


@dataclass(frozen=True)
class Record:
    """An object of a class that is not known here: its fields by name."""

    of: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Storage:
    """A row of numbers that lies beside the pickle.

    Attributes:
        key: names it within the file.
        kind: torch's name of the numbers' type, such as float32.
        numbers: how many there are.
    """

    key: str
    kind: str
    numbers: int


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that lies beside the pickle: a view of a storage.

    Attributes:
        offset: of its first element, in elements.
        stride: between elements, in elements, for each dimension.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


_MARK = Global("(mark)")


def read_pickle(content: bytes) -> Any:
    """What a pickle describes: dicts, lists, tuples, strings, numbers and the records above.

    Raises:
        ValueError: it is damaged, larger than any that a model needs, or names something that is
            not part of a model; the text says in one line what.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"its pickle is larger than the {MOST_BYTES:,} bytes that it may have")
    machine = _Machine()
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if number >= MOST_INSTRUCTIONS:
                raise _Refused(f"its pickle has more than {MOST_INSTRUCTIONS:,} instructions")
            machine.obey(opcode.name, argument)
        return machine.result()
    except _Refused:
        raise
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise ValueError("its pickle is damaged") from None


class _Refused(ValueError):
    pass


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def result(self) -> Any:
        (value,) = self._stack
        return value

    def obey(self, name: str, argument: Any) -> None:
        stack = self._stack
        match name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case _ if name in _CONSTANTS:
                stack.append(_FIXED.get(name, argument))
            case "MARK":
                stack.append(_MARK)
            case "POP":
                stack.pop()
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = stack[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(self._memo[argument])
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case _ if name in _TUPLES:
                stack.append(tuple(_pop_many(stack, _TUPLES[name])))
            case "TUPLE":
                stack.append(tuple(self._since_mark()))
            case "LIST":
                stack.append(self._since_mark())
            case "DICT":
                stack.append({})
                items = self._since_mark_below(1)
                _set_items(stack[-1], items)
            case "APPEND":
                item = stack.pop()
                _of_type(stack[-1], list).append(item)
            case "APPENDS":
                items = self._since_mark()
                _of_type(stack[-1], list).extend(items)
            case "SETITEM":
                items = _pop_many(stack, 2)
                _set_items(stack[-1], items)
            case "SETITEMS":
                items = self._since_mark()
                _set_items(stack[-1], items)
            case "GLOBAL":
                stack.append(_global(*argument.split(" ")))
            case "STACK_GLOBAL":
                stack.append(_global(*_pop_many(stack, 2)))
            case "REDUCE" | "NEWOBJ":
                function, arguments = _pop_many(stack, 2)
                stack.append(_made(_of_type(function, Global).name, _of_type(arguments, tuple)))
            case "BUILD":
                state = stack.pop()
                _give_state(stack[-1], state)
            case "BINPERSID":
                stack.append(_storage(stack.pop()))
            case _:
                raise _Refused(f"its pickle holds the instruction {name}, which no model needs")

    def _since_mark(self) -> list[Any]:
        return self._since_mark_below(0)

    def _since_mark_below(self, kept: int) -> list[Any]:
        """Take the items above the newest mark off the stack, and the mark; `kept` above stay."""
        stack = self._stack
        above = _pop_many(stack, kept)
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = stack[at + 1 :]
        del stack[at:]
        stack.extend(above)
        return items


def _pop_many(stack: list[Any], count: int) -> list[Any]:
    if count > len(stack):
        raise IndexError
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _of_type(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _set_items(target: Any, items: list[Any]) -> None:
    """Put keys and values, which stand in turn, into a dict. Keys that are no plain values could
    take for ever to hash."""
    _of_type(target, dict)
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str | int | float | None):
            raise TypeError
        target[key] = value


def _global(module: str, name: str) -> Global:
    full = f"{_of_type(module, str)}.{_of_type(name, str)}"
    if full not in _ALLOWED and name != CONFIG_CLASS:
        raise _Refused(f"it contains {full[:120]}, which is not part of a model; nothing of it ran")
    return Global(full)


def _made(name: str, arguments: tuple[Any, ...]) -> Any:
    """What stands for the result of a call."""
    if name == _ORDERED_DICT and not arguments:
        return {}
    if name == _REBUILD_TENSOR:
        return _tensor(*arguments[:4])
    if name == _REBUILD_PARAMETER:
        return _of_type(arguments[0], StoredTensor)
    if name in _VALUES:
        return arguments
    if name.rpartition(".")[2] == CONFIG_CLASS and not arguments:
        return Record(name)
    raise _Refused(f"it makes something of {name}, which no model's file does")


def _give_state(target: Any, state: Any) -> None:
    if isinstance(target, dict):
        return  # attributes of a state dict, such as versions of modules
    # An object with slots has its fields in the second of a pair.
    parts: Iterable[Any] = state if isinstance(state, tuple) else (state,)
    for part in parts:
        if part is not None:
            fields = _of_type(target, Record).fields
            fields.update({_of_type(k, str): v for k, v in _of_type(part, dict).items()})


def _storage(identifier: Any) -> Storage:
    word, kind, key, _, numbers = _of_type(identifier, tuple)
    short = _of_type(kind, Global).name.removeprefix("torch.")
    if word != "storage" or short not in STORAGES:
        raise TypeError
    return Storage(_of_type(key, str), STORAGES[short], _of_type(numbers, int))


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any) -> StoredTensor:
    return StoredTensor(
        _of_type(storage, Storage), _of_type(offset, int), _integers(shape), _integers(stride)
    )


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(_of_type(value, int) for value in _of_type(values, tuple))
