"""Tests of the commands that print a text again."""

import hashlib
import shlex
from pathlib import Path

from tuigpt.cli.flags import given_fields
from tuigpt.config import SampleConfig
from tuigpt.generation.card import card, file_sha256, tuigpt_command, workshop_command


def test_the_command_names_every_setting() -> None:
    command = tuigpt_command("run@100", "To be\n'or' not", SampleConfig(50, 1.0, 0, seed=7))
    words = shlex.split(command)
    assert words[:5] == ["tuigpt", "generate", "run@100", "--prompt", "To be\n'or' not"]
    assert words[5:] == [
        "--max-new-tokens", "50", "--temperature", "1.0", "--top-k", "0", "--seed", "7",
    ]  # fmt: skip
    more = tuigpt_command("r", "x", SampleConfig(top_p=0.9), extra=("--samples", "3"))
    assert "--top-p 0.9" in more and more.endswith("--samples 3") and "min" not in more


def test_numbers_come_back_as_they_were() -> None:
    config = SampleConfig(temperature=0.1 + 0.2, top_p=1e-7, min_p=1 / 3)
    words = shlex.split(tuigpt_command("r", "x", config))
    from argparse import Namespace

    given = {w[2:].replace("-", "_"): v for w, v in zip(words[5::2], words[6::2], strict=True)}
    assert SampleConfig(**given_fields(Namespace(**given), SampleConfig)) == config


def test_the_workshops_command_asks_for_the_same_text() -> None:
    def options(config: SampleConfig) -> dict[str, str]:
        command = workshop_command("w.pt", "x", config, 65)
        assert command is not None
        words = shlex.split(command)
        assert words[:3] == ["python", "generate.py", "w.pt"]
        return dict(zip(words[3::2], words[4::2], strict=True))

    usual = options(SampleConfig(30, 0.7, 12, seed=5))
    assert usual == {
        "--prompt": "x", "--max_new_tokens": "30", "--temperature": "0.7", "--top_k": "12",
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
