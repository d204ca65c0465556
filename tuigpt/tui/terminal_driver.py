"""The terminal's keys and signals, where Textual 8.2.8 would end or go blank."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from codecs import IncrementalDecoder, getincrementaldecoder
from typing import Any

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.message import Message
from textual.messages import InBandWindowResize

_X10 = b"\x1b[M"
"""Begins a mouse report of an old terminal; button, column and row follow as bytes from 32 on."""


_SIZE_REPORT = re.compile(r"\x1b\[48;[\d:;]*t")
"""A size among the keys, which nobody has asked for; Textual divides by what it says."""


_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
"""Around what is pasted; Textual takes an escape in between for the end, and for keys the rest."""

_ESCAPE, _SHOWN_ESCAPE = b"\x1b", "␛".encode()


class TerminalInput(IncrementalDecoder):
    """Decodes what a terminal sends: UTF-8, with old mouse reports in between.

    Bytes that are no UTF-8 become U+FFFD. Old mouse reports, whose columns past 95 are no UTF-8,
    become new ones. What is pasted stays one paste: an escape in it becomes its symbol, ␛.
    """

    def __init__(self, errors: str = "replace") -> None:
        super().__init__(errors)
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._begun = b""
        self._pasting = False
        self._last = b""

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        text = ""
        while True:
            if self._pasting:
                pasted, end, data = (self._begun + data).partition(_PASTE_END)
                self._begun = b"" if end or final else _beginning_of(_PASTE_END, pasted)
                pasted = pasted.removesuffix(self._begun).replace(_ESCAPE, _SHOWN_ESCAPE)
                text += self._utf8.decode(pasted, final or bool(end))
                if not end:
                    return text
                text += end.decode()
            else:
                # The beginning of a paste is not held back until all of it is there: an escape
                # that was pressed would wait as well.
                keys, begin, _ = (self._last + data).partition(_PASTE)
                if not begin:
                    self._last = keys[1 - len(_PASTE) :]
                    return text + self._keys(data, final)
                so_far = len(keys) + len(begin) - len(self._last)
                text += self._keys(data[:so_far], True)
                data, self._last = data[so_far:], b""
            self._pasting = not self._pasting

    def _keys(self, data: bytes, final: bool) -> str:
        return _SIZE_REPORT.sub("", self._mouse_and_text(data, final))

    def _mouse_and_text(self, data: bytes, final: bool) -> str:
        data, self._begun = self._begun + data, b""
        text = ""
        while (at := data.find(_X10)) >= 0:
            report = data[at + 3 : at + 6]
            if len(report) < 3 and not final:
                self._begun = data[at:]
                return text + self._utf8.decode(data[:at])
            text += self._utf8.decode(data[:at])
            if len(report) == 3:
                button, column, row = (byte - 32 for byte in report)
                # The old report of a release does not tell which button it was.
                end = "m" if button & 0b1000011 == 3 else "M"
                text += f"\x1b[<{button & ~3 if end == 'm' else button};{column};{row}{end}"
            data = data[at + 6 :]
        return text + self._utf8.decode(data, final)


def _beginning_of(marker: bytes, data: bytes) -> bytes:
    """The end of some bytes that may become a marker when more comes."""
    return next(marker[:n] for n in range(len(marker) - 1, -1, -1) if data.endswith(marker[:n]))


class TerminalDriver(LinuxDriver):
    """Reads any byte, and comes back from every stop."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Textual stops and continues in the midst of whatever the signal interrupts: if that is a
        # write to the terminal, it waits for ever for the queue that it holds itself.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._sigtstp_application)
        loop.add_signal_handler(signal.SIGCONT, self._sigcont_application)

    def run_input_thread(self) -> None:
        linux_driver.getincrementaldecoder = lambda _: TerminalInput  # type: ignore[attr-defined, assignment]
        while True:
            try:
                super().run_input_thread()
                return
            except OSError:  # the terminal is gone
                raise
            except Exception as error:
                self._app.call_later(self._app._handle_exception, error)

    def _query_in_band_window_resize(self) -> None:
        """Ask for no sizes among the keys: SIGWINCH tells them, and no stray bytes can."""

    def process_message(self, message: Message) -> None:
        if not isinstance(message, InBandWindowResize | Resize):
            super().process_message(message)

    def _sigcont_application(self, *arguments: object) -> None:
        try:
            os.tcgetpgrp(self.fileno)
        except OSError:
            # Hung up: a thread that begins to read from such a terminal never ends.
            return
        if not self._auto_restart:
            return
        if self._key_thread is not None and self._key_thread.is_alive():
            # Stopped by SIGSTOP, of which nobody is told: what the shell changed is set up anew.
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application(*arguments)
