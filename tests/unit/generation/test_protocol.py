"""Tests of the messages: every one survives the pipe, nothing else is taken for one."""

import json

import pytest

from tuigpt.config import SampleConfig
from tuigpt.generation import protocol as p

CANDIDATE = p.Candidate(3, "a\n🙂", 0.5, 0.25, 0.0)
LOGPROBS = p.Logprobs(CANDIDATE, -1.5, 2, [CANDIDATE, CANDIDATE])
CONFIG = SampleConfig(5, 0.8, 40, top_p=0.9, min_p=0.1, seed=2**62)
COMMANDS: list[p.Command] = [
    p.Generate(1, b"a/\xff", "To\n", CONFIG, samples=3, window="rolling", forced_ids=[1, 2]),
    p.SetConfig(1, CONFIG),
    p.SetPace(1, 120.0),
    p.Cancel(1),
    p.NextToken(1, b"c", "é", CONFIG),
    p.Score(1, b"c", "text"),
    p.FindCopies(1, b"c", "text", 12),
    p.Compare(1, b"c", ["one", "two"], 12),
    p.ReadUnseen(1, b"c"),
    p.TimeWindows(1, b"c"),
    p.Verify(1, b"c", "x", CONFIG, ids=[1, 2]),
]
REPORTS: list[p.Report] = [
    p.Loading(1),
    p.CommandProgress(1, 3, 9),
    p.Started(1, "To", "?", 0, 65, 256),
    p.Tokens(1, "ab", 2, 1, [3, 4], [LOGPROBS]),
    p.ConfigChanged(1, 7, CONFIG),
    p.Done(1, 2, 0.5, False),
    p.NextTokenFound(1, "a", "", LOGPROBS),
    p.Scored(1, p.TextScore("ab", "", 0, 1, [1.0], None, None, None)),
    p.CopiesFound(1, p.Copies("shakespeare", 0.5, [p.Copy(0, 20, 5, 1)])),
    p.Compared(1, [p.TextFacts(0.5, None)]),
    p.UnseenRead(1, p.Unseen("verse", "To be\n")),
    p.WindowsTimed(1, p.WindowSpeeds(24.5, 300.0)),
    p.Verified(1, None, "00"),
    p.Failed(1, "no"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda m: type(m).__name__)
def test_commands_survive_the_pipe(command: p.Command) -> None:
    line = p.encode(command)
    assert line.count(b"\n") == 1
    assert p.decode_command(line) == command


@pytest.mark.parametrize("report", REPORTS, ids=lambda m: type(m).__name__)
def test_reports_survive_the_pipe(report: p.Report) -> None:
    line = p.encode(report)
    assert line.count(b"\n") == 1
    assert p.decode_report(line) == report


def test_what_is_no_character_does_not_break_a_line() -> None:
    line = p.encode(p.Score(1, b"\xff", "a\udcffb\n"))
    assert p.decode_command(line) == p.Score(1, b"\xff", "a?b\n")


SCORE = {"type": "Score", "id": 1, "checkpoint": "", "text": ""}
GENERATE = json.loads(p.encode(COMMANDS[0]))


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{}", b"[]", b"null", b"\xff", b'{"type": 5}', b'{"type": "Cancel"}',
        b'{"type": "Cancel", "id": 1, "more": 2}', b'{"type": "Candidate"}',
        b'{"type": "Done", "id": 1}', b'{"type": "Cancel", "id": [1]}',
        b'{"type": "Cancel", "id": -1}', b'{"type": "Cancel", "id": 1' + b"0" * 400 + b"}",
        b'{"type": "Cancel", "id": true}', b'{"type": "Cancel", "id": NaN}',
        b"[" * 100_000, b'{"type": "Cancel", "id": ' + b'{"a":' * 100_000,
        *(json.dumps(SCORE | change).encode() for change in (
            {"text": None}, {"checkpoint": "not base 64!"}, {"text": ["a"]},
        )),
        *(json.dumps(GENERATE | change).encode() for change in (
            {"config": {"temperature": -1}}, {"config": {"top_k": 2.5}}, {"config": None},
            {"config": {"temperature": 10**400}}, {"window": "round"}, {"forced_ids": [-1]},
            {"forced_ids": [2**70]}, {"samples": -1},
        )),
    ],
    ids=lambda line: repr(line[:60]),
)  # fmt: skip
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        p.decode_command(line)
    with pytest.raises(ValueError, match="not a message"):
        p.decode_report(line)


def test_a_refusal_is_short_however_long_the_line() -> None:
    with pytest.raises(ValueError, match="not a message") as refused:
        p.decode_command(b'{"type": "' + b"A" * 3_000_000 + b'", "id": 1}')
    assert len(str(refused.value)) < 400


def test_a_line_that_is_no_message_may_still_have_an_id() -> None:
    assert p.addressee(b'{"type": "Sing", "id": 7, "song": [1, {}]}') == 7
    for line in (b"", b"{}", b'{"id": "7"}', b'{"id": [7]}', b"[" * 100_000, b'{"id": -7}'):
        assert p.addressee(line) is None
