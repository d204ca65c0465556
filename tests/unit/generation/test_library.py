"""tuigpt as a library: what a notebook does with a checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tuigpt
from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import ConfigError, UserError
from tuigpt.generation.decode import plain, read_prompt
from tuigpt.model.checkpoint import save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.runs.header import CheckpointFacts
from tuigpt.text.bpe import BPETokenizer
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer


def make_checkpoint(path: Path, tokenizer: Tokenizer) -> Path:
    torch.manual_seed(0)
    model = GPT(GPTConfig(tokenizer.vocab_size, block_size=16, n_layer=2, n_head=2, n_embd=16))
    path.parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(path, model, tokenizer, CheckpointFacts(step=3))
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "m.safetensors", CharTokenizer("\n abcdef"))


def test_it_writes_the_text_of_the_command_line(checkpoint: Path) -> None:
    loaded = tuigpt.load(checkpoint, device="cpu")
    pieces = list(loaded.generate("abc", max_new_tokens=40, temperature=1.0, seed=3))
    assert len(pieces) == 40
    config = SampleConfig(40, 1.0, seed=3)
    ids = plain(loaded.model, read_prompt("abc", loaded.tokenizer).ids, config)
    assert "".join(pieces) == loaded.tokenizer.decode(list(ids))
    loaded.config = config
    assert list(loaded.generate("abc")) == pieces


def test_pieces_are_whole_characters(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "bpe.safetensors", BPETokenizer([(97, 97)]))
    loaded = tuigpt.load(path, device="cpu")
    pieces = list(loaded.generate("a", max_new_tokens=100, top_k=0))
    ids = plain(loaded.model, read_prompt("a", loaded.tokenizer).ids, SampleConfig(100, top_k=0))
    assert "" not in pieces and "".join(pieces) == loaded.tokenizer.decode(list(ids))


def test_runs_are_found_in_a_home(home: Path) -> None:
    folder = home / "runs" / "verse"
    make_checkpoint(folder / "checkpoints" / "step-000003.safetensors", CharTokenizer("ab"))
    (folder / "run.json").write_text('{"format": 1, "name": "verse"}')
    loaded = tuigpt.load("verse", home=home)
    assert loaded.path.name == "step-000003.safetensors" and "vocab_size=2" in repr(loaded)
    with pytest.raises(UserError, match="no run 'prose'"):
        tuigpt.load("prose", home=home)


def test_what_cannot_be_is_refused_at_once(checkpoint: Path) -> None:
    loaded = tuigpt.load(checkpoint)
    with pytest.raises(ConfigError, match="temperature"):
        loaded.generate("a", temperature=-1)
    with pytest.raises(TypeError, match="temprature"):
        loaded.generate("a", temprature=1)
    with pytest.warns(UserWarning, match="not known to the model: '!'"):
        loaded.generate("a!")


def test_importing_it_loads_nothing_heavy(checkpoint: Path) -> None:
    program = f"""
import sys, tuigpt
assert not {{"torch", "numpy", "textual", "msgspec"}} & sys.modules.keys()
text = "".join(tuigpt.load({str(checkpoint)!r}).generate("abc", max_new_tokens=5))
print(len(text), "textual" in sys.modules, tuigpt.__version__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["5", "False"]
