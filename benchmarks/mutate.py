"""Damages files of every kind, and looks at what the program makes of them.

    python benchmarks/mutate.py --count 10000 --seed 1 [--kind status] [--replay KIND:SEED:NUMBER]

Each mutation damages one file of a fresh home with two small runs, *victim* and *bystander*, or one
of a model of another program. Then `tuigpt` is called as a shell calls it: list, show, ask,
generate, inspect, resume, import; the app looks at the home, at times the whole app opens; a
generator gets damaged lines between sound ones. Nothing of that may end in a traceback or by a
signal, take more than five seconds or a gigabyte, print control codes, run anything, or change what
it should only read. Whatever does is printed with what replays it, and the exit status is 1.

Each call is a child forked from a process that has everything imported, one with torch or one
without, so that thousands take minutes. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from mutations import damage_bytes, damage_json, mutate

from tuigpt.config import SampleConfig
from tuigpt.generation import protocol

SECONDS = 5.0
"""What a call may take; a training gets as much again to save and stop when it is asked to."""

MEGABYTES = 1000
"""What a call may take beyond what it begins with."""

CAP = 3 << 30
"""Bytes of memory at which the system ends a call, so that the machine is not harmed."""

APP_EVERY = 12
"""The whole app opens at each so many-th mutation that it could see."""

SHAPE = [
    "--n-layer=1", "--n-head=2", "--n-embd=8", "--block-size=16", "--batch-size=4",
    "--eval-tokens=64", "--sample-tokens=8", "--recipe=workshop", "--precision=float32",
    "--device=cpu", "--max-steps=4", "--eval-interval=2", "--checkpoint-interval=2",
]  # fmt: skip
"""A model that trains in no time."""

VERSE = (
    "But soft, what light through yonder window breaks?\n"
    "It is the east, and Juliet is the sun.\n"
    "Arise, fair sun, and kill the envious moon.\n"
)

SETTINGS = "settings.toml"
"""The user's settings; they lie in the home here, so that each trial has its own."""

FOREIGN = {
    "workshop": ["checkpoint_4.pt", "loss_log.json"],
    "nanogpt": ["ckpt.pt", "meta.pkl"],
    "huggingface": ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
}
"""What `export` writes for other programs, and which of it is damaged."""

LARGE_TEXT = 17_500_000
"""Bytes of a text whose tokens are kept in the cache."""

MIX = {
    "status": 14, "run": 14, "control": 6, "metrics": 11, "lock": 3, "settings": 5, "marks": 3,
    "kept": 2, "checkpoint": 14, "resume": 8, "foreign": 10, "text": 3, "protocol": 6, "cache": 1,
}  # fmt: skip
"""How many of a hundred mutations are of which kind."""

READ = ("list", "show", "ask", "follow", "generate", "resume")
OPERATIONS = {
    "status": READ,
    "run": READ,
    "control": ("list", "ask", "resume"),
    "metrics": ("list", "follow", "resume"),
    "lock": ("list", "ask", "resume"),
    "settings": ("list", "follow"),
    "marks": ("list", "show", "follow"),
    "kept": ("app",),
    "checkpoint": ("list", "show", "follow", "generate", "at step", "file", "from", "resume"),
    "resume": ("list", "resume"),
    "foreign": ("import", "list"),
    "text": ("inspect", "resume"),
    "protocol": ("generator",),
    "cache": ("cache", "resume"),
}
"""What is done after a mutation of each kind; some leave traces, so the order counts."""

HEAVY = {"generate", "at step", "file", "from", "resume", "generator", "import"}
"""Operations that need torch."""

TRAININGS = {"from", "resume"}
"""Operations that stop when they are asked to."""

_CONTROL_CODE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Outcome:
    """How a forked call ended.

    Attributes:
        status: its exit status, or minus the signal that ended it.
        stopped: whether it had to be asked to stop.
        hung: whether it had to be killed.
        megabytes: the most memory that it held beyond its beginning.
    """

    status: int
    out: str
    err: str
    seconds: float = 0.0
    megabytes: float = 0.0
    stopped: bool = False
    hung: bool = False


@dataclass
class Trial:
    """One mutation, and what it led to.

    Attributes:
        calls: how many.
        failures: operation, what was wrong, and what it printed.
    """

    kind: str
    number: int
    done: str = ""
    calls: int = 0
    failures: list[tuple[str, str, str]] = field(default_factory=list)


