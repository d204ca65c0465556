"""The generator process: `python -m tuigpt.generation.server` reads commands, writes reports."""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, get_args

import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation import protocol as p
from tuigpt.generation.card import file_sha256
from tuigpt.generation.decode import (
    Prompt,
    Writer,
    first_difference,
    read_prompt,
    refuse_broken_weights,
)
from tuigpt.generation.logprobs import Candidate, Insight, Score, insight, next_token, surprises
from tuigpt.model.checkpoint import load_checkpoint
from tuigpt.model.device import describe, resolve_device, type_name
from tuigpt.model.gpt import GPT
from tuigpt.paths import cache_dir, home_dir
from tuigpt.text.copies import find_copies_of_training, share_copied
from tuigpt.text.tokenizer import Tokenizer

REPORT_EVERY = 1 / 30
"""Least seconds between two `Tokens` or two `Working` reports; what is in between waits."""

NICENESS = 10
"""How far the process steps back behind others, so that a trainer beside it hardly notices."""

KEPT_MODELS = 2
"""Models in memory: one that writes and one to compare it with."""


class _Cancelled(Exception):
    """The command at hand was cancelled."""


@dataclass
class _Loaded:
    model: GPT
    tokenizer: Tokenizer
    header: dict[str, Any]


class Server:
    """Works off commands in order; a cancelled one ends within a token."""

    def __init__(self, out: BinaryIO, device: torch.device, home: Path) -> None:
        self._out = out
        self._device = device
        self._home = home
        self._waiting: queue.SimpleQueue[p.Work] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._steered: dict[int, p.Steer] = {}
        self._open: set[int] = set()  # commands without a last report
        self._models: dict[tuple[str, int, int], _Loaded] = {}  # the newest one last

    def listen(self, commands: BinaryIO) -> None:
        """Take in commands until the pipe ends, and the process with it: its app is gone."""
        for line in commands:
            with suppress(ValueError):
                command = p.decode_command(line)
                if isinstance(command, get_args(p.Work)):
                    self._open.add(command.id)
                    self._waiting.put(command)
                elif command.id in self._open and isinstance(command, p.Cancel):
                    self._cancelled.add(command.id)
                elif command.id in self._open and isinstance(command, p.Steer):
                    self._steered[command.id] = command
        # No clean-up is due, and a token that takes seconds must not outlive the app.
        os._exit(0)

    def work(self) -> None:
        """Greet, then carry out commands for ever."""
        self._send(p.Hello(p.VERSION, describe(self._device)))
        while True:
            command = self._waiting.get()
            began = time.monotonic()
            try:
                self._check(command.id)
                self._carry_out(command)
            except _Cancelled:
                self._send(p.Done(command.id, 0, time.monotonic() - began, cancelled=True))
            except UserError as error:
                self._send(p.Failed(command.id, str(error)))
            except (OSError, RuntimeError, MemoryError, ValueError) as error:
                reason = str(error).splitlines()[0] if str(error) else "out of memory"
                self._send(p.Failed(command.id, f"the generator failed: {reason}"))
            self._open.discard(command.id)
            self._cancelled.discard(command.id)
            self._steered.pop(command.id, None)

    def _carry_out(self, command: p.Work) -> None:
        match command:
            case p.Generate():
                self._generate(command)
            case p.Look():
                self._look(command)
            case p.Score():
                self._score(command)
            case p.Recite():
                self._recite(command)
            case p.Verify():
                self._verify(command)

    def _generate(self, command: p.Generate) -> None:
        config = _settings(command, command.max_new_tokens)
        loaded = self._load(command)
        prompt = read_prompt(command.prompt, loaded.tokenizer)
        given = _ids(command.given, loaded)
        writer = Writer(
            loaded.model,
            prompt.ids,
            config,
            samples=command.samples,
            window=command.window,
            given=given,
        )
        size = loaded.model.config.block_size
        out_of_sight = max(0, len(prompt.ids) + len(given) - size)
        vocab_size = loaded.tokenizer.vocab_size
        self._send(p.Started(command.id, prompt.text, prompt.dropped, out_of_sight, vocab_size))
        began = time.monotonic()
        outbox = _Outbox(command, loaded.tokenizer)
        cancelled = False
        while not (cancelled := command.id in self._cancelled):
            self._steer(command.id, writer)
            tokens = next(writer, None)
            if tokens is None:
                break
            outbox.put(tokens, writer)
            if (report := outbox.due()) is not None:
                self._send(report)
        for report in outbox.rest():
            self._send(report)
        seconds = time.monotonic() - began
        moved = len(prompt.ids) + writer.written > size + 1
        steered = bool(writer.changes)
        theirs = config.top_p == 1 and config.min_p == 0
        plain = theirs and not (command.window == "rolling" and moved)
        rolled_in = None if writer.rolled_in is None else type_name(writer.rolled_in)
        self._send(
            p.Done(
                command.id,
                writer.written - len(given),
                seconds,
                cancelled,
                reproducible=not steered and rolled_in in (None, "float32"),
                reference=plain and not steered and not given,
                rolled_in=rolled_in,
            )
        )

    def _steer(self, number: int, writer: Writer) -> None:
        wish = self._steered.pop(number, None)
        if wish is None:
            return
        with suppress(UserError):  # an app that wishes for the impossible gets what it had
            before = len(writer.changes)
            writer.config = _settings(wish, writer.config.max_new_tokens, writer.config.seed)
            if len(writer.changes) > before:
                heat, top_k, top_p, min_p = wish.temperature, wish.top_k, wish.top_p, wish.min_p
                self._send(p.Steered(number, writer.written, heat, top_k, top_p, min_p))

    def _look(self, command: p.Look) -> None:
        config = _settings(command, 1)
        loaded = self._load(command)
        prompt = read_prompt(command.prompt, loaded.tokenizer)
        given = _ids(command.given, loaded)
        seen = next_token(loaded.model, prompt, config, command.count, given)
        place = _place(seen, loaded.tokenizer)
        self._send(p.Looked(command.id, prompt.text, prompt.dropped, place))

    def _score(self, command: p.Score) -> None:
        loaded = self._load(command)
        text = _as_read(command.text, loaded.tokenizer)
        parts: list[Tensor] = []
        tell = self._progress(command.id, max(0, len(text.ids) - 1))
        done = 0
        for part in surprises(loaded.model, text.ids) if len(text.ids) else ():
            parts.append(part)
            done += len(part)
            tell(done)
        nats = torch.cat(parts) if parts else torch.empty(0)
        characters = int(loaded.tokenizer.token_characters[text.ids[1:].numpy()].sum())
        score = Score(float(nats.double().sum()), len(nats), characters)
        known = score.tokens > 0
        self._send(
            p.Scored(
                command.id,
                text.text,
                text.dropped,
                [round(n, 4) for n in nats.tolist()],
                score.nats_per_character if known else None,
                score.bits_per_character if known else None,
                score.perplexity if known else None,
            )
        )

    def _recite(self, command: p.Recite) -> None:
        at_least = max(1, command.at_least)
        loaded = self._load(command)
        cache = cache_dir(self._home)
        copies = find_copies_of_training(loaded.header, command.text, at_least, cache)
        self._send(
            p.Recited(
                command.id,
                str(loaded.header["corpus"].get("name", "")),
                share_copied(copies, len(command.text)),
                [p.Copy(c.start, c.length, c.place, c.line) for c in copies],
            )
        )

    def _verify(self, command: p.Verify) -> None:
        config = _settings(command, command.max_new_tokens)
        # Always float32 on the CPU, wherever the text was written.
        model, tokenizer, _ = load_checkpoint(Path(command.checkpoint), torch.device("cpu"))
        refuse_broken_weights(model)
        prompt = read_prompt(command.prompt, tokenizer)
        tell = self._progress(command.id, len(command.ids))
        place = first_difference(model, prompt.ids, config, command.ids, tell)
        self._send(p.Verified(command.id, place, file_sha256(Path(command.checkpoint))))

    def _load(self, command: p.Work) -> _Loaded:
        path = Path(command.checkpoint)
        try:
            stat = path.stat()
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
        # A checkpoint may be written anew under its old name, so the name alone says too little.
        mark = (command.checkpoint, stat.st_mtime_ns, stat.st_ino)
        loaded = self._models.pop(mark, None)
        if loaded is None:
            self._send(p.Loading(command.id))
            while len(self._models) >= KEPT_MODELS:
                del self._models[next(iter(self._models))]
            loaded = _Loaded(*load_checkpoint(path, self._device))
            refuse_broken_weights(loaded.model)
        self._models[mark] = loaded
        self._check(command.id)
        return loaded

    def _check(self, number: int) -> None:
        if number in self._cancelled:
            raise _Cancelled

    def _progress(self, number: int, total: int) -> Callable[[int], None]:
        told = time.monotonic()

        def tell(done: int) -> None:
            nonlocal told
            self._check(number)
            now = time.monotonic()
            if now - told >= REPORT_EVERY:
                told = now
                self._send(p.Working(number, done, total))

        return tell

    def _send(self, report: p.Report) -> None:
        try:
            self._out.write(p.encode(report))
            self._out.flush()
        except BrokenPipeError:
            os._exit(0)


