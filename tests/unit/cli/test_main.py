"""The command line refuses what cannot work: status 2, one line that says what to do, no trace."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import VERSE, MakeRun

from tuigpt.cli.main import COMMANDS, main
from tuigpt.runs.folder import Run
from tuigpt.runs.lock import trainer_lock
from tuigpt.runs.status import utc_now

SMALL = ["--n-layer=1", "--n-head=2", "--n-embd=8", "--block-size=8", "--batch-size=2"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUIGPT_HOME", str(home))
    for name, content in {
        "verse.txt": VERSE * 40,
        "short.txt": "To be, or not to be, that is the questio",
        "val_short.txt": VERSE * 10,
        "empty.txt": "",
        "blank.txt": "\n \n\n",
        "one.txt": "a" * 5000,
    }.items():
        (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "cp1252.txt").write_bytes(b"Line one\nna\xefve caf\xe9, and \x93so\x94 on\n" * 50)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What one command says on stderr when it refuses."""
    try:
        status = main(arguments)
    except SystemExit as ended:  # argparse's way
        status = ended.code  # type: ignore[assignment]
    out, err = capsys.readouterr()
    assert status == 2, (out, err)
    assert err.count("\n") == 1 and err.endswith("\n"), err
    assert err.startswith("tuigpt: ")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", err)
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.txt"], "gone.txt"),
        (["~nobody-of-that-name/x.txt"], "nobody-of-that-name"),
        (["empty.txt"], "empty.txt.* empty"),
        (["blank.txt"], "blank.txt.* blank"),
        (["cp1252.txt"], "offset 11, line 2"),
        (["short.txt", "--block-size=64"], "40 characters|36 characters"),
        (["short.txt"], "--block-size"),
        (["val_short.txt", "--block-size=256"], "--block-size"),
        (["verse.txt", "--n-embd=30", "--n-head=4"], "try --n-head 3, or --n-embd 28"),
        (["verse.txt", "--n-embd=1000000007", "--n-head=4"], "try --n-head 1,"),
        (["verse.txt", "--n-head=0"], "--n-head is 0, but it must be a whole number, 1 or more"),
        (["verse.txt", "--max-steps=0"], "--max-steps is 0"),
        (["verse.txt", "--max-steps=-5"], "--max-steps is -5"),
        (["verse.txt", "--max-steps=1e3"], "--max-steps is '1e3'.* whole number"),
        (["verse.txt", "--max-steps=ten"], "--max-steps is 'ten'"),
        (["verse.txt", "--max-steps="], "--max-steps is ''"),
        (["verse.txt", "--batch-size=0"], "--batch-size is 0"),
        (["verse.txt", "--learning-rate=0"], "--learning-rate is 0"),
        (["verse.txt", "--learning-rate=-1"], "--learning-rate is -1"),
        (["verse.txt", "--learning-rate=nan"], "--learning-rate is nan"),
        (["verse.txt", "--learning-rate=0,001"], "--learning-rate is '0,001'.*such as 0.8"),
        (["verse.txt", "--dropout=1"], "--dropout is 1"),
        (["verse.txt", "--val-fraction=1.0"], "--val-fraction is 1"),
        (["verse.txt", "--grad-clip=-1"], "--grad-clip is -1"),
        (["verse.txt", "--seed=-1"], "--seed is -1"),
        (["verse.txt", "--seed=99999999999999999999"], "--seed is 9999.*less than 2 to the power"),
        (["verse.txt", "--recipe=magic"], "--recipe is 'magic'.* workshop"),
        (["verse.txt", "--preset=huge"], "--preset.*huge.*tiny"),
        (["verse.txt", "--device=gpu"], "--device gpu: this machine has .*cpu"),
        (["verse.txt", "--device=cuda:77"], "--device cuda:77: this machine has .*cpu"),
        (["verse.txt", "--name=../up"], "--name '../up' cannot be a run's name"),
        (["verse.txt", "--name=a@1"], "--name 'a@1' cannot be"),
        (["verse.txt", "--name=a\x1b[31m\nb"], "cannot be a run's name"),
        (["verse.txt", "--n-embd=1000000"], "memory"),
        (["verse.txt", "--n-layer=1000000000"], "--n-layer is 1000000000, but it must be at most"),
        (["verse.txt", "--no-such-flag"], "--no-such-flag"),
        (["verse.txt", "--no-\x1b[31m-flag\n"], "no flag"),
        (["--resume", "gone"], "no run 'gone'.*there are no runs yet"),
        (["--name=b", "--resume", "gone"], "--resume takes the name .* from the run: leave"),
    ],
)
def test_train(
    capsys: pytest.CaptureFixture[str], home: Path, arguments: list[str], words: str
) -> None:
    assert re.search(words, refusal(capsys, "train", *arguments))
    left = [p for p in home.rglob("*") if "cache" not in p.parts]
    assert left in ([], [home / "runs"])