# --- one call, in a child of its own ---


def call(
    work: Callable[[], int], cwd: Path, stoppable: bool = False, limit: float = SECONDS
) -> Outcome:
    """Run something in a forked child.

    Args:
        work: gives the exit status.
        stoppable: ask it to stop by SIGTERM when its time is over, before it is killed.
    """
    out, err = os.memfd_create("out"), os.memfd_create("err")
    gc.disable()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(work, cwd, out, err)
    watched = os.pidfd_open(pid)
    outcome = Outcome(0, "", "")
    if not _ended(watched, limit) and stoppable:
        outcome.stopped = True
        os.kill(pid, signal.SIGTERM)
        limit = SECONDS
    if not _ended(watched, 0 if not outcome.stopped else limit):
        outcome.hung = True
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    os.close(watched)
    outcome.seconds = time.monotonic() - began
    outcome.status = os.waitstatus_to_exitcode(status)
    outcome.megabytes = usage.ru_maxrss / 1024
    outcome.out, outcome.err = _content(out), _content(err)
    return outcome


def _ended(watched: int, seconds: float) -> bool:
    return bool(select.select([watched], [], [], seconds)[0])


def _content(descriptor: int) -> str:
    size = min(os.fstat(descriptor).st_size, 1_000_000)
    text = os.pread(descriptor, size, 0).decode("utf-8", "replace")
    os.close(descriptor)
    return text


def _be_child(work: Callable[[], int], cwd: Path, out: int, err: int) -> None:
    status = 70
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # end with the worker
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGHUP):  # ours were set while we got warm
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
        os.chdir(cwd)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        cap = _data_bytes() + CAP
        resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
        sys.addaudithook(_refuse)
        status = work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                traceback.print_exc()
        os._exit(status)


def _data_bytes() -> int:
    match = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match
    return 1024 * int(match[1])


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Print what no file may make us do."""
    if event in ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn"):
        os.write(2, f"EXECUTED {event} {arguments!r}\n".encode())
    elif event == "os.kill" and arguments[1] and not _is_ours(arguments[0]):
        os.write(2, f"EXECUTED {event} {arguments!r}\n".encode())


def _is_ours(pid: object) -> bool:
    """Whether a process is this one or a child of it."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return pid == os.getpid() or int(facts.rpartition(")")[2].split()[1]) == os.getpid()


# --- the operations ---


def shell(home: Path, *arguments: str) -> int:
    """`tuigpt` with these arguments, as in a shell."""
    from tuigpt.cli.main import main

    os.environ["TUIGPT_CONFIG"] = str(home / SETTINGS)
    command, *rest = arguments
    return main([command, f"--home={home}", *rest])


def follow(home: Path) -> int:
    """What the app does four times a second."""
    from tuigpt.runs.follow import Follower

    os.environ["TUIGPT_CONFIG"] = str(home / SETTINGS)
    follower = Follower(home)
    for watch in (None, "victim", "victim", "bystander"):
        snapshot = follower.look(watch)
        assert "bystander" in [run.name for run in snapshot.runs]
    return 0


def open_app(home: Path) -> int:
    """The app, without a terminal: a look at each pane."""
    from textual.pilot import Pilot

    from tuigpt.tui.app import TuigptApp

    os.environ["TUIGPT_CONFIG"] = str(home / SETTINGS)
    sys.executable = str(home.parent / "deaf")  # what a generator writes is tried elsewhere
    app = TuigptApp(home)

    async def look(pilot: Pilot[object]) -> None:
        await asyncio.sleep(0.3)
        for key in ("ctrl+o", "down", "enter", "ctrl+t", "ctrl+g"):
            await pilot.press(key)
        await asyncio.sleep(0.1)
        pilot.app.exit()

    app.run(headless=True, size=(140, 40), auto_pilot=look)
    return app.return_code or 0


GENERATE = ("--max-new-tokens=6", "--seed=1", "--prompt=But")


