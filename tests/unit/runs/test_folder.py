"""Runs and checkpoints by name: what is found, what is told when nothing is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import SHAPE, MakeRun, checkpoint_header, run_record, write_header_only

from tuigpt.errors import UserError
from tuigpt.files import folder_in_the_making, write_json
from tuigpt.paths import runs_dir
from tuigpt.runs.folder import (
    Run,
    checkpoint_path,
    is_run_name,
    list_checkpoints,
    open_run,
    run_folders,
)
from tuigpt.runs.names import (
    default_name,
    find_checkpoint,
    find_run,
    free_name,
    new_run_folder,
    passed_over,
)


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "日" * 64,
            "a",
            "verse-tiny-1",
            "My first run",
            "größe",
            "日本",
            "v1.2",
            "a+b",
            "1",
            "x" * 64,
            "A_b",
        ],
    )
    def test_a_run_may_be_called(self, name: str) -> None:
        assert is_run_name(name)

    @pytest.mark.parametrize(
        "name",
        ["", " ", ".", "..", "../x", "a/b", "a\\b", "a@1", "-a", ".hidden", "_a", "a ", "a.",
         "x" * 65, "a\nb", "a\x1b[31m", "a:b", "a*", "a\0", "\udcff", "~", "CON?", "𝔸" * 64],
    )  # fmt: skip
    def test_a_run_may_not_be_called(self, name: str, home: Path) -> None:
        assert not is_run_name(name)
        with pytest.raises(UserError, match="letters, digits"):
            new_run_folder(home, name)

    def test_a_taken_name_is_refused_with_a_free_one(self, make_run: MakeRun, home: Path) -> None:
        make_run("verse")
        with pytest.raises(UserError, match="a run 'verse' already; try name 'verse-1'"):
            new_run_folder(home, "verse")

    def test_free_names_count_up(self, make_run: MakeRun, home: Path) -> None:
        assert free_name(home, "verse-tiny") == "verse-tiny-1"
        make_run("verse-tiny-1")
        make_run("verse-tiny-3")
        assert free_name(home, "verse-tiny") == "verse-tiny-2"

    @pytest.mark.parametrize(
        "base", ["my text", "a/b:c*d", "...", "", "\u202e日本", "x" * 300, "-rf", "a\nb", "é" * 99]
    )
    def test_any_text_has_a_free_name_that_works(self, home: Path, base: str) -> None:
        name = free_name(home, base)
        assert is_run_name(name) and len(name.encode()) < 255
        new_run_folder(home, name)


class TestFindingRuns:
    def test_by_name(self, make_run: MakeRun, home: Path) -> None:
        made = make_run("verse", {10: 2.5})
        assert find_run("verse", home) == made

    def test_what_is_not_there_is_told_with_what_is(self, make_run: MakeRun, home: Path) -> None:
        with pytest.raises(UserError, match="no run 'x' in .*: there are no runs yet"):
            find_run("x", home)
        make_run("verse", created=10)
        make_run("prose", created=20)
        with pytest.raises(UserError, match="no run 'x' in .*: there are prose, verse$"):
            find_run("x", home)
        with pytest.raises(UserError, match="prose, verse; poet is the built-in model$"):
            find_checkpoint("x", home)

    @pytest.mark.parametrize("name", ["../verse", "", ".", "verse/", "x" * 5000, "a\0b"])
    def test_a_name_never_leads_outside(self, make_run: MakeRun, home: Path, name: str) -> None:
        make_run("verse")
        with pytest.raises(UserError, match="no run"):
            find_run(name, home)

    def test_newest_first_and_only_runs(self, make_run: MakeRun, home: Path) -> None:
        for age, name in enumerate(["old", "middle", "new"]):
            make_run(name, created=1000 + age)
        (runs_dir(home) / "notes").mkdir()
        (runs_dir(home) / "file.txt").write_text("x")
        (runs_dir(home) / ".partial-abc").mkdir()
        (runs_dir(home) / ".partial-abc" / "run.json").write_text("{}")
        assert [f.name for f in run_folders(home)] == ["new", "middle", "old"]

    def test_no_home_no_runs(self, home: Path) -> None:
        assert list(run_folders(home)) == []

    @pytest.mark.parametrize("content", ["", "{", "[]", "null", "\0\0", "[" * 100_000])
    def test_a_broken_run_is_listed_and_told(
        self, make_run: MakeRun, home: Path, content: str
    ) -> None:
        run = make_run("verse")
        (run.folder / "run.json").write_text(content)
        damaged = open_run(run.folder)
        assert damaged.problem.startswith("run.json: it ") and damaged.record is None
        assert find_run("verse", home) == damaged

    @pytest.mark.parametrize("what", ["folder", "fifo", "zeros", "link"])
    def test_something_else_in_the_place_of_its_record(
        self, make_run: MakeRun, home: Path, what: str
    ) -> None:
        run = make_run("verse", {10: 2.0})
        path = run.folder / "run.json"
        path.unlink()
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to(home / "nowhere")
        else:
            with open(path, "wb") as stream:
                stream.truncate(2 << 30)
        damaged = open_run(run.folder)
        words = {
            "folder": "it is a folder", "fifo": "it is no regular file", "zeros": "larger",
            "link": "leads nowhere",
        }  # fmt: skip
        assert words[what] in damaged.problem
        assert damaged.best and damaged.best.step == 10
        assert list(run_folders(home)) == [run.folder]

    @pytest.mark.parametrize(
        ("facts", "words"),
        [
            ({"baselines": None}, "run.json: baselines should be object, not null"),
            ({"model": SHAPE | {"n_embd": "8"}}, "run.json: model.n_embd should be int, not str"),
            ({"model": SHAPE | {"n_embd": 10**400}}, "run.json: model.n_embd is larger"),
            ({"model": SHAPE | {"n_head": 3}}, "run.json: n_head is 3, but it must be"),
            ({"train": {"recipe": "lion"}}, "run.json: recipe is 'lion', but it must be"),
            ({"format": 2}, "run.json: it was written by a newer tuigpt: its format is 2, and"),
            ({"corpus": {"sources": "verse.txt"}}, "run.json: corpus.sources should be array"),
            ({"versions": {"torch": [[[]]]}}, "run.json: versions[...] should be str"),
        ],
    )
    def test_a_wrong_value_of_one_field_is_told(
        self, make_run: MakeRun, facts: dict[str, object], words: str
    ) -> None:
        run = make_run("verse", {10: 2.0})
        write_json(run.folder / "run.json", run_record("verse", {}) | facts)
        damaged = open_run(run.folder)
        assert damaged.problem.startswith(words) and len(damaged.problem) < 400
        assert damaged.last and damaged.last.step == 10

    def test_a_home_that_cannot_be_read_is_told(self, home: Path) -> None:
        home.mkdir()
        (home / "runs").write_text("no folder")
        with pytest.raises(UserError, match="cannot read '.*runs': Not a directory"):
            list(run_folders(home))

    def test_a_name_with_escapes_is_safe_to_show(self, make_run: MakeRun) -> None:
        run = make_run("verse", {10: 2.0})
        evil = run.folder.rename(run.folder.parent / "a\x1b[31m\n\udcffb")
        found = open_run(evil)
        assert found.name == "a␛[31m⏎\ufffdb" and found.checkpoints[0].run == found.name

    def test_a_run_deleted_while_the_runs_are_listed(
        self, make_run: MakeRun, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was there when the folder was read, and is gone when its age is asked for."""
        make_run("stays")
        make_run("goes")
        really = os.listdir

        def listdir(folder: str | Path) -> list[str]:
            names = really(folder)
            shutil.rmtree(runs_dir(home) / "goes", ignore_errors=True)
            return names

        monkeypatch.setattr(os, "listdir", listdir)
        assert [f.name for f in run_folders(home)] == ["stays"]


