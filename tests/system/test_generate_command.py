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
from tuigpt.generation.decode import plain, read_prompt
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.gpt import GPT
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
    corpus = {
        "name": "verse",
        "path": str(verse),
        "sha256": hashlib.sha256(VERSE.encode()).hexdigest(),
    }
    path = tmp_path / "m.safetensors"
    tokenizer = CharTokenizer(in_order(VOCAB))
    save_checkpoint(path, model, tokenizer, {"step": 3, "corpus": corpus})
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
    from tuigpt.generation.decode import Writer

    after = Writer.__next__
    monkeypatch.setattr(Writer, "__next__", lambda self: [(after(self)[0] + 1) % 9])
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
    words = shlex.split(command)
    assert words[0] == "tuigpt" and main(words[1:]) == 0
    assert capsys.readouterr().out == out


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
    notes = capsys.readouterr().err
    assert "not the workshop's text" in notes
    assert re.search(r"past 16 tokens it was computed in (float32|bfloat16)", notes)


def test_probabilities_come_as_json_lines(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(checkpoint, "--prompt", "a", "--probs", "3") == 0
    places = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    text = "a" + "".join(place["chosen"]["text"] for place in places)
    assert text == reference(checkpoint, "a", SampleConfig(40))
    assert [place["at"] for place in places] == list(range(40))
    assert all(len(place["likeliest"]) == 3 for place in places)


def test_what_comes_next_is_shown(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", str(checkpoint), "--prompt", "ab", "--top-k", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("0.00%") == 7 and out.count("<- picked") == 1
    assert "\x1b" not in out
    assert main(["next", str(checkpoint), "--prompt", "ab", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["likeliest"]) == 10


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


def test_copies_are_found(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.txt").write_text("ccc fade a bad d ccc", encoding="utf-8")
    assert main(["recite", str(checkpoint), "mine.txt", "--at-least", "8"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("60.0% stands in 'verse'") and ": 'fade a bad d'" in out
    assert generate(checkpoint, "--prompt", "a", "--recited", "1") == 0
    assert "stands in 'verse'" in capsys.readouterr().err


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
        (["--written", "xyz"], "does not know: 'xyz'"),
        (["--written", "a", "--verify"], "nothing to verify"),
        (["--window", "rolling", "--card", "c"], "nothing to verify"),
        (["--samples", "2", "--card", "c"], "--card is for one text"),
        (["--steer", "--verify"], "--steer writes another text"),
        (["--steer", "--card", "c"], "--steer writes another text"),
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
    save_checkpoint(Path("broken.safetensors"), model, tokenizer, {"step": 1})
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


STEERED = 6000
"""Tokens, and at least as many bytes, which do not fit into the pipe: whoever writes them cannot
end before they are read."""


def steer(checkpoint: Path, length: int = STEERED) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tuigpt", "generate", str(checkpoint), "--steer"]
    return subprocess.Popen(
        [*command, "--prompt", "a", "--max-new-tokens", str(length)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,
        bufsize=0,
    )


def steered_reference(checkpoint: Path, place: int, cold: SampleConfig) -> str:
    """The text with the default settings up to token number `place`, then with others."""
    begun = reference(checkpoint, "a", SampleConfig(place))
    return reference(checkpoint, begun, cold)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a pipe of a known size")
def test_a_text_is_steered_while_it_streams(checkpoint: Path) -> None:
    with steer(checkpoint) as process:
        assert process.stdin and process.stdout and process.stderr
        begun = b""
        while len(begun) < 20:
            begun += process.stdout.read(20)
        # The pipe stays open afterwards, and must not keep the process from ending.
        process.stdin.write(b"temperature 0\ntemperature -3\nsped 4\n\n")
        out, notes = process.stdout.read(), process.stderr.read().decode()
    assert process.returncode == 0
    (place,) = re.findall(r"steered from token ([\d,]+) on: temperature 0.0, top_k 40", notes)
    before = int(place.replace(",", "")) - 1
    assert 5 < before < STEERED  # a character has up to three bytes
    cold = SampleConfig(STEERED - before, temperature=0.0)
    assert (begun + out).decode() == steered_reference(checkpoint, before, cold) + "\n"
    assert "no single command writes this text again" in notes
    assert "temperature is -3.0, but" in notes and "'sped' cannot be steered" in notes
    assert notes.count("nothing is changed") == 2 and notes.count("tuigpt: ") == 5, notes


def test_lines_may_come_before_the_text_and_end(checkpoint: Path) -> None:
    with steer(checkpoint, 500) as process:
        out, raw = process.communicate(b"top-k 3\n--top_p 0.9\nmin_p\t0.1\ntemperature 0", 60)
    notes = raw.decode()
    assert process.returncode == 0
    settings = "temperature 0.0, top_k 3, top_p 0.9, min_p 0.1"
    assert f": {settings}\n" in notes, notes
    assert len(out.decode()) == 1 + 500 + 1
    with steer(checkpoint, 500) as process:
        out, raw = process.communicate(b"", 60)
    assert out.decode() == reference(checkpoint, "a", SampleConfig(500)) + "\n"
    assert b"steered" not in raw


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
