"""An app that no event ends, and that takes what is typed in the order it was typed.

Written against Textual 8.2.8, which ends an app at the first exception in any handler, and which
carries out a key's binding only after the keys behind it have reached their fields.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from traceback import format_exception
from typing import Any

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.worker import WorkerFailed

from tuigpt.tui.clipboard import copy_into_tmux, in_tmux
from tuigpt.tui.sparing import SparingApp

LOG_FILE = "app.log"
"""Name of the log in the home."""

_LOG_BYTES = 1_000_000
"""Size from which on the log is begun anew; the one before it is kept."""

_PATIENCE = 5.0
"""Most seconds that what is typed waits for what was typed before it, on a slow machine."""

_BURST, _DRAWING = 0.1, 0.02
"""Seconds after which a burst of keys is shown, and that this takes."""

_PASSES = 3
"""A key becomes an action, the action a message, and its handler may send another."""


class GuardedApp(SparingApp):
    """Logs and survives exceptions; hands on keys, pastes and clicks one after the other.

    So the letters behind a key that opens a form are typed into that form, however fast they come,
    and a backspace removes the letter before it.
    """

    ENABLE_COMMAND_PALETTE = False  # Textual's is not safe from keys while it opens and closes

    def __init__(self, log: Path | None = None) -> None:
        """
        Args:
            log: where exceptions are written once the app runs; None lets them end the app.
        """
        super().__init__()
        self._log_path = log
        self._last_trace = ""
        self._guarding = False
        self._input: asyncio.Queue[events.Event] = asyncio.Queue()
        self._coming: deque[events.Event] = deque()  # what is in the queue
        self._typed_ahead = False

    def on_mount(self) -> None:
        self._guarding = self._log_path is not None
        self.app_resume_signal.subscribe(self, self._draw_again)
        self.run_worker(self._hand_on_input(), group="input", exit_on_error=False)

    # --- input ---

    @property
    def more_typing(self) -> bool:
        """Whether a letter or another enter came in one go with the key at hand."""
        if not self._coming:
            return False
        event = self._coming[0]
        return isinstance(event, events.Key) and (event.is_printable or event.key == "enter")

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded:
            self._coming.append(event)
            self._input.put_nowait(event)
            return
        if isinstance(event, events.Resize):
            self.forget_screen()  # terminals wrap what they show anew
        if isinstance(event, events.Resize) and not (event.size.width and event.size.height):
            # A terminal of no columns or rows; Textual's layout divides by them.
            size = Size(max(1, event.size.width), max(1, event.size.height))
            event = events.Resize(size, size)
        await super().on_event(event)

    async def _hand_on_input(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self.ready_for_input()
        loop = asyncio.get_running_loop()
        drawn_at = loop.time()
        while True:
            event = await self._input.get()
            self._coming.popleft()
            burst = isinstance(event, events.Key) and not self._input.empty()
            if burst and loop.time() < drawn_at + _BURST:
                with self.batch_update():  # nothing is drawn between the keys of a burst
                    await self._hand_on(event)
                continue
            await self._hand_on(event)
            if burst:
                await asyncio.sleep(_DRAWING)
            if isinstance(event, events.Key):
                drawn_at = loop.time()

    async def _hand_on(self, event: events.Event) -> None:
        """Let an event have its effect, and those before it theirs."""
        try:
            typing = self._is_typing(event)
            if self._typed_ahead and not typing:
                await self._settle()
            self._typed_ahead = typing
            await super().on_event(event)
            if not typing and not isinstance(event, events.MouseMove):
                await self._settle()
        except Exception as error:
            self._handle_exception(error)

    def _is_typing(self, event: events.Event) -> bool:
        """Whether it is a letter for the field that has the focus: the next may follow at once."""
        return (
            isinstance(event, events.Key)
            and event.is_printable
            and self.focused is not None
            and self.focused.check_consume_key(event.key, event.character)
        )

    async def ready_for_input(self) -> None:
        """Wait until what is typed can be handed on; not for long if that does not come."""

    async def _settle(self) -> None:
        """Wait until what was handed on has had its effect, new screens included."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                for _ in range(_PASSES):
                    while not self.screen.is_mounted:
                        await asyncio.sleep(0.005)
                    for node in (self.focused or self.screen).ancestors_with_self:
                        await _caught_up(node)

    # --- exceptions ---

    def survives(self, error: Exception) -> bool:
        """Log an exception; False if the app has to end because of it."""
        if not self._guarding:
            return False
        cause = error.error if isinstance(error, WorkerFailed) else error
        self.write_log("".join(format_exception(cause)))
        return True

    def write_log(self, text: str) -> None:
        """Append to the log, which is kept small; a text that comes again is told in a line."""
        assert self._log_path is not None
        again, self._last_trace = text == self._last_trace, text
        entry = f"{datetime.now(UTC).isoformat(timespec='seconds')} "
        entry += "the same again\n" if again else text.rstrip("\n") + "\n"
        path = self._log_path
        with suppress(OSError):  # a disk that is full must not end the app either
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and path.stat().st_size > _LOG_BYTES:
                path.replace(path.with_suffix(".log.1"))
            with open(path, "a", encoding="utf-8", errors="replace") as log:
                log.write(entry)

    def _handle_exception(self, error: Exception) -> None:
        if not self.survives(error):
            super()._handle_exception(error)

    # --- the terminal ---

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        if found.__name__ != "LinuxDriver":  # Windows, a browser, a test
            return found
        from tuigpt.tui.terminal_driver import TerminalDriver

        return TerminalDriver

    def copy_to_clipboard(self, text: str) -> None:
        super().copy_to_clipboard(text)
        if in_tmux():
            self.run_worker(copy_into_tmux(text), group="copy", exit_on_error=False)

    def _draw_again(self, _: App[Any]) -> None:
        """The terminal shows what the shell left there."""
        self.forget_screen()
        self.screen.refresh(layout=True)


async def _caught_up(node: MessagePump) -> None:
    """Wait until a node has processed the messages that it has now, or is gone."""
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reach() -> None:
        if not reached.done():
            reached.set_result(None)

    if node.call_later(reach):
        while not reached.done() and node.is_running:
            await asyncio.wait([reached], timeout=0.05)


_dispatch = MessagePump._dispatch_message


async def _guarded_dispatch(self: MessagePump, message: Message) -> None:
    """Let a widget live on after an exception in one of its handlers.

    Textual 8.2.8 leaves the loop of messages at an exception, and has no hook before that.
    """
    try:
        await _dispatch(self, message)
    except Exception as error:
        app = self.app
        if not (isinstance(app, GuardedApp) and app.survives(error)):
            raise


MessagePump._dispatch_message = _guarded_dispatch  # type: ignore[method-assign]