def operations(home: Path) -> dict[str, Callable[[], int]]:
    """Each operation by name, as a call in a child."""
    checkpoint = str(home / "runs" / "victim" / "checkpoints" / "step-000004.safetensors")
    text = str(home.parent / "text" / "verse.txt")
    return {
        "list": partial(shell, home, "list"),
        "show": partial(shell, home, "list", "victim"),
        "ask": partial(shell, home, "ask", "victim", "checkpoint"),
        "follow": partial(follow, home),
        "app": partial(open_app, home),
        "generate": partial(shell, home, "generate", "victim", *GENERATE),
        "at step": partial(shell, home, "generate", "victim@4", *GENERATE),
        "file": partial(shell, home, "generate", checkpoint, *GENERATE),
        "from": partial(
            shell, home, "train", "--from=victim@4", "--name=child", "--max-steps=1",
            "--device=cpu", "--sample-tokens=0", "--eval-tokens=64", "--precision=float32",
        ),
        "resume": partial(shell, home, "train", "--resume=victim", "--max-steps=5"),
        "import": partial(
            shell, home, "import", str(home.parent / "foreign"), "--name=child",
        ),
        "inspect": partial(shell, home, "inspect", text, "--json"),
        "cache": partial(shell, home, "cache"),
    }  # fmt: skip


def perform(operation: str, home: Path, limit: float, lines: Sequence[str] = ()) -> Outcome:
    """Do one operation in a child of this process.

    Args:
        lines: what a generator is sent, each byte as one character.
    """
    if operation == "generator":
        return serve(home, [line.encode("latin-1") for line in lines], home.parent)
    stoppable = operation in TRAININGS
    return call(operations(home)[operation], home.parent, stoppable, limit)


class Forker:
    """Another process that performs operations for this one: it has torch, and this one has not."""

    def __init__(self, channel: socket.socket) -> None:
        self._stream = channel.makefile("rw", encoding="utf-8")

    def perform(self, *request: object) -> Outcome:
        self._stream.write(json.dumps(request) + "\n")
        self._stream.flush()
        return Outcome(**json.loads(self._stream.readline()))

    @staticmethod
    def serve(channel: socket.socket) -> None:
        """Be that process, until the other one ends."""
        baseline = call(lambda: 0, Path.cwd()).megabytes
        stream = channel.makefile("rw", encoding="utf-8")
        for line in stream:
            operation, home, limit, lines = json.loads(line)
            outcome = perform(operation, Path(home), limit, lines)
            outcome.megabytes -= baseline
            stream.write(json.dumps(asdict(outcome)) + "\n")
            stream.flush()


# --- what must hold ---


Tree = dict[str, tuple[object, ...]]


