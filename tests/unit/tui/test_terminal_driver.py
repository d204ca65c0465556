"""What a terminal sends, whatever bytes it sends."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("termios")

from textual._xterm_parser import XTermParser
from textual.events import Key, Paste

from tuigpt.tui.terminal_driver import TerminalInput


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("aé日🙂".encode(), "aé日🙂"),
        (b"\xfc", "\ufffd"),
        (b"a\xc3b", "a\ufffdb"),
        (b"a\x1b[48;0;0;0;0tb", "ab"),
        (b"\x1b[<0;5;7M", "\x1b[<0;5;7M"),
        (b"\x1b[M" + bytes([32, 33, 34]), "\x1b[<0;1;2M"),
        (b"\x1b[M" + bytes([32, 200, 34]), "\x1b[<0;168;2M"),
        (b"\x1b[M" + bytes([35, 33, 34]), "\x1b[<0;1;2m"),
        (b"\x1b[M" + bytes([96, 33, 34]) + b"x", "\x1b[<64;1;2Mx"),
    ],
)
def test_every_byte_is_read(sent: bytes, read: str) -> None:
    assert TerminalInput().decode(sent, final=True) == read


def test_a_report_in_two_pieces() -> None:
    sent = "日é".encode() + b"\x1b[M" + bytes([32, 250, 251]) + "🙂".encode()
    whole = TerminalInput().decode(sent)
    for at in range(sent.index(b"M") + 1, len(sent)):
        decoder = TerminalInput()
        assert decoder.decode(sent[:at]) + decoder.decode(sent[at:]) == whole


@pytest.mark.parametrize(
    "pasted", ["a\x1b[31mb\rc", "\x1b", "é\x1b[M日本語\x1b[48;0;0;0;0t", "\x1b[20"]
)
def test_a_paste_with_an_escape_in_it_stays_one_paste(pasted: str) -> None:
    """However the terminal's bytes are cut into pieces; keys before and after it stay keys."""
    sent = b"x\x1b[200~" + pasted.encode() + b"\x1b[201~y\x1b[Az"
    for at in range(len(sent)):
        decoder = TerminalInput()
        text = decoder.decode(sent[:at]) + decoder.decode(sent[at:])
        read = [*XTermParser().feed(text)]
        assert [event.key for event in read if isinstance(event, Key)] == ["x", "y", "up", "z"]
        assert [event.text for event in read if isinstance(event, Paste)] == [
            pasted.replace("\x1b", "␛")
        ]


def test_an_escape_that_is_pressed_comes_at_once() -> None:
    decoder = TerminalInput()
    assert [decoder.decode(byte) for byte in (b"\x1b", b"[", b"2", b"a")] == ["\x1b", "[", "2", "a"]


def test_nothing_raises() -> None:
    rng = random.Random(1)
    decoder = TerminalInput()
    for _ in range(2000):
        data = bytes(
            rng.choices([27, 91, 77, 32, 65, 195, 255, 50, 48, 49, 126], k=rng.randrange(8))
        )
        decoder.decode(data)
    decoder.decode(b"", final=True)
