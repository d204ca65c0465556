"""Where tuigpt has to live: strict modes, homes that cannot be written, no UTF-8, company."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from json_files import read_json
from system.conftest import TINY, TUIGPT, Tuigpt, in_a_shell
from system.terminal import PATIENCE, Terminal

OpenTerminal = Callable[..., Terminal]

LIGHT = (
    "list",
    "list gone",
    "cache",
    "cache clear",
    "stop gone",
    "ask gone pause",
    "inspect verse.txt",
    "train --help",
)
"""Commands that load no torch; some are refused everywhere."""


def all_told(result: subprocess.CompletedProcess[str]) -> str:
    """What a command printed, which may be a refusal but no accident."""
    told = result.stdout + result.stderr
    assert "Traceback" not in told and "Error:" not in told, told
    assert result.returncode in (0, 1, 2), (result.returncode, told)
    if result.returncode == 2:
        assert result.stderr.startswith("tuigpt: ") and result.stderr.count("\n") == 1, told
    return told


@pytest.fixture
def read_only_home(home: Path) -> Iterator[Path]:
    """A home that nobody can write to, not even root."""
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(home)], capture_output=True
    )
    if mounted.returncode:
        if os.geteuid() == 0:
            pytest.skip("this system does not let tests mount a disk")
        home.chmod(0o500)
    yield home
    if mounted.returncode:
        home.chmod(0o700)
    else:
        subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.fixture
def impossible_home(env: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home below a file."""
    (tmp_path / "file").write_text("")
    yield env | {"TUIGPT_HOME": str(tmp_path / "file" / "home")}


NOT_UTF8 = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("command", LIGHT)
@pytest.mark.parametrize("where", ["read-only home", "impossible home", "not UTF-8", "umask"])
def test_light_commands(
    command: str,
    where: str,
    env: dict[str, str],
    tmp_path: Path,
    verse_file: Path,
    request: pytest.FixtureRequest,
) -> None:
    match where:
        case "read-only home":
            request.getfixturevalue("read_only_home")
        case "impossible home":
            env = request.getfixturevalue("impossible_home")
        case "not UTF-8":
            env = env | NOT_UTF8
            (tmp_path / "home" / "runs" / "Gänsefüßchen „x“").mkdir(parents=True)
    umask = "umask 077; " if where == "umask" else ""
    all_told(in_a_shell(f"{umask}tuigpt {command}", env, tmp_path))


def test_training_into_a_home_that_cannot_be_written(
    tuigpt: Tuigpt, verse_file: Path, read_only_home: Path
) -> None:
    result = tuigpt("train", "verse.txt", *TINY, "--max-steps=2")
    assert result.returncode == 2 and str(read_only_home) in all_told(result)


def test_the_built_in_model_writes_without_a_home(
    impossible_home: dict[str, str], tmp_path: Path
) -> None:
    result = in_a_shell(
        "tuigpt generate poet --max-new-tokens=5 --seed=1", impossible_home, tmp_path
    )
    assert result.returncode == 0 and result.stdout.strip(), all_told(result)


@pytest.mark.parametrize("where", ["read-only home", "impossible home"])
def test_the_app_opens_over_a_home_that_cannot_be_written(
    where: str, env: dict[str, str], open_terminal: OpenTerminal, request: pytest.FixtureRequest
) -> None:
    if where == "read-only home":
        request.getfixturevalue("read_only_home")
    else:
        env.update(request.getfixturevalue("impossible_home"))
    terminal = open_terminal()
    terminal.until("new run|home")
    terminal.press("ctrl+q")
    assert terminal.until_ended() in (0, 2)
    assert b"Traceback" not in terminal.output


def test_a_strict_umask_keeps_everything_private(
    env: dict[str, str], tmp_path: Path, home: Path, verse_file: Path
) -> None:
    flags = " ".join([*TINY, "--max-steps=2", "--name=private"])
    command = f"umask 077; tuigpt train verse.txt {flags}"
    all_told(result := in_a_shell(command, env, tmp_path))
    assert result.returncode == 0
    made = [home, *home.rglob("*")]
    assert len(made) > 5
    assert not [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_without_utf8_names_and_texts_are_what_was_typed(
    env: dict[str, str], tmp_path: Path, home: Path
) -> None:
    (tmp_path / "Gedichte.txt").write_text("Ich weiß nicht, was soll es bedeuten.\n" * 60, "utf-8")
    flags = " ".join([*TINY, "--max-steps=2", "--name=Lörelei", "--sample-prompt=weiß"])
    command = f"tuigpt train Gedichte.txt {flags} && tuigpt list && tuigpt generate Lörelei"
    result = in_a_shell(f"{command} --prompt=weiß --max-new-tokens=5", env | NOT_UTF8, tmp_path)
    assert result.returncode == 0, all_told(result)
    assert "Lörelei" in all_told(result)
    assert (home / "runs" / "Lörelei" / "run.json").exists()


def test_nobody_without_a_home(env: dict[str, str], tmp_path: Path) -> None:
    """An account that the system does not know, as in some containers."""
    nobody = ["unshare", "--user", "--map-user=4242", "--map-group=4242"]
    if subprocess.run([*nobody, "true"], capture_output=True).returncode:
        pytest.skip("this system does not let tests take another account")
    for name in ("HOME", "TUIGPT_HOME"):
        env.pop(name)
    result = subprocess.run(
        [*nobody, *TUIGPT, "list"], env=env, cwd=tmp_path, capture_output=True, encoding="utf-8",
        timeout=PATIENCE,
    )  # fmt: skip
    assert result.returncode == 2, all_told(result)
    assert "TUIGPT_HOME" in result.stderr and "--home" in all_told(result)


def test_two_apps_and_a_shell_on_one_home(
    open_terminal: OpenTerminal, env: dict[str, str], tmp_path: Path, home: Path, verse_file: Path
) -> None:
    """All see one run, and each can ask its trainer for something."""
    arguments = ["train", "verse.txt", "--name=shared", *TINY, "--max-steps=1000000"]
    trainer = subprocess.Popen(
        [*TUIGPT, *arguments], env=env, cwd=tmp_path, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    try:
        apps = [open_terminal(), open_terminal(columns=80, rows=24)]
        for app in apps:
            app.until("shared . training")
        apps[0].press("ctrl+t", "p")
        for app in apps:
            app.until("shared . paused")
        assert "paused" in all_told(in_a_shell("tuigpt list", env, tmp_path))
        apps[1].press("ctrl+t", "p")
        for app in apps:
            app.until("shared . training")
        all_told(in_a_shell("tuigpt ask shared checkpoint && tuigpt stop shared", env, tmp_path))
        for app in apps:
            app.until("shared . stopped")
            app.press("ctrl+q")
            assert app.until_ended() == 0
            assert b"Traceback" not in app.output
        _, errors = trainer.communicate(timeout=PATIENCE)
        assert trainer.returncode == 0 and errors == ""
    finally:
        trainer.kill()
        trainer.communicate()
    assert read_json(home / "runs" / "shared" / "status.json")["state"] == "stopped"
