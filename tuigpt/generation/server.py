"""The generator process: reads commands, writes reports, and is started by `client.py`."""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec
import torch

from tuigpt.errors import UserError
from tuigpt.generation import judge
from tuigpt.generation import protocol as p
from tuigpt.generation.card import file_sha256
from tuigpt.generation.copies import compare, copies, unseen
from tuigpt.generation.decode import TextGenerator, read_prompt
from tuigpt.generation.logprobs import logprobs
from tuigpt.model.checkpoint import LoadedCheckpoint
from tuigpt.model.device import resolve_device, use_few_threads
from tuigpt.paths import cache_dir
from tuigpt.runs.record import find_corpus
from tuigpt.text.tokenizer import Tokenizer

REPORT_EVERY = 1 / 30
"""Least seconds between two `Tokens` or two `CommandProgress` reports; what is in between waits."""

AHEAD, LONGEST_AHEAD = 6, 0.25
"""Tokens that a text may be ahead of its pace, and the seconds at most: to be woken for each token
costs what runs beside it far more, and a slider acts on what is not drawn yet."""

NICENESS = 10
"""How far the process steps back behind others, so that a trainer beside it hardly notices."""

KEPT_MODELS = 2
"""Models in memory: one that generates and one to compare it with."""


class _Cancelled(Exception):
    """The present command was cancelled."""


