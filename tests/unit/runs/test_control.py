"""Requests to a trainer: numbered, handed out once, none lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from filelock import lock_descriptor
from json_files import read_json

from tuigpt.errors import ConfigError
from tuigpt.runs.control import (
    ACTIONS,
    CHANGEABLE,
    CONTROL_FILE,
    LOCK_FILE,
    Request,
    Requests,
    last_request,
    request,
)
from tuigpt.runs.status import RunStatus, write_status


def asked(requests: Requests) -> list[str]:
    return [wanted.action.name for wanted in requests.new()]


def test_each_request_is_handed_out_once_and_in_order(tmp_path: Path) -> None:
    requests = Requests(tmp_path, 0)
    assert list(requests.new()) == []
    assert [request(tmp_path, a) for a in ("sample", "pause", "resume", "sample")] == [1, 2, 3, 4]
    assert asked(requests) == ["sample", "pause", "resume", "sample"]
    assert requests.answered == 4
    assert list(requests.new()) == []
    request(tmp_path, "stop")
    assert asked(requests) == ["stop"]


def test_answered_follows_each_that_is_taken(tmp_path: Path) -> None:
    """So the trainer can tell of each when it is carried out, not before."""
    requests = Requests(tmp_path, 0)
    request(tmp_path, "sample")
    request(tmp_path, "checkpoint")
    assert [(wanted.action.name, requests.answered) for wanted in requests.new()] == [
        ("sample", 1), ("checkpoint", 2),
    ]  # fmt: skip


def test_one_that_comes_while_another_is_carried_out_is_not_lost(tmp_path: Path) -> None:
    requests = Requests(tmp_path, 0)
    request(tmp_path, "sample")
    taken = []
    for wanted in requests.new():
        taken.append(wanted.action.name)
        if len(taken) == 1:
            request(tmp_path, "stop")
    taken += asked(requests)
    assert taken == ["sample", "stop"]


def test_what_is_answered_is_cleared_away_and_numbers_go_on(tmp_path: Path) -> None:
    for _ in range(3):
        request(tmp_path, "sample")
    write_status(tmp_path, RunStatus(answered=2))
    assert request(tmp_path, "stop") == 4
    entries = read_json(tmp_path / CONTROL_FILE)["requests"]
    assert [e["number"] for e in entries] == [3, 4]
    write_status(tmp_path, RunStatus(answered=4))
    (tmp_path / CONTROL_FILE).unlink()
    assert request(tmp_path, "stop") == 5  # never a number that was answered


def test_requests_from_before_are_not_for_a_new_trainer(tmp_path: Path) -> None:
    """A stop that a killed trainer never saw does not stop the resumed one."""
    request(tmp_path, "stop")
    requests = Requests(tmp_path, last_request(tmp_path))
    assert list(requests.new()) == []
    request(tmp_path, "sample")
    assert asked(requests) == ["sample"]


def test_one_made_while_a_trainer_starts_is_for_it(tmp_path: Path) -> None:
    before = last_request(tmp_path)  # then the status says that there is a trainer,
    request(tmp_path, "stop")  # somebody stops it,
    assert asked(Requests(tmp_path, before)) == ["stop"]  # and it comes to look


def test_a_change_carries_its_value(tmp_path: Path) -> None:
    requests = Requests(tmp_path, 0)
    request(tmp_path, "learning_rate", 0.01)
    request(tmp_path, "dropout", 0)
    assert list(requests.new()) == [
        Request(ACTIONS["learning_rate"], 0.01), Request(ACTIONS["dropout"], 0)
    ]  # fmt: skip
    with pytest.raises(ValueError, match="unknown action 'stop'"):
        request(tmp_path, "stop", 1.0)


def test_an_unknown_action_is_a_mistake_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown action 'quit'"):
        request(tmp_path, "quit")
    assert {"stop", "pause", "resume", "checkpoint", "sample", "evaluate"} <= set(ACTIONS)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"requests": 5}', '{"requests": [{}]}', '{"requests": [5]}',
     '{"requests": [{"number": "1", "action": "stop"}]}',
     '{"requests": [{"number": 1, "action": "rm -rf"}]}',
     '{"requests": [{"number": 1e400, "action": "stop"}]}', "9" * 5000, "[" * 5000,
     '{"requests": [{"number": -1, "action": "stop"}]}', "\0" * 100,
     '{"requests": [{"number": 1, "action": "dropout"}]}',
     '{"requests": [{"number": 1, "action": "dropout", "value": "0.1"}]}',
     '{"requests": [{"number": 1, "action": "stop", "value": 1}]}'],
)  # fmt: skip
def test_a_broken_file_asks_for_nothing_and_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / CONTROL_FILE).write_text(content)
    requests = Requests(tmp_path, last_request(tmp_path))
    assert list(requests.new()) == []
    request(tmp_path, "sample")
    assert asked(requests) == ["sample"]


def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer looks after each step: it must cost nothing."""
    requests = Requests(tmp_path, 0)
    request(tmp_path, "sample")
    list(requests.new())
    monkeypatch.setattr(
        "tuigpt.runs.control.read_record", lambda *arguments: pytest.fail("read again")
    )
    assert list(requests.new()) == []


def test_requests_of_the_same_instant_are_all_kept(tmp_path: Path) -> None:
    at_once = Barrier(8)

    def ask(value: int) -> int:
        at_once.wait()
        return request(tmp_path, "learning_rate", value)

    with ThreadPoolExecutor(8) as people:
        numbers = list(people.map(ask, range(8)))
    assert sorted(numbers) == list(range(1, 9))
    told = list(Requests(tmp_path, 0).new())
    assert sorted(r.value for r in told if r.value is not None) == list(range(8))


def test_nobody_waits_for_ever_behind_one_who_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuigpt.runs.control.PATIENCE", 0.01)
    with open(tmp_path / LOCK_FILE, "w") as hanging:
        assert lock_descriptor(hanging.fileno(), blocking=False)
        assert request(tmp_path, "stop") == 1
    assert asked(Requests(tmp_path, 0)) == ["stop"]


def test_a_run_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        request(tmp_path / "gone", "stop")
    assert not (tmp_path / "gone").exists()


def test_the_table_explains_each_action_and_answers_in_words() -> None:
    for name, action in ACTIONS.items():
        assert action.name == name and action.help and action.at_once
        assert "{" not in action.done.format(step=413, before=0.02, value=0.005)
    assert ACTIONS["checkpoint"].done.format(step=1413) == "saved step 1,413"


def test_a_setting_is_checked_by_the_configuration_that_has_it() -> None:
    assert CHANGEABLE["learning_rate"].parse("1e-3") == 1e-3
    assert CHANGEABLE["dropout"].live and not CHANGEABLE["device"].live
    for name, text in (("dropout", "1.5"), ("learning_rate", "much"), ("patience", "-1")):
        with pytest.raises(ConfigError) as raised:
            CHANGEABLE[name].parse(text)
        assert raised.value.field == name


def test_what_a_link_points_to_is_never_written(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / CONTROL_FILE).symlink_to(precious)
    request(folder, "stop")
    assert precious.read_text() == "precious" and not (folder / CONTROL_FILE).is_symlink()
    (folder / LOCK_FILE).unlink()
    (folder / LOCK_FILE).symlink_to(precious)
    with pytest.raises(OSError):
        request(folder, "stop")
    assert precious.read_text() == "precious"
