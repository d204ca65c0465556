"""What the commands that use a model share."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only

from tuigpt.cli.model import choose_checkpoint, marked
from tuigpt.generation.protocol import Copies, Copy


@pytest.fixture(autouse=True)
def here(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_run("verse", {10: 3.0})
    monkeypatch.chdir(tmp_path)


def test_a_run_and_a_file_of_one_name_are_told_apart(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose_checkpoint(home, "verse").label == "verse@10"
    assert capsys.readouterr().err == ""
    write_header_only(Path("verse"), checkpoint_header(99))
    assert choose_checkpoint(home, "verse").label == "verse@10"
    words = "tuigpt: took verse, not the file of that name, which is ./verse\n"
    assert capsys.readouterr().err == words
    assert choose_checkpoint(home, "./verse").step == 99
    assert capsys.readouterr().err == ""


class Colours(io.StringIO):
    """A terminal that has colours."""

    def isatty(self) -> bool:
        return True


def test_copies_are_marked_and_coloured_where_there_are_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "so \x1b[2J to\nbe it"
    start, length = text.index("to"), len("to\nbe")
    found = Copies("verse", 0.5, [Copy(start, length, 0, 1)])
    assert marked(text, found, io.StringIO()) == "so \x1b[2J ⟦to\nbe⟧ it"
    assert marked(text, found, Colours()) == (
        "so ␛[2J ⟦\x1b[30;43mto\x1b[0m\n\x1b[30;43mbe\x1b[0m⟧ it"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert marked(text, found, Colours()) == "so ␛[2J ⟦to\nbe⟧ it"
