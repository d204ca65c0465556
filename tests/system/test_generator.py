"""The generator as a real process: its order, its ends, and what happens when it is killed."""

from __future__ import annotations

import asyncio
import hashlib
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

from tuigpt.child import child_command
from tuigpt.config import GPTConfig, SampleConfig
from tuigpt.errors import UserError
from tuigpt.generation.client import GeneratorClient
from tuigpt.generation.decode import plain, read_prompt
from tuigpt.generation.protocol import (
    LONGEST_COMMAND,
    ConfigChanged,
    Done,
    Failed,
    Report,
    Score,
    Scored,
    Started,
    Tokens,
    decode_report,
    encode,
)
from tuigpt.model.checkpoint import load_checkpoint, save_checkpoint
from tuigpt.model.gpt import GPT
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.record import CorpusFacts
from tuigpt.text.tokenizer import CharTokenizer

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="kills processes"),
    pytest.mark.asyncio(loop_scope="module"),
]

ENDLESS = SampleConfig(max_new_tokens=10**7, temperature=1.0)
VERSE = "abcabd\nfade a bed\n" * 4


def make_checkpoint(path: Path, seed: int = 0, corpus: CorpusFacts | None = None) -> Path:
    torch.manual_seed(seed)
    tokenizer = CharTokenizer("\n abcdef")
    model = GPT(GPTConfig(8, block_size=16, n_layer=2, n_head=2, n_embd=16))
    save_checkpoint(path, model, tokenizer, CheckpointFacts(step=3, corpus=corpus or CorpusFacts()))
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "verse.txt").write_text(VERSE)
    sha256 = hashlib.sha256(VERSE.encode()).hexdigest()
    corpus = CorpusFacts(name="verse", path=str(folder / "verse.txt"), sha256=sha256)
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
    reports = await collect(client, checkpoint, "ab?c", config, top_logprobs=2)
    started = next(r for r in reports if isinstance(r, Started))
    assert (started.prompt, started.dropped, started.vocab_size) == ("abc", "?", 8)
    assert started.block_size == 16
    assert text_of(reports) == reference(checkpoint, "abc", config)
    done = reports[-1]
    assert isinstance(done, Done) and done.count == 70 and not done.cancelled
    assert done.reproducible and done.reference
    tokens = [r for r in reports if isinstance(r, Tokens)]
    ids = [i for r in tokens for i in r.ids]
    places = [place for r in tokens for place in r.logprobs]
    assert [place.chosen.token for place in places] == ids
    assert all(len(place.top_logprobs) == 2 for place in places)
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


async def test_a_rolling_window_is_told(client: GeneratorClient, checkpoint: Path) -> None:
    for length, moved in ((5, False), (60, True)):
        config = SampleConfig(length, 1.0)
        reports = await collect(client, checkpoint, "a", config, window="rolling")
        done = reports[-1]
        assert isinstance(done, Done) and done.reference is not moved and done.reproducible


async def test_requests_are_carried_out_in_order(client: GeneratorClient, checkpoint: Path) -> None:
    finished = []

    async def write(name: str, count: int) -> None:
        await collect(client, checkpoint, "a", SampleConfig(count))
        finished.append(name)

    await asyncio.gather(write("long", 300), write("short", 1), write("shorter", 0))
    assert finished == ["long", "short", "shorter"]


async def test_a_text_can_be_changed_and_stopped(client: GeneratorClient, checkpoint: Path) -> None:
    reports = []
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            reports.append(report)
            if isinstance(report, Tokens) and len(reports) < 5:
                await client.set_config(report.id, SampleConfig(temperature=0.0))
            if isinstance(report, ConfigChanged):
                await client.cancel(report.id)
    changed = next(r for r in reports if isinstance(r, ConfigChanged))
    assert changed.at > 0
    assert changed.config == SampleConfig(ENDLESS.max_new_tokens, 0.0, seed=ENDLESS.seed)
    done = reports[-1]
    assert isinstance(done, Done) and done.cancelled
    assert not done.reproducible and not done.reference
    assert done.count >= changed.at
    before = reference(checkpoint, "a", SampleConfig(changed.at, 1.0))
    assert text_of(reports)[: changed.at] == before


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
                assert client.pid is not None
                os.kill(client.pid, signal.SIGKILL)
    assert isinstance(report, Failed) and "SIGKILL" in report.message
    assert waiting is not None
    assert isinstance((await waiting)[-1], Done)  # it was waiting, so it did not suffer