class _Outbox:
    """Gathers the tokens of all samples into reports, few enough for the app to follow."""

    def __init__(self, command: p.Generate, tokenizer: Tokenizer) -> None:
        self._command = command
        self._tokenizer = tokenizer
        self._streams = [tokenizer.stream() for _ in range(command.samples)]
        self._ids: list[list[int]] = [[] for _ in range(command.samples)]
        self._places: list[list[p.Place]] = [[] for _ in range(command.samples)]
        self._turn = 0
        self._sent = -REPORT_EVERY

    def put(self, tokens: list[int], writer: Writer) -> None:
        """Take in the newest token of each sample."""
        for sample, token in enumerate(tokens):
            self._ids[sample].append(token)
            if self._command.alternatives:
                assert writer.logits is not None
                logits, count = writer.logits[sample], self._command.alternatives
                seen = insight(logits, token, writer.config, count)
                self._places[sample].append(_place(seen, self._tokenizer))

    def due(self) -> p.Tokens | None:
        """The next report, if it is time for one; the samples take turns."""
        now = time.monotonic()
        if now - self._sent < REPORT_EVERY:
            return None
        self._sent = now
        sample, self._turn = self._turn, (self._turn + 1) % len(self._ids)
        return self._report(sample) if self._ids[sample] else None

    def rest(self) -> Iterator[p.Tokens]:
        """What has not been reported, with the characters that were never completed."""
        for sample, stream in enumerate(self._streams):
            report = self._report(sample)
            report = replace(report, text=report.text + stream.flush())
            if report.count or report.text:
                yield report

    def _report(self, sample: int) -> p.Tokens:
        ids, self._ids[sample] = self._ids[sample], []
        places, self._places[sample] = self._places[sample], []
        text = self._streams[sample].push(ids)
        return p.Tokens(self._command.id, text, len(ids), sample, ids, places)


