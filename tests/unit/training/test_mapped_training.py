"""Training from a token file: stopped and gone on with, it is the training that never stopped."""

from __future__ import annotations

from pathlib import Path

import torch
from pytest import MonkeyPatch

from tuigpt.config import GPTConfig, TrainConfig
from tuigpt.model.gpt import GPT
from tuigpt.text import read as text_module
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import open_text
from tuigpt.text.read import scan
from tuigpt.text.split import train_characters
from tuigpt.text.token_file import encode, learn_tokenizer
from tuigpt.training.batches import Corpus
from tuigpt.training.events import Evaluated, Stepped
from tuigpt.training.trainer import Trainer

VERSE = "அகர முதல எழுத்தெல்லாம்\nto be or not to be 👍🏽\n" * 300
CONFIG = TrainConfig(
    max_steps=6, batch_size=3, eval_interval=3, eval_tokens=64, sample_tokens=0, warmup_steps=2,
    tokenizer="bpe:300",
)  # fmt: skip


def test_a_stopped_training_from_a_file_goes_on_as_if_it_had_not(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(text_module, "WHOLE_BYTES", 4000)
    path = tmp_path / "verse.txt"
    path.write_text(VERSE, encoding="utf-8")

    def trainer() -> Trainer:
        text = open_text([str(path)], cache=tmp_path)
        found = scan(text)
        n_train = train_characters(found.characters, CONFIG.val_fraction)
        tokenizer = learn_tokenizer(CONFIG.tokenizer, found, n_train)
        ids = encode(text, found, tokenizer, Cache(tmp_path / "cache"))
        corpus = Corpus(ids, tokenizer, n_train, 8, torch.device("cpu"), resident_bytes=0)
        torch.manual_seed(CONFIG.seed)
        model = GPT(GPTConfig(tokenizer.vocab_size, 8, n_layer=1, n_head=2, n_embd=8))
        return Trainer(model, tokenizer, corpus, CONFIG)

    straight = trainer()
    events = list(straight.run())
    wanted = [event.loss for event in events if isinstance(event, Stepped)]
    measured = [event for event in events if isinstance(event, Evaluated)]
    assert all(0 < e.val_loss_per_character < e.val_loss for e in measured)

    first = trainer()
    losses = []
    for event in first.run():
        if isinstance(event, Stepped):
            losses.append(event.loss)
            if event.step == 4:
                break
    second = trainer()
    second.restore(first.state())
    losses += [event.loss for event in second.run() if isinstance(event, Stepped)]
    assert losses == wanted
    assert second.losses == straight.losses
