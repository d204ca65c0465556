"""A sheet of characters as a PNG picture, without a font or an image library.

Dots of braille become squares, lines become lines, and letters come from a small font of this file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from tuigpt.charts.raster import BRAILLE, Grid

CELL_WIDE, CELL_HIGH = 12, 24
"""Pixels of a character."""

_SCALE = 2
_TEXT_LEFT, _TEXT_TOP = 1, 5
_DOT = 4
"""Pixels of a side of a braille dot, which has 6 × 6 to itself."""

_FONT = {
    pair[0]: pair[2:]
    for pair in """
A=ehhvhhh B=uhhuhhu C=ehggghe D=uhhhhhu E=vgguggv F=vgguggg G=ehgnhhf H=hhhvhhh I=e44444e
J=72222ic K=hikokih L=ggggggv M=hrllhhh N=hhpljhh O=ehhhhhe P=uhhuggg Q=ehhhlid R=uhhukih
S=fgge11u T=v444444 U=hhhhhhe V=hhhhha4 W=hhhllla X=hha4ahh Y=hhha444 Z=v1248gv
a=00e1fhf b=ggmphhu c=00egghe d=11djhhf e=00ehvge f=698s888 g=0fhhf1e h=ggmphhh i=40c444e
j=20622ic k=ggikoki l=c44444e m=00qllhh n=00mphhh o=00ehhhe p=00uhugg q=00djf11 r=00mpggg
s=00fge1u t=88s8896 u=00hhhjd v=00hhha4 w=00hhlla x=00ha4ah y=00hhf1e z=00v248v
0=ehjlphe 1=4c4444e 2=eh1248v 3=v2421he 4=26aiv22 5=vgu11he 6=68guhhe 7=v124888 8=ehhehhe
9=ehhf12c .=00000cc ,=0000c48 :=0cc0cc0 -=000v000 _=000000v +=044v440 (=2488842 )=8422248
/=01248g0 %=op248j3 @=eh1dlle ==00v0v00 ?=eh12404 !=4444404 '=4480000 #=aavavaa *=04lel40
×=00ha4ah ↑=4el4444 ↓=4444le4 ★=44veerh ○=0ehhhe0 ●=0evvve0 •=00eee00 ▴=04eevv0 ▲=04eevv0
""".split()
}
"""Seven rows of five dots for each character, a digit to the base of 32 for each row."""

_UNKNOWN = "vhhhhhv"

_MIDDLE_X, _MIDDLE_Y = CELL_WIDE // 2, CELL_HIGH // 2
_LEFT, _RIGHT = (0, _MIDDLE_Y, _MIDDLE_X + 1, 1), (_MIDDLE_X, _MIDDLE_Y, _MIDDLE_X, 1)
_UP, _DOWN = (_MIDDLE_X, 0, 1, _MIDDLE_Y + 1), (_MIDDLE_X, _MIDDLE_Y, 1, _MIDDLE_Y)

Box = tuple[int, int, int, int]
"""Left, top, width and height of a part of a character that is filled."""

_LINES: Mapping[str, tuple[Box, ...]] = {
    "│": (_UP, _DOWN), "─": (_LEFT, _RIGHT), "┤": (_UP, _DOWN, _LEFT),
    "┬": (_LEFT, _RIGHT, _DOWN), "└": (_UP, _RIGHT),
    "┊": tuple((_MIDDLE_X, y, 1, 3) for y in range(1, CELL_HIGH, 6)),
    "░": tuple((x, y, 1, 1) for y in range(1, CELL_HIGH, 4) for x in range(y // 4 % 2, 12, 4)),
}  # fmt: skip


def to_png(grid: Grid, colours: Mapping[str, str], background: str) -> bytes:
    """Draw a sheet.

    Args:
        colours: as `#rrggbb`, by the name of what a cell belongs to; "text" is for all others.
        background: as `#rrggbb`.
    """
    width, height = grid.width * CELL_WIDE, grid.height * CELL_HIGH
    names = list(colours)
    pixels = bytearray(width * height)
    for y in range(grid.height):
        x = 0
        for text, role in grid.runs(y):
            ink = 1 + names.index(role if role in colours else "text")
            for character in text:
                for left, top, wide, high in _boxes(character):
                    for row in range(y * CELL_HIGH + top, y * CELL_HIGH + top + high):
                        start = row * width + x * CELL_WIDE + left
                        pixels[start : start + wide] = bytes([ink]) * wide
                x += 1
    rows = (b"\0" + pixels[start : start + width] for start in range(0, len(pixels), width))
    palette = b"".join(bytes.fromhex(c[1:]) for c in (background, *colours.values()))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette),
            _chunk(b"IDAT", zlib.compress(b"".join(rows), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _boxes(character: str) -> list[Box]:
    """What is filled of a character's cell."""
    if character == " ":
        return []
    if character in _LINES:
        return list(_LINES[character])
    if 0x2800 <= ord(character) <= 0x28FF:
        pattern = BRAILLE.characters.index(character)
        wide, high = CELL_WIDE // BRAILLE.wide, CELL_HIGH // BRAILLE.high
        return [
            (bit % BRAILLE.wide * wide + 1, bit // BRAILLE.wide * high + 1, _DOT, _DOT)
            for bit in range(8)
            if pattern >> bit & 1
        ]
    rows = [int(digit, 32) for digit in _FONT.get(character, _UNKNOWN)]
    return [
        (_TEXT_LEFT + x * _SCALE, _TEXT_TOP + y * _SCALE, _SCALE, _SCALE)
        for y, row in enumerate(rows)
        for x in range(5)
        if row >> (4 - x) & 1
    ]


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