def _settings(
    message: p.Generate | p.Look | p.Verify | p.Steer, length: int, seed: int | None = None
) -> SampleConfig:
    return SampleConfig(
        max_new_tokens=length,
        temperature=message.temperature,
        top_k=message.top_k,
        top_p=message.top_p,
        min_p=message.min_p,
        seed=message.seed if not isinstance(message, p.Steer) else seed or 0,
    )


def _ids(given: list[int], loaded: _Loaded) -> list[int]:
    for token in given:
        if not (isinstance(token, int) and 0 <= token < loaded.tokenizer.vocab_size):
            raise UserError(f"token {token!r} is not in the model's vocabulary")
    return given


def _as_read(text: str, tokenizer: Tokenizer) -> Prompt:
    """A text as `read_prompt` reads it, but an empty one stays empty."""
    read = read_prompt(text, tokenizer)
    return read if len(read.dropped) < len(set(text)) else Prompt("", read.dropped, read.ids[:0])


def _place(seen: Insight, tokenizer: Tokenizer) -> p.Place:
    def option(c: Candidate) -> p.Option:
        text = tokenizer.decode([c.token])
        numbers = (round(x, 6) for x in (c.learned, c.tempered, c.drawn_from))
        return p.Option(text, c.token, *numbers)

    likeliest = [option(c) for c in seen.likeliest]
    return p.Place(option(seen.chosen), round(seen.logprob, 5), seen.rank, likeliest)


def main() -> None:
    """Serve the process that started us, over stdin and stdout."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home")
    options = parser.parse_args()
    # Whatever a library prints must not end up between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # The terminal's Ctrl-C is for the app; our end is the end of the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICENESS)
    # One position at a time is too little work to share, and threads that wait for each other on
    # a machine that a trainer keeps busy cost both of them far more than they give.
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))
    server = Server(out, resolve_device("auto"), home_dir(options.home))
    threading.Thread(target=server.listen, args=(sys.stdin.buffer,), daemon=True).start()
    server.work()


if __name__ == "__main__":
    main()
