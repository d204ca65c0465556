"""Tests of the messages: every one survives the pipe, nothing else is taken for one."""

import pytest

from tuigpt.generation import protocol as p

OPTION = p.Option("a\n🙂\ud800", 3, 0.5, 0.25, 0.0)
SETTINGS = dict(temperature=0.8, top_k=40, top_p=0.9, min_p=0.1)
COMMANDS = [
    p.Generate(1, "a/b", "To\n", 5, seed=2**62, **SETTINGS, samples=3, given=[1, 2]),  # type: ignore[arg-type]
    p.Steer(1, **SETTINGS),  # type: ignore[arg-type]
    p.Cancel(1),
    p.Look(1, "c", "é", seed=1, **SETTINGS),  # type: ignore[arg-type]
    p.Score(1, "c", "text"),
    p.Recite(1, "c", "text", 12),
    p.Verify(1, "c", "x", 5, seed=1, ids=[1, 2], **SETTINGS),  # type: ignore[arg-type]
]
REPORTS = [
    p.Hello(2, "cpu"),
    p.Loading(1),
    p.Started(1, "To", "?", 0, 65),
    p.Tokens(1, "ab", 2, 1, [3, 4], [p.Place(OPTION, -1.5, 2, [OPTION, OPTION])]),
    p.Steered(1, 7, **SETTINGS),  # type: ignore[arg-type]
    p.Done(1, 2, 0.5, False),
    p.Looked(1, "a", "", p.Place(OPTION, -1.5, 2, [OPTION])),
    p.Working(1, 3, 9),
    p.Scored(1, "ab", "", [1.0], None, None, None),
    p.Recited(1, "shakespeare", 0.5, [p.Copy(0, 20, 5, 1)]),
    p.Verified(1, None, "00"),
    p.Failed(1, "no"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda m: type(m).__name__)
def test_commands_survive_the_pipe(command: p.Command) -> None:
    line = p.encode(command)
    assert line.count(b"\n") == 1 and line.isascii()
    assert p.decode_command(line) == command


@pytest.mark.parametrize("report", REPORTS, ids=lambda m: type(m).__name__)
def test_reports_survive_the_pipe(report: p.Report) -> None:
    line = p.encode(report)
    assert line.count(b"\n") == 1 and line.isascii()
    assert p.decode_report(line) == report


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"null", b"\xff", b'{"kind": 5}', b'{"kind": "Cancel"}',
     b'{"kind": "Cancel", "id": 1, "more": 2}', b'{"kind": "Option"}',
     b'{"kind": "Done", "id": 1}'],
)  # fmt: skip
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        p.decode_command(line)
    with pytest.raises(ValueError, match="not a message"):
        p.decode_report(line)