class Server:
    """Carries out commands in order; a cancelled one ends within a token."""

    def __init__(self, out: BinaryIO, device: torch.device, home: Path) -> None:
        self._out = out
        self._sending = threading.Lock()
        self._device = device
        self._home = home
        self._waiting: queue.SimpleQueue[p.Work] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._set_config: dict[int, p.SetConfig] = {}
        self._pace: dict[int, float] = {}
        self._open: set[int] = set()  # commands without a last report
        self._told = threading.Event()  # something about an open command has come
        self._models: dict[tuple[bytes, int, int], LoadedCheckpoint] = {}  # the newest one last

    def listen(self, commands: BinaryIO) -> None:
        """Take in commands until the pipe ends, and the process with it: its app is gone.

        A line that is no command is answered if it has an `id`, else skipped.
        """
        try:
            for line in _lines(commands, p.LONGEST_COMMAND):
                try:
                    self._take(p.decode_command(line))
                except ValueError as error:
                    number = p.addressee(line)
                    if number is not None and number not in self._open:
                        self._send(p.Failed(number, str(error)))
        finally:
            # No clean-up is due, and a token that takes seconds must not outlive the app.
            os._exit(0)

    def _take(self, command: p.Command) -> None:
        if isinstance(command, get_args(p.Work)):
            if command.id not in self._open:
                self._open.add(command.id)
                self._waiting.put(command)
        elif command.id in self._open and isinstance(command, p.Cancel):
            self._cancelled.add(command.id)
        elif command.id in self._open and isinstance(command, p.SetConfig):
            self._set_config[command.id] = command
        elif command.id in self._open and isinstance(command, p.SetPace):
            self._pace[command.id] = command.pace
        self._told.set()

    def work(self) -> None:
        """Carry out commands for ever."""
        while True:
            command = self._waiting.get()
            began = time.monotonic()
            try:
                self._check(command.id)
                last = self._carry_out(command)
            except _Cancelled:
                last = p.Done(command.id, 0, time.monotonic() - began, cancelled=True)
            except UserError as error:
                last = p.Failed(command.id, str(error))
            except Exception as error:
                traceback.print_exc()  # for the log; one command that fails is not the end
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                last = p.Failed(command.id, f"the generator failed: {reason}")
            self._send(last)
            self._open.discard(command.id)
            self._cancelled.discard(command.id)
            self._set_config.pop(command.id, None)
            self._pace.pop(command.id, None)

    def _carry_out(self, command: p.Work) -> p.Last:
        path = Path(os.fsdecode(command.checkpoint))
        loaded = self._load(command.id, path)
        progress = self._progress(command.id)
        cache = cache_dir(self._home)
        match command:
            case p.Generate():
                return self._generate(command, loaded)
            case p.NextToken():
                prompt = read_prompt(command.prompt, loaded.tokenizer)
                found = judge.next_token(
                    loaded, prompt.ids, command.config, command.top_logprobs, command.forced_ids
                )
                return p.NextTokenFound(command.id, prompt.text, prompt.dropped, found)
            case p.Score():
                return p.Scored(command.id, judge.score(loaded, command.text, progress))
            case p.FindCopies():
                corpus = find_corpus(path, loaded.header.corpus)
                found_copies = copies(corpus, command.text, command.at_least, cache, progress)
                return p.CopiesFound(command.id, found_copies)
            case p.Compare():
                corpus = find_corpus(path, loaded.header.corpus)
                facts = compare(corpus, command.texts, command.at_least, cache, progress)
                return p.Compared(command.id, facts)
            case p.ReadUnseen():
                corpus = find_corpus(path, loaded.header.corpus)
                return p.UnseenRead(command.id, unseen(corpus, cache, progress))
            case p.TimeWindows():
                return p.WindowsTimed(command.id, judge.window_speeds(loaded))
            case p.Verify():
                ids = read_prompt(command.prompt, loaded.tokenizer).ids
                place = judge.verify(loaded, ids, command.config, command.ids, progress)
                return p.Verified(command.id, place, file_sha256(path))

    def _generate(self, command: p.Generate, loaded: LoadedCheckpoint) -> p.Done:
        prompt = read_prompt(command.prompt, loaded.tokenizer)
        generator = TextGenerator(
            loaded.model,
            prompt.ids,
            command.config,
            samples=command.samples,
            window=command.window,
            forced_ids=command.forced_ids,
        )
        size = loaded.model.config.block_size
        out_of_sight = max(0, len(prompt.ids) + len(command.forced_ids) - size)
        vocab_size = loaded.tokenizer.vocab_size
        length = len(prompt.ids)
        self._send(
            p.Started(
                command.id, prompt.text, prompt.dropped, out_of_sight, vocab_size, size, length
            )
        )
        began = time.monotonic()
        outbox = _Outbox(command, loaded.tokenizer)
        changed = False
        next_at, waited = began, 0.0
        while not (cancelled := command.id in self._cancelled):
            if (pace := self._pace.get(command.id, command.pace)) > 0:
                # Behind time, it does not hurry to make up for more than it may be ahead.
                before = time.monotonic()
                ahead = min(AHEAD / pace, LONGEST_AHEAD)
                next_at = max(next_at + 1 / pace, before - ahead)
                if next_at > before + ahead:
                    for gathered in outbox.gathered():
                        self._send(gathered)
                    in_time = self._wait_until(next_at, command.id, pace)
                    outbox.sent = time.monotonic()
                    waited += outbox.sent - before
                    if not in_time:
                        continue
            changed |= self._change_config(command, generator)
            tokens = next(generator, None)
            if tokens is None:
                break
            outbox.put(tokens, generator)
            if (report := outbox.due()) is not None:
                self._send(report)
        for report in outbox.rest():
            self._send(report)
        config = command.config
        only_theirs = config.top_p == 1 and config.min_p == 0 and not command.forced_ids
        return p.Done(
            command.id,
            generator.written - len(command.forced_ids),
            time.monotonic() - began - waited,
            cancelled,
            reproducible=not changed,
            reference=only_theirs and not changed and not generator.rolled,
        )

    def _wait_until(self, moment: float, number: int, pace: float) -> bool:
        """Wait for the moment of the next token; False if by then the command is to end, or is to
        go on at another pace."""
        while (left := moment - time.monotonic()) > 0:
            if number in self._cancelled or self._pace.get(number, pace) != pace:
                return False
            self._told.wait(left)
            self._told.clear()
        return True

    def _change_config(self, command: p.Generate, generator: TextGenerator) -> bool:
        """Let a new config act on the next token, if one has come; whether it is another."""
        wanted = self._set_config.pop(command.id, None)
        if wanted is None:
            return False
        length, seed = command.config.max_new_tokens, command.config.seed
        config = replace(wanted.config, max_new_tokens=length, seed=seed)
        if config == generator.config:
            return False
        generator.config = config
        self._send(p.ConfigChanged(command.id, generator.written, config))
        return True

    def _load(self, number: int, path: Path) -> LoadedCheckpoint:
        try:
            stat = path.stat()
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
        # Another file may get this name, so the name alone does not identify it.
        mark = (os.fsencode(path), stat.st_mtime_ns, stat.st_ino)
        loaded = self._models.pop(mark, None)
        if loaded is None:
            self._send(p.Loading(number))
            while len(self._models) >= KEPT_MODELS:
                del self._models[next(iter(self._models))]
            loaded = judge.open_checkpoint(path, self._device)
        self._models[mark] = loaded
        self._check(number)
        return loaded

    def _check(self, number: int) -> None:
        if number in self._cancelled:
            raise _Cancelled

    def _progress(self, number: int) -> judge.OnProgress:
        reported = time.monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal reported
            self._check(number)
            now = time.monotonic()
            if now - reported >= REPORT_EVERY:
                reported = now
                self._send(p.CommandProgress(number, done, total))

        return progress

    def _send(self, report: p.Report) -> None:
        try:
            with self._sending:  # the listener answers too
                self._out.write(p.encode(report))
                self._out.flush()
        except BrokenPipeError:
            os._exit(0)


