"""The chart as a PNG: what is in a cell is at its place in the picture, in its colour."""

from __future__ import annotations

import struct
import zlib

import pytest

from tuigpt.charts.png import CELL_HIGH, CELL_WIDE, to_png
from tuigpt.charts.raster import Grid


def rows(png: bytes) -> list[bytes]:
    """The picture's rows, a number of the palette for each pixel; checks all sums on the way."""
    at, found = 8, {}
    while at < len(png):
        (size,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        content = png[at + 8 : at + 8 + size]
        (checked,) = struct.unpack(">I", png[at + 8 + size : at + 12 + size])
        assert zlib.crc32(kind + content) == checked
        found[kind] = content
        at += 12 + size
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    plain = zlib.decompress(found[b"IDAT"])
    assert len(plain) == (width + 1) * height
    return [plain[y * (width + 1) + 1 : (y + 1) * (width + 1)] for y in range(height)]


@pytest.mark.parametrize("character", [*"az09★│░", "⠁", "é"])
def test_a_cell_is_drawn_at_its_place_in_its_colour(character: str) -> None:
    grid = Grid(3, 2)
    grid.put(1, 1, character, "val")
    pixels = rows(to_png(grid, {"text": "#ffffff", "val": "#ff0000"}, "#000000"))
    inked = {(x, y) for y, row in enumerate(pixels) for x, ink in enumerate(row) if ink}
    assert inked and {pixels[y][x] for x, y in inked} == {2}
    assert all(CELL_WIDE <= x < 2 * CELL_WIDE and y >= CELL_HIGH for x, y in inked)