class TestCheckpoints:
    def test_they_are_listed_by_step(self, make_run: MakeRun) -> None:
        run = make_run("verse", {1000: 2.0, 50: 3.0, 999_999_999: 1.0, 0: None})
        assert [c.step for c in run.checkpoints] == [0, 50, 1000, 999_999_999]
        assert run.checkpoints[1].label == "verse@50"

    def test_best_is_the_lowest_val_loss_and_last_the_newest(self, make_run: MakeRun) -> None:
        run = make_run("verse", {10: 3.0, 20: 1.5, 30: 1.5, 40: None, 50: 2.0})
        assert run.best and run.best.step == 20  # the earlier of equals
        assert run.last and run.last.step == 50

    def test_the_untrained_model_is_never_the_best(self, make_run: MakeRun) -> None:
        run = make_run("verse", {0: 1.0, 10: 3.0})
        assert run.best and run.best.step == 10

    def test_a_loss_that_is_no_number_is_never_the_best(self, make_run: MakeRun) -> None:
        run = make_run("verse", {20: 2.0, 30: 1.0})
        odd = (
            (10, "null"),
            (40, "-Infinity"),
            (15, '"low"'),
            (5, "NaN"),
            (45, "-1.5"),
            (50, "-0.1"),
        )
        for step, loss in odd:
            path = checkpoint_path(run.folder, step)
            header = checkpoint_header(step)["tuigpt"].replace(
                '"val_loss": null', f'"val_loss": {loss}'
            )
            write_header_only(path, {"tuigpt": header})
        run = open_run(run.folder)
        assert len(run.checkpoints) == 8 and run.best and run.best.step == 30

    def test_none_measured_none_best(self, make_run: MakeRun) -> None:
        run = make_run("verse", {10: None})
        assert run.best is None and run.last is not None
        assert make_run("empty").last is None

    def test_broken_ones_are_listed_with_the_reason(self, make_run: MakeRun) -> None:
        run = make_run("verse", {10: 2.0})
        folder = run.folder / "checkpoints"
        whole = checkpoint_path(run.folder, 10).read_bytes()
        (folder / "step-000020.safetensors").write_bytes(whole[:-5])
        (folder / "step-000030.safetensors").write_bytes(b"")
        (folder / "step-000040.safetensors").write_bytes(b"<html>404</html>")
        write_header_only(folder / "step-000050.safetensors", {"tuigpt": "{}"})
        write_header_only(folder / "step-000060.safetensors", None)
        os.symlink(folder / "nowhere", folder / "step-000070.safetensors")
        (folder / "step-000080.safetensors").mkdir()
        (folder / ".partial-x.safetensors").write_bytes(b"half")
        (folder / "notes.txt").write_text("x")
        (folder / "ckpt-90.pt").write_bytes(b"PK\x03\x04")
        run = open_run(run.folder)
        problems = {c.step: c.problem for c in run.checkpoints}
        assert problems.pop(10) == ""
        assert set(problems) == {20, 30, 40, 50, 60, 80, 90} and all(problems.values())
        assert problems[30] == "the file is empty"
        assert problems[80] == "it is a folder"
        assert problems[90] == "another program's: import it"
        assert "not one of tuigpt's" in problems[60]
        assert run.last and run.last.step == 10

    def test_one_deleted_while_they_are_listed(
        self, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = make_run("verse", {10: 2.0, 20: 1.0})
        really = os.listdir

        def listdir(folder: str | Path) -> list[str]:
            names = really(folder)
            checkpoint_path(run.folder, 20).unlink(missing_ok=True)
            return names

        monkeypatch.setattr(os, "listdir", listdir)
        assert [c.step for c in list_checkpoints(run.folder)] == [10]

    def test_a_run_without_the_folder_has_none(self, make_run: MakeRun) -> None:
        run = make_run("verse")
        (run.folder / "checkpoints").rmdir()
        assert list_checkpoints(run.folder) == ()


class TestFindingCheckpoints:
    @pytest.fixture(autouse=True)
    def runs(self, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        make_run("verse", {10: 3.0, 20: 1.5, 30: 2.0})
        make_run("v1.2", {7: 3.0})
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("spec", "step"),
        [("verse", 30), ("verse@last", 30), ("verse@best", 20), ("verse@10", 10),
         ("v1.2", 7), ("v1.2@7", 7), ("v1.2@best", 7)],
    )  # fmt: skip
    def test_by_what_people_call_them(self, home: Path, spec: str, step: int) -> None:
        assert find_checkpoint(spec, home).step == step

    def test_by_path(self, home: Path, tmp_path: Path) -> None:
        path = checkpoint_path(runs_dir(home) / "verse", 10)
        assert find_checkpoint(str(path), home).label == "verse@10"
        shutil.copy(path, tmp_path / "gift.safetensors")
        assert find_checkpoint("gift.safetensors", home).label == "gift"

    def test_by_path_from_home(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        write_header_only(tmp_path / "gift.safetensors", checkpoint_header(5))
        assert find_checkpoint("~/gift.safetensors", home).step == 5

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ("verse@11", "run 'verse' has no checkpoint '11'; its steps: 10, 20, 30"),
            ("verse@", None),
            ("verse@worst", "no checkpoint 'worst'"),
            ("verse@-1", "no checkpoint '-1'"),
            ("prose", "no run 'prose' in .*: there are "),
            ("prose@10", "no run 'prose'"),
            ("gone.safetensors", "no checkpoint at 'gone.safetensors'"),
            ("some/where", "no checkpoint at 'some/where'"),
            ("~nobody-of-that-name/x", "no checkpoint at"),
            ("", "no run ''"),
            ("x" * 5000, "no run"),
            ("a\0b", "no run"),
        ],
    )
    def test_what_is_not_there_is_told(self, home: Path, spec: str, words: str | None) -> None:
        if words is None:
            assert find_checkpoint(spec, home).step == 30
            return
        with pytest.raises(UserError, match=words):
            find_checkpoint(spec, home)

    def test_a_run_that_has_none_yet(self, make_run: MakeRun, home: Path) -> None:
        make_run("fresh")
        with pytest.raises(UserError, match="no checkpoint 'last'; its steps: none yet"):
            find_checkpoint("fresh", home)


