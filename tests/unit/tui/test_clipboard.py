"""What is copied inside tmux reaches tmux."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuigpt.tui.clipboard import copy_into_tmux


async def test_tmux_gets_the_text_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat > {tmp_path}/got\n')
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert await copy_into_tmux("To be\n🙂 ")
    assert (tmp_path / "got").read_text() == "To be\n🙂 "
    assert (tmp_path / "asked").read_text() == "load-buffer -w -\n"


async def test_without_tmux_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not await copy_into_tmux("x")