def tree(folder: Path) -> Tree:
    """What a folder holds: kind, mode and content of everything in it."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        mode, name = facts.st_mode, str(path.relative_to(folder))
        if stat.S_ISLNK(mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISREG(mode) and facts.st_size > 64_000_000:
            found[name] = ("large file", mode, facts.st_size, facts.st_mtime_ns)
        elif stat.S_ISREG(mode):
            found[name] = ("file", mode, path.read_bytes())
        else:
            found[name] = ("other", mode)
    return found


def differences(before: Tree, after: Tree) -> list[str]:
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def wrong_with(operation: str, outcome: Outcome) -> Iterator[str]:
    """What may not be, whatever the files hold."""
    told = outcome.out + outcome.err
    if outcome.hung:
        yield f"hangs: {outcome.seconds:.1f} s"
    elif outcome.status < 0:
        yield f"ended by {signal.Signals(-outcome.status).name}"
    elif outcome.status not in (0, 1, 2, 143 if outcome.stopped else 0):
        yield f"status {outcome.status}"
    if "Traceback (most recent call last)" in told:
        yield "traceback"
    if re.search(r"\.py:\d+: \w*Warning", told):
        yield "warning with a source path"
    if "EXECUTED" in told:
        yield "executed"
    if outcome.megabytes > MEGABYTES:
        yield f"{outcome.megabytes:.0f} MB"
    shown = outcome.err if operation in ("generate", "at step", "file") else told
    if operation != "app" and (code := _CONTROL_CODE.search(shown)):
        yield f"control code {code[0]!r}"
    if operation == "list" and "bystander" not in outcome.out:
        yield "the other run is not listed"


def may_change(operation: str, name: str) -> bool:
    """Whether an operation may write there; names are below the home."""
    match operation:
        case "resume":
            return name.startswith(("runs/victim", "cache"))
        case "ask":
            return name.startswith("runs/victim/control.")
        case "from" | "import":
            return name.startswith(("runs/child", "cache"))
        case "app":
            return not name.startswith("runs")
    return False


# --- one mutation ---


class Workplace:
    """A folder in which one mutation after the other is tried.

    Attributes:
        base: what holds the home, the texts, and the folder that links lead to.
    """

    def __init__(self, templates: Path, base: Path, forker: Forker) -> None:
        self.templates = templates
        self.base = base
        self._forker = forker
        self._baseline = call(lambda: 0, templates).megabytes

    def prepare(self, large: bool) -> Path:
        """A fresh home; gives its folder."""
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.copytree(self.templates / ("large" if large else "small"), self.base, symlinks=True)
        return self.base / "home"

    def run(self, kind: str, seed: int, number: int, keep: bool = False) -> Trial:
        """Damage a file in a fresh home, and call everything that may read it."""
        trial = Trial(kind, number)
        chance = random.Random(f"{kind}:{seed}:{number}")
        home = self.prepare(large=kind == "cache")
        outside = self.base / "outside"
        if chance.random() < 0.4:  # a run of tokens that are no characters
            (home / "runs" / "victim").rename(home / "runs" / "other")
            (home / "runs" / "pairs").rename(home / "runs" / "victim")
        if kind == "protocol":
            self._protocol(trial, home, chance)
            return trial
        path = self._file(home, kind, chance)
        trial.done = f"{path.name}: {mutate(path, outside, chance)}"
        chosen = [*OPERATIONS[kind]]
        if kind in ("status", "run", "metrics", "settings", "checkpoint") and (
            chance.randrange(APP_EVERY) == 0
        ):
            chosen.insert(1, "app")
        before, before_outside = tree(home), tree(self.base / "outside")
        for operation in chosen:
            outcome = self._call(operation, home)
            trial.calls += 1
            if keep:
                print(f"--- {operation}: status {outcome.status}, {outcome.seconds:.2f} s")
                print(outcome.out + outcome.err)
            wrong = list(wrong_with(operation, outcome))
            after = tree(home)
            for name in differences(before, after):
                if not may_change(operation, name):
                    wrong.append(f"changes {name}")
                elif operation == "resume" and self._lost(name, path, before, after, home):
                    wrong.append(f"writes over {name}")
            if differences(before_outside, tree(self.base / "outside")):
                wrong.append("changes what is outside")
            before, before_outside = after, tree(self.base / "outside")
            if operation == "list" and kind == "run" and os.path.lexists(path):
                if "victim" not in outcome.out:
                    wrong.append("the damaged run is not listed")
            ended = outcome.status == 0 and not outcome.stopped
            if operation == "resume" and kind == "cache" and ended:
                if not self._learned_as_it_should(home):
                    wrong.append("trains on another text")
            for reason in wrong:
                trial.failures.append((operation, reason, outcome.out + outcome.err))
        return trial

    def _call(self, operation: str, home: Path, lines: Sequence[str] = ()) -> Outcome:
        outcome = self._perform(operation, home, SECONDS, lines)
        waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
        if outcome.hung and waiting > 1:  # perhaps it only waited for a processor
            outcome = self._perform(operation, home, 2 * waiting * SECONDS, lines)
        return outcome

    def _perform(self, operation: str, home: Path, limit: float, lines: Sequence[str]) -> Outcome:
        if operation in HEAVY:
            return self._forker.perform(operation, str(home), limit, lines)
        outcome = perform(operation, home, limit)
        outcome.megabytes -= self._baseline
        return outcome

    def _file(self, home: Path, kind: str, chance: random.Random) -> Path:
        victim = home / "runs" / "victim"
        match kind:
            case "run" | "status" | "control":
                return victim / f"{kind}.json"
            case "metrics":
                return victim / "metrics.jsonl"
            case "lock":
                return victim / "trainer.lock"
            case "settings":
                return home / SETTINGS
            case "marks":
                return victim / "marks.json"
            case "kept":
                return home / chance.choice(["texts.jsonl", "prompts.json"])
            case "foreign":
                program = chance.choice(list(FOREIGN))
                shutil.copytree(self.base / "exported" / program, self.base / "foreign")
                return self.base / "foreign" / chance.choice(FOREIGN[program])
            case "checkpoint":
                return victim / "checkpoints" / "step-000004.safetensors"
            case "resume":
                return victim / "resume.safetensors"
            case "text":
                return self.base / "text" / "verse.txt"
        (entry,) = (home / "cache").glob("tokens-*")
        return entry / chance.choice(["about.json", "about.json", "tokens.bin"])

    def _lost(self, name: str, damaged: Path, before: Tree, after: Tree, home: Path) -> bool:
        """Whether a checkpoint that was there before is another one now."""
        return (
            name.endswith(".safetensors")
            and "/checkpoints/" in name
            and name in before
            and home / name != damaged
        )

    def _learned_as_it_should(self, home: Path) -> bool:
        expected = json.loads((self.base / "expected.json").read_text())
        return bool(_last_loss(home / "runs" / "victim") == expected["loss"])

    def _protocol(self, trial: Trial, home: Path, chance: random.Random) -> None:
        """Send a generator damaged lines, and then one that it must answer."""
        checkpoint = home / "runs" / "victim" / "checkpoints" / "step-000004.safetensors"
        lines = []
        for _ in range(6):
            line = protocol.encode(chance.choice(each_command(chance.randrange(1, 5), checkpoint)))
            path = self.base / "line.json"
            path.write_bytes(line)
            if chance.random() < 0.3:
                done, line = damage_bytes(line, chance)
            else:
                done, line = damage_json(line, chance)
            lines.append(line.replace(b"\n", b" ") + b"\n")
            trial.done += f"{done}; "
        # A length that was damaged may be a great one.
        lines += [protocol.encode(protocol.Cancel(number)) for number in range(1, 5)]
        lines.append(protocol.encode(each_command(LAST_COMMAND, checkpoint)[0]))
        trial.calls = 1
        outcome = self._call("generator", home, [line.decode("latin-1") for line in lines])
        for reason in wrong_with("generator", outcome):
            trial.failures.append(("generator", reason, outcome.out + outcome.err))


LAST_COMMAND = 77
"""Number of the command that a generator must answer whatever came before it."""


def each_command(number: int, checkpoint: Path) -> list[protocol.Command]:
    """One command of each kind to a generator."""
    path, config = os.fsencode(checkpoint), SampleConfig(max_new_tokens=5, top_k=5, seed=1)
    return [
        protocol.Generate(number, path, "But", config, samples=2, top_logprobs=2),
        protocol.Generate(number, path, "soft", config, forced_ids=[1, 2]),
        protocol.SetConfig(number, config),
        protocol.Cancel(number),
        protocol.NextToken(number, path, "But", config),
        protocol.Score(number, path, "But soft"),
        protocol.FindCopies(number, path, "But soft, what light"),
        protocol.Verify(number, path, "But", config, [1, 2, 3]),
    ]


def serve(home: Path, lines: list[bytes], cwd: Path) -> Outcome:
    """Send lines to a generator until it has answered the last one, then hang up."""
    commands, commands_in = os.pipe()
    reports_out, reports = os.pipe()

    def work() -> int:
        from tuigpt.generation.server import main

        os.dup2(commands, 0)
        os.dup2(reports, 1)
        os.close(commands)
        os.close(reports)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.argv = ["server", "--home", str(home)]
        main()
        return 0

    talker = os.fork()
    if talker == 0:
        os.close(commands)
        os.close(reports)
        answered, read = False, b""
        try:
            os.write(commands_in, b"".join(lines)[:60_000])
            rest = b"".join(lines)[60_000:]
            while rest:
                rest = rest[os.write(commands_in, rest) :]
            while select.select([reports_out], [], [], SECONDS)[0]:
                part = os.read(reports_out, 1 << 16)
                if not part:
                    break
                read += part
                if any(
                    isinstance(report, protocol.Done) and report.id == LAST_COMMAND
                    for report in map(protocol.decode_report, read.split(b"\n")[:-1])
                ):
                    answered = True
                    break
        finally:
            os._exit(0 if answered else 1)
    os.close(commands_in)
    os.close(reports_out)
    outcome = call(work, cwd, limit=2 * SECONDS)
    os.close(commands)
    os.close(reports)
    _, status = os.waitpid(talker, 0)
    if status and not outcome.hung:
        outcome.status = outcome.status or 71
    return outcome


# --- templates ---


def make_templates(folder: Path, with_large: bool) -> None:
    """Train the runs that are damaged; each call in a child, so that this process stays fresh."""
    small = folder / "small"
    (small / "text").mkdir(parents=True)
    (small / "outside").mkdir()
    text = small / "text" / "verse.txt"
    text.write_text(VERSE * 40, "utf-8")
    deaf = small / "deaf"
    deaf.write_text("#!/bin/sh\nexec cat > /dev/null\n")
    deaf.chmod(0o755)
    home = small / "home"
    for name, tokenizer in (("victim", "char"), ("bystander", "char"), ("pairs", "bpe:270")):
        _trained(home, folder, str(text), f"--name={name}", f"--tokenizer={tokenizer}")
        request = '{"requests": [{"number": 1, "action": "checkpoint"}]}\n'
        (home / "runs" / name / "control.json").write_text(request)
        mark(home, name)
    (home / SETTINGS).write_text(TOML)
    (home / "texts.jsonl").write_text(KEPT_TEXTS)
    (home / "prompts.json").write_text('["ROMEO:", "To be\\nor not"]\n')
    for program in FOREIGN:
        _done(home, folder, "export", "victim", f"--to={program}",
              f"--output={small / 'exported' / program}")  # fmt: skip
    if with_large:
        large = folder / "large"
        shutil.copytree(small, large)
        text = large / "text" / "large.txt"
        lines = VERSE.splitlines(keepends=True)
        chance = random.Random(0)
        with open(text, "w", encoding="utf-8") as stream:
            stream.write("".join(chance.choices(lines, k=LARGE_TEXT // 45)))
        home = large / "home"
        for name in ("victim", "pairs"):
            shutil.rmtree(home / "runs" / name)
            _trained(home, folder, str(text), f"--name={name}", "--tokenizer=char")
        trial = folder / "expected"
        shutil.copytree(home, trial)
        outcome = call(
            partial(shell, trial, "train", "--resume=victim", "--max-steps=5"), folder, limit=120
        )
        assert outcome.status == 0, outcome
        loss = _last_loss(trial / "runs" / "victim")
        (large / "expected.json").write_text(json.dumps({"loss": loss}))


TOML = """\
theme = "paper"
temperature = 0.9
top_k = 20
length = 50
hide_poet = false

