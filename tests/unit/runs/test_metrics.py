"""metrics.jsonl: whole lines, read once each, and the series made of them."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from tuigpt.runs import metrics
from tuigpt.runs.history import MOST_EVENTS, MOST_GROUPS, MOST_SAMPLES, History, Points
from tuigpt.runs.metrics import (
    METRICS_FILE,
    AnyLine,
    EvalLine,
    EventLine,
    MetricsLog,
    MetricsTail,
    SampleLine,
    StepLine,
)


@pytest.fixture
def log(tmp_path: Path) -> MetricsLog:
    return MetricsLog(tmp_path)


def read(tail: MetricsTail) -> list[AnyLine]:
    lines, restarted = tail.read_new()
    assert not restarted
    return lines


def steps(folder: Path) -> list[int]:
    tail = MetricsTail(folder / METRICS_FILE)
    found = read(tail)
    while tail.more:
        found += read(tail)
    return [line.step for line in found]


class TestWriting:
    def test_each_record_is_a_line_at_once(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append(EventLine(step=1, message="größe"))
        assert (tmp_path / METRICS_FILE).read_text("utf-8") == (
            '{"kind": "event", "step": 1, "message": "größe"}\n'
        )

    def test_nan_and_infinity_are_null_and_named(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append(StepLine(step=1, loss=math.nan, grad_norm=math.inf))
        line = json.loads((tmp_path / METRICS_FILE).read_text())
        assert line["loss"] is None and line["nonfinite"] == ["loss", "grad_norm"]

    def test_any_text_is_one_line(self, log: MetricsLog, tmp_path: Path) -> None:
        text = 'a\nb\r\u2028\x85\x1b[31m"日🙂\udcff'
        log.append(SampleLine(step=3, text=text))
        assert (tmp_path / METRICS_FILE).read_bytes().count(b"\n") == 1
        [line] = read(MetricsTail(tmp_path / METRICS_FILE))
        assert isinstance(line, SampleLine) and line.text == text

    def test_a_resumed_run_appends_to_the_same_log(self, log: MetricsLog, tmp_path: Path) -> None:
        log.append(StepLine(step=1))
        log.close()
        MetricsLog(tmp_path).append(StepLine(step=2))
        assert steps(tmp_path) == [1, 2]

    @pytest.mark.parametrize(
        "torn", [b'{"kind": "st', b"{", b'{"kind": "step", "step": 2}', b"x" * 300]
    )
    def test_a_line_torn_by_a_kill_spoils_nothing(
        self, log: MetricsLog, tmp_path: Path, torn: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics, "PIECE", 200)
        log.append(StepLine(step=1))
        log.close()
        with open(tmp_path / METRICS_FILE, "ab") as stream:
            stream.write(torn)
        MetricsLog(tmp_path).append(StepLine(step=3))
        assert steps(tmp_path) == [1, 3]

    def test_a_log_of_one_torn_line_begins_anew(self, tmp_path: Path) -> None:
        (tmp_path / METRICS_FILE).write_bytes(b'{"kin')
        MetricsLog(tmp_path).append(StepLine(step=1))
        assert steps(tmp_path) == [1]

    def test_what_a_link_points_to_is_never_written(self, tmp_path: Path) -> None:
        precious = tmp_path / "precious"
        precious.write_text("precious")
        (tmp_path / METRICS_FILE).symlink_to(precious)
        with pytest.raises(OSError):
            MetricsLog(tmp_path)
        assert precious.read_text() == "precious"


class TestReading:
    def test_each_line_is_read_once(self, log: MetricsLog, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        assert read(tail) == []
        log.append(StepLine(step=1))
        log.append(StepLine(step=2))
        assert read(tail) == [StepLine(step=1), StepLine(step=2)]
        assert read(tail) == []
        log.append(StepLine(step=3))
        assert read(tail) == [StepLine(step=3)]

    def test_before_there_is_a_log(self, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        assert read(tail) == []
        MetricsLog(tmp_path).append(StepLine(step=1))
        assert len(read(tail)) == 1

    def test_half_a_line_waits_for_its_other_half(self, tmp_path: Path) -> None:
        tail = MetricsTail(tmp_path / METRICS_FILE)
        line = '{"kind": "sample", "step": 1, "text": "日本"}\n'.encode()
        with open(tmp_path / METRICS_FILE, "ab", buffering=0) as stream:
            for byte in line[:-1]:
                stream.write(bytes([byte]))
                assert read(tail) == []
            stream.write(line[-1:])
        assert read(tail) == [SampleLine(step=1, text="日本")]

    @pytest.mark.parametrize(
        "line",
        [b"", b"nonsense", b"[1]", b"null", b"\xff\xfe", b"\0" * 20, b"[" * 100_000, b"{}",
         b'{"kind": "step"}', b'{"kind": "step", "step": "x"}', b'{"kind": "step", "step": null}',
         b'{"kind": 5, "step": 1}', b'{"kind": "mood", "step": 1}', b'{"step": 1}',
         b'{"kind": "step", "step": -1}', b'{"kind": "step", "step": %s}' % (b"9" * 401),
         b'{"kind": "step", "step": 1, "loss": "low"}', b'{"kind": "step", "step": 1, "loss": []}',
         b'{"kind": "step", "step": 1, "loss": 1e999}', b'{"kind": "step", "step": 1, "loss": NaN}',
         b'{"kind": "sample", "step": 1, "text": 5}', b'{"kind": "event", "step": 1, "message": 1}',
         b'{"kind": "step", "step": 1, "nonfinite": 7}'],
    )  # fmt: skip
    def test_lines_that_are_none_are_skipped(self, tmp_path: Path, line: bytes) -> None:
        good = b'{"kind": "step", "step": %d}'
        (tmp_path / METRICS_FILE).write_bytes(b"\n".join([good % 1, line, good % 2, b""]))
        assert steps(tmp_path) == [1, 2]

    def test_a_line_that_is_too_long_is_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics, "PIECE", 100)
        good = b'{"kind": "step", "step": %d}\n'
        long = b'{"kind": "sample", "step": 2, "text": "%s"}\n' % (b"x" * 1000)
        (tmp_path / METRICS_FILE).write_bytes(good % 1 + long + good % 3 + good % 4)
        assert steps(tmp_path) == [1, 3, 4]

    def test_a_log_that_was_cut_or_replaced_is_read_anew(self, tmp_path: Path) -> None:
        path = tmp_path / METRICS_FILE
        good = b'{"kind": "step", "step": %d}\n'
        path.write_bytes(good % 1 + good % 2)
        tail = MetricsTail(path)
        read(tail)
        path.write_bytes(good % 3)
        assert tail.read_new() == ([StepLine(step=3)], True)
        path.rename(tmp_path / "before")
        path.write_bytes(good % 4 + good % 5)
        assert tail.read_new() == ([StepLine(step=4), StepLine(step=5)], True)
        path.unlink()
        assert tail.read_new() == ([], True)

    def test_a_pipe_in_its_place_keeps_nobody_waiting(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / METRICS_FILE)
        assert steps(tmp_path) == []


def step(number: int, loss: float | None = 1.0) -> StepLine:
    nan = ("loss",) if loss is not None and math.isnan(loss) else ()
    return StepLine(step=number, loss=None if nan else loss, learning_rate=0.5, nonfinite=nan)


def evaluation(number: int, loss: float, whole: bool = False) -> EvalLine:
    return EvalLine(step=number, val_loss=loss, val_loss_per_character=loss, whole=whole)


def sample(number: int, text: str = "x") -> SampleLine:
    return SampleLine(step=number, text=text)


def history_of(*lines: AnyLine) -> History:
    history = History()
    for line in lines:
        history.add([line])
    in_bulk = History()
    in_bulk.add(lines)
    assert in_bulk == history or any(math.isnan(x) for _, x in [*history.train, *history.val])
    return history


class TestHistory:
    def test_series(self) -> None:
        history = history_of(
            evaluation(0, 4.1), step(1, 4.0), step(2, 3.5), evaluation(2, 3.4), sample(2, "abc")
        )
        assert history.train == [(1, 4.0), (2, 3.5)]
        assert history.val == [(0, 4.1), (2, 3.4)]
        assert [s.text for s in history.samples] == ["abc"]
        assert history.updates.learning_rates[-1] == 0.5

    def test_the_whole_part_is_no_point_of_the_curve(self) -> None:
        assert history_of(evaluation(2, 3.4), evaluation(2, 3.3, whole=True)).val == [(2, 3.4)]

    def test_nan_stays_at_its_step(self) -> None:
        history = history_of(step(1, 2.0), step(2, math.nan), step(3, 1.0))
        assert [s for s, _ in history.train] == [1, 2, 3]
        assert math.isnan(history.train[1][1])
        nan = EvalLine(step=4, nonfinite=("val_loss", "val_loss_per_character"))
        assert math.isnan(history_of(evaluation(0, 2.0), nan).val[-1][1])

    def test_a_resumed_run_takes_the_place_of_what_was_ahead(self) -> None:
        """Killed at step 5 and resumed at 2: nothing that it has not done again is shown."""
        resumed = EventLine(step=2, message="resumed at step 2")
        before: list[AnyLine] = [*(step(n) for n in range(1, 6)), evaluation(4, 2.0), sample(4)]
        before.append(resumed)
        history = history_of(*before)
        assert [s for s, _ in history.train] == [1, 2]
        assert history.val == [] and history.samples == []
        history = history_of(*before, step(3, 0.25))
        assert history.train[-1] == (3, 0.25) and len(history.train) == 3

    def test_an_evaluation_done_again_replaces_its_point(self) -> None:
        history = history_of(evaluation(5, 2.0), sample(5, "a"), evaluation(5, 2.5), sample(5, "b"))
        assert history.val == [(5, 2.5)]
        assert [s.text for s in history.samples] == ["b"]

    def test_an_update_done_again_replaces_its_point(self) -> None:
        assert history_of(step(1, 2.0), step(1, 3.0)).train == [(1, 3.0)]

    def test_a_line_without_a_loss_is_no_point(self) -> None:
        history = history_of(step(1, 2.0), step(2, None), step(3, 1.0))
        assert history.train == [(1, 2.0), (3, 1.0)]


class TestTheUnit:
    def test_losses_are_per_character(self) -> None:
        history = History(train_characters_per_token=4.0)
        history.add(
            [EvalLine(step=0, val_loss=6.0, val_loss_per_character=2.0), step(1, 6.0), step(2, 4.0)]
        )
        assert history.train == [(1, 1.5), (2, 1.0)] and history.val == [(0, 2.0)]

    def test_without_the_factor_of_the_training_part_it_is_that_of_the_evaluation(self) -> None:
        history = history_of(
            EvalLine(step=0, val_loss=6.0, val_loss_per_character=2.0), step(1, 6.0)
        )
        assert history.train == [(1, 2.0)]

    def test_evaluations_that_tell_only_nats_per_token(self) -> None:
        history = history_of(
            EvalLine(step=0, val_loss=6.0, val_loss_per_character=2.0),
            EvalLine(step=5, val_loss=3.0),
        )
        assert history.val == [(0, 2.0), (5, 1.0)]


class TestInBulk:
    GOOD: ClassVar[list[bytes]] = [
        b'{"kind": "step", "step": %d, "loss": 2.5, "grad_norm": 0.5, "seconds": 0.25}',
        b'{"kind": "step", "step": %d, "loss": 3.5, "learning_rate": 0.1}',
        b'{"step": %d, "loss": 1, "kind": "step"}',
    ]
    ODD: ClassVar[list[bytes]] = [
        b'{"kind": "step", "step": %d}',
        b'{"kind": "step", "step": %d, "loss": null, "nonfinite": ["loss"]}',
        b'{"kind": "step", "step": %d, "loss": 1e300, "grad_norm": null, "nonfinite": []}',
        b'{"kind": "eval", "step": %d, "val_loss": 4.0, "val_loss_per_character": 2.0}',
        b'{"kind": "eval", "step": %d, "val_loss": 3.0, "early": true}',
        b'{"kind": "eval", "step": %d, "val_loss": null, "nonfinite": ["val_loss"]}',
        b'{"kind": "sample", "step": %d, "text": "so"}',
        b'{"kind": "event", "step": %d, "message": "changed", "setting": "dropout"}',
        b'{"kind": "mood", "step": %d, "loss": 9.0}',
        b'{"kind": "step", "step": %d, "loss": "low"}',
        b'{"kind": "step", "step": %d, "lo',
        b"%d\0\xff",
        b"",
    ]

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("factor", [None, 1.0, 3.5])
    def test_a_log_adds_up_to_the_same_as_read_line_by_line(
        self, tmp_path: Path, seed: int, factor: float | None
    ) -> None:
        """With damage in between, steps done again, and resumed from before."""
        chance, at = random.Random(seed), 0
        by_line, grown, whole = (History(factor) for _ in range(3))
        path = tmp_path / METRICS_FILE
        one, some, all_at_once = (MetricsTail(path) for _ in range(3))
        with path.open("ab", buffering=0) as stream:
            stream.write(self.ODD[3] % 0 + b"\n")
            for n in range(600):
                at += chance.choice([0] + 20 * [1])
                if chance.random() < 0.01:
                    at = chance.randint(max(0, at - 50), at)
                line = chance.choice(self.ODD if chance.random() < 0.1 else self.GOOD)
                stream.write((line % at if b"%d" in line else line) + b"\n")
                by_line.add(read(one))
                if n % 70 == 0:
                    grown.add(read(some))
        grown.add(read(some))
        whole.add(read(all_at_once))
        assert len(by_line.train) > 300 and by_line.val and by_line.n_events
        assert self.told(grown) == self.told(by_line)
        assert self.told(whole) == self.told(by_line)

    def told(self, history: History) -> list[str]:
        """All that is known, as text because a loss may be NaN."""
        updates = history.updates
        columns = [updates.steps, updates.grad_norms, updates.seconds, updates.elapsed]
        curves = [list(history.train), list(history.val), sorted(history.early)]
        return [*map(repr, [*curves, history.samples, history.events, history.changes, *columns])]


class TestLongRuns:
    def long(self, count: int, most: int) -> tuple[Points, list[float]]:
        chance = random.Random(5)
        losses = [3.0 + chance.random() for _ in range(count)]
        points = Points(most)
        for start in range(0, count, 700):
            chunk = losses[start : start + 700]
            points.extend(range(start + 1, start + 1 + len(chunk)), chunk)
        return points, losses

    def test_a_long_log_is_kept_as_it_is(self) -> None:
        history = History()
        for start in range(0, 60_000, 20_000):
            history.add([step(n, float(n)) for n in range(start + 1, start + 20_001)])
        assert len(history.train) == 60_000 and history.train[-1] == (60_000, 60_000.0)

    def test_of_very_many_points_the_spikes_stay(self) -> None:
        points, losses = self.long(20_000, most=2000)
        assert len(points) <= 2000
        known = dict(enumerate(losses, 1))
        assert all(known[at] == loss for at, loss in points)
        assert list(points.steps) == sorted(set(points.steps)) and points.steps[-1] == len(losses)
        assert min(points.values) == min(losses) and max(points.values) == max(losses)

    def test_a_nan_stays(self) -> None:
        points = Points(100)
        for n in range(1, 1000):
            points.extend([n], [math.nan if n == 77 else 1.0 + n % 3])
        assert [at for at, loss in points if math.isnan(loss)] == [77]

    def test_one_that_is_resumed_forgets_what_was_ahead(self) -> None:
        points, _ = self.long(3000, most=500)
        points.extend([1000], [9.0])
        assert points[-1] == (1000, 9.0) and points[-2][0] < 1000
        points.extend(range(1001, 9000), [1.0] * 7999)
        assert list(points.steps) == sorted(set(points.steps)) and len(points) <= 500

    def test_samples_and_events_are_bounded(self) -> None:
        history = History()
        history.add([EventLine(step=n, message=f"event {n}") for n in range(3 * MOST_EVENTS)])
        assert history.n_events == 3 * MOST_EVENTS and len(history.events) == MOST_EVENTS
        assert history.events[-1] == f"event {3 * MOST_EVENTS - 1}"
        for n in range(5000, 5000 + 3 * MOST_SAMPLES):
            history.add([sample(n, "x" * 100_000)])
        assert len(history.samples) <= MOST_SAMPLES
        assert history.samples[0].step == 5000
        assert history.samples[-1].step == 4999 + 3 * MOST_SAMPLES
        assert len(msgspec.json.encode(history.samples[0])) < 30_000


class TestUpdates:
    def lines(self, count: int) -> list[StepLine]:
        return [
            StepLine(step=n, loss=2.0, learning_rate=0.01, grad_norm=float(n % 700), seconds=0.5)
            for n in range(1, count + 1)
        ]

    def test_they_are_kept_in_bounded_memory_with_their_extremes(self) -> None:
        history = History()
        lines = self.lines(9000)
        for start in range(0, 9000, 700):
            history.add(lines[start : start + 700])
        updates = history.updates
        assert len(updates.steps) <= MOST_GROUPS and updates.steps[-1] == 9000
        assert max(updates.grad_norms) == 699
        assert updates.elapsed[-1] == pytest.approx(4500)
        assert list(updates.steps) == sorted(updates.steps)

    def test_a_resumed_run_forgets_what_it_does_again(self) -> None:
        history = History()
        history.add(self.lines(100))
        history.add([StepLine(step=41, loss=2.0, seconds=0.5)])
        assert list(history.updates.steps)[-2:] == [40, 41]
        assert history.updates.elapsed[-1] == pytest.approx(20.5)
