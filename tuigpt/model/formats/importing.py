"""Foreign checkpoints become a run: its checkpoints, its curve, a state of finished."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from torch import Tensor

from tuigpt.config import GPTConfig, train_settings
from tuigpt.errors import ConfigError, Setting, UserError
from tuigpt.files import UnreadableFile, folder_in_the_making
from tuigpt.loss import Baselines
from tuigpt.model.checkpoint import assemble, save_checkpoint, versions
from tuigpt.model.formats.foreign import ForeignModel
from tuigpt.model.formats.huggingface import is_huggingface, read_huggingface
from tuigpt.model.formats.nanogpt import GPT2_VOCABULARIES, is_nanogpt, read_nanogpt
from tuigpt.model.formats.torch_file import open_torch_file
from tuigpt.model.formats.vocabulary import read_meta
from tuigpt.model.formats.workshop import is_workshop, read_workshop
from tuigpt.runs.folder import CHECKPOINTS, checkpoint_path
from tuigpt.runs.header import CheckpointFacts
from tuigpt.runs.history import Point
from tuigpt.runs.loss_log import LOSS_LOG, read_loss_log
from tuigpt.runs.metrics import CheckpointLine, EvalLine, MetricsLog, StepLine
from tuigpt.runs.names import free_name, new_run_folder
from tuigpt.runs.record import CorpusFacts, RunRecord, TokenizerFacts, write_run_record
from tuigpt.runs.status import RunStatus, utc_now, write_status
from tuigpt.text.baselines import baselines
from tuigpt.text.named import facts_of, open_text
from tuigpt.text.read import ProgressCallback, Scan, Text, scan, silent
from tuigpt.text.split import train_characters
from tuigpt.text.tokenizer import CharTokenizer, Tokenizer

VAL_FRACTION = 0.1
"""The last part of a text that the workshop and nanoGPT keep for validation."""


@dataclass(frozen=True)
class Imported:
    """What an import has made.

    Attributes:
        run: the new run's name.
        program: whose files they were, in words.
        steps: of its checkpoints.
        curve: whether the run has the losses of a loss_log.json.
        notes: what is worth telling, in words.
    """

    run: str
    program: str
    steps: tuple[int, ...]
    curve: bool
    notes: tuple[str, ...]


def import_models(
    paths: Sequence[Path],
    home: Path,
    *,
    cache: Path,
    name: str | None = None,
    text: str | None = None,
    meta: Path | None = None,
    progress: ProgressCallback = silent,
) -> Imported:
    """Make one new run of foreign checkpoints. Nothing in them runs, and all of it or none is made.

    Args:
        paths: files of the workshop or nanoGPT, or a folder of Hugging Face's; a folder that holds
            `.pt` files stands for those. A `loss_log.json` among them, or beside the first, becomes
            the run's curve.
        cache: folder with the texts that were fetched.
        name: of the run; None takes one from the first path.
        text: what the models were trained on, as a user calls it.
        meta: nanoGPT's meta.pkl.

    Raises:
        UserError: a file is not what it should be, or the files do not go together; the text says
            what it holds or lacks.
    """
    files, log = _files(paths)
    if name is None:
        name = free_name(home, _base_name(files[0]))
    folder = new_run_folder(home, name)
    builder = _Builder(
        vocabulary=_Vocabulary(_read_text(text, cache, progress), meta),
        curves=_curves(log) if log else ([], []),
    )
    total, done = sum(map(_size, files)), 0
    try:
        with folder_in_the_making(folder) as draft:
            (draft / CHECKPOINTS).mkdir()
            for path in files:
                progress(f"importing {path.name}", done, max(1, total))
                with open_foreign(path) as model:
                    builder.add(draft, name, model)
                done += _size(path)
            builder.finish(draft, name)
    except FileExistsError:
        raise UserError(f"there is a run {name!r} already") from None
    except OSError as error:
        raise UserError(f"cannot write {str(folder)!r}: {error.strerror or error}") from None
    return Imported(
        name, builder.program, tuple(sorted(builder.steps)), log is not None, tuple(builder.notes)
    )


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignModel]:
    """Open a foreign model; its weights can be read within the block.

    Raises:
        UserError: it is none, or (within the block) a ValueError told what is wrong with it.
    """
    try:
        if is_huggingface(path):
            yield read_huggingface(path)
            return
        with open_torch_file(path) as file:
            if is_workshop(file.content):
                yield read_workshop(path, file)
            elif is_nanogpt(file.content):
                yield read_nanogpt(path, file)
            else:
                raise ValueError(
                    "it is neither the workshop's (model_state_dict and config) nor nanoGPT's"
                    " (model and model_args)"
                )
    except UnreadableFile as error:
        raise _refused(path, error.reason) from None
    except ConfigError as error:
        raise _refused(path, f"its config cannot be: {error}") from None
    except ValueError as error:
        raise _refused(path, str(error)) from None


def _refused(path: Path, reason: str) -> UserError:
    return UserError(f"cannot import {path.name!r}: {reason}")


def _files(paths: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """The models among what was named, and the log that goes with them."""
    files: list[Path] = []
    logs: list[Path] = []
    for path in paths:
        if path.suffix == ".json":
            logs.append(path)
        elif path.is_dir() and not is_huggingface(path):
            inside = sorted(path.glob("*.pt"))
            if not inside:
                raise UserError(f"{str(path)!r} holds no .pt file and no model of Hugging Face's")
            files += inside
        else:
            files.append(path)
    if not files:
        raise UserError("there is no checkpoint to import among what was named")
    if len(logs) > 1:
        raise UserError(f"one run has one {LOSS_LOG}, but {len(logs)} are named")
    beside = files[0].parent / LOSS_LOG
    return files, logs[0] if logs else beside if beside.is_file() else None


def _base_name(path: Path) -> str:
    """What a run is called after: the folder, because the files have the same names everywhere."""
    return path.absolute().name if path.is_dir() else path.absolute().parent.name or path.stem


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _curves(log: Path) -> tuple[list[Point], list[Point]]:
    try:
        return read_loss_log(log).curves()
    except UnreadableFile as error:
        raise _refused(log, error.reason) from None
    except ValueError as error:
        raise _refused(log, str(error)) from None


def _read_text(
    source: str | None, cache: Path, progress: ProgressCallback
) -> tuple[Text, Scan] | None:
    if source is None:
        return None
    text = open_text([source], cache=cache, progress=progress)
    return text, scan(text, progress)


class _Vocabulary:
    """Where the tokens of models come from that do not bring them along."""

    def __init__(self, text: tuple[Text, Scan] | None, meta: Path | None) -> None:
        self.text = text
        try:
            self._meta = read_meta(meta) if meta else None
        except UnreadableFile as error:
            raise _refused(error.path, error.reason) from None
        except ValueError as error:
            assert meta is not None
            raise _refused(meta, str(error)) from None

    def of(self, model: ForeignModel) -> Tokenizer:
        """The tokenizer of a model.

        Raises:
            UserError: there is none, or it does not fit the model or the text.
        """
        size = model.config.vocab_size
        tokenizer, source = self._meta or model.tokenizer, "its vocabulary"
        if self.text is not None and (tokenizer is None or tokenizer.vocab_size != size):
            tokenizer, source = CharTokenizer("".join(sorted(self.text[1].symbols))), "the text"
        begin = f"cannot import {model.path.name!r}: "
        if size in GPT2_VOCABULARIES and (tokenizer is None or tokenizer.vocab_size != size):
            raise UserError(
                f"{begin}its vocabulary of {size:,} tokens is GPT-2's, which it does not bring"
                " along; a folder of Hugging Face's with its tokenizer.json can be imported, and so"
                " can models of characters"
            )
        if tokenizer is None:
            raise UserError(
                f"{begin}it does not tell which characters its {size:,} tokens are; give the text"
                " that it was trained on (", Setting("text"), ") or nanoGPT's meta.pkl (",
                Setting("meta"), ")",
            )  # fmt: skip
        if tokenizer.vocab_size != size:
            unit = "different characters" if source == "the text" else "tokens"
            raise UserError(
                f"{begin}its model has {size:,} tokens, but {source} has"
                f" {tokenizer.vocab_size:,} {unit}; give the text that it was trained on (",
                Setting("text"), ") or its meta.pkl (", Setting("meta"), ")",
            )  # fmt: skip
        if self.text is not None:
            known, unknown = tokenizer.split_unknown(self.text[1].symbols)
            if unknown or isinstance(tokenizer, CharTokenizer) and len(known) < size:
                raise UserError(
                    f"{begin}it was not trained on {self.text[0].name!r}: the text has"
                    f" {len(self.text[1].symbols):,} different characters, {len(unknown):,} of them"
                    f" unknown to the model, which knows {size:,}"
                )
        return tokenizer


class _Builder:
    """Puts models into a run folder, one after another.

    Attributes:
        program: whose files they are.
        steps: what each checkpoint was made of: the file's name and the weights' fingerprint.
        notes: what is worth telling.
    """

    def __init__(self, vocabulary: _Vocabulary, curves: tuple[list[Point], list[Point]]) -> None:
        self._vocabulary = vocabulary
        self._train, self._val = curves
        self._train_at, self._val_at = dict(self._train), dict(self._val)
        self._first: tuple[str, GPTConfig, Tokenizer] | None = None
        self._corpus = CorpusFacts()
        self._baselines = Baselines()
        self.program = ""
        self.steps: dict[int, tuple[str, str]] = {}
        self.notes: list[str] = []

    def add(self, draft: Path, run: str, model: ForeignModel) -> None:
        """Write one model as a checkpoint.

        Raises:
            UserError: it does not go with those before.
            ValueError: its weights are not those of the model.
        """
        name, step = model.path.name, model.step or 0
        tokenizer = self._vocabulary.of(model)
        if self._first is None:
            self._first = (name, model.config, tokenizer)
            self.program = model.program
            self._describe_text(tokenizer)
        else:
            first, config, same = self._first
            if replace(model.config, dropout=config.dropout) != config:
                raise UserError(
                    f"{first!r} and {name!r} are models of different sizes: import them one by one"
                )
            if tokenizer.to_dict() != same.to_dict():
                raise UserError(
                    f"{first!r} and {name!r} have different vocabularies: import them one by one"
                )
        weights = model.read_weights()
        fingerprint = _fingerprint(weights)
        if step in self.steps:
            other, known = self.steps[step]
            if known != fingerprint:
                raise UserError(
                    f"{other!r} and {name!r} are both of step {step:,}, but differ: import them"
                    " one by one"
                )
            self.notes.append(f"{name!r} is the same as {other!r}: kept once")
            return
        self.steps[step] = (name, fingerprint)
        if model.val_loss is not None and step not in self._val_at:
            self._val_at[step] = model.val_loss
            self._val.append((step, model.val_loss))
        facts = CheckpointFacts(
            run=run,
            step=step,
            train_loss=self._train_at.get(step),
            val_loss=self._val_at.get(step),
            corpus=self._corpus.without_paths(),
            created=utc_now(),
        )
        ours = assemble(model.config, weights)
        save_checkpoint(checkpoint_path(draft, step), ours, tokenizer, facts)

    def finish(self, draft: Path, run: str) -> None:
        """Write what else a run folder has."""
        assert self._first is not None
        _, config, tokenizer = self._first
        last = max([*self.steps, *self._train_at])
        self._write_log(draft)
        kind = "char" if isinstance(tokenizer, CharTokenizer) else f"bpe:{tokenizer.vocab_size}"
        write_run_record(
            draft,
            RunRecord(
                name=run,
                created=utc_now(),
                model=config,
                train=train_settings({"recipe": "workshop", "max_steps": max(1, last)}),
                tokenizer=TokenizerFacts(type=kind, vocab_size=tokenizer.vocab_size),
                corpus=self._corpus,
                baselines_by_name=dict(self._baselines.items()),
                versions=versions(),
            ),
        )
        best = min(self._val, key=lambda point: (point[1], point[0]), default=None)
        write_status(
            draft,
            RunStatus(
                state="finished",
                step=last,
                max_steps=last,
                heartbeat=utc_now(),
                message=f"imported from {self.program}",
                train_loss=self._train[-1][1] if self._train else None,
                val_loss=max(self._val)[1] if self._val else None,
                best_val_loss=best[1] if best else None,
                best_step=best[0] if best else None,
            ),
        )

    def _describe_text(self, tokenizer: Tokenizer) -> None:
        if self._vocabulary.text is None:
            if isinstance(tokenizer, CharTokenizer):
                self._corpus = CorpusFacts(symbols=tokenizer.vocab_size)
            return
        text, found = self._vocabulary.text
        n_train = train_characters(found.characters, VAL_FRACTION)
        sizes = {"train_characters": n_train, "val_characters": found.characters - n_train}
        if isinstance(tokenizer, CharTokenizer):
            sizes |= {"train_tokens": n_train, "val_tokens": found.characters - n_train}
        self._corpus = msgspec.structs.replace(facts_of(text, found), **sizes)
        self._baselines = baselines(found, VAL_FRACTION)

    def _write_log(self, draft: Path) -> None:
        train, val = self._train_at, self._val_at
        log = MetricsLog(draft)
        for step in sorted({*train, *val, *self.steps}):
            if step in train:
                log.append(StepLine(step=step, loss=train[step]))
            if step in val:
                loss = val[step]
                log.append(EvalLine(step=step, val_loss=loss, val_loss_per_character=loss))
            if step in self.steps:
                log.append(CheckpointLine(step=step, file=checkpoint_path(draft, step).name))
        log.close()


def _fingerprint(weights: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(weights[name].numpy().tobytes())
    return digest.hexdigest()