def _lines(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    """The lines of a stream; those that are too long are skipped without being held."""
    while line := stream.readline(longest + 1):
        if len(line) <= longest:
            yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(longest)


class _Outbox:
    """Gathers the tokens of all samples into reports, few enough for the app to follow.

    Attributes:
        sent: when the last report was, by the monotonic clock; what comes then waits for others.
    """

    def __init__(self, command: p.Generate, tokenizer: Tokenizer) -> None:
        self._command = command
        self._tokenizer = tokenizer
        self._streams = [tokenizer.stream() for _ in range(command.samples)]
        self._ids: list[list[int]] = [[] for _ in range(command.samples)]
        self._logprobs: list[list[p.Logprobs]] = [[] for _ in range(command.samples)]
        self._turn = 0
        self.sent = -REPORT_EVERY

    def put(self, tokens: list[int], generator: TextGenerator) -> None:
        """Take in the newest token of each sample."""
        top = self._command.top_logprobs
        for sample, token in enumerate(tokens):
            self._ids[sample].append(token)
            if top is not None:
                assert generator.logits is not None
                logits, config = generator.logits[sample], generator.config
                self._logprobs[sample].append(logprobs(logits, token, config, top, self._tokenizer))

    def due(self) -> p.Tokens | None:
        """The next report, if it is time for one; the samples take turns."""
        now = time.monotonic()
        if now - self.sent < REPORT_EVERY:
            return None
        self.sent = now
        sample, self._turn = self._turn, (self._turn + 1) % len(self._ids)
        return self._report(sample) if self._ids[sample] else None

    def gathered(self) -> Iterator[p.Tokens]:
        """What has not been reported."""
        for sample, ids in enumerate(self._ids):
            if ids:
                yield self._report(sample)

    def rest(self) -> Iterator[p.Tokens]:
        """What has not been reported, with the characters that were never completed."""
        for sample, stream in enumerate(self._streams):
            report = self._report(sample)
            report = msgspec.structs.replace(report, text=report.text + stream.flush())
            if report.count or report.text:
                yield report

    def _report(self, sample: int) -> p.Tokens:
        ids, self._ids[sample] = self._ids[sample], []
        found, self._logprobs[sample] = self._logprobs[sample], []
        text = self._streams[sample].push(ids)
        return p.Tokens(self._command.id, text, len(ids), sample, ids, found)


def _step_back() -> None:
    """Let others have the processor first."""
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICENESS)
    # Where Linux shares the processor among sessions, niceness only acts within each.
    if sys.platform == "linux" and os.getsid(0) == os.getpid():
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(NICENESS))


def main() -> None:
    """Serve the process that started us, over stdin and stdout."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    options = parser.parse_args()
    # Whatever a library prints must not end up between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # The terminal's Ctrl-C is for the app; our end is the end of the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _step_back()
    use_few_threads()
    server = Server(out, resolve_device("auto"), Path(options.home))
    threading.Thread(target=server.listen, args=(sys.stdin.buffer,), daemon=True).start()
    server.work()


if __name__ == "__main__":
    main()
