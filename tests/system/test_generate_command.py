"""`tuigpt generate`, `score`, `next` and `recite`, as a user calls them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tuigpt.cli.main import main
from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.generation.decode import TextGenerator, plain, read_prompt
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.tokenizer import CharTokenizer

VERSE = "a bed\nfade a bad decade\n" * 3
VOCAB = "\n abcdef日\x1b"


def in_order(vocab: str) -> str:
    return "".join(sorted(vocab))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    model = GPT(GPTConfig(len(VOCAB), block_size=16, n_layer=2, n_head=2, n_embd=16))
    verse = tmp_path / "verse.txt"
    verse.write_text(VERSE)
    corpus = CorpusFacts(
        name="verse",
        path=str(verse),
        sha256=hashlib.sha256(VERSE.encode()).hexdigest(),
    )
    path = tmp_path / "m.safetensors"
    tokenizer = CharTokenizer(in_order(VOCAB))
    save_checkpoint(path, model, tokenizer, CheckpointFacts(step=3, corpus=corpus))
    return path


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIGPT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def reference(checkpoint: Path, prompt: str, config: SampleConfig) -> str:
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    return prompt + tokenizer.decode(list(plain(model, read_prompt(prompt, tokenizer).ids, config)))


def generate(checkpoint: Path, *more: str) -> int:
    return main(["generate", str(checkpoint), "--max-new-tokens", "40", *more])


def test_it_prints_the_reference_text_and_verifies_it(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(checkpoint, "--prompt", "ab?a", "--seed", "5", "--verify") == 0
    out, notes = capsys.readouterr()
    assert out == reference(checkpoint, "aba", SampleConfig(40, seed=5)) + "\n"
    assert "does not know '?'" in notes and "verified, seed 5" in notes
    assert "--top-k 40: the model knows 10, so it is off" in notes


def test_a_text_that_is_not_the_reference_is_told(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    after = TextGenerator.__next__
    monkeypatch.setattr(TextGenerator, "__next__", lambda self: [(after(self)[0] + 1) % 9])
    card = Path("card.txt")
    assert generate(checkpoint, "--prompt", "ab", "--card", str(card)) == 1
    assert "another text from token 1 on" in capsys.readouterr().err
    assert not card.exists()


def test_the_card_prints_its_own_text_again(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--temperature", "1.3", "--top_k", "4", "--seed", "9", "--top_p", "0.9"]
    assert generate(checkpoint, "--prompt", "ab\n'c", *settings, "--card", "card.txt") == 0
    out = capsys.readouterr().out
    card = Path("card.txt").read_text(encoding="utf-8")
    assert card.startswith(out)
    assert hashlib.sha256(checkpoint.read_bytes()).hexdigest() in card
    assert "no top-p" in card
    command = card.split("Printed by:\n  ")[1].split("\nThe same in")[0]
    python = shlex.join([sys.executable, "-m", "tuigpt"])
    script = f'tuigpt() {{ {python} "$@"; }}\n{command}'
    again = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=True)
    assert again.stdout.decode() == out


def test_samples_are_told_apart_by_their_seeds(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(checkpoint, "--prompt", "a", "--samples", "3", "--seed", "7", "--verify") == 0
    out = capsys.readouterr().out
    for seed in (7, 8, 9):
        text = reference(checkpoint, "a", SampleConfig(40, seed=seed))
        assert f"--- seed {seed}\n{text}\n" in out


def test_a_text_goes_on_where_it_was(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = reference(checkpoint, "a", SampleConfig(40))
    assert generate(checkpoint, "--prompt", "a", "--written", whole[1:21]) == 0
    assert capsys.readouterr().out == whole + "\n"


def test_rolling_is_labelled(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate(checkpoint, "--prompt", "a", "--window", "rolling") == 0
    assert "not the workshop's text" in capsys.readouterr().err


def test_probabilities_come_as_json_lines(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(checkpoint, "--prompt", "a", "--logprobs", "3") == 0
    places = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    text = "a" + "".join(place["chosen"]["text"] for place in places)
    assert text == reference(checkpoint, "a", SampleConfig(40))
    assert [place["at"] for place in places] == list(range(40))
    assert all(len(place["top_logprobs"]) == 3 for place in places)


def test_what_comes_next_is_shown(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", str(checkpoint), "--prompt", "ab", "--top-k", "3"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 10 and sum("<- picked" in row for row in rows) == 1
    assert [bool(re.search("[█-▏]", row)) for row in rows] == [True] * 3 + [False] * 7
    assert all(row.split()[-1] == "0.00%" for row in rows[3:])
    assert "\x1b" not in "".join(rows)
    assert main(["next", str(checkpoint), "--prompt", "ab", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["top_logprobs"]) == 10 and found["chosen"] in found["top_logprobs"]


def test_ten_tokens_are_shown_with_a_remainder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(1)
    tokenizer = CharTokenizer.from_text("abcdefghijklmnopqrstuvwxyz")
    model = GPT(GPTConfig(26, block_size=16, n_layer=1, n_head=1, n_embd=8))
    save_checkpoint(tmp_path / "z.safetensors", model, tokenizer, CheckpointFacts(step=1))
    more = ["--temperature", "100", "--top-k", "0"]
    picked = set()
    for seed in range(8):
        assert main(["next", "z.safetensors", "--prompt", "a", "--seed", str(seed), *more]) == 0
        heading, *rows, remainder = capsys.readouterr().out.splitlines()
        picked.add(len(rows))
        assert f"{26 - len(rows)} more" in remainder
        shares = [float(share) for row in [*rows, remainder]
                  for share in re.findall(r"([\d.]+)%", row)]  # fmt: skip
        assert sum(shares) == pytest.approx(300, abs=0.3)
    assert picked == {10, 11}  # what is picked further down has a row of its own


def test_a_text_is_scored(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.txt").write_text("a bad Bed", encoding="utf-8")
    assert main(["score", str(checkpoint), "mine.txt"]) == 0
    out, notes = capsys.readouterr()
    assert "nats" in out and "bits per character" in out and "over 7 characters" in out
    assert "'B': 1 characters left out" in notes
    assert main(["score", str(checkpoint), "mine.txt", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    mean = sum(record["surprises"]) / 7
    assert record["nats_per_character"] == pytest.approx(mean, abs=1e-3)


def test_copies_are_marked(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.txt").write_text("ccc fade a bad d ccc a bed\nfa!", encoding="utf-8")
    assert main(["recite", str(checkpoint), "mine.txt", "--at-least", "8"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("66.7% stands in 'verse'")
    assert "\nccc ⟦fade a bad d⟧ ccc ⟦a bed\nfa⟧!\n" in out
    assert out.endswith("line 2, 1\n")
    assert main(["recite", str(checkpoint), "mine.txt", "--at-least", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [copy["length"] for copy in found["copies"]] == [12, 8]
    assert generate(checkpoint, "--prompt", "a", "--recited", "1") == 0
    assert "stands in 'verse'" in capsys.readouterr().err


def test_a_text_that_is_too_long_to_be_judged(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("huge.txt").open("wb") as file:
        file.truncate(2_000_000_000)
    for command in ("score", "recite"):
        assert main([command, str(checkpoint), "huge.txt"]) == 2
        assert "longer than 32.0 MB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--temperature", "-1"], "--temperature is -1.0"),
        (["--temperature", "0,8"], "--temperature is '0,8'"),
        (["--temperature", "inf"], "--temperature is inf"),
        (["--top-k", "-5"], "--top-k is -5"),
        (["--top-k", "2.5"], "--top-k is '2.5'"),
        (["--top-p", "0"], "--top-p is 0.0"),
        (["--min-p", "2"], "--min-p is 2.0"),
        (["--samples", "0"], "--samples is '0'"),
        (["--samples", "101"], "--samples is 101"),
        (["--window", "round"], "--window is 'round'"),
        (["--written", "xyz"], "does not know: 'x', 'y', 'z'"),
        (["--written", "a", "--verify"], "nothing to verify"),
        (["--window", "rolling", "--card", "c"], "nothing to verify"),
        (["--samples", "2", "--card", "c"], "--card is for one text"),
        (["--temperature", "1e39"], "--temperature is 1e+39"),
        (["--device", "tpu"], "--device tpu"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert generate(checkpoint, "--prompt", "a", *arguments) == 2
    out, notes = capsys.readouterr()
    assert out == "" and words in notes and notes.count("\n") == 1


def test_broken_weights_are_named(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight[3, 3] = torch.inf
    save_checkpoint(Path("broken.safetensors"), model, tokenizer, CheckpointFacts(step=1))
    for command in (["generate"], ["next"], ["score"]):
        more = ["verse.txt"] if command == ["score"] else ["--temperature", "0"]
        assert main([*command, "broken.safetensors", *more]) == 2
        out, notes = capsys.readouterr()
        assert out == "" and "broken at transformer.h.1.attn.c_proj.weight" in notes


def run_for_real(*arguments: str, then: str = "") -> subprocess.CompletedProcess[bytes]:
    command = shlex.join([sys.executable, "-m", "tuigpt", *arguments])
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command + then],
        capture_output=True,
        env=environment,
        timeout=60,
        check=False,
    )


def test_a_pipe_gets_utf8_whatever_the_locale(checkpoint: Path) -> None:
    done = run_for_real("generate", str(checkpoint), "--prompt", "日a", "--max-new-tokens", "30")
    assert done.returncode == 0
    assert done.stdout.decode() == reference(checkpoint, "日a", SampleConfig(30)) + "\n"


def test_a_closed_pipe_ends_it_quietly(checkpoint: Path) -> None:
    endless = ["--max-new-tokens", "10000000", "--window", "rolling"]
    done = run_for_real("generate", str(checkpoint), *endless, then=" | head -c 50")
    assert len(done.stdout) == 50
    assert b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_is_shown_control_characters_not_sent_them(checkpoint: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "tuigpt", "generate", str(checkpoint)]
    more = ["--prompt", "a\x1b[31m", "--max-new-tokens", "200", "--top-k", "0"]
    with subprocess.Popen([*command, *more], stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"\x1b" not in seen and "\u241b".encode() in seen


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_is_told_that_a_model_is_woken_until_the_text_comes(checkpoint: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "tuigpt", "generate", str(checkpoint), "--prompt", "abc"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    waking, text = seen.decode().split("\r\x1b[K")
    assert waking == "waking the model …" and "\nabc" in f"\n{text}"


def test_a_broken_newest_checkpoint_is_passed_over_aloud(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "home" / "runs" / "verse"
    (run / "checkpoints").mkdir(parents=True)
    (run / "run.json").write_text('{"format": 1, "name": "verse"}')
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    for step in (100, 200):
        path = run / "checkpoints" / f"step-{step:06d}.safetensors"
        save_checkpoint(path, model, tokenizer, CheckpointFacts(run="verse", step=step))
    path.write_bytes(path.read_bytes()[:-50])
    assert main(["generate", "verse", "--prompt", "ab"]) == 0
    notes = capsys.readouterr().err
    assert "verse@200 cannot be opened (the file is cut short): took verse@100" in notes
    assert main(["generate", "verse@100", "--prompt", "ab"]) == 0
    assert "200" not in capsys.readouterr().err
