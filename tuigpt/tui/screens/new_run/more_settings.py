"""The settings that the form folds away, and what they make together with the three answers."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from tuigpt.config import GPTConfig, TrainConfig, parse_field
from tuigpt.errors import ConfigError
from tuigpt.plan.choose import Asked, Choice
from tuigpt.recipes import DEFAULT_RECIPE
from tuigpt.tui.screens.new_run.fields import (
    AUTO,
    GROUPS,
    LENGTH_FIELDS,
    MODEL_FIELDS,
    SHORT_MINUTES,
    TRAIN_FIELDS,
    Field,
    defaults,
)
from tuigpt.tui.screens.new_run.radio import Radio

_IN_SUMMARY = ("recipe", "learning_rate", "batch_size", "dropout", "seed")


class _FieldRow(Horizontal):
    """A click anywhere beside a field goes to it, too."""

    def on_click(self) -> None:
        self.query("Input, Radio").first(Widget).focus()


class MoreSettings(Vertical):
    """A heading for each group, and below it each field with a line of words.

    Fields that the user leaves alone follow the recipe, and the device once it is known.
    """

    def __init__(self, changed: Mapping[str, str], device_type: str, *, id: str) -> None:  # noqa: A002
        """
        Args:
            changed: what some of the fields hold from the beginning.
            device_type: what is likely to be trained on.
        """
        super().__init__(id=id)
        self.device_type = device_type
        self._untouched = defaults(changed.get("recipe", DEFAULT_RECIPE), device_type)
        values = {**self._untouched, **changed}
        self._fields = {
            field.name: _widget_for(field, values[field.name])
            for _, fields in GROUPS
            for field in fields
        }
        self._whole = Static(id="whole", markup=False)

    def compose(self) -> ComposeResult:
        for title, fields in GROUPS:
            yield Static(title, classes="group")
            for field in fields:
                with _FieldRow(classes="field"):
                    yield Label(field.label or field.name.replace("_", " "))
                    yield self._fields[field.name]
                    if not field.answers:
                        yield Static(field.words, classes="words")
                if field.answers:
                    yield Static(field.words, classes="words below")
        yield Static("What the text holds", classes="group")
        yield self._whole

    def tell_text(self, whole: Content) -> None:
        """Show all that is known of the text."""
        self._whole.update(whole)

    # --- values ---

    def value(self, name: str) -> str:
        """What a field holds, as it was typed."""
        field = self._fields[name]
        return field.chosen if isinstance(field, Radio) else field.value.strip()

    def set_value(self, name: str, value: str) -> None:
        field = self._fields[name]
        if isinstance(field, Radio):
            field.chosen = value
        else:
            field.value = value

    @property
    def first(self) -> Input | Radio:
        return next(iter(self._fields.values()))

    def is_recipe(self, radio: Radio) -> bool:
        return radio is self._fields["recipe"]

    def mark_wrong(self, name: str = "") -> None:
        """Mark one field, and no other."""
        for at, field in self._fields.items():
            field.set_class(at == name, "wrong")

    @property
    def changed(self) -> dict[str, str]:
        """What the user has changed; and the recipe, whose values the others follow."""
        values = {name: self.value(name) for name in self._fields}
        return {n: v for n, v in values.items() if v != self._untouched[n] or n == "recipe"}

    @property
    def summary(self) -> str:
        """The settings in a line: the usual ones, and those that were changed."""
        shown = dict.fromkeys((*_IN_SUMMARY, *self.changed))
        return " · ".join(f"{name.replace('_', ' ')} {self.value(name)}" for name in shown)

    def follow(self, planned: Choice | None = None) -> None:
        """Give the fields that the user left alone their values: the recipe's, or the plan's."""
        before = self._untouched
        self._untouched = defaults(self.value("recipe"), self.device_type)
        if planned is not None:
            self._untouched |= {
                "block_size": str(planned.model.block_size),
                "batch_size": str(planned.train.batch_size),
            }
        for name in (*TRAIN_FIELDS, *MODEL_FIELDS):
            if name != "recipe" and self.value(name) == before[name]:
                self.set_value(name, self._untouched[name])

    def asked(self, preset: str, length: str) -> tuple[Asked, dict[str, str]]:
        """What is asked for, and the same as texts of settings, for a command.

        What was left alone is not in it: that is for the trainer to choose, which knows its device.

        Args:
            preset: the size, or `AUTO`.
            length: one of `LENGTHS`.

        Raises:
            ConfigError: a field's value cannot work.
        """
        counts = LENGTH_FIELDS[length]
        names = [
            name for name in TRAIN_FIELDS
            if name in counts or name not in ("max_steps", "minutes", "patience")
        ]  # fmt: skip
        typed = {name: self.value(name) for name in (*names, *MODEL_FIELDS)}
        if length == "short":
            typed["minutes"] = str(SHORT_MINUTES)
        always = ("recipe", "max_steps", "minutes", "patience")
        told = {n: x for n, x in typed.items() if n in always or x != self._untouched[n]}
        train = {n: parse_field(TrainConfig, n, x) for n, x in typed.items() if n in TRAIN_FIELDS}
        model = {n: parse_field(GPTConfig, n, x) for n, x in typed.items() if n in MODEL_FIELDS}
        for name in set(counts) - {"max_steps"}:
            if train[name] <= 0:
                raise ConfigError(name, typed[name], "above 0")
        size = None if preset == AUTO else preset
        asked = Asked(
            size,
            {name: value for name, value in model.items() if name in told},
            {name: value for name, value in train.items() if name in told},
        )
        return asked, told | ({"preset": size} if size else {})


def _widget_for(field: Field, value: str) -> Input | Radio:
    if not field.answers:
        return Input(value, id=f"for-{field.name}", compact=True, tooltip=field.words)
    known = dict(field.answers)
    answers = [(name, Content(words)) for name, words in ({value: value} | known).items()]
    if value in known:
        answers = [(name, Content(words)) for name, words in known.items()]
    return Radio(answers, chosen=value, across=True, id=f"for-{field.name}", tooltip=field.words)
