"""Ways in which a file can be damaged, each decided by a seeded generator of chances.

`mutate` takes a file that is sound and leaves something else in its place: JSON with one field of
another type, bytes flipped or cut off, safetensors whose header and body no longer agree, or no
file at all but a folder, a FIFO, a link or two gigabytes of zeros.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = Any
"""What `json.loads` gives, or a `Raw` in it."""

SPARSE_BYTES = 2 << 30
"""Size of a file of zeros that takes no room on the disk."""


class Raw(str):
    """JSON text that is put in as it is, whatever `json` thinks of it."""


_WRONG = (
    *("null", "true", "false", "0", "-1", "1", "2", "1.5", "-0.0", "1e-320"),
    *('""', '"x"', '"0"', '" "', "[]", "{}", "[1]", "[null]", "[[]]", '{"a": 1}'),
    *("9" * 401, "-" + "9" * 401, "9" * 5000, "1e308", "-1e308", "1e400", "1e39"),
    *("NaN", "Infinity", "-Infinity", str(2**31), str(2**53), str(2**63 - 1), str(2**63)),
    *(str(2**64), str(-(2**63) - 1), "100000000", "1e18"),
    *(r'"\ud800"', r'"\u0000"', r'"\u001b]0;owned\u0007\u001b[2J"', r'"a\nb\rc"', r'"\u009b31m"'),
    *('"[@click=app.quit]x[/]"', '"[bold"', r'"\u202e abc"', r'"e\u0301\u200d"', '"\u2028"'),
    *('"../../../outside/made"', '"/dev/zero"', '"~"', '"$(touch made)"', '"; touch made #"'),
)
"""What stands in a field that should hold something else."""

_LARGE: tuple[Callable[[], str], ...] = (
    lambda: "[" * 2_000 + "]" * 2_000,
    lambda: "[" * 100_000 + "]" * 100_000,
    lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
    lambda: '"' + "A" * 3_000_000 + '"',
    lambda: '"' + "\\u001b" * 100_000 + '"',
    lambda: "[" + "0," * 200_000 + "0]",
    lambda: "{" + ",".join(f'"k{n}":0' for n in range(50_000)) + "}",
    lambda: "1" + "0" * 1_000_000,
)

_KNOWN = (
    *("training", "paused", "finished", "failed", "stopped", "preparing", "evaluating", "lost"),
    *("char", "bpe", "bpe:300", "bpe:100000000", "fast", "workshop", "slow", "cuda", "cuda:99"),
    *("mps", "float32", "bfloat16", "auto", "victim", "bystander", "poet", "..", "shakespeare"),
    *("stop", "discard", "resume", "learning_rate", "step", "eval", "sample", "event"),
    *("1970-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00", "2999-01-01"),
)
"""Strings that are right in some other field, or in another run."""


def mutate(path: Path, outside: Path, chance: random.Random) -> str:
    """Damage a file in one way.

    Args:
        path: JSON, JSON Lines, safetensors or anything else.
        outside: a folder that links lead to; nothing may change what it holds.

    Returns:
        what was done, in a few words.
    """
    if chance.random() < 0.12:
        return _replace(path, outside, chance)
    content = path.read_bytes()
    if chance.random() < 0.2:
        done, content = damage_bytes(content, chance)
    elif path.suffix == ".safetensors":
        done, content = damage_safetensors(content, chance)
    elif path.suffix in (".pt", ".pkl"):
        done, content = damage_pickle(content, chance)
    elif path.suffix == ".jsonl":
        done, content = damage_lines(content, chance)
    elif path.suffix in (".json", ".lock") and content:
        done, content = damage_json(content, chance)
    else:
        done, content = damage_bytes(content, chance)
    path.write_bytes(content)
    return done


# --- what is no sound file of the kind at all ---


def _replace(path: Path, outside: Path, chance: random.Random) -> str:
    """Put something else in the file's place."""
    content = path.read_bytes()
    (outside / path.name).write_bytes(content)
    path.unlink()
    what = chance.choice(
        ["nothing", "folder", "full folder", "FIFO", "socket", "zeros", "more", "unreadable",
         "link", "dangling link", "loop", "link to a device", "link to a FIFO", "twin"]
    )  # fmt: skip
    match what:
        case "folder":
            path.mkdir()
        case "full folder":
            path.mkdir()
            (path / path.name).write_bytes(content)
        case "FIFO":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                here = os.open(path.parent, os.O_RDONLY)  # a socket's address is short
                server.bind(f"/proc/self/fd/{here}/{path.name}")
                os.close(here)
        case "zeros":
            path.touch()
            os.truncate(path, SPARSE_BYTES)
        case "more":  # the file, and zeros behind it
            path.write_bytes(content)
            os.truncate(path, SPARSE_BYTES)
        case "unreadable":
            path.write_bytes(content)
            path.chmod(0)
        case "link":
            path.symlink_to(outside / path.name)
        case "dangling link":
            path.symlink_to(outside / "made")
        case "loop":
            path.symlink_to(path)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "link to a FIFO":
            os.mkfifo(outside / "fifo")
            path.symlink_to(outside / "fifo")
        case "twin":  # one file under two names
            os.link(outside / path.name, path)
    return f"{what} in its place"


