"""Text as rows of a given width: broken between words, and never inside what is drawn as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, split_graphemes

Run = tuple[str, str]
"""A style's name and the text that has it."""


@dataclass
class Row:
    """A row as wrapped; `ends` when a line of the text ends here, not only the width.

    Attributes:
        entry: the entry that it belongs to, or None.
        kind: the entry's rule, which is drawn from its facts; or the gap that keeps the next rule
            away from it.
        closed: whether the text may go on in this row, but not while another entry is below it.
    """

    runs: list[Run]
    ends: bool = False
    entry: int | None = None
    kind: Literal["text", "rule", "gap"] = "text"
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.runs)


def wrap(runs: Iterable[Run], width: int) -> list[Row]:
    """Break runs into rows at newlines, and where a row is full at the last space before it.

    Nothing is lost: spaces at a break stay at the end of their row, out of sight.
    """
    rows: list[Row] = []
    line: list[Run] = []
    for style, text in runs:
        *ended, rest = text.split("\n")
        for part in ended:
            rows += _wrap_line([*line, (style, part)], width, ends=True)
            line = []
        line.append((style, rest))
    return rows + (_wrap_line(line, width, ends=False) if any(text for _, text in line) else [])


def _wrap_line(runs: list[Run], width: int, ends: bool) -> list[Row]:
    rows: list[Row] = []
    row: list[tuple[str, str, int]] = []  # (style, cluster, columns)
    cells, after_space = 0, 0  # after_space: where in the row the last word begins
    for style, cluster, size in _clusters(runs):
        if width > 0 and cells + size > width and cluster != " ":
            end = after_space or len(row)
            rows.append(Row(_joined(row[:end])))
            row, after_space = row[end:], 0
            cells = sum(columns for _, _, columns in row)
        row.append((style, cluster, size))
        cells += size
        if cluster == " ":
            after_space = len(row)
    return [*rows, Row(_joined(row), ends)]


def _clusters(runs: list[Run]) -> Iterator[tuple[str, str, int]]:
    """What a terminal draws as one, with its style and its columns: marks stay with their letter,
    the parts of an emoji and the two letters of a flag together.
    """
    text = "".join(text for _, text in runs)
    styles = (style for style, part in runs for _ in part)
    if text.isascii():
        for style, character in zip(styles, text, strict=True):
            yield style, character, 1
        return
    of_character = list(styles)
    spans, _ = split_graphemes(text)
    half_flag: tuple[int, int] | None = None
    for start, end, _ in spans:
        if half_flag is not None:
            begin, half_end = half_flag
            half_flag = None
            if _is_flag_letter(text[start]):
                yield of_character[begin], text[begin:end], cell_len(text[begin:end])
                continue
            yield of_character[begin], text[begin:half_end], cell_len(text[begin:half_end])
        if _is_flag_letter(text[start]):
            half_flag = (start, end)
            continue
        yield of_character[start], text[start:end], cell_len(text[start:end])
    if half_flag is not None:
        begin, end = half_flag
        yield of_character[begin], text[begin:end], cell_len(text[begin:end])


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _joined(characters: list[tuple[str, str, int]]) -> list[Run]:
    runs: list[Run] = []
    for style, cluster, _ in characters:
        if runs and runs[-1][0] == style:
            runs[-1] = (style, runs[-1][1] + cluster)
        else:
            runs.append((style, cluster))
    return runs