class TestARunAndAFileOfOneName:
    @pytest.fixture(autouse=True)
    def here(self, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        make_run("verse", {10: 3.0})
        monkeypatch.chdir(tmp_path)
        write_header_only(tmp_path / "verse", checkpoint_header(99))

    @pytest.mark.parametrize("spec", ["verse", "verse@10"])
    def test_the_name_is_the_run(self, home: Path, tmp_path: Path, spec: str) -> None:
        (tmp_path / "verse@10").write_text("")
        assert find_checkpoint(spec, home).label == "verse@10"
        assert passed_over(spec, home) == Path(spec)

    def test_a_path_is_the_file(self, home: Path) -> None:
        assert find_checkpoint("./verse", home).step == 99
        assert passed_over("./verse", home) is None

    def test_the_poet_is_not_hidden_by_what_the_shell_makes_for_its_text(
        self, poet: Run, home: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "poet").write_text("")
        assert find_checkpoint("poet", home) == poet.last

    def test_where_there_is_no_such_run_it_is_the_file(self, home: Path, tmp_path: Path) -> None:
        write_header_only(tmp_path / "gift", checkpoint_header(7))
        assert find_checkpoint("gift", home).step == 7
        assert passed_over("gift", home) is None


@pytest.mark.parametrize(
    ("sources", "name"),
    [
        (["shakespeare"], "shakespeare-tiny-1"),
        (["texts/my poems.txt"], "my-poems-tiny-1"),
        (["a.txt", "b.txt"], "a+1-tiny-1"),
        (["~/x.tar.gz"], "x.tar-tiny-1"),
        ([""], "text-tiny-1"),
    ],
)
def test_what_a_run_is_called_where_nobody_says(home: Path, sources: list[str], name: str) -> None:
    assert default_name(home, sources, "tiny") == name


def test_a_run_appears_whole_or_not_at_all(home: Path) -> None:
    with folder_in_the_making(runs_dir(home) / "verse") as draft:
        (draft / "run.json").write_text("{}")
        assert list(run_folders(home)) == []
    assert [f.name for f in run_folders(home)] == ["verse"]