async def test_an_app_that_reads_slowly_loses_nothing(checkpoint: Path, tmp_path: Path) -> None:
    client = GeneratorClient(tmp_path, waiting_reports=1)
    config = SampleConfig(400, 1.0)
    reports = []
    async with aclosing(client.generate(checkpoint, "a", config, top_logprobs=8)) as stream:
        async for report in stream:
            reports.append(report)
            await asyncio.sleep(0.05)  # longer than the process takes for a report
    await client.close()
    assert text_of(reports) == reference(checkpoint, "a", config)


async def test_broken_checkpoints_are_told_in_words(
    client: GeneratorClient, checkpoint: Path, tmp_path: Path
) -> None:
    model, tokenizer, _ = load_checkpoint(checkpoint, torch.device("cpu"))
    with torch.no_grad():
        model.transformer.h[0].ln_1.bias[2] = torch.nan
    save_checkpoint(tmp_path / "nan.safetensors", model, tokenizer, CheckpointFacts(step=1))
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
    assert isinstance(bad, Failed) and "samples is 1000" in bad.message
    assert isinstance((await collect(client, checkpoint, "a", SampleConfig(5)))[-1], Done)


async def test_it_tells_the_next_token_scores_and_finds_copies(
    client: GeneratorClient, checkpoint: Path
) -> None:
    found = (await client.next_token(checkpoint, "ab", SampleConfig(temperature=0.0))).logprobs
    assert len(found.top_logprobs) == 8 and found.rank == 1
    assert sum(option.learned for option in found.top_logprobs) == pytest.approx(1, abs=1e-4)
    scored = await client.score(checkpoint, VERSE + "?")
    assert scored.dropped == "?" and len(scored.surprises) == len(VERSE) - 1
    mean = sum(scored.surprises) / len(scored.surprises)
    assert scored.nats_per_character == pytest.approx(mean, abs=1e-3)
    assert (await client.score(checkpoint, "")).nats_per_character is None
    copied = await client.copies(checkpoint, "ffff" + VERSE[3:20] + "ffff", at_least=10)
    assert [(c.start, c.length, c.line) for c in copied.copies] == [(4, 17, 1)]
    assert copied.corpus == "verse" and copied.share == pytest.approx(17 / 25)


