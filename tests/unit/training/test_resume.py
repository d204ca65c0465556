"""Runs that are resumed, begin from a checkpoint, are refused, or last for a set time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import VERSE
from json_files import read_json
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from system.conftest import TINY, Tuigpt
from system.test_train import lines_of, losses, tensor_bytes

from tuigpt.cli.main import main
from tuigpt.files import write_json
from tuigpt.runs.folder import open_run
from tuigpt.runs.record import read_run_record

FLAGS = ["verse.txt", *TINY, "--eval-interval=10"]


@pytest.fixture
def tuigpt(
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Tuigpt]:
    """Runs the command line in this process, which has imported torch already."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUIGPT_HOME", str(home))

    def run(*arguments: str | Path, **changed: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def finished(tuigpt: Tuigpt, home: Path, verse_file: Path) -> Path:
    """The folder of a run of 20 steps that is finished."""
    result = tuigpt("train", "--name=run", *FLAGS, "--max-steps=20", "--warmup-steps=2")
    assert result.returncode == 0, result.stderr
    return home / "runs/run"


class TestLonger:
    def test_a_finished_run_is_extended_and_says_which_schedule_holds(
        self, finished: Path, tuigpt: Tuigpt
    ) -> None:
        again = tuigpt("train", "--resume=run")
        assert again.returncode == 2
        assert again.stderr == (
            "tuigpt: run 'run' is finished, at step 20 of 20; to resume, give a higher"
            " --max-steps\n"
        )
        longer = tuigpt("train", "--resume=run", "--max-steps=40")
        assert longer.returncode == 0, longer.stderr
        assert re.search(
            r"^its schedule now ends at step 40, not 20: the learning rate continues from 0\.0\d+$",
            longer.stdout, re.MULTILINE,
        )  # fmt: skip
        assert "finished at step 40" in longer.stdout
        assert open_run(finished).status.max_steps == 40
        assert sorted(losses(finished)) == list(range(1, 41))
        rates = {r["step"]: r["learning_rate"] for r in lines_of(finished / "metrics.jsonl")
                 if r["kind"] == "step"}  # fmt: skip
        assert rates[20] < rates[21] > rates[40]
        told = [
            r.get("message", "")
            for r in lines_of(finished / "metrics.jsonl")
            if r["kind"] == "event"
        ]
        assert sum(message.startswith("passed letters") for message in told) == 1

    def test_too_few_steps_are_refused(self, finished: Path, tuigpt: Tuigpt) -> None:
        result = tuigpt("train", "--resume=run", "--max-steps=10")
        assert result.returncode == 2
        assert "has done 20 steps already: --max-steps 10 is too few" in result.stderr

    def test_another_size_or_batch_is_refused_by_name(self, finished: Path, tuigpt: Tuigpt) -> None:
        for flag, has in (("--n-embd=32", "--n-embd 16"), ("--batch-size=8", "--batch-size 4")):
            result = tuigpt("train", "--resume=run", flag, "--max-steps=40")
            assert result.returncode == 2
            assert f"run 'run' has {has}, and keeps it" in result.stderr

    def test_a_changed_size_or_vocabulary_is_refused_by_name(
        self, finished: Path, tuigpt: Tuigpt
    ) -> None:
        record = read_json(finished / "run.json")
        write_json(finished / "run.json", record | {"model": record["model"] | {"n_layer": 2}})
        result = tuigpt("train", "--resume=run", "--max-steps=40")
        assert result.returncode == 2
        assert re.search(r"it holds [\d,]+ parameters, its run has [\d,]+;", result.stderr)
        write_json(finished / "run.json", record | {"tokenizer": {"type": "char", "vocab_size": 9}})
        result = tuigpt("train", "--resume=run", "--max-steps=40")
        assert result.returncode == 2
        assert re.search(r"says vocab_size 9, its resume\.safetensors \d+;", result.stderr)

    def test_a_finished_run_keeps_its_checkpoints_and_its_best_to_the_byte(
        self, finished: Path, tuigpt: Tuigpt
    ) -> None:
        files = {p: p.read_bytes() for p in (finished / "checkpoints").iterdir()}
        best = open_run(finished).best
        assert best is not None and best.step == 20
        assert tuigpt("train", "--resume=run", "--max-steps=21").returncode == 0
        assert {p: p.read_bytes() for p in files} == files
        assert {c.step for c in open_run(finished).checkpoints} >= {20, 21}


class TestWhatIsLeft:
    """Whatever is broken, the way on is said."""

    def test_a_broken_state(self, finished: Path, tuigpt: Tuigpt) -> None:
        path = finished / "resume.safetensors"
        whole = path.read_bytes()
        tensors = load_file(path)
        del tensors["random.data_order"]
        with safe_open(path, framework="pt") as file:
            save_file(tensors, path, file.metadata())
        for said in ("it lacks the tensor 'data_order'", "is cut short", "cannot be used"):
            result = tuigpt("train", "--resume=run", "--max-steps=40")
            assert result.returncode == 2 and said in result.stderr
            assert result.stderr.endswith(
                "its checkpoint run@20 is whole: a new run begins with its weights by"
                " --from run@20\n"
            )
            path.write_bytes(whole[:-10] if said.startswith("it lacks") else b"")
        path.unlink()
        os.mkfifo(path)
        result = tuigpt("train", "--resume=run", "--max-steps=40")
        assert result.returncode == 2 and "it is no regular file" in result.stderr
        assert tuigpt("train", "--from=run@20", "--max-steps=1").returncode == 0

    def test_a_broken_newest_checkpoint(self, finished: Path, tuigpt: Tuigpt) -> None:
        """What resuming needs is in the resume file, weights included."""
        (newest,) = (finished / "checkpoints").glob("*20.safetensors")
        newest.write_bytes(b"broken")
        result = tuigpt("train", "--resume=run", "--max-steps=22")
        assert result.returncode == 0, result.stderr
        assert open_run(finished).status.step == 22

    def test_both_broken_an_older_checkpoint_is_named(
        self, tuigpt: Tuigpt, home: Path, verse_file: Path
    ) -> None:
        flags = [*FLAGS, "--max-steps=20", "--checkpoint-interval=5"]
        assert tuigpt("train", "--name=run", *flags).returncode == 0
        folder = home / "runs/run"
        newest = folder / "checkpoints" / "step-000020.safetensors"
        newest.write_bytes(newest.read_bytes()[:-100])
        (folder / "resume.safetensors").unlink()
        result = tuigpt("train", "--resume=run", "--max-steps=22")
        assert result.returncode == 2 and result.stderr.endswith("by --from run@15\n")

    def test_a_folder_that_cannot_be_written(self, finished: Path, tuigpt: Tuigpt) -> None:
        """It is known before the first step."""
        (finished / "checkpoints").rename(finished / "elsewhere")
        before = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
        result = tuigpt("train", "--resume=run", "--max-steps=40")
        assert result.returncode == 2
        assert re.match(r"tuigpt: cannot write '.*/checkpoints", result.stderr)
        after = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
        assert after == before | {
            finished / "trainer.lock": (finished / "trainer.lock").read_bytes()
        }

    @pytest.mark.parametrize("what", ["folder", "link", "FIFO"])
    def test_a_log_that_is_no_file(
        self, finished: Path, tuigpt: Tuigpt, tmp_path: Path, what: str
    ) -> None:
        log = finished / "metrics.jsonl"
        log.rename(tmp_path / "elsewhere")
        if what == "folder":
            log.mkdir()
        elif what == "link":
            log.symlink_to(tmp_path / "elsewhere")
        else:
            os.mkfifo(log)
        before = (tmp_path / "elsewhere").read_bytes()
        result = tuigpt("train", "--resume=run", "--max-steps=30")
        assert result.returncode == 2 and "metrics.jsonl" in result.stderr
        assert result.stderr.startswith("tuigpt: cannot write ")
        assert (tmp_path / "elsewhere").read_bytes() == before

    def test_a_text_that_has_moved(
        self, finished: Path, tuigpt: Tuigpt, tmp_path: Path, verse_file: Path
    ) -> None:
        verse_file.rename(tmp_path / "elsewhere.txt")
        gone = tuigpt("train", "--resume=run", "--max-steps=22")
        assert gone.returncode == 2 and "if it has moved, say where it is now" in gone.stderr
        (tmp_path / "other.txt").write_text(VERSE * 41)
        other = tuigpt("train", "--resume=run", "other.txt", "--max-steps=22")
        assert other.returncode == 2 and "is another one" in other.stderr
        moved = tuigpt("train", "--resume=run", "elsewhere.txt", "--max-steps=22")
        assert moved.returncode == 0, moved.stderr


class TestFrom:
    def test_a_new_run_begins_with_a_checkpoints_weights(
        self, finished: Path, tuigpt: Tuigpt, home: Path
    ) -> None:
        result = tuigpt("train", "--from=run@20", *TINY[-3:], "--eval-interval=10",
                        "--max-steps=10", "--batch-size=4")  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert (
            "begins with the weights of run@20 and a schedule of its own: 10 steps from step 0 on"
            in result.stdout
        )
        child = open_run(home / "runs/run-1")
        record = read_run_record(child.folder)
        assert record.parent and (record.parent.run, record.parent.step) == ("run", 20)
        assert len(record.parent.sha256) == 64
        assert record.model == read_run_record(finished).model
        first = next(r for r in lines_of(child.folder / "metrics.jsonl") if r["kind"] == "eval")
        last = [r for r in lines_of(finished / "metrics.jsonl") if r["kind"] == "eval"][-2]
        assert first["step"] == 0 and first["val_loss"] == last["val_loss"]
        assert child.last is not None and child.last.step == 10
        # And it goes on like any run.
        assert tuigpt("train", "--resume=run-1", "--max-steps=12").returncode == 0

    def test_on_another_text_whose_characters_it_knows(
        self, finished: Path, tuigpt: Tuigpt, tmp_path: Path
    ) -> None:
        (tmp_path / "other.txt").write_text(VERSE[::-1] * 40)
        known = tuigpt("train", "other.txt", "--from=run", "--max-steps=2", "--batch-size=4")
        assert known.returncode == 0, known.stderr
        (tmp_path / "other.txt").write_text((VERSE + "Größe?") * 40, "utf-8")
        unknown = tuigpt("train", "other.txt", "--from=run", "--max-steps=2")
        assert unknown.returncode == 2
        assert "characters that --from run@20 does not know: " in unknown.stderr
        assert "'ö'" in unknown.stderr and "'ß'" in unknown.stderr

    @pytest.mark.parametrize("flag", ["--n-embd=32", "--preset=small", "--tokenizer=bpe:300"])
    def test_another_size_is_refused(self, finished: Path, tuigpt: Tuigpt, flag: str) -> None:
        result = tuigpt("train", "--from=run", flag, "--max-steps=2")
        assert result.returncode == 2 and "does not fit --from run@20" in result.stderr


class TestMinutes:
    def test_a_time_becomes_a_number_of_steps_once(
        self, tuigpt: Tuigpt, home: Path, verse_file: Path
    ) -> None:
        result = tuigpt("train", "--name=short", *FLAGS, "--minutes=0.02")
        assert result.returncode == 0, result.stderr
        said = re.search(r"^for 1 s: .+, ([\d,]+) steps of", result.stdout, re.MULTILINE)
        assert said
        steps = int(said[1].replace(",", ""))
        run = open_run(home / "runs/short")
        assert read_run_record(run.folder).train.max_steps == steps
        assert run.status.state == "finished"
        # Going on plans nothing anew.
        longer = tuigpt("train", "--resume=short", f"--max-steps={run.status.step + 5}")
        assert longer.returncode == 0 and "for 1 s" not in longer.stdout

    def test_steps_and_minutes_exclude_each_other(self, tuigpt: Tuigpt, verse_file: Path) -> None:
        result = tuigpt("train", *FLAGS, "--minutes=1", "--max-steps=5")
        assert result.returncode == 2
        assert result.stderr == (
            "tuigpt: --minutes is 1.0, but it must be left out where --max-steps is given: both"
            " tell the length\n"
        )


def test_out_of_patience_the_best_is_kept(tuigpt: Tuigpt, home: Path, verse_file: Path) -> None:
    result = tuigpt("train", "--name=run", *FLAGS, "--max-steps=100000", "--patience=2",
                    "--learning-rate=0.5")  # fmt: skip
    assert result.returncode == 0, result.stderr
    run = open_run(home / "runs/run")
    assert run.status.state == "finished" and run.best is not None
    assert run.status.message == f"no better val loss since step {run.best.step:,}"
    assert run.status.step == run.best.step + 20
    again = tuigpt("train", "--resume=run")
    said = "2 evaluations in a row were no better; to resume, give --patience 3 or more"
    assert again.returncode == 2 and said in again.stderr
    longer = tuigpt("train", "--resume=run", "--max-steps=200000")
    assert longer.returncode == 2 and said in longer.stderr
    # With more of it the run goes on to its next such end.
    assert tuigpt("train", "--resume=run", "--patience=3").returncode == 0
    assert open_run(home / "runs/run").status.step >= run.status.step + 10


def test_a_seed_decides_everything(tuigpt: Tuigpt, home: Path, verse_file: Path) -> None:
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):
        flags = [*FLAGS, "--max-steps=5", "--dropout=0.2", f"--seed={seed}"]
        assert tuigpt("train", f"--name={name}", *flags).returncode == 0
    one, two, other = (
        tensor_bytes(home / f"runs/{name}/checkpoints/step-000005.safetensors")
        for name in ("one", "two", "other")
    )
    assert one == two != other


@pytest.mark.parametrize("name", ["status.json", "metrics.jsonl"])
@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_cannot_be_written_is_refused_before_the_first_step(
    finished: Path, tuigpt: Tuigpt, name: str, what: str
) -> None:
    if (name, what) == ("status.json", "pipe"):
        pytest.skip("a status is replaced, whatever lies there")
    (finished / name).unlink()
    (finished / name).mkdir() if what == "folder" else os.mkfifo(finished / name)
    result = tuigpt("train", "--resume=run", "--max-steps=40")
    assert result.returncode == 2
    assert f"cannot write '{finished / name}'" in result.stderr
    assert "Traceback" not in result.stderr
