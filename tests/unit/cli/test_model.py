"""What the commands that use a model share."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only

from tuigpt.cli.model import choose_checkpoint


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
