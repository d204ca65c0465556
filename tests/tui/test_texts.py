"""What a text is made of, and its facts in words."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.generation.protocol import (
    Candidate,
    ConfigChanged,
    Done,
    Failed,
    Loading,
    Logprobs,
    Started,
    Tokens,
    decode_report,
    encode,
)
from tuigpt.runs.folder import Checkpoint
from tuigpt.tui.panes.generate.entries import Entry, Texts
from tuigpt.tui.panes.generate.texts import WrittenText

CHECKPOINT = Checkpoint(Path("c"), "verse", 100, None, 1.5, 65, 1000, "verse", 10, 0.0)
CONFIG = SampleConfig(max_new_tokens=300, seed=7)


def text(config: SampleConfig = CONFIG) -> WrittenText:
    return WrittenText(CHECKPOINT, "To be", config)


def left(entry: Entry) -> str:
    return entry.rule().fitting(200)[0]


def test_facts_that_do_not_fit_are_left_out_whole_and_the_seed_last() -> None:
    rule = Entry(3, [text(replace(CONFIG, temperature=1.25)), text()]).rule(412.4)
    shown = [" | ".join(rule.fitting(room)) for room in (74, 65, 54, 45, 20, 12)]
    assert shown == [
        "3 · verse@100 · seed 7 · ‹ 1 of 2 › · T 1.25 | 0 of 300 · 412 characters/s",
        "3 · verse@100 · seed 7 · ‹ 1 of 2 › · T 1.25 | 0 of 300 · 412/s",
        "3 · verse@100 · seed 7 · ‹ 1 of 2 › · T 1.25 | 0 of 300",
        "3 · verse@100 · seed 7 · ‹ 1 of 2 › | 0 of 300",
        "3 · seed 7 | 0 of 300",
        "3 · seed 7 | ",
    ]


def test_a_text_stopped_before_its_first_token_keeps_its_prompt() -> None:
    written = text()
    written.stop()
    assert written.parts() == [("prompt", "To be"), ("text", "")]
    written.go_on(CONFIG, "sliding")
    assert written.parts() == []  # the model's reading of it comes
    assert written.take(Started(1, "To be", "", 0, 65)) == [("prompt", "To be")]


def test_its_life_on_its_rule() -> None:
    written = text()
    entry = Entry(3, [written])
    assert left(entry) == "3 · verse@100 · seed 7"
    written.take(Loading(1))
    assert entry.progress() == ["reading weights …"]
    written.take(Started(1, "To be", "", 0, 65))
    written.take(Tokens(1, " or", 3, ids=[1, 2, 3]))
    assert entry.progress(412.4)[0] == "3 of 300 · 412 characters/s"
    written.take(Done(1, 3, 0.01, False))
    assert entry.progress() == ["3 · 300 characters/s", "3 · 300/s", "3"]
    assert written.whole == "To be or"
    assert written.one_command == replace(CONFIG, max_new_tokens=3)


def test_only_settings_that_differ_from_the_default_are_told() -> None:
    config = replace(CONFIG, temperature=1.25, top_k=0)
    assert left(Entry(1, [text(config)])) == "1 · verse@100 · seed 7 · T 1.25 · k off"


def test_a_setting_that_changed_on_the_way() -> None:
    written = text()
    written.take(Started(1, "To be", "", 0, 65))
    for at, temperature in ((88, 0.9), (88, 1.05), (150, 0.5)):
        written.take(ConfigChanged(1, at, replace(CONFIG, temperature=temperature)))
    assert "T 0.80 → 1.05 at 88 → 0.50 at 150" in left(Entry(1, [written]))
    notes = written.take(Done(1, 0, 0.1, False))
    assert "no one command" in notes[0][1]
    assert written.one_command is None


def test_a_failure_stands_below_what_is_written() -> None:
    written = text()
    written.take(Started(1, "To be", "", 0, 65))
    written.take(Tokens(1, " or", 3, ids=[1, 2, 3]))
    assert written.take(Failed(1, "it died")) == [("error", "\nit died")]
    assert written.whole == "To be or"
    assert written.parts()[-1] == ("error", "\nit died")


def test_a_branch_begins_as_the_text_does() -> None:
    written = text()
    written.ids, written.tokens = [1, 2, 3], [" ", "o", "r"]
    branch = written.branch(2, Candidate(9, "h", 0.1, 0.1, 0.1), CONFIG)
    assert (branch.ids, branch.whole, written.count) == ([1, 2, 9], "To be oh", 3)


def test_what_was_deleted_comes_back_to_its_place() -> None:
    texts = Texts()
    entries = [texts.add(text()) for _ in range(3)]
    texts.delete(entries[1])
    texts.delete(entries[0])
    assert list(texts.entries) == [3]
    assert texts.restore() is entries[0] and texts.restore() is entries[1]
    assert list(texts.entries) == [1, 2, 3] and not texts.can_restore


def test_the_oldest_go_unless_they_have_a_star() -> None:
    texts = Texts()
    entries = [texts.add(text()) for _ in range(5)]
    assert texts.let_go(5) == []
    entries[0].text.starred = True
    assert texts.let_go(3) == entries[1:3] and list(texts.entries) == [1, 4, 5]
    texts.add(text())
    assert texts.let_go(3) == [entries[3]]


def test_a_long_text_takes_little_memory() -> None:
    """Of what the generator tells as JSON, where each letter comes as a string of its own."""
    letters = "to be or not to be, "
    found = [Logprobs(Candidate(1, letter, 0.4, 0.4, 0.4), -0.9, 2, []) for letter in letters]
    ids = [ord(letter) for letter in letters]
    line = encode(Tokens(1, letters, len(letters), ids=ids, logprobs=found))
    long = text()
    tracemalloc.start()
    for _ in range(1000):
        long.take(decode_report(line))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert long.count == 20_000
    assert kept / long.count < 40