def damage_bytes(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change bytes, whatever they mean."""
    place = chance.randrange(len(content) + 1)
    other = chance.randrange(len(content) + 1)
    start, end = sorted((place, other))
    match chance.randrange(16):
        case 0:
            return "empty", b""
        case 1 | 2:
            return f"cut off at {place}", content[:place]
        case 3 | 4 | 5 if content:
            flipped = bytearray(content)
            count = chance.choice([1, 1, 2, 20])
            for _ in range(count):
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            return f"{count} bits flipped", bytes(flipped)
        case 6:
            return f"{start}:{end} missing", content[:start] + content[end:]
        case 7:
            return f"{start}:{end} twice", content[:end] + content[start:]
        case 8:
            junk = chance.randbytes(chance.choice([1, 10, 1000]))
            return f"{len(junk)} bytes put in at {place}", content[:place] + junk + content[place:]
        case 9:
            bad = chance.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0"])
            return f"{bad!r} put in at {place}", content[:place] + bad + content[place:]
        case 10:
            return "spaces", b" " * chance.choice([1, 100, 20_000_000])
        case 11:
            return "a byte order mark", b"\xef\xbb\xbf" + content
        case 12:
            top = chance.choice([b"null", b"[]", b'"x"', b"0", b"{}", b"{}{}", b"[" * 100_000])
            return f"{top[:8]!r} for all of it", top
        case 13:
            return "in UTF-16", content.decode("latin-1").encode("utf-16")
        case 14:
            return "noise", chance.randbytes(chance.choice([1, 8, 9, 100, 100_000]))
        case _:
            return "twice", content + content


# --- JSON ---


def damage_json(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change one thing in a JSON text."""
    done, text = _damage_record(json.loads(content), chance)
    return done, text.encode("utf-8", "surrogatepass") + b"\n"


def damage_lines(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change one of many lines of JSON, or their order."""
    lines = content.splitlines()
    number = chance.randrange(len(lines))
    match chance.randrange(12):
        case 0:
            chance.shuffle(lines)
            done = "lines shuffled"
        case 1:
            lines = lines * chance.choice([2, 300])
            done = "lines repeated"
        case 2:
            del lines[number]
            done = f"line {number} missing"
        case 3:
            lines[number] = b'{"kind": "event", "step": 1, "message": "' + b"x" * 10_000_000 + b'"}'
            done = f"line {number} of ten megabytes"
        case 4:
            lines[number] = lines[number][: len(lines[number]) // 2]
            done = f"line {number} torn"
        case _:
            done, text = _damage_record(json.loads(lines[number]), chance)
            done = f"line {number}: {done}"
            lines[number] = text.encode("utf-8", "surrogatepass")
    return done, b"\n".join(lines) + b"\n"


def _damage_record(record: Json, chance: random.Random) -> tuple[str, str]:
    """Change one field of a JSON value, at any depth; gives the value as text."""
    record = copy.deepcopy(record)
    places = list(_places(record))
    if not places:
        return "another value", _wrong(None, chance)
    holder, key, path = chance.choice(places)
    value = holder[key]
    match chance.randrange(20):
        case 0:
            del holder[key]
            done = f"{path} missing"
        case 1 if isinstance(key, str):
            holder[key] = Raw(_dumps(value) + f", {json.dumps(key)}: {_wrong(value, chance)}")
            done = f"{path} twice"
        case 2 if isinstance(key, str):
            new = chance.choice([key.upper(), "", f"{key}\x1b[31m", "nonfinite", "__class__"])
            holder[new] = holder.pop(key)
            done = f"{path} called {new!r}"
        case 3:
            names = [chance.choice([key, "step", 1, None, [], "loss"])]
            naming: Json = chance.choice([names, names * 1000, "step", 1, None, {}, [[[]]]])
            if isinstance(record, dict):
                record["nonfinite"] = naming
            done = f"nonfinite {str(naming)[:30]}"
        case 4 if isinstance(record, dict):
            record["unknown"] = Raw(_wrong(None, chance))
            done = "an unknown field"
        case 5:
            other_holder, other_key, other = chance.choice(places)
            holder[key] = copy.deepcopy(other_holder[other_key])
            done = f"{path} with the value of {other}"
        case _:
            wrong = _wrong(value, chance)
            holder[key] = Raw(wrong)
            done = f"{path} = {wrong[:40]}" + ("…" if len(wrong) > 40 else "")
    return done, _dumps(record)


def _places(value: Json, path: str = "") -> list[tuple[Any, Any, str]]:
    """Each field and item below a value: its holder, its key there, its path."""
    found: list[tuple[Any, Any, str]] = []
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))[:50]
    else:
        return found
    for key, item in items:
        where = f"{path}.{key}" if path else str(key)
        found.append((value, key, where))
        found += _places(item, where)
    return found


def _wrong(value: Json, chance: random.Random) -> str:
    """JSON text for the place of a value: mostly of another type, or past what can be."""
    kind = chance.random()
    if kind < 0.55:
        return chance.choice(_WRONG)
    if kind < 0.62:
        return chance.choice(_LARGE)()
    if kind < 0.72:
        return json.dumps(chance.choice(_KNOWN))
    if isinstance(value, bool) or value is None:
        return chance.choice(_WRONG)
    if isinstance(value, int | float):
        factor = chance.choice([-1, 2, 0.5, 10, 1000, 1_000_000])
        near = [value + 1, value - 1, value * factor, int(value * factor), float(value), str(value)]
        return json.dumps(chance.choice(near))
    if isinstance(value, str):
        near_text = [value[::-1], value * 2, value[1:], value + "\x1b[31m", value.upper(), [value]]
        return json.dumps(chance.choice(near_text))
    if isinstance(value, list):
        near_list = [value * 2, value[:-1], [value], value[::-1], dict(enumerate(value))]
        return _dumps(chance.choice(near_list))
    return _dumps(chance.choice([[value], {}, list(value), list(value.values())]))


def _dumps(record: Json) -> str:
    """JSON text in which each `Raw` stands as it is."""
    raws: list[str] = []

    def marked(value: Json) -> Json:
        if isinstance(value, Raw):
            raws.append(value)
            return f"@@raw {len(raws) - 1}@@"
        if isinstance(value, dict):
            return {k: marked(v) for k, v in value.items()}
        if isinstance(value, list):
            return [marked(v) for v in value]
        return value

    text = json.dumps(marked(record), ensure_ascii=False)
    for number, raw in enumerate(raws):
        text = text.replace(f'"@@raw {number}@@"', raw, 1)
    return text


# --- safetensors ---

_ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def damage_safetensors(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change the header, the tensors, or what the header tells of them."""
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    kind = chance.random()
    metadata = header.get("__metadata__", {})
    records = [name for name, words in metadata.items() if words.startswith("{")]
    if kind < 0.45 and records:
        name = chance.choice(records)
        done, metadata[name] = _damage_record(json.loads(metadata[name]), chance)
        return f"header's {done}", _packed(_dumps(header), body)
    if kind < 0.5 and '"model"' in metadata.get("tuigpt", ""):
        return _hostile_metadata(header, body, chance)
    if kind < 0.65:
        done, text = _damage_record(header, chance)
        return f"front's {done}", _packed(text, body)
    if kind < 0.92:
        return _damage_tensors(header, body, chance)
    match chance.randrange(4):
        case 0:
            size = chance.choice([0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1])
            return f"front of {size} bytes", struct.pack("<Q", size) + content[8:]
        case 1:
            padded = json.dumps(header) + " " * 60_000_000
            return "front of 60 megabytes", _packed(padded, body)
        case 2:
            empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
            more = {f"t{n}": empty for n in range(100_000)}
            return "100,000 empty tensors", _packed(json.dumps(more | header), body)
        case _:
            return _hostile_pickle(chance)


# --- pickles ---


def damage_pickle(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change a pickle, also where it lies in a PyTorch file."""
    if chance.random() < 0.2:
        return _hostile_pickle(chance)
    if not content.startswith(b"PK"):
        return damage_bytes(content, chance)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    chosen = chance.choice([name for name in parts if name.endswith("data.pkl")] + list(parts)[:4])
    done, parts[chosen] = damage_bytes(parts[chosen], chance)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return f"{chosen}: {done}", stream.getvalue()


def _hostile_pickle(chance: random.Random) -> tuple[str, bytes]:
    if chance.random() < 0.5:
        return "a pickle that runs", pickle.dumps(_Touch())
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Touch()))
        archive.writestr("archive/version", "3")
    return "a PyTorch file that runs", stream.getvalue()


class _Touch:
    """Unpickled, it makes a file `made` in the current folder."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("made",)


def _hostile_metadata(header: Json, body: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Small files that ask for much: a deep model, pairs that double, a vocabulary of one."""
    name = "tuigpt"
    facts = json.loads(header["__metadata__"][name])
    model, tokenizer = facts.setdefault("model", {}), facts.setdefault("tokenizer", {})
    match chance.randrange(6):
        case 0:
            model["n_layer"] = chance.choice([2, 1000, 200_000, 10**9])
        case 1:
            merges = [[97, 97]] + [[255 + n, 255 + n] for n in range(1, chance.choice([20, 40]))]
            facts["tokenizer"] = {**tokenizer, "type": "bpe", "merges": merges, "words": 1}
            facts["tokenizer"].pop("vocab", None)
            model["vocab_size"] = 256 + len(merges)
        case 2:
            model["block_size"] = chance.choice([1, 2**20, 2**40])
        case 3:
            model["n_embd"] = model["n_head"] = chance.choice([1, 2**16, 2**31])
        case 4:
            facts["tokenizer"] = {"type": "char", "vocab": "\x1b\a\x9b" * 10}
        case _:
            model["vocab_size"] = chance.choice([0, 1, 2**31, 2**62])
    header["__metadata__"][name] = json.dumps(facts)
    return f"header's model {model}"[:120], _packed(json.dumps(header), body)


def _damage_tensors(header: Json, body: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Change tensors so that front and body still agree."""
    metadata = header.pop("__metadata__", None)
    tensors: dict[str, tuple[str, list[int], bytes]] = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], body[start:end])
    name = chance.choice(list(tensors))
    dtype, shape, data = tensors[name]
    match chance.randrange(9):
        case 0:
            tensors[name] = ("U8", [10], bytes(10))
            done = f"{name}: ten bytes"
        case 1:
            del tensors[name]
            done = f"{name} missing"
        case 2:
            tensors[f"{name}.more"] = tensors[name]
            done = f"{name} under another name as well"
        case 3:
            other = chance.choice(list(_ITEM_BYTES))
            count = len(data) // _ITEM_BYTES[dtype]
            tensors[name] = (other, shape, bytes(count * _ITEM_BYTES[other]))
            done = f"{name}: {other} in place of {dtype}"
        case 4:
            new_shape = chance.choice([[*shape, 1], shape[::-1], [1, *shape], [0], []])
            count = 1
            for size in new_shape:
                count *= size
            data = (data * 2)[: count * _ITEM_BYTES[dtype]].ljust(count * _ITEM_BYTES[dtype], b"\0")
            tensors[name] = (dtype, new_shape, data)
            done = f"{name}: shape {new_shape} in place of {shape}"
        case 5 | 6:
            value = {"F32": "<f", "F64": "<d", "I64": "<q"}.get(dtype)
            numbers = [2**62, -1, -(2**63), 0] if dtype == "I64" else [1e38, -1.0, 0.0]
            if dtype in ("F32", "F64"):
                numbers += [float("nan"), float("inf"), 2.0**30]
            number = chance.choice(numbers)
            one = struct.pack(value, number) if value else b"\xff" * _ITEM_BYTES[dtype]
            tensors[name] = (dtype, shape, one * (len(data) // len(one)))
            done = f"{name}: all {number}"
        case 7:
            names = list(tensors)
            other = chance.choice(names)
            tensors[name], tensors[other] = tensors[other], tensors[name]
            done = f"{name} and {other} exchanged"
        case _:
            if data:
                tensors[name] = (dtype, shape, chance.randbytes(len(data)))
            done = f"{name}: noise"
    front: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    body = b""
    for name, (dtype, shape, data) in tensors.items():
        offsets = [len(body), len(body) + len(data)]
        front[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        body += data
    return done, _packed(json.dumps(front), body)


def _packed(header: str, body: bytes) -> bytes:
    front = header.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(front)) + front + body
