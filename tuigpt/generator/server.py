"""The generator process: `python -m tuigpt.generator.server` reads commands, writes reports."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import torch

from tuigpt.config import SampleConfig, UserError
from tuigpt.core.checkpoint import load_checkpoint
from tuigpt.core.decode import generate, read_prompt
from tuigpt.core.device import describe, resolve_device
from tuigpt.core.model import GPT
from tuigpt.core.tokenizer import CharTokenizer
from tuigpt.generator.protocol import (
    VERSION,
    Cancel,
    Done,
    Failed,
    Generate,
    Hello,
    Loading,
    Report,
    Started,
    Tokens,
    decode_command,
    encode,
)

REPORT_EVERY = 1 / 30
"""Least seconds between two `Tokens` reports; tokens in between travel together."""


class Server:
    """Works off commands in order; a cancelled one ends within a token."""

    def __init__(self, out: BinaryIO, device: torch.device) -> None:
        self._out = out
        self._device = device
        self._waiting: queue.SimpleQueue[Generate] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._loaded: tuple[tuple[str, int, int], GPT, CharTokenizer] | None = None

    def listen(self, commands: BinaryIO) -> None:
        """Take in commands until the pipe ends, and the process with it: its app is gone."""
        for line in commands:
            try:
                command = decode_command(line)
            except ValueError:
                continue
            if isinstance(command, Cancel):
                self._cancelled.add(command.id)
            elif isinstance(command, Generate):
                self._waiting.put(command)
        # No clean-up is due, and a token that takes seconds must not outlive the app.
        os._exit(0)

    def work(self) -> None:
        """Greet, then carry out commands for ever."""
        self._send(Hello(VERSION, describe(self._device)))
        while True:
            command = self._waiting.get()
            try:
                self._generate(command)
            except UserError as error:
                self._send(Failed(command.id, str(error)))
            except (RuntimeError, MemoryError) as error:
                reason = str(error).splitlines()[0] if str(error) else "out of memory"
                self._send(Failed(command.id, f"the generator failed: {reason}"))

    def _generate(self, command: Generate) -> None:
        config = SampleConfig(
            max_new_tokens=command.max_new_tokens,
            temperature=command.temperature,
            top_k=command.top_k,
            seed=command.seed,
        )
        model, tokenizer = self._load(command)
        prompt = read_prompt(command.prompt, tokenizer)
        out_of_sight = max(0, len(prompt.ids) - model.config.block_size)
        self._send(
            Started(command.id, prompt.text, prompt.dropped, out_of_sight, tokenizer.vocab_size)
        )
        began = reported = time.monotonic()
        count, fresh = 0, list[int]()
        tokens = generate(model, prompt.ids, config)
        while not (cancelled := command.id in self._cancelled):
            token = next(tokens, None)
            if token is not None:
                count += 1
                fresh.append(token)
            now = time.monotonic()
            if fresh and (token is None or now - reported >= REPORT_EVERY):
                self._send(Tokens(command.id, tokenizer.decode(fresh), len(fresh)))
                reported, fresh = now, []
            if token is None:
                break
        if fresh:
            self._send(Tokens(command.id, tokenizer.decode(fresh), len(fresh)))
        self._send(Done(command.id, count, time.monotonic() - began, cancelled))

    def _load(self, command: Generate) -> tuple[GPT, CharTokenizer]:
        path = Path(command.checkpoint)
        try:
            stat = path.stat()
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
        # A checkpoint may be written anew under its old name, so the name alone says too little.
        mark = (command.checkpoint, stat.st_mtime_ns, stat.st_ino)
        if self._loaded is None or self._loaded[0] != mark:
            self._send(Loading(command.id))
            self._loaded = None
            model, tokenizer, _ = load_checkpoint(path, self._device)
            self._loaded = (mark, model, tokenizer)
        return self._loaded[1:]

    def _send(self, report: Report) -> None:
        try:
            self._out.write(encode(report))
            self._out.flush()
        except BrokenPipeError:
            os._exit(0)


def main() -> None:
    """Serve the process that started us, over stdin and stdout."""
    # Whatever a library prints must not end up between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # The terminal's Ctrl-C is for the app; our end is the end of the pipe.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(out, resolve_device("auto"))
    threading.Thread(target=server.listen, args=(sys.stdin.buffer,), daemon=True).start()
    server.work()


if __name__ == "__main__":
    main()