def test_a_taken_name(capsys: pytest.CaptureFixture[str], make_run: MakeRun) -> None:
    make_run("verse")
    said = refusal(capsys, "train", "verse.txt", "--name=verse")
    assert "there is a run 'verse' already; try --name 'verse-1'" in said


def test_a_home_that_is_a_file(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    home.write_text("not a folder")
    said = refusal(capsys, "train", "verse.txt", *SMALL, "--max-steps=1")
    assert "home" in said
    home.unlink()
    home.mkdir()
    (home / "runs").write_text("not a folder")
    said = refusal(capsys, "train", "verse.txt", *SMALL, "--max-steps=1")
    assert "runs" in said and "meanwhile" not in said


class TestResume:
    def test_a_run_that_is_at_work(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun
    ) -> None:
        run = make_run("busy", state="stopped")
        with trainer_lock(run.folder):
            said = refusal(capsys, "train", "--resume", "busy")
        assert f"run 'busy' is being trained already (process {os.getpid()})\n" in said

    def test_one_at_work_on_another_machine(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun
    ) -> None:
        """Whose lock may not reach us."""
        make_run("far", state="training", pid=4711, host="elsewhere", heartbeat=utc_now())
        said = refusal(capsys, "train", "--resume", "far")
        assert "run 'far' is being trained already (process 4711 on elsewhere)\n" in said

    def test_one_where_nothing_can_be_locked(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_locks(*arguments: object, **options: object) -> bool:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", no_locks)
        make_run("busy", state="training", pid=os.getpid(), host=socket.gethostname())
        said = refusal(capsys, "train", "--resume", "busy")
        assert f"run 'busy' is being trained already (process {os.getpid()})\n" in said

    def test_one_whose_process_number_is_now_somebody_elses(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun
    ) -> None:
        killed = make_run("killed", state="training", pid=os.getpid(), host=socket.gethostname())
        (killed.folder / "trainer.lock").touch()
        said = refusal(capsys, "train", "--resume", "killed")
        # It was made by hand.
        assert "run 'killed' cannot be resumed: its resume.safetensors cannot be used" in said

    def test_a_finished_run(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        assert main(["train", "verse.txt", "--name=done", *SMALL, "--max-steps=2"]) == 0
        capsys.readouterr()
        said = refusal(capsys, "train", "--resume", "done")
        assert "run 'done' is finished, at step 2 of 2; to resume" in said

        text = tmp_path / "verse.txt"
        resume = tmp_path / "home" / "runs" / "done" / "resume.safetensors"
        status = tmp_path / "home" / "runs" / "done" / "status.json"
        status.write_text(status.read_text().replace("finished", "stopped"))
        text.write_text(VERSE * 41)
        said = refusal(capsys, "train", "--resume", "done")
        assert "has changed" in said and "verse.txt" in said
        text.unlink()
        assert "verse.txt" in refusal(capsys, "train", "--resume", "done")
        resume.write_bytes(resume.read_bytes()[:-9])
        said = refusal(capsys, "train", "--resume", "done")
        assert "its resume.safetensors cannot be used, the file is cut short" in said
        resume.unlink()
        assert "resume.safetensors cannot be used" in refusal(capsys, "train", "--resume", "done")

    def test_a_run_of_another_kind(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun
    ) -> None:
        run = make_run("odd", state="stopped")
        assert "cannot be resumed" in refusal(capsys, "train", "--resume", "odd")
        (run.folder / "run.json").write_text('{"train": {"mood": 5}}')
        assert "cannot be resumed" in refusal(capsys, "train", "--resume", "odd")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "gone"], "no run 'gone'"),
        (["generate", "gone.safetensors"], "no checkpoint at 'gone.safetensors'"),
        (["generate", "verse@7"], "run 'verse' has no checkpoint '7'; its steps: 10"),
        (["generate", "verse", "--device=gpu"], "--device gpu"),
        (["generate"], "CHECKPOINT"),
        (["list", "gone"], "no run 'gone' in .*: there are verse"),
        (["stop", "gone"], "no run 'gone'"),
        (["stop", "verse"], "run 'verse' is not running: it is finished"),
        (["generate", "poet"], "the built-in poet is not in this installation"),
        (["stop", "poet"], "'poet' is the built-in model, not a run"),
        (["train", "--resume", "poet"], "'poet' is the built-in model, not a run"),
        (["train", "--name", "Poet"], "--name 'Poet' is taken by the built-in model"),
        (["dance"], "no command 'dance'"),
        (["--dance"], "--dance"),
    ],
)
def test_other_commands(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, arguments: list[str], words: str
) -> None:
    make_run("verse", {10: 2.0})
    assert re.search(words, refusal(capsys, *arguments))