async def test_the_longest_text_is_scored_and_a_longer_one_refused(
    client: GeneratorClient, checkpoint: Path
) -> None:
    with pytest.raises(UserError, match="too long"):
        await client.score(checkpoint, "a" * LONGEST_COMMAND)
    text = "ab" * (LONGEST_COMMAND // 8)
    assert len((await client.score(checkpoint, text)).surprises) == len(text) - 1


async def test_a_lost_corpus_is_told(client: GeneratorClient, tmp_path: Path) -> None:
    facts = CorpusFacts(name="x", path=str(tmp_path / "gone.txt"), sha256="00")
    path = make_checkpoint(tmp_path / "m.safetensors", corpus=facts)
    with pytest.raises(UserError, match="cannot be used"):
        await client.copies(path, "abc")
    (tmp_path / "gone.txt").write_text("another text")
    with pytest.raises(UserError, match="has changed"):
        await client.copies(path, "abc")


async def test_a_closed_client_fails_what_is_open(checkpoint: Path, tmp_path: Path) -> None:
    client = GeneratorClient(tmp_path)
    async with aclosing(client.generate(checkpoint, "a", ENDLESS)) as stream:
        async for report in stream:
            if isinstance(report, Tokens):
                await client.close()
    assert isinstance(report, Failed)
    assert isinstance((await collect(client, checkpoint, "a", ENDLESS))[-1], Failed)


async def test_the_process_ends_when_its_app_is_killed(checkpoint: Path, tmp_path: Path) -> None:
    app = f"""
import asyncio, sys
from pathlib import Path
from tuigpt.config import SampleConfig
from tuigpt.generation.client import GeneratorClient

async def main():
    client = GeneratorClient(Path({str(tmp_path)!r}))
    config = SampleConfig(max_new_tokens=10**7)
    async for report in client.generate(Path({str(checkpoint)!r}), "a", config):
        if type(report).__name__ == "Tokens":
            print(client.pid, flush=True)

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


def start_server(home: Path) -> subprocess.Popen[bytes]:
    command = child_command("tuigpt.generation.server", "--home", str(home))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


HOSTILE_LINES = [
    b"nonsense",
    b"{}",
    b"[" * 1_000_000,
    b'{"type": "Cancel", "id": ' + b'{"a":' * 100_000,
    b'{"type": "Cancel", "id": [1]}',
    b'{"type": "Cancel", "id": {"a": 1}}',
    b"\xff\xfe\x00",
    b'"' + b"a" * 17_000_000 + b'"',
    b'{"type": "SetConfig", "id": 1, "config": {"temperature": 1' + b"0" * 400 + b"}}",
]


async def test_the_process_steps_back_and_survives_any_line(
    checkpoint: Path, tmp_path: Path
) -> None:
    with start_server(tmp_path) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in HOSTILE_LINES:
            process.stdin.write(line + b"\n")
        process.stdin.write(b'{"type": "Sing", "id": 7}\n')
        process.stdin.write(encode(Score(8, os.fsencode(checkpoint), "abc")))
        process.stdin.flush()
        reports: list[Report] = []
        while not reports or not isinstance(reports[-1], Scored):
            reports.append(decode_report(process.stdout.readline()))
        refused = [r for r in reports if isinstance(r, Failed)]
        assert [r.id for r in refused] == [1, 7]
        assert os.getpriority(os.PRIO_PROCESS, process.pid) >= 10
        process.stdin.close()
        assert process.wait(timeout=20) == 0
        assert process.stdout.read() == b""


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line[:30]))
async def test_the_end_of_the_pipe_ends_the_process_whatever_came(
    tmp_path: Path, line: bytes
) -> None:
    with start_server(tmp_path) as process:
        process.communicate(line, timeout=60)
    assert process.returncode == 0


async def test_what_the_process_prints_is_kept_in_a_log(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; print('x' * 300_000 + ' a warning', file=sys.stderr)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    home = tmp_path / "home"
    for _ in range(3):
        client = GeneratorClient(home)
        await collect(client, checkpoint, "a", SampleConfig(1))
        await client.close()
    log = home / "generator.log"
    assert log.read_text().endswith("a warning\n")
    assert log.stat().st_size < 500_000


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="shares by process")
async def test_it_steps_back_where_sessions_share_the_processor(
    client: GeneratorClient, checkpoint: Path
) -> None:
    mine = Path("/proc/self/autogroup").read_text()
    await client.next_token(checkpoint, "abc", ENDLESS)
    assert Path(f"/proc/{client.pid}/autogroup").read_text().endswith(" nice 10\n")
    with start_server(checkpoint.parent) as process:  # which is of the session of this one
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(encode(Score(8, os.fsencode(checkpoint), "abc")))
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdin.close()
    assert Path("/proc/self/autogroup").read_text() == mine


@pytest.mark.asyncio(loop_scope="module")
async def test_a_pace_makes_no_difference_but_time(
    client: GeneratorClient, checkpoint: Path
) -> None:
    config = SampleConfig(max_new_tokens=20, seed=5)
    at_once = await collect(client, checkpoint, "abc", config)
    reports: list[Report] = []
    generated = client.generate(checkpoint, "abc", config, pace=2.0)
    async with aclosing(generated) as stream:
        async for report in stream:
            reports.append(report)
            # At two a second it would take ten seconds.
            if isinstance(report, Tokens) and len(reports) == 2:
                await client.set_pace(report.id, 0.0)
    texts = ["".join(r.text for r in some if isinstance(r, Tokens)) for some in (at_once, reports)]
    assert texts[0] == texts[1]
    done = reports[-1]
    assert isinstance(done, Done) and done.count == 20 and done.reproducible


@pytest.mark.asyncio(loop_scope="module")
async def test_a_paced_text_is_stopped_between_two_tokens(
    client: GeneratorClient, checkpoint: Path
) -> None:
    async with aclosing(client.generate(checkpoint, "abc", ENDLESS, pace=0.01)) as stream:
        async for report in stream:
            if isinstance(report, Started):
                break
    # The next command does not wait a hundred seconds.
    assert (await client.next_token(checkpoint, "abc", ENDLESS)).prompt == "abc"
