"""Tests of the commands that print a text again."""

import hashlib
import shlex
import shutil
import subprocess
from argparse import Namespace
from pathlib import Path

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only

from tuigpt import shell
from tuigpt.cli.flags import given_fields
from tuigpt.config import SampleConfig
from tuigpt.generation.card import card, file_sha256, tuigpt_command, workshop_command
from tuigpt.runs.folder import Checkpoint, Run, read_checkpoint

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def checkpoint(make_run: MakeRun) -> Checkpoint:
    return make_run("run", {100: 1.5}).checkpoints[0]


def pasted(command: str, folder: Path) -> list[str]:
    """The arguments that reach a program when a command is pasted into bash."""
    script = 'tuigpt() { printf \'%s\\0\' "$@"; }; python() { tuigpt "$@"; }\n' + command
    done = subprocess.run(["bash", "-c", script], capture_output=True, cwd=folder, check=True)
    assert done.stderr == b""
    return [word.decode("utf-8", "surrogateescape") for word in done.stdout.split(b"\0")[:-1]]


def settings_of(words: list[str]) -> SampleConfig:
    given = {n[2:].replace("-", "_"): v for n, v in zip(words[::2], words[1::2], strict=True)}
    return SampleConfig(**given_fields(Namespace(**given), SampleConfig))


def test_the_command_names_every_setting(checkpoint: Checkpoint, home: Path) -> None:
    command = tuigpt_command(checkpoint, home, "To be", SampleConfig(50, 1.0, 0, seed=7))
    assert command.startswith("tuigpt generate run@100 ")
    assert command.endswith(" --max-new-tokens 50 --temperature 1.0 --top-k 0 --seed 7")
    config = SampleConfig(top_p=0.9)
    more = tuigpt_command(checkpoint, home, "x", config, extra=("--samples", "3"))
    assert "--top-p 0.9" in more and more.endswith("--samples 3") and "min" not in more


def test_numbers_come_back_as_they_were(checkpoint: Checkpoint, home: Path) -> None:
    config = SampleConfig(temperature=0.1 + 0.2, top_p=1e-7, min_p=1 / 3)
    words = shlex.split(tuigpt_command(checkpoint, home, "x", config))
    assert settings_of(words[5:]) == config


ODD_PROMPTS = [
    "", "-x", "--", "--home", "a b", "it's", "\"'$(rm x)`!!\\", "ROMEO:\nWhat\n", "\t\x1b[31m",
    "日 🙂", "$'a'", "\x85\x07é", "\\n\n'", "*~#;&|",
]  # fmt: skip


@bash
@pytest.mark.parametrize("prompt", ODD_PROMPTS)
def test_commands_reach_the_program_as_they_were_meant(
    checkpoint: Checkpoint, home: Path, tmp_path: Path, prompt: str
) -> None:
    config = SampleConfig(seed=3)
    words = pasted(tuigpt_command(checkpoint, home, prompt, config), tmp_path)
    assert words[:4] == ["generate", "run@100", f"--home={home}", f"--prompt={prompt}"]
    assert settings_of(words[4:]) == config
    theirs = workshop_command("m.pt", prompt, config, 65)
    assert theirs is not None
    assert pasted(theirs, tmp_path)[:3] == ["generate.py", "m.pt", f"--prompt={prompt}"]


@bash
@pytest.mark.parametrize("name", ["it's here", "-home", "h\nome", "h\udcffome", "$HOME"])
def test_odd_homes_and_files_are_named_so_that_they_are_found(
    make_run: MakeRun, tmp_path: Path, name: str
) -> None:
    found = make_run("my run", {7: 1.0}).checkpoints[0]
    home = tmp_path / name
    shutil.copytree(found.path.parents[3], home)
    inside = read_checkpoint(home.joinpath(*found.path.parts[-4:]), run="my run")
    words = pasted(tuigpt_command(inside, home, "x", SampleConfig()), tmp_path)
    assert words[:3] == ["generate", "my run@7", f"--home={home}"]
    elsewhere = tmp_path / f"{name}.safetensors"
    write_header_only(elsewhere, checkpoint_header(7))
    words = pasted(tuigpt_command(read_checkpoint(elsewhere), home, "x", SampleConfig()), tmp_path)
    assert words[:3] == ["generate", str(elsewhere), "--prompt=x"]


def test_a_file_beside_the_runs_is_named_by_its_path(home: Path) -> None:
    path = home / "runs" / "loose-7.safetensors"
    write_header_only(path, checkpoint_header(7))
    words = shlex.split(tuigpt_command(read_checkpoint(path), home, "x", SampleConfig()))
    assert words[2] == str(path)


def test_a_run_of_another_home_is_named_by_its_file(checkpoint: Checkpoint, tmp_path: Path) -> None:
    command = tuigpt_command(checkpoint, tmp_path / "other", "x", SampleConfig())
    assert shlex.split(command)[2] == str(checkpoint.path)


def test_the_usual_home_and_the_built_in_model_need_no_home(
    checkpoint: Checkpoint, home: Path, poet: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poet.last is not None
    words = shlex.split(tuigpt_command(poet.last, home, "x", SampleConfig()))
    assert words[:4] == ["tuigpt", "generate", "poet@5000", "--prompt=x"]
    monkeypatch.setattr(shell, "default_home", lambda: home)
    words = shlex.split(tuigpt_command(checkpoint, home, "x", SampleConfig()))
    assert words[2:4] == ["run@100", "--prompt=x"]


def test_the_workshops_command_asks_for_the_same_text() -> None:
    def options(config: SampleConfig) -> dict[str, str]:
        command = workshop_command("w.pt", "x", config, 65)
        assert command is not None
        words = shlex.split(command)
        assert words[:3] == ["python", "generate.py", "w.pt"]
        assert words[3] == "--prompt=x"
        return dict(zip(words[4::2], words[5::2], strict=True))

    usual = options(SampleConfig(30, 0.7, 12, seed=5))
    assert usual == {
        "--max_new_tokens": "30", "--temperature": "0.7", "--top_k": "12",
        "--seed": "5",
    }  # fmt: skip
    assert options(SampleConfig(top_k=0))["--top_k"] == "65"
    assert options(SampleConfig(top_k=1000))["--top_k"] == "65"
    greedy = options(SampleConfig(temperature=0.0))
    assert (greedy["--temperature"], greedy["--top_k"]) == ("1.0", "1")
    assert workshop_command("w.pt", "x", SampleConfig(top_p=0.9), 65) is None
    assert workshop_command("w.pt", "x", SampleConfig(min_p=0.1), 65) is None


def test_a_card_holds_text_and_commands(tmp_path: Path) -> None:
    path = tmp_path / "poem.safetensors"
    path.write_bytes(b"weights")
    assert file_sha256(path) == hashlib.sha256(b"weights").hexdigest()
    text = card("To be\nor not", "tuigpt generate x", None, path, file_sha256(path))
    assert text.startswith("To be\nor not\n\n---")
    for part in ("tuigpt generate x", "no top-p", "poem.safetensors", file_sha256(path)):
        assert part in text
