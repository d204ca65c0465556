"""Arguments mean what GNU programs make of them, and texts are never changed."""

from __future__ import annotations

import pytest

from tuigpt.cli.flags import add_checkpoint, add_sample_settings
from tuigpt.cli.parser import Parser, filled


@pytest.fixture
def parser() -> Parser:
    parser = Parser("write", "CHECKPOINT [flags]", "write text")
    add_checkpoint(parser)
    parser.flag("--prompt", default="")
    parser.flag("--name", type=filled)
    parser.flag("--verify", action="store_true")
    add_sample_settings(parser)
    return parser


TEXTS = [
    "--my_lord and", "--my_lord", "--", "-", "-x", "--prompt", "--verify", "--top_k=3", "", " ",
    "a=b", "_", "a\nb", "\udcff", "-1", "–", "'\"$(ls)`",
]  # fmt: skip
"""What a prompt may be."""


@pytest.mark.parametrize("text", TEXTS)
def test_a_prompt_is_any_text(parser: Parser, text: str) -> None:
    for arguments in (
        ["poet", "--prompt", text],
        [f"--prompt={text}", "poet"],
        ["--prompt", text, "--verify", "--", "poet"],
    ):
        options = parser.parse(arguments)
        assert (options.prompt, options.checkpoint) == (text, "poet")


def test_names_of_flags_may_have_underscores(parser: Parser) -> None:
    options = parser.parse(["a_b", "--max_new_tokens=5", "--top_k", "3", "--seed=1"])
    assert (options.checkpoint, options.max_new_tokens, options.top_k) == ("a_b", "5", "3")


def test_behind_two_hyphens_nothing_is_a_flag(parser: Parser) -> None:
    assert parser.parse(["--top-k=3", "--", "--top_k"]).checkpoint == "--top_k"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["poet", "--max-new-token=5"],
            "no flag '--max-new-token'; did you mean --max-new-tokens?",
        ),
        (["poet", "--temp=1"], "no flag '--temp'"),
        (["poet", "-v"], "no flag '-v'"),
        (["poet", "--prompt"], "--prompt needs a value"),
        (["poet", "--verify=yes"], "--verify"),
        ([], "CHECKPOINT"),
        (["a", "b"], "b"),
        ([""], "CHECKPOINT: it is empty"),
        (["a", "--name="], "--name: it is empty"),
        (["a", "--name", ""], "--name: it is empty"),
    ],
)
def test_refusals(
    parser: Parser, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said and said.startswith("tuigpt: ") and said.count("\n") == 1
    assert said.endswith("(see tuigpt write --help)\n")
