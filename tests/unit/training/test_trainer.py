"""The training loop: what it tells and when, that it is the workshop's, and that it resumes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch.nn as nn
from safetensors.torch import save_file
from torch import Tensor

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.errors import ConfigError
from tuigpt.model.gpt import GPT
from tuigpt.text.tokenizer import CharTokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.early import early_tokens
from tuigpt.training.events import (
    CheckpointDue,
    Evaluated,
    Event,
    PartDone,
    Sampled,
    Skipped,
    StateDue,
    Stepped,
)
from tuigpt.training.state import WEIGHTS, TrainingState, read_state, write_state
from tuigpt.training.trainer import Diverged, Trainer

TEXT = "Tell me, O muse, of that ingenious hero who travelled far and wide.\n" * 20
TOKENIZER = CharTokenizer.from_text(TEXT)
SHAPE = GPTConfig(TOKENIZER.vocab_size, block_size=8, n_layer=1, n_head=2, n_embd=16)

SETTINGS: dict[str, Any] = dict(
    max_steps=20, batch_size=4, warmup_steps=5, learning_rate=1e-2, eval_interval=5,
    eval_tokens=32, checkpoint_interval=8, evolution_mb=0, sample_prompt="Tell", sample_tokens=3,
)  # fmt: skip


def new_trainer(dropout: float = 0.0, val_fraction: float = 0.1, **settings: Any) -> Trainer:
    config = TrainConfig(**{**SETTINGS, "val_fraction": val_fraction, **settings})
    shape = GPTConfig(**{**vars(SHAPE), "dropout": dropout})
    corpus = Corpus.from_text(TEXT, TOKENIZER, val_fraction, 8, torch.device("cpu"))
    torch.manual_seed(config.seed)
    return Trainer(GPT(shape), TOKENIZER, corpus, config)


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def held(trainer: Trainer) -> TrainingState:
    """Its state, that what it does next cannot change."""
    state = trainer.state()
    return replace(state, tensors={name: x.clone() for name, x in state.tensors.items()})


def losses(events: Iterable[Event]) -> list[tuple[int, float]]:
    return [(e.step, e.loss) for e in events if isinstance(e, Stepped)]


def until_step(trainer: Trainer, step: int) -> list[Event]:
    """Iterate until an update is done, then stop, as a trainer that is asked to does."""
    events = []
    for event in trainer.run():
        events.append(event)
        if isinstance(event, Stepped) and event.step == step:
            return events
    raise AssertionError


def in_short(event: Event) -> str:
    match event:
        case Stepped():
            return f"step {event.step}"
        case Evaluated():
            return f"{'whole ' if event.whole else ''}eval {event.step}"
        case Sampled():
            return f"sample {event.step}"
        case CheckpointDue():
            return f"{'keep' if event.keep else 'best'} {event.step}"
        case StateDue():
            return f"state {event.step}"
        case Skipped():
            return f"no {event.what} {event.step}"
        case PartDone():
            return "…"
    raise AssertionError(event)


class TestSchedule:
    def test_events_come_in_the_workshops_order(self) -> None:
        events = [in_short(e) for e in new_trainer(max_steps=11).run()]
        told = [e for e in events if e != "…" and not e.startswith("best")]
        assert told == [
            "eval 0",
            *(f"step {n}" for n in range(1, 6)),
            "eval 5", "sample 5",
            *(f"step {n}" for n in range(6, 9)),
            "state 8", "keep 8",
            *(f"step {n}" for n in range(9, 11)),
            "eval 10", "sample 10",
            "step 11",
            "state 11",  # on disk before the long last evaluation
            "eval 11", "whole eval 11",
            "keep 11",  # with all its losses
            "sample 11",
        ]  # fmt: skip

    def test_an_evaluation_lower_than_all_before_is_worth_a_checkpoint(self) -> None:
        trainer = new_trainer()
        lowest, best = math.inf, []
        events = list(trainer.run())
        for event, after in zip(events, [*events[1:], None], strict=True):
            if isinstance(event, Evaluated) and not event.whole and 0 < event.step < 20:
                due = after == CheckpointDue(event.step, keep=False)
                assert due == (event.val_loss < lowest)
                if due:
                    lowest = event.val_loss
                    best.append(event.step)
        assert best
        last = next(e for e in events if isinstance(e, Evaluated) and e.step == 20)
        assert trainer.best_val_loss == min(lowest, last.val_loss)
        assert trainer.best_step == (20 if last.val_loss < lowest else best[-1])

    def test_the_untrained_model_is_never_the_best(self) -> None:
        trainer = new_trainer(max_steps=10, learning_rate=1.0, warmup_steps=0)
        list(trainer.run())
        assert trainer.best_step in (5, 10)

    def test_early_evaluations_cost_little_and_decide_nothing(self) -> None:
        trainer = new_trainer(max_steps=30, eval_interval=1000, patience=1, evolution_mb=1)
        early, due = [], []
        for event in trainer.run():
            if isinstance(event, CheckpointDue):
                due.append(event.step)
            if isinstance(event, Evaluated) and event.early:
                assert trainer.best_step is None and trainer.losses.val_loss is None
                assert trainer.losses.early_val_loss == event.val_loss
                early.append((event.step, event.tokens))
        # At most 3 % of the time of 10 and 15 updates of 32 tokens, each read forward and back.
        assert early == [(10, 24), (25, 32)]
        assert trainer.best_step == 30
        assert due == [8, 10, 16, 24, 25, 30]  # they tell how it grew up
        assert all(tokens <= 0.03 * 3 * 15 * 32 for _, tokens in early)

    def test_regular_evaluations_take_over_from_early_ones(self) -> None:
        for interval, expected in ((20, [10]), (100, [10, 25, 50]), (10, []),
                                   (1000, [10, 25, 50, 100, 250, 500])):  # fmt: skip
            assert [s for s in range(2001) if early_tokens(s, interval, 1024)] == expected

    def test_progress_adds_up(self) -> None:
        events = [e for e in new_trainer(max_steps=1).run() if isinstance(e, PartDone)]
        for what in ("evaluation", "sample"):
            last = [e for e in events if e.what == what][-1]
            assert last.done == last.total
        assert all(0 < e.done <= e.total for e in events)

    def test_without_validation_there_is_still_a_last_checkpoint(self) -> None:
        events = [in_short(e) for e in new_trainer(max_steps=3, val_fraction=0.0).run()]
        assert [e for e in events if e != "…"] == [
            "step 1", "step 2", "step 3", "state 3", "keep 3", "sample 3",
        ]  # fmt: skip

    def test_no_sample_tokens_no_samples(self) -> None:
        events = new_trainer(max_steps=6, sample_tokens=0).run()
        assert not any(isinstance(e, Sampled) for e in events)

    def test_a_finished_training_has_no_further_step(self) -> None:
        trainer = new_trainer(max_steps=2)
        list(trainer.run())
        before = weights(trainer)
        assert not losses(trainer.run())
        assert same(weights(trainer), before)


class TestTheWorkshopsLoop:
    def test_the_updates_are_those_of_the_loop_written_plainly(self) -> None:
        """Same seed, same batches, AdamW, clipping and schedule: bit for bit the same."""
        trainer = new_trainer(max_steps=12, eval_interval=4)
        told = [e for e in trainer.run() if isinstance(e, Stepped)]

        config = TrainConfig(**{**SETTINGS, "max_steps": 12})
        ids = torch.tensor([TOKENIZER.vocab.index(c) for c in TEXT])
        train = ids[: int(len(ids) * 0.9)]
        torch.manual_seed(config.seed)
        model = GPT(SHAPE)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-2, weight_decay=0.01, fused=True
        )  # the fused kernel rounds differently from the others
        order = torch.Generator().manual_seed(config.seed)
        for step in range(12):
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate_at(step)
            starts = torch.randint(len(train) - 8, (4, 1), generator=order)
            x = torch.stack([train[i : i + 8] for i in starts[:, 0]])
            y = torch.stack([train[i + 1 : i + 9] for i in starts[:, 0]])
            _, loss = model(x, y)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            event = told[step]
            assert (event.step, event.loss) == (step + 1, loss.item())
            assert (event.grad_norm, event.learning_rate) == (
                norm.item(), config.learning_rate_at(step)
            )  # fmt: skip
        assert same(weights(trainer), model.state_dict())

    def test_the_loss_falls(self) -> None:
        trainer = new_trainer(max_steps=200, batch_size=16, learning_rate=3e-2, sample_tokens=0)
        events = list(trainer.run())
        found = losses(events)
        assert found[0][1] == pytest.approx(math.log(TOKENIZER.vocab_size), abs=0.6)
        assert found[-1][1] < 1.3
        val = [e.val_loss for e in events if isinstance(e, Evaluated)]
        assert val[-1] < val[0] - 1.0

    def test_clipping_can_be_off(self) -> None:
        clipped, free = (new_trainer(max_steps=3, grad_clip=c) for c in (1e-3, 0.0))
        told = [[e for e in t.run() if isinstance(e, Stepped)] for t in (clipped, free)]
        assert told[0][0].grad_norm == told[1][0].grad_norm > 1e-3  # told before clipping
        assert not same(weights(clipped), weights(free))

    def test_an_evaluation_is_the_mean_over_its_tokens(self) -> None:
        trainer = new_trainer(max_steps=3)
        events = list(trainer.run())
        whole = next(e for e in events if isinstance(e, Evaluated) and e.whole)
        ids = torch.from_numpy(TOKENIZER.encode(TEXT))
        val = ids[int(len(ids) * 0.9) :]
        total = 0.0
        with torch.inference_mode():
            for start in range(0, len(val) - 1, 8):
                x = val[start : start + 9]
                _, loss = trainer.model(x[None, :-1], x[None, 1:])
                total += loss.item() * (len(x) - 1)
        assert whole.tokens == len(val) - 1
        assert whole.val_loss == pytest.approx(total / (len(val) - 1), abs=1e-5)
        assert whole.val_loss_per_character == pytest.approx(whole.val_loss)
        spread = next(e for e in events if isinstance(e, Evaluated) and not e.whole)
        assert spread.tokens == 32


class TestNothingDisturbsTheTraining:
    """The curve does not depend on what is looked at meanwhile."""

    @pytest.mark.parametrize("dropout", [0.0, 0.2])
    def test_samples_and_evaluations(self, dropout: float) -> None:
        expected = losses(new_trainer(dropout, sample_tokens=0, eval_interval=20).run())
        for settings in (
            dict(sample_tokens=20, eval_interval=20),
            dict(sample_tokens=20, eval_interval=1),
            dict(val_fraction=0.1, eval_tokens=1000, checkpoint_interval=1),
        ):
            assert losses(new_trainer(dropout, **settings).run()) == expected

    def test_a_sample_asked_for_between_two_steps(self) -> None:
        expected = losses(new_trainer(0.2).run())
        trainer = new_trainer(0.2)
        found = []
        for event in trainer.run():
            if isinstance(event, Stepped):
                found.append((event.step, event.loss))
                assert isinstance(list(trainer.sample())[-1], Sampled)
        assert found == expected

    def test_samples_of_a_step_are_the_same_again(self) -> None:
        trainer = new_trainer()
        until_step(trainer, 3)
        one, two = (list(trainer.sample())[-1] for _ in range(2))
        assert one == two
        assert isinstance(one, Sampled) and one.prompt == "Tell" and len(one.text) == 3

    def test_a_prompt_that_the_text_does_not_know(self) -> None:
        trainer = new_trainer(max_steps=1, sample_prompt="日本語")
        sampled = [e for e in trainer.run() if isinstance(e, Sampled)]
        assert [len(e.text) for e in sampled] == [3]


class TestResume:
    @pytest.mark.parametrize("recipe", ["workshop", "fast"])
    @pytest.mark.parametrize("dropout", [0.0, 0.2])
    @pytest.mark.parametrize("stopped_at", [1, 5, 10, 13])
    def test_a_resumed_training_equals_an_uninterrupted_one(
        self, recipe: str, dropout: float, stopped_at: int
    ) -> None:
        """Weights, losses and evaluations, bit for bit, wherever it was stopped."""
        whole = new_trainer(dropout, recipe=recipe)
        expected = list(whole.run())

        first = new_trainer(dropout, recipe=recipe)
        until_step(first, stopped_at)
        state = held(first)
        second = new_trainer(dropout, recipe=recipe)
        until_step(second, 2)  # so that nothing of it is as it was at first
        torch.manual_seed(99)
        second.restore(state)
        assert second.step == stopped_at
        rest = list(second.run())

        assert losses(rest) == losses(expected)[stopped_at:]
        assert same(weights(second), weights(whole))
        told = [e for e in rest if isinstance(e, Evaluated | Sampled)]
        assert told == [
            e for e in expected if isinstance(e, Evaluated | Sampled) and e.step >= stopped_at
        ]
        assert (second.best_step, second.best_val_loss) == (whole.best_step, whole.best_val_loss)

    def test_before_the_first_step_too(self) -> None:
        trainer = new_trainer()
        state = trainer.state()
        again = new_trainer()
        again.restore(state)
        assert again.step == 0 and again.best_step is None
        assert losses(again.run()) == losses(trainer.run())

    def test_a_best_from_before_is_not_beaten_by_a_worse_one(self) -> None:
        first = new_trainer(max_steps=30)
        until_step(first, 12)
        state = held(first)
        facts = msgspec.structs.replace(state.facts, best_val_loss=0.001, best_step=5)
        second = new_trainer(max_steps=30)
        second.restore(replace(state, facts=facts))
        assert not [e for e in second.run() if isinstance(e, CheckpointDue) and not e.keep]
        assert second.best_step == 5

    def test_each_evaluation_is_kept_to_tell_how_it_grew_up(self) -> None:
        events = list(new_trainer(evolution_mb=1, learning_rate=1.0).run())  # val rises
        due = [e.step for e in events if isinstance(e, CheckpointDue) and not e.keep]
        assert due == [5, 10, 15]

    def test_a_best_whose_checkpoint_was_not_written_yet_is_due_again(self) -> None:
        """The state comes first; a kill may have come between the two."""
        first = new_trainer()
        for event in first.run():
            if isinstance(event, CheckpointDue) and not event.keep:
                break
        assert first.best_step == first.step
        second = new_trainer()
        second.restore(held(first))
        due = next(e for e in second.run() if isinstance(e, CheckpointDue))
        assert due == CheckpointDue(first.step, keep=False)

    def test_the_state_is_written_and_read(self, tmp_path: Path) -> None:
        trainer = new_trainer(recipe="fast")
        until_step(trainer, 7)
        path = tmp_path / "resume.safetensors"
        write_state(path, trainer.state())
        found = read_state(path, 10**6)
        assert found.facts == trainer.facts()
        assert same(dict(found.tensors), trainer.tensors())
        with pytest.raises(ValueError, match="larger than any"):
            read_state(path, 100)

    @pytest.mark.parametrize("recipe", ["workshop", "fast"])
    def test_a_state_of_format_1_resumes(self, tmp_path: Path, recipe: str) -> None:
        """Its weights are in the checkpoint, and its numbers are tensors by position."""
        whole = new_trainer(0.2, recipe=recipe)
        until_step(whole, 11)
        state, now = held(whole), weights(whole)
        tensors = {n: x for n, x in state.tensors.items() if not n.startswith(WEIGHTS)}
        facts = state.facts
        assert facts.best_step is not None
        tensors["step"] = torch.tensor(facts.step)
        tensors["best"] = torch.tensor([facts.best_val_loss, facts.best_step], dtype=torch.float64)
        numbers = [1e-2, 0.2, 20, 0]
        tensors["changeable"] = torch.tensor(numbers, dtype=torch.float64)
        save_file(tensors, tmp_path / "old.safetensors")
        expected = losses(whole.run())

        resumed = new_trainer(0.2, recipe=recipe)
        resumed.model.load_state_dict(now)
        resumed.restore(read_state(tmp_path / "old.safetensors", 10**6))
        assert losses(resumed.run()) == expected
        assert same(weights(resumed), weights(whole))

    @pytest.mark.parametrize("recipe", ["workshop", "fast"])
    def test_tensors_that_do_not_fit_are_refused_by_name(self, recipe: str) -> None:
        """Some of them would end the process, if an optimizer got them."""
        trainer = new_trainer(recipe=recipe)
        until_step(trainer, 2)
        state = held(trainer)
        assert len(state.tensors) > 20
        for name, tensor in state.tensors.items():
            rest = {n: x for n, x in state.tensors.items() if n != name}
            plain = name.partition(".")[2]
            for wrong in (None, torch.zeros(10, dtype=torch.uint8), tensor.double()[..., None]):
                tensors = rest if wrong is None else {**rest, name: wrong}
                with pytest.raises(ValueError) as raised:
                    new_trainer(recipe=recipe).restore(replace(state, tensors=tensors))
                assert repr(plain) in str(raised.value) and "\n" not in str(raised.value)
        for name in ("optimizer.x.exp_avg", "weights.x", "random.x"):
            with pytest.raises(ValueError, match="is not of its model"):
                tensors = {**state.tensors, name: torch.zeros(1)}
                new_trainer(recipe=recipe).restore(replace(state, tensors=tensors))


class TestChanges:
    def test_a_new_rate_scales_the_rest_of_the_schedule(self) -> None:
        trainer = new_trainer()
        until_step(trainer, 10)
        trainer.change(learning_rate=5e-3)
        rates = [e.learning_rate for e in trainer.run() if isinstance(e, Stepped)]
        unchanged = TrainConfig(**SETTINGS)
        assert rates == pytest.approx([unchanged.learning_rate_at(s) / 2 for s in range(10, 20)])

    def test_dropout_changes_the_losses_and_the_checkpoints_header(self) -> None:
        plain, dropping = new_trainer(), new_trainer()
        until_step(plain, 3), until_step(dropping, 3)
        dropping.change(dropout=0.5)
        assert dropping.model.config.dropout == 0.5
        assert losses(plain.run())[1] != losses(dropping.run())[1]

    @pytest.mark.parametrize("change", [{"learning_rate": 0.0}, {"dropout": 1.0}, {"patience": -1}])
    def test_what_cannot_work_is_refused_and_nothing_changes(self, change: dict[str, Any]) -> None:
        trainer = new_trainer()
        with pytest.raises(ConfigError):
            trainer.change(**change)
        assert trainer.config == new_trainer().config and trainer.model.config.dropout == 0

    def test_a_resumed_training_keeps_them(self) -> None:
        whole = new_trainer(0.1)
        until_step(whole, 6)
        whole.change(learning_rate=3e-3, dropout=0.3, max_steps=25, patience=9)
        until_step(whole, 9)
        state = held(whole)
        expected = losses(whole.run())
        resumed = new_trainer(0.1)
        resumed.restore(state)
        assert resumed.config == whole.config and resumed.model.config == whole.model.config
        assert losses(resumed.run()) == expected
        assert resumed.step == 25 and same(weights(resumed), weights(whole))


class TestPatience:
    def test_it_ends_when_the_val_loss_stays_above_its_best(self) -> None:
        # So high a rate that nothing gets better after the first evaluations.
        trainer = new_trainer(learning_rate=0.9, max_steps=500, patience=3, recipe="fast")
        events = [in_short(event) for event in trainer.run()]
        assert trainer.out_of_patience and trainer.finished
        assert trainer.best_step is not None and trainer.step == trainer.best_step + 3 * 5
        last = trainer.step
        assert events.count(f"eval {last}") == 1, "measured twice"
        tail = [e for e in events if e.startswith(("state", "keep", "whole"))][-3:]
        assert tail == [f"state {last}", f"whole eval {last}", f"keep {last}"]

    def test_a_training_that_gets_better_goes_on(self) -> None:
        trainer = new_trainer(patience=2)
        assert [e.step for e in trainer.run() if isinstance(e, Stepped)][-1] == 20
        assert not trainer.out_of_patience

    def test_resumed_where_it_ended_it_has_nothing_left_to_do(self) -> None:
        trainer = new_trainer(learning_rate=0.9, max_steps=500, patience=3, recipe="fast")
        list(trainer.run())
        again = new_trainer(learning_rate=0.9, max_steps=500, patience=3, recipe="fast")
        again.restore(held(trainer))
        assert losses(again.run()) == [] and again.out_of_patience

    def test_it_counts_evaluations_wherever_the_best_was(self) -> None:
        """Also after a best between two intervals, and with evaluations done twice by resuming."""
        settings: dict[str, Any] = dict(learning_rate=0.9, recipe="fast", max_steps=500)
        first = new_trainer(**settings)
        until_step(first, 12)
        state = held(first)
        facts = msgspec.structs.replace(
            state.facts, best_val_loss=0.001, best_step=12, evaluated_step=12, patience=2,
            not_better=0,
        )  # fmt: skip
        second = new_trainer(**settings)
        second.restore(replace(state, facts=facts))
        until_step(second, 15)
        events = second.run()
        while second.not_better == 0:
            next(events)
        third = new_trainer(**settings)
        third.restore(held(second))
        list(third.run())
        assert third.step == 20 and third.out_of_patience

    def test_an_evaluation_that_was_asked_for_decides_nothing(self) -> None:
        trainer = new_trainer(learning_rate=0.9, max_steps=500, patience=3, recipe="fast")
        for event in trainer.run():
            if isinstance(event, Stepped):
                list(trainer.evaluate())
        plain = new_trainer(learning_rate=0.9, max_steps=500, patience=3, recipe="fast")
        list(plain.run())
        assert trainer.out_of_patience and trainer.step == plain.step


class TestNothingIsWorthATraining:
    """An evaluation or a sample that fails is an event."""

    def test_a_failing_sample(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*arguments: Any) -> Any:
            raise RuntimeError("no memory left\nmore about it")

        expected = losses(new_trainer().run())
        monkeypatch.setattr("tuigpt.training.trainer.generate", broken)
        events = list(new_trainer().run())
        assert losses(events) == expected
        skipped = [e for e in events if isinstance(e, Skipped)]
        assert skipped[0] == Skipped(5, "sample", "RuntimeError: no memory left")
        assert [e.step for e in skipped] == [5, 10, 15, 20]

    def test_a_failing_evaluation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*arguments: Any) -> Any:
            raise MemoryError

        expected = losses(new_trainer().run())
        monkeypatch.setattr(Corpus, "val_batches", broken)
        events = list(new_trainer(patience=1).run())
        assert losses(events) == expected
        assert [e.step for e in events if isinstance(e, Skipped)] == [0, 5, 10, 15, 20, 20]
        assert [e.step for e in events if isinstance(e, CheckpointDue)] == [8, 16, 20]


class TestMicroBatches:
    @pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 4, 100])
    def test_the_updates_are_those_of_the_whole_batch(self, micro_batch_size: int) -> None:
        whole, parts = new_trainer(), new_trainer(micro_batch_size=micro_batch_size)
        assert dict(losses(parts.run())) == pytest.approx(dict(losses(whole.run())), abs=1e-5)

    def test_a_large_batch_is_computed_in_micro_batches_on_a_cpu(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []
        forward = GPT.forward

        def spy(self: GPT, idx: Tensor, targets: Tensor | None = None) -> Any:
            if self.training:
                seen.append(tuple(idx.shape))
            return forward(self, idx, targets)

        monkeypatch.setattr(GPT, "forward", spy)
        until_step(new_trainer(batch_size=1100), 1)
        assert seen == [(367, 8), (367, 8), (366, 8)]


class TestPrecision:
    def test_bfloat16_computes_otherwise_and_keeps_float32_weights(self) -> None:
        exact, half = new_trainer(), new_trainer(precision="bfloat16")
        pairs = list(zip(losses(exact.run()), losses(half.run()), strict=True))
        assert any(one != other for (_, one), (_, other) in pairs)
        assert all(other == pytest.approx(one, abs=0.1) for (_, one), (_, other) in pairs)
        assert {tensor.dtype for tensor in weights(half).values()} == {torch.float32}


class TestCompile:
    def test_a_compiled_training_computes_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compile_ = torch.compile
        # The real compiler without its code generator, which takes minutes.
        monkeypatch.setattr(torch, "compile", lambda model: compile_(model, backend="aot_eager"))
        plain, compiled = new_trainer(), new_trainer()
        compiled.compile()
        assert dict(losses(compiled.run())) == pytest.approx(dict(losses(plain.run())), abs=1e-4)

    def test_where_it_does_not_work_the_trainer_is_as_it_was(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(model: nn.Module) -> Any:
            def call(*tensors: Tensor) -> Any:
                torch.rand(1)
                raise OSError("no C++ compiler\nmore about it")

            return call

        monkeypatch.setattr(torch, "compile", broken)
        plain, trainer = new_trainer(0.1), new_trainer(0.1)
        expected = losses(plain.run())
        trainer = new_trainer(0.1)
        with pytest.raises(RuntimeError, match=r"^no C\+\+ compiler$"):
            trainer.compile()
        assert losses(trainer.run()) == expected


class TestDiverging:
    def test_it_stops_within_a_few_steps_and_spares_the_weights(self) -> None:
        trainer = new_trainer(max_steps=1000, learning_rate=1e6, warmup_steps=0, eval_interval=1000)
        with pytest.raises(Diverged) as raised:
            for _ in trainer.run():
                pass
        assert trainer.step < 50
        assert all(tensor.isfinite().all() for tensor in weights(trainer).values())
        message = str(raised.value)
        assert f"at step {trainer.step + 1}" in message
        assert "learning rate than 1e+06" in message and "\n" not in message

    def test_a_gradient_that_is_no_number_is_not_applied(self) -> None:
        trainer = new_trainer()
        until_step(trainer, 2)
        before = weights(trainer)
        with torch.no_grad():
            trainer.model.transformer.ln_f.bias[0] = math.nan
        with pytest.raises(Diverged):
            until_step(trainer, 3)
        assert trainer.step == 2
        broken = weights(trainer)
        assert all(
            torch.equal(before[k], broken[k]) for k in before if k != "transformer.ln_f.bias"
        )

    def test_a_validation_loss_that_is_no_number_is_told_and_never_the_best(self) -> None:
        trainer = new_trainer(max_steps=5, eval_interval=2)
        events = []
        with pytest.raises(Diverged, match="the validation loss is no longer a number at step 2"):
            for event in trainer.run():
                events.append(event)
                if isinstance(event, Stepped) and event.step == 2:
                    with torch.no_grad():
                        trainer.model.transformer.ln_f.bias[0] = math.nan
        assert isinstance(events[-1], Evaluated) and math.isnan(events[-1].val_loss)
        assert trainer.best_step is None

    def test_a_sample_of_a_broken_model_is_no_users_error(self) -> None:
        trainer = new_trainer(val_fraction=0.0)
        until_step(trainer, 2)
        with torch.no_grad():
            trainer.model.transformer.ln_f.bias[0] = math.nan
        with pytest.raises(Diverged, match="no longer numbers at step 2; try a lower"):
            list(trainer.sample())
