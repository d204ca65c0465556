"""What may be asked of a trainer, what may change while it trains, and `control.json`.

Requests are numbered. A trainer carries out, in order, those above the number that it last wrote
into its status as `answered`; so none is lost when two come within one step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tuigpt.config import GPTConfig, TrainConfig, help_of, parse_field
from tuigpt.errors import ConfigError
from tuigpt.files import Count, UnreadableFile, open_to_append, read_record, write_json
from tuigpt.runs.status import read_status

CONTROL_FILE = "control.json"

LOCK_FILE = "control.lock"
"""Held while a request is added."""

PATIENCE, _POLL = 1.0, 0.002
"""Seconds that one who asks waits for the others, and between two looks."""

MOST_REQUESTS = 1000
"""Unanswered requests above which a control file counts as broken."""


@dataclass(frozen=True)
class Changeable:
    """A setting that may become another than the run began with.

    Attributes:
        config: the configuration that has this field, and knows which values work.
        live: whether it may change while the run trains; else only when the run is resumed.
        kept: whether the run keeps the change; else it lasts as long as the trainer's process.
    """

    name: str
    config: type[GPTConfig] | type[TrainConfig]
    live: bool = False
    kept: bool = True

    @property
    def help(self) -> str:
        """What the setting is, in one sentence."""
        return help_of(self.config, self.name)

    def parse(self, text: str) -> float:
        """Read a value from what a person typed.

        Raises:
            ConfigError: it is no value of this setting.
        """
        value: float = parse_field(self.config, self.name, text)
        self.check(value)
        return value

    def check(self, value: object) -> None:
        """Refuse a value that cannot work.

        Raises:
            ConfigError: names the value and what it must be.
        """
        try:
            self.config(**{self.name: value})  # type: ignore[arg-type]
        except ConfigError as error:
            if error.field == self.name:
                raise


CHANGEABLE: Mapping[str, Changeable] = {
    setting.name: setting
    for setting in (
        Changeable("learning_rate", TrainConfig, live=True),
        Changeable("dropout", GPTConfig, live=True),
        Changeable("max_steps", TrainConfig, live=True),
        Changeable("patience", TrainConfig, live=True),
        Changeable("device", TrainConfig, kept=False),
        Changeable("checkpoint_interval", TrainConfig, kept=False),
        Changeable("evolution_mb", TrainConfig, kept=False),
    )
}
"""Every setting that a run does not keep for good."""


@dataclass(frozen=True)
class Action:
    """Something that a trainer may be asked for.

    Attributes:
        help: what it is, in a few words.
        at_once: what to tell the one who asks, before the trainer has done it.
        done: the trainer's answer; `{step}`, and for a setting `{before}` and `{value}`, are
            filled in by it.
        ends: whether the trainer ends with it.
        setting: what is changed; None for what takes no value.
    """

    name: str
    help: str
    at_once: str
    done: str
    ends: bool = False
    setting: Changeable | None = None


def _change(setting: Changeable) -> Action:
    words = setting.name.replace("_", " ")
    return Action(
        setting.name,
        f"{setting.help}; from the next step on",
        f"changing the {words} after this step",
        words + " changed from {before:.10g} to {value:.10g}",
        setting=setting,
    )


ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action("pause", "wait until it is resumed", "pausing after this step", "paused"),
        Action("resume", "train on after a pause", "resuming", "resumed"),
        Action(
            "checkpoint", "save a checkpoint that is kept", "saving after this step",
            "saved step {step:,}",
        ),
        Action(
            "sample", "write a sample", "sampling after this step",
            "wrote a sample at step {step:,}",
        ),
        Action(
            "evaluate", "measure the validation loss", "evaluating after this step",
            "evaluated at step {step:,}",
        ),
        Action(
            "stop", "save and stop", "finishing the step and saving", "stopped at step {step:,}",
            ends=True,
        ),
        Action(
            "discard", "stop, and delete the run", "deleting the run", "deleted", ends=True
        ),
        *(_change(setting) for setting in CHANGEABLE.values() if setting.live),
    )
}  # fmt: skip
"""Everything that a running trainer may be asked for, by name."""


@dataclass(frozen=True)
class Request:
    """One thing asked of a trainer: an action, and the new `value` if it changes a setting."""

    action: Action
    value: float | None = None


class _Entry(msgspec.Struct):
    """One request in `control.json`; actions of a newer tuigpt are passed over."""

    number: Count
    action: str
    value: float | None = None

    @property
    def request(self) -> Request | None:
        """What it asks for, if that is something a trainer knows."""
        action = ACTIONS.get(self.action)
        if action is None or (self.value is None) != (action.setting is None):
            return None
        if self.value is not None and not abs(self.value) < 2**53:  # nor is NaN
            return None
        return Request(action, self.value)


class _Control(msgspec.Struct):
    requests: Annotated[list[_Entry], msgspec.Meta(max_length=MOST_REQUESTS)]


def request(folder: Path, action: str, value: float | None = None) -> int:
    """Ask the trainer of a run for something.

    Args:
        action: of `ACTIONS`.
        value: for an action that changes a setting.

    Returns:
        the request's number, which the trainer answers with.

    Raises:
        OSError: the request could not be written.
    """
    if action not in ACTIONS or (value is None) != (ACTIONS[action].setting is None):
        raise ValueError(f"unknown action {action!r}")
    with _one_at_a_time(folder):
        answered = read_status(folder).answered
        pending = _read(folder)
        number = max([answered, *(entry.number for entry in pending)]) + 1
        pending = [entry for entry in pending if entry.number > answered]
        control = _Control([*pending[-MOST_REQUESTS + 1 :], _Entry(number, action, value)])
        write_json(folder / CONTROL_FILE, control)
    return number


def last_request(folder: Path) -> int:
    """Number of the newest request made of a run, or 0."""
    return max([0, *(entry.number for entry in _read(folder))])


class Requests:
    """The trainer's end: hands out each request once, and looks at the file only when it changed.

    Attributes:
        folder: the run's; it may be set anew when the folder was renamed.
        answered: number of the newest request handed out.
    """

    def __init__(self, folder: Path, answered: int) -> None:
        """
        Args:
            answered: requests up to this number are not for this trainer; it is the `last_request`
                from before the run's status said that there is one.
        """
        self.folder = folder
        self.answered = answered
        self._seen: tuple[int, int] | None = None

    def new(self) -> Iterator[Request]:
        """What was asked for since the last call."""
        try:
            stat = (self.folder / CONTROL_FILE).stat()
        except OSError:
            return
        mark = (stat.st_mtime_ns, stat.st_ino)
        if mark == self._seen:
            return
        self._seen = mark
        for entry in _read(self.folder):
            if entry.number > self.answered:
                self.answered = entry.number
                if entry.request is not None:
                    yield entry.request


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let others who ask wait; without locks, or behind one who hangs, it asks all the same."""
    from filelock import lock_descriptor  # not needed to read what was asked

    descriptor = open_to_append(folder / LOCK_FILE)
    try:
        patient_until = time.monotonic() + PATIENCE
        with suppress(OSError):  # a file system that has no locks
            while not lock_descriptor(descriptor, blocking=False):
                if time.monotonic() >= patient_until:
                    break
                time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _read(folder: Path) -> list[_Entry]:
    """The requests in order; a file that is broken asks for nothing."""
    try:
        return read_record(folder / CONTROL_FILE, _Control).requests
    except UnreadableFile:
        return []
