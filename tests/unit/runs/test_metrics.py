"""metrics.jsonl: whole lines, read once each, and the series made of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tuigpt.runs.metrics import METRICS_FILE, History, MetricsLog, MetricsTail


@pytest.fixture
def log(tmp_path: Path) -> MetricsLog:
    return MetricsLog(tmp_path)


class TestWriting:
    def test_each_record_is_a_line_at_once(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append("step", 1, loss=4.25)
        assert (tmp_path / METRICS_FILE).read_text() == (
            '{"kind": "step", "step": 1, "loss": 4.25}\n'
        )

    def test_nan_and_infinity_are_null_and_named(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append("step", 1, loss=math.nan, grad_norm=math.inf)
        line = (tmp_path / METRICS_FILE).read_text()
        assert '"loss": null' in line and '"nonfinite": ["loss", "grad_norm"]' in line

    def test_any_text_is_one_line(self, log: MetricsLog, tmp_path: Path) -> None:
        text = 'a\nb\r\u2028\x85\x1b[31m"日🙂\udcff'
        log.append("sample", 3, text=text)
        assert (tmp_path / METRICS_FILE).read_bytes().count(b"\n") == 1
        assert MetricsTail(tmp_path / METRICS_FILE).read_new()[0]["text"] == text

    def test_a_resumed_run_goes_on_in_the_same_log(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append("step", 1)
        log.close()
        again = MetricsLog(tmp_path)
        again.append("step", 2)
        assert [r["step"] for r in MetricsTail(tmp_path / METRICS_FILE).read_new()] == [1, 2]

    @pytest.mark.parametrize("torn", [b'{"kind": "st', b"{", b'{"kind": "step", "step": 2}'])
    def test_a_line_torn_by_a_kill_spoils_nothing(
        self, log: MetricsLog, tmp_path: Path, torn: bytes
    ) -> None:
        log.append("step", 1)
        log.close()
        with open(tmp_path / METRICS_FILE, "ab") as stream:
            stream.write(torn)
        MetricsLog(tmp_path).append("step", 3)
        assert [r["step"] for r in MetricsTail(tmp_path / METRICS_FILE).read_new()] == [1, 3]

    def test_a_log_of_one_torn_line_begins_anew(self, tmp_path: Path) -> None:
        (tmp_path / METRICS_FILE).write_bytes(b'{"kin')
        MetricsLog(tmp_path).append("step", 1)
        assert [r["step"] for r in MetricsTail(tmp_path / METRICS_FILE).read_new()] == [1]


class TestReading:
    def test_each_line_is_read_once(self, log: MetricsLog, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        assert tail.read_new() == []
        log.append("step", 1)
        log.append("step", 2)
        assert [r["step"] for r in tail.read_new()] == [1, 2]
        assert tail.read_new() == []
        log.append("step", 3)
        assert [r["step"] for r in tail.read_new()] == [3]

    def test_before_there_is_a_log(self, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        assert tail.read_new() == []
        MetricsLog(tmp_path).append("step", 1)
        assert len(tail.read_new()) == 1

    def test_half_a_line_waits_for_its_other_half(self, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        line = '{"kind": "sample", "step": 1, "text": "日本"}\n'.encode()
        for end in range(1, len(line)):
            (tmp_path / METRICS_FILE).write_bytes(line[:end])
            assert tail.read_new() == []
        (tmp_path / METRICS_FILE).write_bytes(line)
        assert [r["text"] for r in tail.read_new()] == ["日本"]

    def test_lines_that_are_none_are_passed_over(self, tmp_path: Path) -> None:
        lines = [b"", b"nonsense", b"[1]", b"null", b"\xff\xfe", b"\0" * 20, b"[" * 100_000]
        good = b'{"kind": "step", "step": 1}'
        (tmp_path / METRICS_FILE).write_bytes(b"\n".join([*lines, good]) + b"\n")
        assert [r["step"] for r in MetricsTail(tmp_path / METRICS_FILE).read_new()] == [1]


def step(number: int, loss: object = 1.0, **more: object) -> dict[str, object]:
    return {"kind": "step", "step": number, "loss": loss, "learning_rate": 0.5} | more


def evaluation(number: int, loss: float, whole: bool = False) -> dict[str, object]:
    return {"kind": "eval", "step": number, "val_loss": loss, "whole": whole}


def sample(number: int, text: str = "x") -> dict[str, object]:
    return {"kind": "sample", "step": number, "text": text}


def history_of(*records: dict[str, object]) -> History:
    history = History()
    for record in records:
        history.add(record)
    return history


class TestHistory:
    def test_series(self) -> None:
        history = history_of(
            evaluation(0, 4.1), step(1, 4.0), step(2, 3.5), evaluation(2, 3.4), sample(2, "abc")
        )
        assert history.train == [(1, 4.0), (2, 3.5)]
        assert history.val == [(0, 4.1), (2, 3.4)]
        assert [s["text"] for s in history.samples] == ["abc"]
        assert history.learning_rate == 0.5

    def test_the_whole_part_is_no_point_of_the_curve(self) -> None:
        assert history_of(evaluation(2, 3.4), evaluation(2, 3.3, whole=True)).val == [(2, 3.4)]

    def test_nan_stays_at_its_step(self) -> None:
        history = history_of(step(1, 2.0), step(2, math.nan), step(3, 1.0))
        assert [s for s, _ in history.train] == [1, 2, 3]
        assert math.isnan(history.train[1][1])

    def test_a_resumed_run_takes_the_place_of_what_was_ahead(self) -> None:
        """Killed at step 5, it goes on from 2: nothing that it has not done again is shown."""
        history = history_of(
            *(step(n) for n in range(1, 6)), evaluation(4, 2.0), sample(4),
            {"kind": "event", "step": 2, "message": "resumed at step 2"},
        )  # fmt: skip
        assert [s for s, _ in history.train] == [1, 2]
        assert history.val == [] and history.samples == []
        history.add(step(3, 0.25))
        assert history.train[-1] == (3, 0.25)

    def test_an_evaluation_done_again_replaces_its_point(self) -> None:
        history = history_of(evaluation(5, 2.0), sample(5, "a"), evaluation(5, 2.5), sample(5, "b"))
        assert history.val == [(5, 2.5)]
        assert [s["text"] for s in history.samples] == ["b"]

    @pytest.mark.parametrize(
        "record",
        [{}, {"kind": "step"}, {"step": "x", "kind": "step"}, {"kind": "step", "step": None},
         {"kind": 5, "step": 1}, {"step": 1}, step(1, None), step(1, "low"), step(1, [])],
    )  # fmt: skip
    def test_odd_records_do_no_harm(self, record: dict[str, object]) -> None:
        history = history_of(step(1, 2.0), record, step(2, 1.0))
        assert history.train[-1] == (2, 1.0)
