"""The form that starts a run."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from tuigpt.config import (
    DEFAULT_PRESET,
    PRESETS,
    GPTConfig,
    TrainConfig,
    help_of,
    parse_field,
    train_defaults,
)
from tuigpt.errors import ConfigError, Setting, UserError
from tuigpt.paths import user_path
from tuigpt.recipes import DEFAULT_RECIPE, RECIPES
from tuigpt.reports import TextFacts
from tuigpt.runs.launch import Launch, start
from tuigpt.runs.names import default_name, new_run_folder
from tuigpt.runs.record import RUN_FILE
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.new_run.cost import Cost
from tuigpt.tui.screens.new_run.text_preview import TextPreview
from tuigpt.tui.widgets.choices import Choices
from tuigpt.wording import overfitting, short_count

BUILT_IN_TEXT = "shakespeare"

MODEL_FIELDS = ("block_size", "dropout")
TRAIN_FIELDS = (
    "tokenizer", "val_fraction", "encoding", "recipe", "learning_rate", "max_steps", "minutes",
    "batch_size", "seed", "checkpoint_interval",
)  # fmt: skip


def _defaults(recipe: str, device_type: str = "cpu") -> dict[str, str]:
    model = {name: GPTConfig.__dataclass_fields__[name].default for name in MODEL_FIELDS}
    values = {**train_defaults(recipe, device_type), **model}
    return {n: v if isinstance(v, str) else f"{v:g}" for n, v in values.items()}


FIELDS = {
    "text": (
        BUILT_IN_TEXT,
        "file or folder, shakespeare, or tinyshakespeare; several with ; between",
    ),
    "name": ("", "what the run is called; left empty, a name is made up"),
    **{
        name: (_defaults(DEFAULT_RECIPE)[name], help_of(config, name))
        for config, names in ((TrainConfig, TRAIN_FIELDS), (GPTConfig, MODEL_FIELDS))
        for name in names
    },
}
"""Default and explanation of each field of the form, in order."""

POLL = 0.1
"""Seconds between two looks whether the trainer has made its run folder."""


class NewRun(Dialog[str]):
    """Asks what to train, starts it, and dismisses with the run's name once it is under way.

    What cannot work is said beside its field before anything starts; what only the trainer can
    find out (a text that is too short, say) is said here as well, and the form stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Start nothing", id="new-run.back"),
        Binding("ctrl+s", "start", "start training", id="new-run.start",
                tooltip="Start a trainer with these settings"),
        Binding("ctrl+y", "agree", "agree", id="new-run.agree", priority=True,
                tooltip="Read the text in the way that is offered"),
    ]  # fmt: skip

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self._launch: Launch | None = None
        self._untouched = _defaults(DEFAULT_RECIPE)
        self._device_type = "cpu"  # until a timing tells
        self._refused = False
        self._known_text: tuple[tuple[str, ...], TextFacts] | None = None
        self._presets = Choices(
            *(Option(_preset_label(name), id=name) for name in PRESETS),
            id="preset", compact=True, markup=False,
        )  # fmt: skip
        self._fields = {
            name: Input(default, id=name, compact=True, tooltip=explanation)
            for name, (default, explanation) in FIELDS.items()
        }
        self._hint = Static(id="hint", markup=False)
        self._preview = TextPreview(id="preview")
        self._cost = Cost(id="cost")
        self._verdict = Static(id="verdict", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            yield self._presets
            with Grid(id="fields"):
                for name, field in self._fields.items():
                    yield Label(name.replace("_", " "), classes="label")
                    yield field
            yield self._hint
            yield self._preview
            yield self._cost
            yield self._verdict
            with Horizontal(id="buttons"):
                yield Button("Start training", id="start", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        form = self.query_one("#form")
        form.border_title = "New run"
        form.border_subtitle = "enter start · tab next field · esc back"
        self._presets.highlighted = list(PRESETS).index(DEFAULT_PRESET)
        self.set_focus(self._presets)  # now: the next key may be on its way

    def on_descendant_focus(self) -> None:
        """Explain the field that the focus is in."""
        focused = self.focused
        explanation = FIELDS.get(focused.id or "", ("", ""))[1] if focused else ""
        if focused is not None and focused.id == "preset":
            explanation = "the size of the model: a bigger one learns more, and takes longer"
        if focused is not None and focused.id == "preview":
            explanation = (
                "what the text holds, and how far counting letters, pairs and triples gets"
            )
        self._hint.update(explanation)

    @on(Input.Changed)
    @on(OptionList.OptionHighlighted)
    def _judge(self) -> None:
        """Say what these settings make, or what is wrong with them and where."""
        for field in self._fields.values():
            field.remove_class("wrong")
        self._refused = False
        self._follow_recipe()
        try:
            _, _, flags = self._settings()
        except ConfigError as error:
            self._preview.forget()
            self._cost.forget()
            self._complain(error)
            return
        self._say_cost()
        self._preview.look(self._arguments(flags))

    @on(Cost.Timed)
    def _device_told(self, event: Cost.Timed) -> None:
        self._device_type = event.device_type
        self._follow_recipe()
        self._say_cost()

    def _say_cost(self) -> None:
        """What these settings cost, with a warning where they lead to overfitting."""
        model, train, flags = self._settings()
        facts = None
        if self._known_text is not None and self._known_text[0] == self._what_is_read():
            facts = self._known_text[1]
            model = replace(model, vocab_size=facts.vocab_size)
        found = self._cost.reckon(model, train, facts, self._arguments(flags))
        self._say("")
        if found is not None and found.overfits:
            self._say(overfitting(found.parameters_per_character, found.epochs), "doubtful")

    def _what_is_read(self) -> tuple[str, ...]:
        return tuple(self._value(n) for n in ("text", "tokenizer", "encoding", "val_fraction"))

    def _arguments(self, flags: dict[str, str]) -> list[str]:
        """What `tuigpt inspect` and `tuigpt train` are called with, but for the run's name."""
        given = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        return ["--home", str(self._home), *given, "--", *_sources(self._value("text"))]

    @on(TextPreview.Read)
    def _text_read(self, event: TextPreview.Read) -> None:
        if self._launch is not None or self._refused:
            return
        self._known_text = None if event.facts is None else (self._what_is_read(), event.facts)
        offer = event.preview.offer
        if offer is not None:
            self._say(f"ctrl+y  {offer.words}")
        elif event.problem and event.facts is None:
            self._say("no text to train on yet")
        elif event.problem:
            self._say(event.problem, "wrong")
        else:
            self._say_cost()
            self._cost.time()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is something to agree with only while something is offered."""
        return action != "agree" or self._preview.offer is not None

    def action_agree(self) -> None:
        """Take up the preview's offer: name the encoding, or let the text be fetched."""
        offer = self._preview.offer
        if offer is None:
            return
        _, _, flags = self._settings()
        if offer.encoding:
            self._fields["encoding"].value = offer.encoding
        elif offer.fetch:
            self._preview.look(["--fetch", *self._arguments(flags)])

    def _settings(self) -> tuple[GPTConfig, TrainConfig, dict[str, str]]:
        """What is configured (the vocabulary is the text's to decide), and the flags that say so.

        Raises:
            ConfigError: a field's value cannot work.
        """
        typed = {name: self._value(name) for name in (*TRAIN_FIELDS, *MODEL_FIELDS)}
        train: dict[str, Any] = {n: parse_field(TrainConfig, n, typed[n]) for n in TRAIN_FIELDS}
        model: dict[str, Any] = {n: parse_field(GPTConfig, n, typed[n]) for n in MODEL_FIELDS}
        config = TrainConfig(**{**train_defaults(typed["recipe"]), **train})
        # What was left alone is for the trainer to choose, which knows its device.
        flags = {n: text for n, text in typed.items() if text != self._untouched[n]}
        flags["recipe"] = typed["recipe"]
        if config.minutes and "max_steps" in flags:
            raise ConfigError(
                "minutes", config.minutes, "left out where ", Setting("max_steps"), " is given:"
                " both tell the length",
            )  # fmt: skip
        preset = self._preset()
        return GPTConfig(**{**PRESETS[preset], **model}), config, flags | {"preset": preset}

    def _follow_recipe(self) -> None:
        """Give the fields that the user left alone the recipe's values on this device."""
        chosen = self._value("recipe")
        if chosen not in RECIPES:
            return
        before, self._untouched = self._untouched, _defaults(chosen, self._device_type)
        for name in TRAIN_FIELDS:
            if self._value(name) == before[name] and name != "recipe":
                self._fields[name].value = self._untouched[name]

    def _preset(self) -> str:
        option = self._presets.highlighted_option
        return str(option.id) if option else DEFAULT_PRESET

    def _value(self, name: str) -> str:
        return self._fields[name].value.strip()

    def _complain(self, error: UserError) -> None:
        if isinstance(error, ConfigError) and error.field in self._fields:
            self._fields[error.field].add_class("wrong")
        self._say(str(error), "wrong")

    def _say(self, text: str, kind: str = "") -> None:
        self._verdict.set_classes(kind)
        self._verdict.update(Content(text))

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        """Check everything that can be checked here, then start the trainer and wait for it."""
        if self._launch is not None:
            return
        sources = _sources(self._value("text"))
        try:
            _, _, flags = self._settings()
            name = self._value("name") or default_name(self._home, sources, flags["preset"])
            folder = new_run_folder(self._home, name)
        except UserError as error:
            self._complain(error)
            return
        try:
            self._launch = start(self._home, [f"--name={name}", *self._arguments(flags)])
        except OSError as error:
            self._say(f"cannot start the trainer: {error}", "wrong")
            return
        self._cost.forget()  # the machine is the trainer's now
        self._say("reading the text and building the model …")
        self._wait_for(self._launch, folder)

    @work(exclusive=True, group="launch")
    async def _wait_for(self, launch: Launch, folder: Path) -> None:
        while not (folder / RUN_FILE).exists():
            refusal = launch.refusal()
            if refusal is not None:
                self._launch = None
                self._refused = True
                self._say(refusal, "wrong")
                return
            if words := launch.last_words():
                self._say(words)
            await asyncio.sleep(POLL)
        self.answer(folder.name)

    @on(Button.Pressed, "#back")
    def action_back(self) -> None:
        """Leave; a trainer that was just started and has no run folder yet is ended."""
        if self._launch is not None:
            self._launch.cancel()
        super().action_back()


def _sources(typed: str) -> list[str]:
    """The texts that a user named; a semicolon separates them, unless it is in a file's name."""
    if ";" in typed and not os.path.exists(user_path(typed)):
        return [part.strip() for part in typed.split(";") if part.strip()] or [BUILT_IN_TEXT]
    return [typed or BUILT_IN_TEXT]


def _preset_label(name: str) -> str:
    sizes = PRESETS[name]
    count = short_count(GPTConfig(**sizes).n_params)
    return (
        f"{name:<7}{sizes['n_layer']} layers · {sizes['n_head']} heads · {sizes['n_embd']} wide"
        f" · {count} parameters"
    )
