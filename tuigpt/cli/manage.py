"""`tuigpt show`, `rename`, `delete`, `thin`, `undo`, `star`, `note`: what is kept, and how."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tuigpt.cli.flags import count
from tuigpt.cli.parser import Command, Parser, filled
from tuigpt.errors import UserError
from tuigpt.paths import home_dir
from tuigpt.runs.describe import describe
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.manage import (
    delete_checkpoints,
    delete_run,
    empty_trash,
    look_into_trash,
    rename_run,
    thinnable,
    undo,
)
from tuigpt.runs.marks import note, star
from tuigpt.runs.names import find_checkpoint, find_model, find_run
from tuigpt.wording import file_size, one_line


def show(home: Path, spec: str) -> int:
    """Print all that a checkpoint's header tells.

    Raises:
        UserError: there is no such checkpoint.
    """
    found = find_checkpoint(spec, home)
    run = find_model(found.run, home) if found.run and _is_of(found, home) else None
    facts = describe(found, run)
    width = max(len(name) for name, _ in facts)
    for name, words in facts:
        print(f"{name:{width}}  {one_line(words)}")
    return 0


def _is_of(checkpoint: Checkpoint, home: Path) -> bool:
    """Whether it is in a run of this home, or the built-in one."""
    try:
        run = find_model(checkpoint.run, home)
    except UserError:
        return False
    return any(c.path == checkpoint.path for c in run.checkpoints)


def delete(home: Path, specs: Sequence[str]) -> int:
    """Put runs and checkpoints into the trash, and say how they come back.

    Raises:
        UserError: one is not there, or is needed. Those named before it are deleted by then.
    """
    chosen = [_run_and_checkpoint(home, spec) for spec in specs]
    for _, group in groupby(chosen, key=lambda pair: pair[0].folder):
        pairs = list(group)
        run = pairs[0][0]
        checkpoints = [checkpoint for _, checkpoint in pairs if checkpoint]
        if len(checkpoints) < len(pairs):
            done = delete_run(home, run)
        else:
            done = delete_checkpoints(home, run, list(dict.fromkeys(checkpoints)))
        print(f"{one_line(done.words)}; `tuigpt undo` brings it back")
    return 0


def _run_and_checkpoint(home: Path, spec: str) -> tuple[Run, Checkpoint | None]:
    name, at, _ = spec.partition("@")
    run = find_model(name, home)
    return run, find_checkpoint(spec, home) if at else None


def thin(home: Path, name: str, every: int | None, dry_run: bool) -> int:
    """Delete all checkpoints of a run but the best, the last, the starred and every Nth.

    Raises:
        UserError: there is no such run, or something cannot be moved.
    """
    run = find_model(name, home)
    going = thinnable(run, every)
    stay = len(run.checkpoints) - len(going)
    size = file_size(sum(c.size for c in going))
    if not going:
        print(f"{run.name}: nothing to thin out, all {stay:,} checkpoints stay")
    elif dry_run:
        print(f"{run.name}: {len(going):,} checkpoints would go and free {size}, {stay:,} stay")
    else:
        done = delete_checkpoints(home, run, going)
        print(f"{one_line(done.words)}, {stay:,} stay; `tuigpt undo` brings them back")
    return 0


def _mark(home: Path, specs: Sequence[str], starred: bool) -> int:
    for folder, step in _own_checkpoints(home, specs):
        star(folder, [step], starred)
    return 0


def _own_checkpoints(home: Path, specs: Sequence[str]) -> Iterator[tuple[Path, int]]:
    for spec in specs:
        found = find_checkpoint(spec, home)
        if found.built_in or not _is_of(found, home):
            raise UserError(f"{spec!r} is in no run of yours")
        yield find_run(found.run, home).folder, found.step


def _note(home: Path, spec: str, words: str) -> int:
    if "@" in spec:
        ((folder, step),) = _own_checkpoints(home, [spec])
        note(folder, step, words)
    else:
        note(find_run(spec, home).folder, None, words)
    return 0


def _delete(options: Namespace) -> int:
    home = home_dir(options.home)
    if options.empty_trash:
        print(empty_trash(home).words)
    elif not options.specs:
        raise UserError(
            f"name a run or a checkpoint; the trash holds {file_size(look_into_trash(home).size)}"
        )
    return delete(home, options.specs)


def _rename(options: Namespace) -> int:
    home = home_dir(options.home)
    print(one_line(rename_run(home, find_run(options.name, home), options.new_name).words))
    return 0


def _undo(options: Namespace) -> int:
    print(one_line(undo(home_dir(options.home)).words))
    return 0


def _add_show_flags(parser: Parser) -> None:
    parser.add_argument(
        "spec", type=filled, metavar="CHECKPOINT", help="a file, RUN, RUN@STEP or RUN@best"
    )


def _add_rename_flags(parser: Parser) -> None:
    parser.add_argument("name", type=filled, metavar="RUN")
    parser.add_argument("new_name", type=filled, metavar="NAME", help="what it is to be called")


def _add_delete_flags(parser: Parser) -> None:
    parser.add_argument(
        "specs", nargs="*", type=filled, metavar="RUN[@STEP]",
        help="whole runs, or single checkpoints: RUN@STEP, RUN@best, RUN@last",
    )  # fmt: skip
    parser.flag(
        "--empty-trash", action="store_true",
        help="first delete for good what was deleted before; else that is after a week",
    )  # fmt: skip


def _add_thin_flags(parser: Parser) -> None:
    parser.add_argument("name", type=filled, metavar="RUN")
    parser.flag("--every", metavar="N", help="keep those whose step is a multiple of N as well")
    parser.flag("--dry-run", action="store_true", help="only tell what it would free")


def _add_star_flags(parser: Parser) -> None:
    parser.add_argument("specs", nargs="+", type=filled, metavar="RUN@STEP")
    parser.flag("--remove", action="store_true", help="take the star away")


def _add_note_flags(parser: Parser) -> None:
    parser.add_argument("spec", type=filled, metavar="RUN[@STEP]")
    parser.add_argument("words", metavar="WORDS", help='the note; "" takes it away')


COMMANDS = {
    "show": Command(
        usage="CHECKPOINT",
        add_flags=_add_show_flags,
        run=lambda options: show(home_dir(options.home), options.spec),
        examples=("tuigpt show poems@best", "tuigpt show poet"),
    ),
    "rename": Command(
        usage="RUN NAME",
        add_flags=_add_rename_flags,
        run=_rename,
        examples=("tuigpt rename poems-tiny-1 verse",),
    ),
    "delete": Command(
        usage="RUN[@STEP]… [flags]",
        add_flags=_add_delete_flags,
        run=_delete,
        examples=("tuigpt delete poems@100 poems@200", "tuigpt delete poems"),
    ),
    "thin": Command(
        usage="RUN [flags]",
        add_flags=_add_thin_flags,
        run=lambda options: thin(
            home_dir(options.home),
            options.name,
            None if options.every is None else count("every", options.every, 1),
            options.dry_run,
        ),
        examples=("tuigpt thin poems --dry-run", "tuigpt thin poems --every 1000"),
    ),
    "undo": Command(
        usage="[flags]", add_flags=lambda parser: None, run=_undo, examples=("tuigpt undo",)
    ),
    "star": Command(
        usage="RUN@STEP… [flags]",
        add_flags=_add_star_flags,
        run=lambda options: _mark(home_dir(options.home), options.specs, not options.remove),
        examples=("tuigpt star poems@250", "tuigpt star poems@250 --remove"),
    ),
    "note": Command(
        usage="RUN[@STEP] WORDS",
        add_flags=_add_note_flags,
        run=lambda options: _note(home_dir(options.home), options.spec, options.words),
        examples=('tuigpt note poems@250 "the last one that is not reciting"',),
    ),
}
