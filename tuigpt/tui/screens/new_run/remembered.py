"""How the form was left, and the form as a run would have filled it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import nlargest
from pathlib import Path

import msgspec

from tuigpt.config import PRESETS, GPTConfig, bpe_size, usual_patience
from tuigpt.errors import UserError
from tuigpt.files import UnreadableFile, read_record
from tuigpt.paths import user_path
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES
from tuigpt.runs.folder import run_folders
from tuigpt.runs.record import RUN_FILE, RunRecord, read_run_record
from tuigpt.settings import LastForm, change_settings, read_settings
from tuigpt.tui.screens.new_run.fields import (
    AUTO,
    FIELDS,
    LENGTHS,
    MODEL_FIELDS,
    NO_ANSWERS,
    SHORT_MINUTES,
    SIZES,
    TRAIN_FIELDS,
    Answers,
    defaults,
)

OLD_FORM_FILE = "new-run.json"
"""Where a home kept the form before; it holds until the settings say how the form was left."""

_NEWEST_RUNS = 30
"""Runs that are looked through for their texts."""


def read_answers(home: Path) -> Answers:
    """The form as it was left; empty where it never was open, or nothing of it can be used."""
    form = read_settings(home).new_run
    if form is None:
        try:
            form = read_record(home / OLD_FORM_FILE, LastForm)
        except UnreadableFile:
            return NO_ANSWERS
    known = {
        name: value
        for name, value in form.fields.items()
        if name in FIELDS and _is_answer(name, value)
    }
    return Answers(
        form.text,
        form.preset if form.preset in SIZES else NO_ANSWERS.preset,
        form.length if form.length in LENGTHS else NO_ANSWERS.length,
        known,
    )


def _is_answer(name: str, value: str) -> bool:
    answers = dict(FIELDS[name].answers)
    return not answers or value in answers or (name == "tokenizer" and bpe_size(value) is not None)


def keep_answers(home: Path, answers: Answers) -> None:
    """Keep the form for the next time; where nothing can be written, it opens as it did before."""
    before = read_answers(home)
    usual = {"recipe": DEFAULT_RECIPE}  # in a form that was only looked at nothing is chosen
    if answers != replace(before, fields=usual | before.fields):
        form = LastForm(
            text=answers.text[:4096], preset=answers.preset, length=answers.length,
            fields=answers.fields,
        )  # fmt: skip
        with suppress(UserError):
            change_settings(new_run=msgspec.structs.asdict(form))


def answers_of(run: RunRecord) -> Answers:
    """The form as it would have started a run like this one."""
    corpus, train = run.corpus, run.train
    sources = list(corpus.sources) or [corpus.path or corpus.name]
    usual = defaults(train.recipe if train.recipe in RECIPES else "fast")
    values = {name: getattr(train, name) for name in TRAIN_FIELDS}
    values |= {name: getattr(run.model, name) for name in MODEL_FIELDS}
    texts = {n: v if isinstance(v, str) else f"{v:.15g}" for n, v in values.items()}
    minutes, length = train.minutes, "steps"
    if run.plan is not None:
        minutes = run.plan.minutes
        texts["minutes"] = f"{minutes:g}"
        texts |= {name: usual[name] for name in run.plan.chosen if name in usual}
    if minutes:
        length = "short" if minutes == SHORT_MINUTES else "long"
    elif train.patience not in (0, usual_patience(train)):
        length = "patience"
    if length in ("short", "long"):
        texts["max_steps"] = usual["max_steps"]  # a trial had chosen them
    if length != "long":
        texts["minutes"] = usual["minutes"]
    if length != "patience":
        texts["patience"] = usual["patience"]
    changed = {n: text for n, text in texts.items() if text != usual[n] or n == "recipe"}
    return Answers("; ".join(sources), _preset_of(run), length, changed)


def _preset_of(run: RunRecord) -> str:
    """The size that the run was asked for by, or the one that is most like it."""
    if run.plan is not None and "n_layer" in run.plan.chosen:
        return AUTO
    if run.preset in PRESETS:
        return str(run.preset)
    size = run.model.n_params
    return min(PRESETS, key=lambda name: abs(GPTConfig(**PRESETS[name]).n_params - size))


def texts_of_before(home: Path, built_in: Sequence[str], most: int) -> list[str]:
    """The texts that the newest runs have learned from, as the form's field names them."""
    found: list[str] = []
    folders = nlargest(_NEWEST_RUNS, run_folders(home), key=_made_at)
    for folder in folders:
        try:
            corpus = read_run_record(folder).corpus
        except UnreadableFile:
            continue
        sources = list(corpus.sources) or [corpus.path]
        text = "; ".join(sources)
        if text and text not in found and text not in built_in and all(map(_is_there, sources)):
            found.append(text)
            if len(found) == most:
                break
    return found


def _made_at(folder: Path) -> float:
    try:
        return (folder / RUN_FILE).stat().st_mtime
    except OSError:
        return 0.0


def _is_there(source: str) -> bool:
    try:
        return user_path(source).exists()
    except (OSError, ValueError):
        return False
