"""The generator as a real process: its order, its ends, and what happens when it is killed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.client import GeneratorClient
from tuigpt.generation.decode import plain, read_prompt
from tuigpt.generation.protocol import (
    Done,
    Failed,
    Report,
    Started,
    Steered,
    Tokens,
)
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="kills processes"),
    pytest.mark.asyncio(loop_scope="module"),
]

ENDLESS = SampleConfig(max_new_tokens=10**7, temperature=1.0)
VERSE = "abcabd\nfade a bed\n" * 4


def make_checkpoint(path: Path, seed: int = 0, corpus: dict[str, Any] | None = None) -> Path:
    torch.manual_seed(seed)
    tokenizer = CharTokenizer("\n abcdef")
    model = GPT(GPTConfig(8, block_size=16, n_layer=2, n_head=2, n_embd=16))
    save_checkpoint(path, model, tokenizer, {"step": 3, "corpus": corpus or {}})
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "verse.txt").write_text(VERSE)
    sha256 = hashlib.sha256(VERSE.encode()).hexdigest()
    corpus = {"name": "verse", "path": str(folder / "verse.txt"), "sha256": sha256}
    return make_checkpoint(folder / "m.safetensors", corpus=corpus)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GeneratorClient]:
    """One process for all tests, as the app has one for all texts."""
    client = GeneratorClient(tmp_path_factory.mktemp("home"))
    yield client
    await client.close()


async def collect(
    client: GeneratorClient, checkpoint: Path, prompt: str, config: SampleConfig, **more: Any
) -> list[Report]:
    async with aclosing(client.generate(checkpoint, prompt, config, **more)) as reports:
        return [report async for report in reports]


def text_of(reports: list[Report], sample: int = 0) -> str:
    return "".join(r.text for r in reports if isinstance(r, Tokens) and r.sample == sample)


def reference(checkpoint: Path, prompt: str, config: SampleConfig) -> str:
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    return tokenizer.decode(list(plain(model, read_prompt(prompt, tokenizer).ids, config)))


async def test_it_writes_the_reference_text_past_the_edge(
    client: GeneratorClient, checkpoint: Path
) -> None:
    config = SampleConfig(70, 1.0, seed=3)
    reports = await collect(client, checkpoint, "ab?c", config, alternatives=2)
    started = next(r for r in reports if isinstance(r, Started))
    assert (started.prompt, started.dropped, started.vocab_size) == ("abc", "?", 8)
    assert text_of(reports) == reference(checkpoint, "abc", config)
    done = reports[-1]
    assert isinstance(done, Done) and done.count == 70 and not done.cancelled
    assert done.reproducible and done.reference
    tokens = [r for r in reports if isinstance(r, Tokens)]
    ids = [i for r in tokens for i in r.ids]
    places = [place for r in tokens for place in r.places]
    assert [place.chosen.token for place in places] == ids
    assert all(len(place.likeliest) == 2 for place in places)
    # The same again, from memory, and judged by the process itself.
    again = await collect(client, checkpoint, "abc", config)
    assert text_of(again) == text_of(reports)
    assert isinstance(again[0], Started)  # without loading anew
    assert (await client.verify(checkpoint, "abc", config, ids)).differs_at is None
    wrong = [*ids[:40], (ids[40] + 1) % 8, *ids[41:]]
    assert (await client.verify(checkpoint, "abc", config, wrong)).differs_at == 40


async def test_samples_are_those_of_their_seeds(client: GeneratorClient, checkpoint: Path) -> None:
    config = SampleConfig(30, 1.0, seed=3)
    reports = await collect(client, checkpoint, "a", config, samples=3)
    for sample in range(3):
        alone = SampleConfig(30, 1.0, seed=3 + sample)
        assert text_of(reports, sample) == reference(checkpoint, "a", alone)


async def test_a_rolling_window_tells_its_number_type(
    client: GeneratorClient, checkpoint: Path
) -> None:
    for length, moved in ((5, False), (60, True)):
        config = SampleConfig(length, 1.0)
        reports = await collect(client, checkpoint, "a", config, window="rolling")
        done = reports[-1]
        assert isinstance(done, Done) and done.reference is not moved
        assert done.rolled_in in (("float32", "bfloat16") if moved else (None,))
        assert done.reproducible == (done.rolled_in != "bfloat16")


async def test_requests_are_carried_out_in_order(client: GeneratorClient, checkpoint: Path) -> None:
    finished = []

    async def write(name: str, count: int) -> None:
        await collect(client, checkpoint, "a", SampleConfig(count))
        finished.append(name)

    await asyncio.gather(write("long", 300), write("short", 1), write("shorter", 0))
    assert finished == ["long", "short", "shorter"]


async def test_a_text_can_be_steered_and_stopped(client: GeneratorClient, checkpoint: Path) -> None:
    reports = []
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            reports.append(report)
            if isinstance(report, Tokens) and len(reports) < 5:
                await client.steer(report.id, SampleConfig(temperature=0.0))
            if isinstance(report, Steered):
                await client.cancel(report.id)
    steered = next(r for r in reports if isinstance(r, Steered))
    assert steered.at > 0 and steered.temperature == 0.0
    done = reports[-1]
    assert isinstance(done, Done) and done.cancelled
    assert not done.reproducible and not done.reference
    assert done.count >= steered.at
    before = reference(checkpoint, "a", SampleConfig(steered.at, 1.0))
    assert text_of(reports)[: steered.at] == before


async def test_closing_the_iterator_cancels_and_drops_what_waits(
    client: GeneratorClient, checkpoint: Path
) -> None:
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            if isinstance(report, Tokens):
                break
        waiting = asyncio.create_task(collect(client, checkpoint, "b", ENDLESS))
    waiting.cancel()
    reports = await collect(client, checkpoint, "ab", SampleConfig(5))
    assert isinstance(reports[-1], Done) and reports[-1].count == 5


async def test_a_killed_process_is_told_and_replaced(
    client: GeneratorClient, checkpoint: Path
) -> None:
    waiting = None
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            if isinstance(report, Tokens) and waiting is None:
                waiting = asyncio.create_task(collect(client, checkpoint, "b", SampleConfig(9)))
                assert client._process is not None
                os.kill(client._process.pid, signal.SIGKILL)
    assert isinstance(report, Failed) and "SIGKILL" in report.message
    assert waiting is not None
    assert isinstance((await waiting)[-1], Done)  # it was waiting, so it did not suffer


async def test_an_app_that_does_not_read_loses_nothing(
    client: GeneratorClient, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuigpt.generation.client._WAITING_REPORTS", 2)
    config = SampleConfig(400, 1.0)
    stream = client.generate(checkpoint, "a", config, alternatives=8)
    async with aclosing(stream):
        reports = [await anext(stream)]
        (request,) = client._requests.values()
        while not request.reports.full():
            await asyncio.sleep(0.01)
        reports += [report async for report in stream]
    assert text_of(reports) == reference(checkpoint, "a", config)


async def test_broken_checkpoints_are_told_in_words(
    client: GeneratorClient, checkpoint: Path, tmp_path: Path
) -> None:
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    with torch.no_grad():
        model.transformer.h[0].ln_1.bias[2] = torch.nan
    save_checkpoint(tmp_path / "nan.safetensors", model, tokenizer, {"step": 1})
    (tmp_path / "cut.safetensors").write_bytes(checkpoint.read_bytes()[:-9])
    for name, words in {
        "nan": "broken at transformer.h.0.ln_1.bias",
        "cut": "cut short",
        "none": "cannot read",
    }.items():
        path = tmp_path / f"{name}.safetensors"
        failed = (await collect(client, path, "a", SampleConfig(5)))[-1]
        assert isinstance(failed, Failed) and words in failed.message
        with pytest.raises(UserError, match=words):
            await client.score(path, "abc")
    bad = (await collect(client, checkpoint, "a", SampleConfig(5), samples=1000))[-1]
    assert isinstance(bad, Failed) and "--samples" in bad.message
    assert isinstance((await collect(client, checkpoint, "a", SampleConfig(5)))[-1], Done)


async def test_it_looks_scores_and_finds_copies(client: GeneratorClient, checkpoint: Path) -> None:
    seen = (await client.look(checkpoint, "ab", SampleConfig(temperature=0.0))).place
    assert len(seen.likeliest) == 8 and seen.rank == 1
    assert sum(option.learned for option in seen.likeliest) == pytest.approx(1, abs=1e-4)
    scored = await client.score(checkpoint, VERSE + "?")
    assert scored.dropped == "?" and len(scored.surprises) == len(VERSE) - 1
    assert scored.nats == pytest.approx(sum(scored.surprises) / len(scored.surprises), abs=1e-3)
    assert (await client.score(checkpoint, "")).nats is None
    recited = await client.recite(checkpoint, "ffff" + VERSE[3:20] + "ffff", at_least=10)
    assert [(c.start, c.length, c.line) for c in recited.copies] == [(4, 17, 1)]
    assert recited.corpus == "verse" and recited.share == pytest.approx(17 / 25)


async def test_a_lost_corpus_is_told(client: GeneratorClient, tmp_path: Path) -> None:
    facts = {"name": "x", "path": str(tmp_path / "gone.txt"), "sha256": "00"}
    path = make_checkpoint(tmp_path / "m.safetensors", corpus=facts)
    with pytest.raises(UserError, match="cannot be used"):
        await client.recite(path, "abc")
    (tmp_path / "gone.txt").write_text("another text")
    with pytest.raises(UserError, match="has changed"):
        await client.recite(path, "abc")


async def test_a_closed_client_fails_what_is_open(checkpoint: Path) -> None:
    client = GeneratorClient()
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            if isinstance(report, Tokens):
                await client.close()
    assert isinstance(report, Failed)
    assert isinstance((await collect(client, checkpoint, "a", ENDLESS))[-1], Failed)


async def test_the_process_ends_when_its_app_is_killed(checkpoint: Path) -> None:
    app = f"""
import asyncio, sys
from pathlib import Path
from tuigpt.config import SampleConfig
from tuigpt.generation.client import GeneratorClient

async def main():
    client = GeneratorClient()
    config = SampleConfig(max_new_tokens=10**7)
    async for report in client.generate(Path({str(checkpoint)!r}), "a", config):
        if type(report).__name__ == "Tokens":
            print(client._process.pid, flush=True)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", app], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        generator = int(process.stdout.readline())
        descriptor = os.pidfd_open(generator)
        process.kill()
    import select

    try:
        assert select.select([descriptor], [], [], 20)[0], "the generator outlived its app"
    finally:
        os.close(descriptor)


async def test_the_process_steps_back_and_keeps_its_pipe_clean(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "tuigpt.generation.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        hello = json.loads(process.stdout.readline())
        assert hello["kind"] == "Hello" and hello["version"] == 3
        assert os.getpriority(os.PRIO_PROCESS, process.pid) >= 10
        process.stdin.write(b"nonsense\n{}\n")
        process.stdin.close()
        assert process.wait(timeout=20) == 0
        assert process.stdout.read() == b""