[keys]
"view.training" = "f3"
"""

KEPT_TEXTS = (
    '{"id": "a", "entry": "e", "run": "victim", "step": 4, "prompt": "But", "written": " so",'
    ' "config": {"temperature": 0.9, "top_k": 20, "max_new_tokens": 3, "seed": 1}, "ids": [1, 2],'
    ' "pieces": [" s", "o"], "surprises": [1.5, 0.25], "starred": true}\n'
    '{"id": "b", "entry": "e", "run": "victim", "step": 4, "prompt": "But", "written": " sad"}\n'
    '{"id": "b", "deleted": true}\n'
)


def mark(home: Path, run: str) -> None:
    """Star a checkpoint, and note something on another."""
    _done(home, home, "star", f"{run}@2")
    _done(home, home, "note", f"{run}@4", "the last")


def _done(home: Path, cwd: Path, *arguments: str) -> None:
    outcome = call(partial(shell, home, *arguments), cwd, limit=120)
    assert outcome.status == 0, outcome


def _trained(home: Path, cwd: Path, *arguments: str) -> None:
    _done(home, cwd, "train", *arguments, *SHAPE)


def _last_loss(run: Path) -> float:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return float([json.loads(line) for line in lines if '"step", ' in line][-1]["loss"])


# --- all of them ---


def warm_up(folder: Path) -> None:
    """Import and load what calls without torch need, so that no child has to."""
    import textual.pilot  # noqa: F401

    import tuigpt.tui.app  # noqa: F401

    text = folder / "warm.txt"
    text.write_text(VERSE * 40, "utf-8")
    with redirect_stdout(io.StringIO()):
        shell(folder / "warm", "inspect", str(text))
        shell(folder / "warm", "list")
        shell(folder / "warm", "cache")
    gc.collect()
    gc.freeze()  # so that a child's collections do not copy every page that we share


def warm_up_torch(folder: Path) -> None:
    """Import and load what calls with torch need as well."""
    import torch

    import tuigpt.generation.server  # noqa: F401

    torch.set_num_threads(1)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        text = str(folder / "warm.txt")
        shell(folder / "warm", "train", text, "--name=warm", *SHAPE)
        shell(folder / "warm", "generate", "warm", *GENERATE)
    gc.collect()
    gc.freeze()


def start_forkers(count: int, folder: Path, with_large: bool) -> list[Forker]:
    """Make the templates, and processes that have torch."""
    pairs = [socket.socketpair() for _ in range(count)]
    ready, told = socket.socketpair()
    if os.fork() == 0:
        with exits():
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            warm_up_torch(folder)
            make_templates(folder / "templates", with_large)
            for ours, theirs in pairs:
                ours.close()
                if os.fork() == 0:
                    with exits():
                        Forker.serve(theirs)
                theirs.close()
            told.send(b"ready")
            for _ in pairs:
                os.wait()
    for _, theirs in pairs:
        theirs.close()
    told.close()
    if not ready.recv(16):
        raise SystemExit("the runs that are to be damaged could not be trained")
    return [Forker(ours) for ours, _ in pairs]


@contextmanager
def exits() -> Iterator[None]:
    """End a forked process with the block, and with nothing of what its parent had in mind."""
    status = 1
    try:
        yield
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def kinds_of(count: int, kinds: Sequence[str]) -> list[tuple[str, int]]:
    """Kind and number of each mutation, spread as `MIX` says."""
    spread = random.Random(0).choices(kinds, [MIX[kind] for kind in kinds], k=count)
    return list(zip(spread, range(count), strict=True))


def work_off(trials: list[tuple[str, int]], seed: int, workplace: Workplace, results: Path) -> None:
    """Try some mutations, and append each one's result to a file."""
    with open(results, "a", encoding="utf-8") as stream:
        for kind, number in trials:
            trial = workplace.run(kind, seed, number)
            line = [trial.kind, trial.number, trial.done, trial.calls, trial.failures]
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            for operation, reason, told in trial.failures:
                print(f"{kind}:{seed}:{number}  {operation}: {reason}  [{trial.done[:150]}]")
                print("    " + "\n    ".join(told.strip().splitlines()[-3:])[-600:], flush=True)


