"""The built-in model among the runs: its name, where it is listed, what cannot be done to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import MakeRun, checkpoint_header, write_header_only

from tuigpt.errors import UserError
from tuigpt.runs.control import request
from tuigpt.runs.folder import Run
from tuigpt.runs.follow import Follower
from tuigpt.runs.names import find_checkpoint, find_model, find_run, free_name, new_run_folder
from tuigpt.runs.poet import hide_poet, listed_poet, poet_is_hidden


class TestItsName:
    @pytest.mark.parametrize("spec", ["poet", "poet@best", "poet@last", "poet@5000", "poet@"])
    def test_finds_it_in_a_home_that_is_not_there(self, poet: Run, home: Path, spec: str) -> None:
        found = find_checkpoint(spec, home)
        assert found == poet.last and found.label == "poet@5000" and found.built_in
        assert not home.exists()

    def test_another_step_is_told(self, poet: Run, home: Path) -> None:
        with pytest.raises(UserError, match="'poet' has no checkpoint '7'; its steps: 5000"):
            find_checkpoint("poet@7", home)

    @pytest.mark.parametrize("name", ["poet.safetensors", "poet-run.json"])
    def test_an_installation_without_it_says_so(
        self, poet: Run, poet_assets: Path, home: Path, name: str
    ) -> None:
        (poet_assets / name).unlink()
        words = f"the built-in poet is not in this installation, '.*{name}' is missing: install"
        with pytest.raises(UserError, match=words):
            find_checkpoint("poet", home)
        assert listed_poet(home) is None

    @pytest.mark.parametrize("name", ["poet.safetensors", "poet-run.json"])
    def test_a_broken_one_says_so(
        self, poet: Run, poet_assets: Path, home: Path, name: str
    ) -> None:
        (poet_assets / name).write_bytes(b"\0" * 20)
        with pytest.raises(UserError, match=f"built-in poet cannot be opened, '.*{name}': "):
            find_checkpoint("poet@best", home)
        assert listed_poet(home) is None

    def test_a_log_that_is_missing_is_an_empty_curve(
        self, poet: Run, poet_assets: Path, home: Path
    ) -> None:
        (poet_assets / "poet-metrics.jsonl").unlink()
        assert Follower(home).look("poet").history.train == []

    @pytest.mark.parametrize("name", ["poet", "Poet", "POET"])
    def test_no_new_run_may_have_it(self, home: Path, name: str) -> None:
        with pytest.raises(UserError, match=f"{name}' is taken by the built-in.* '{name}-1'"):
            new_run_folder(home, name)
        assert new_run_folder(home, free_name(home, name)).name == f"{name}-1"

    @pytest.mark.parametrize("name", ["poets", "poet 2", "my poet"])
    def test_names_like_it_are_free(self, home: Path, name: str) -> None:
        assert new_run_folder(home, name).name == name

    def test_it_is_no_run_that_could_be_asked_for_something(self, poet: Run, home: Path) -> None:
        with pytest.raises(UserError, match="'poet' is the built-in model, not a run"):
            find_run("poet", home)
        assert not poet.status.alive and not poet.folder.exists()
        with pytest.raises(OSError):
            request(poet.folder, "stop")

    def test_a_run_of_an_older_home_keeps_it(
        self, poet: Run, make_run: MakeRun, home: Path
    ) -> None:
        """Whoever called a run so gets that run, whatever else has the name by now."""
        own = make_run("poet", {10: 2.0, 20: 1.5})
        assert find_run("poet", home) == own == find_model("poet", home)
        assert find_checkpoint("poet", home) == own.last
        assert find_checkpoint("poet@10", home).step == 10
        assert listed_poet(home) is None
        snapshot = Follower(home).look("poet")
        assert snapshot.watched == own and snapshot.poet is None

    def test_a_path_to_it_works_too(self, poet: Run, poet_assets: Path, home: Path) -> None:
        assert find_checkpoint(str(poet_assets / "poet.safetensors"), home).step == 5000


class TestHiding:
    def test_hidden_means_not_listed(self, poet: Run, home: Path) -> None:
        assert not poet_is_hidden(home) and listed_poet(home) == poet
        hide_poet(True)
        assert poet_is_hidden(home) and listed_poet(home) is None
        assert find_checkpoint("poet", home) == poet.last
        hide_poet(False)
        assert listed_poet(home) == poet


class TestFollowing:
    def test_it_is_seen_but_not_watched_by_itself(
        self, poet: Run, make_run: MakeRun, home: Path
    ) -> None:
        follower = Follower(home)
        snapshot = follower.look(None)
        assert snapshot.runs == () and snapshot.poet == poet and snapshot.watched is None
        run = make_run("verse", {10: 2.0})
        snapshot = follower.look(None)
        assert snapshot.runs == (run,) and snapshot.watched == run

    def test_its_curve_can_be_watched(self, poet: Run, make_run: MakeRun, home: Path) -> None:
        make_run("verse", {10: 2.0}, [{"kind": "step", "step": 1, "loss": 4.0}])
        follower = Follower(home)
        snapshot = follower.look("poet")
        assert snapshot.watched == poet and snapshot.history.val == [(5000, 1.2)]
        assert follower.look("verse").history.train == [(1, 4.0)]

    def test_hiding_and_showing_is_noticed(self, poet: Run, home: Path) -> None:
        follower = Follower(home)
        follower.look("poet")
        hide_poet(True)
        snapshot = follower.look("poet")
        assert snapshot.poet is None and snapshot.watched is None
        hide_poet(False)
        assert follower.look("poet").poet == poet

    def test_one_that_is_replaced_is_read_again(
        self, poet: Run, poet_assets: Path, home: Path
    ) -> None:
        follower = Follower(home)
        follower.look(None)
        write_header_only(poet_assets / "poet.safetensors", checkpoint_header(6000, val_loss=1.1))
        newer = follower.look(None).poet
        assert newer and newer.last and newer.last.label == "poet@6000"