@pytest.mark.parametrize(
    "setting",
    ["--temperature=-1", "--temperature=nan", "--temperature=inf", "--temperature=0,8",
     "--top-k=-5", "--top-k=2.5", "--max-new-tokens=-1", "--seed=-1", "--seed=x"],
)  # fmt: skip
def test_settings_of_generate(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, setting: str
) -> None:
    make_run("verse", {10: 2.0})
    name, _, value = setting.partition("=")
    said = refusal(capsys, "generate", "verse", setting)
    assert f"{name} is " in said and value in said


class TestList:
    def test_nothing_yet(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["list"]) == 0
        assert capsys.readouterr().out == "No runs yet: `tuigpt train` starts one.\n"

    def test_runs_and_checkpoints(
        self, capsys: pytest.CaptureFixture[str], make_run: MakeRun
    ) -> None:
        make_run("old", {10: 3.0, 20: 2.5}, created=1000)
        run = make_run("new", {1000: 2.0}, created=2000, state="failed",
                       message="the loss\nis \x1b[31mno number")  # fmt: skip
        (run.folder / "checkpoints" / "step-002000.safetensors").write_bytes(b"")
        (run.folder.parent / "broken").mkdir()
        (run.folder.parent / "broken" / "run.json").write_text("{")
        assert main(["list"]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        lines = [re.sub(r" +", " ", line.strip()) for line in out.splitlines()]
        lines = [re.sub(r"\d+ d\b", "AGO", line) for line in lines]
        assert [line for line in lines if not line.startswith("broken")] == [
            "new failed step 100/100 the loss⏎is ␛[31mno number",
            "step val train gap size age kept",
            "2,000 cannot be opened: the file is empty",
            "1,000 2.00 ★ 2.00 0.00 348 B AGO best, last",
            "old finished step 100/100",
            "20 2.50 ★ 2.50 0.00 346 B AGO best, last",
            "10 3.00 3.00 0.00 346 B AGO",
        ]
        assert any(line.startswith("broken ") for line in lines)

    def test_one_run(self, capsys: pytest.CaptureFixture[str], make_run: MakeRun) -> None:
        make_run("one")
        make_run("two")
        assert main(["list", "two"]) == 0
        assert capsys.readouterr().out == "two  finished  step 100/100\n"

    POET = [
        "poet built in",
        "step val train gap size age kept",
        "5,000 1.20 ★ 1.05 0.15 350 B best, last",
    ]

    def listed(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
        assert main(["list", *arguments]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    def test_the_built_in_model_comes_last(
        self, capsys: pytest.CaptureFixture[str], poet: Run, make_run: MakeRun
    ) -> None:
        assert self.listed(capsys) == ["No runs yet: `tuigpt train` starts one.", *self.POET]
        make_run("one")
        assert self.listed(capsys) == ["one finished step 100/100", *self.POET]
        assert self.listed(capsys, "poet") == self.POET

    def test_it_can_be_hidden_for_good(
        self, capsys: pytest.CaptureFixture[str], poet: Run, make_run: MakeRun
    ) -> None:
        make_run("one")
        assert self.listed(capsys, "--hide-poet") == ["one finished step 100/100"]
        assert self.listed(capsys) == ["one finished step 100/100"]
        assert self.listed(capsys, "poet") == self.POET  # asked for by name
        assert self.listed(capsys, "--show-poet")[1:] == self.POET
        assert self.listed(capsys)[1:] == self.POET
        assert "not allowed with" in refusal(capsys, "list", "--hide-poet", "--show-poet")

    def test_a_run_of_its_name_is_told_what_it_hides(
        self, capsys: pytest.CaptureFixture[str], poet: Run, make_run: MakeRun
    ) -> None:
        make_run("poet")
        first, note = self.listed(capsys)
        assert first == "poet finished step 100/100"
        assert "has the built-in model's name; rename its folder" in note
        assert self.listed(capsys, "--hide-poet") == [first]
        assert self.listed(capsys, "poet") == [first]


def test_help_tells_of_every_command_and_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--help"], ["train", "generate", "list", "stop", "--home"]),
        (
            ["train", "--help"],
            [
                "--preset {tiny,small,medium,large}",
                "--max-steps",
                "--minutes",
                "--name",
                "--resume",
                "--val-fraction",
                "as suits the minutes, else 5000",
            ],
        ),
        (["generate", "--help"], ["--temperature", "--top-k", "--seed", "default 0.8"]),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        out = re.sub(r"\s+", " ", capsys.readouterr().out)
        assert [word for word in words if word not in out] == []


def test_the_help_of_all_fits_a_terminal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("usage: tuigpt [COMMAND] [flags]\n")
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith(f"usage: tuigpt {command} ")
    assert f"examples:\n  tuigpt {'' if command == 'recite' else command}" in out


def test_a_home_before_the_command_or_behind_it(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    make_run("one")
    for arguments in (
        ["--home", str(tmp_path / "home"), "list"],
        ["list", f"--home={tmp_path / 'home'}"],
        ["--home=elsewhere", "list", "--home", str(tmp_path / "home")],
    ):
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith("one  finished")


def test_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "genrate", "poet")
    assert "no command 'genrate'; did you mean generate? (see tuigpt --help)" in said
    said = refusal(capsys, "train", "--max-step=5")
    assert "no flag '--max-step'; did you mean --max-steps? (see tuigpt train --help)" in said
    assert "no flag '--hom'; did you mean --home?" in refusal(capsys, "--hom=x", "list")


def test_the_workshops_spelling_of_flags(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    """`--max_steps` is `--max-steps`; behind `--` a text keeps its name."""
    (tmp_path / "--odd_name.txt").write_text(VERSE * 40, "utf-8")
    flags = [flag.replace("-", "_").replace("__", "--", 1) for flag in SMALL]
    assert flags[0] == "--n_layer=1"
    assert main(["train", *flags, "--max_steps=1", "--name=run", "--", "--odd_name.txt"]) == 0
    assert "finished at step 1" in capsys.readouterr().out
    assert (home / "runs" / "run" / "run.json").exists()