def table(results: list[Path]) -> int:
    """Print what was tried and what failed; gives the number of failures."""
    tried: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for path in results:
        for line in path.read_text("utf-8").splitlines():
            kind, _, _, n_calls, failures = json.loads(line)
            tried[kind] += 1
            calls[kind] += n_calls
            failed[kind] += bool(failures)
            reasons.update(re.sub(r"[\d.]+ (s|MB)", r"… \1", reason) for _, reason, _ in failures)
    print(f"\n{'kind':<12}{'mutations':>10}{'calls':>8}{'failed':>8}")
    for kind in sorted(tried):
        print(f"{kind:<12}{tried[kind]:>10,}{calls[kind]:>8,}{failed[kind]:>8,}")
    print(f"{'all':<12}{tried.total():>10,}{calls.total():>8,}{failed.total():>8,}")
    for reason, count in reasons.most_common():
        print(f"{count:>6}  {reason}")
    return failed.total()


def replay(kind: str, number: int, seed: int, workplace: Workplace) -> int:
    """Try one mutation, and print all that is told."""
    trial = workplace.run(kind, seed, number, keep=True)
    print(trial.done)
    for operation, reason, told in trial.failures:
        print(f"FAILED {operation}: {reason}\n{told}")
    return int(bool(trial.failures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=list(MIX), action="append", help="only these files")
    parser.add_argument("--skip", choices=list(MIX), action="append", help="not these files")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", metavar="KIND:SEED:NUMBER", help="one of them, with its output")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("TUIGPT_HOME", None)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mutate-", dir=memory) as folder:
        base = Path(folder)
        os.environ["HOME"] = folder
        if options.replay:
            kind, seed, number = options.replay.split(":")
            trials, options.seed, options.workers = [(kind, int(number))], int(seed), 1
        else:
            kinds = [kind for kind in options.kind or MIX if kind not in (options.skip or ())]
            trials = kinds_of(options.count, kinds)
        warm_up(base)
        large = any(kind == "cache" for kind, _ in trials)
        workplaces = [
            Workplace(base / "templates", base / f"worker-{index}", forker)
            for index, forker in enumerate(start_forkers(options.workers, base, large))
        ]
        if options.replay:
            return replay(*trials[0], options.seed, workplaces[0])
        results, workers = [], []
        for index, workplace in enumerate(workplaces):
            results.append(base / f"results-{index}")
            pid = os.fork()
            if pid == 0:
                with exits():
                    share = trials[index :: options.workers]
                    work_off(share, options.seed, workplace, results[-1])
            workers.append(pid)
        broken = [os.waitpid(pid, 0)[1] for pid in workers]
        failed = table(results)
    return int(failed > 0 or any(broken))


if __name__ == "__main__":
    sys.exit(main())
