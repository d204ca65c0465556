"""The built-in model as a user meets it: at the first start, without having trained anything."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import VERSE
from system.conftest import Tuigpt
from system.terminal import Terminal

from tuigpt.cli.main import main
from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.files import write_json
from tuigpt.model.checkpoint import save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.paths import asset
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.record import CorpusFacts, RunRecord, TokenizerFacts
from tuigpt.text import named
from tuigpt.text.tokenizer import CharTokenizer

shipped = pytest.mark.skipif(
    not asset("poet.safetensors").exists(), reason="this tree is without the built-in model"
)


class TestCommands:
    """With a stand-in of random weights."""

    @pytest.fixture(autouse=True)
    def stand_in(
        self, poet_assets: Path, verse_file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TUIGPT_HOME", str(home))
        monkeypatch.chdir(verse_file.parent)
        monkeypatch.setattr(named, "asset", lambda name: verse_file)
        tokenizer = CharTokenizer.from_text(VERSE)
        torch.manual_seed(1)
        model = GPT(GPTConfig(tokenizer.vocab_size, block_size=16, n_layer=1, n_head=2, n_embd=16))
        corpus = CorpusFacts(
            name="shakespeare", path="shakespeare", sources=["shakespeare"],
            sha256=hashlib.sha256(verse_file.read_bytes()).hexdigest(),
        )  # fmt: skip
        poet_assets.mkdir()
        facts = CheckpointFacts(run="poet", step=5000, val_loss=1.2, corpus=corpus)
        save_checkpoint(poet_assets / "poet.safetensors", model, tokenizer, facts)
        record = RunRecord(
            name="poet", model=model.config, train=TrainConfig(),
            tokenizer=TokenizerFacts("char", tokenizer.vocab_size), corpus=corpus,
        )  # fmt: skip
        write_json(poet_assets / "poet-run.json", record)

    @pytest.mark.parametrize("spec", ["poet", "poet@best", "poet@last", "poet@5000"])
    def test_it_writes(self, capsys: pytest.CaptureFixture[str], home: Path, spec: str) -> None:
        assert (
            main(["generate", spec, "--prompt=But soft", "--top-k=5", "--max-new-tokens=30"]) == 0
        )
        captured = capsys.readouterr()
        assert captured.out.startswith("But soft") and len(captured.out) == 39
        assert captured.err == "" and not home.exists()

    def test_also_when_it_is_hidden(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["list", "--hide-poet"]) == 0
        assert main(["generate", "poet", "--prompt", "But soft"]) == 0
        assert "But soft" in capsys.readouterr().out

    def test_a_card_names_it_so_that_the_command_works_elsewhere(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["generate", "poet", "--prompt", "But soft", "--card", "card.txt"]) == 0
        assert "tuigpt generate poet@5000 '--prompt=But soft'" in Path("card.txt").read_text()

    def test_it_judges(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["score", "poet", "verse.txt"]) == 0
        assert "bits per character" in capsys.readouterr().out
        assert main(["next", "poet", "--prompt", "But"]) == 0
        assert "<- picked" in capsys.readouterr().out

    def test_it_finds_the_text_it_learned_from_by_its_name(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        written = tmp_path / "written.txt"
        written.write_text("And then: it is the east, and Juliet is the sun. So there!")
        assert main(["recite", "poet", str(written), "--json", "--at-least", "30"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [copy["line"] for copy in found["copies"]] == [2]


@shipped
class TestShipped:
    """The real one, in real processes, in a home that is not there."""

    def test_it_writes_at_once(self, tuigpt: Tuigpt, home: Path) -> None:
        arguments = ("generate", "poet", "--prompt", "To be", "--seed", "7", "--max-new-tokens=60")
        written = tuigpt(*arguments)
        assert written.returncode == 0 and written.stderr == ""
        assert re.match(r"To be(.|\n){60}\n?$", written.stdout)
        assert tuigpt(*arguments).stdout == written.stdout
        assert not home.exists()
        assert re.search(r"^poet  built in\n.*\n +[\d,]+ .* ★", tuigpt("list").stdout, re.M)

    @pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 45)])
    def test_it_answers_the_first_prompt_in_the_app(
        self, open_terminal: Callable[..., Terminal], columns: int, rows: int
    ) -> None:
        terminal = open_terminal(columns=columns, rows=rows)
        terminal.until("The poet is open")
        terminal.press("To be")
        terminal.until("│ To be +│")
        terminal.press("enter")
        terminal.until(r"poet@\d+.* 200( · [\d,]+/s)? ")
        terminal.press("ctrl+q")
        assert terminal.until_ended() == 0
