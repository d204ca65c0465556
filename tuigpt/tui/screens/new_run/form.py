"""The form that starts a run: three questions, and all else folded away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from tuigpt.config import (
    PRESETS,
    GPTConfig,
    TrainConfig,
    bpe_size,
    parse_field,
    train_defaults,
)
from tuigpt.errors import ConfigError, UserError
from tuigpt.estimate import Reading, reading
from tuigpt.recipes import DEFAULT_RECIPE
from tuigpt.reports import TextFacts
from tuigpt.runs.launch import Launch, start
from tuigpt.runs.names import default_name, new_run_folder
from tuigpt.runs.record import RunRecord
from tuigpt.story import is_shakespeare
from tuigpt.tui.keys import with_keys
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.new_run.cost import Cost
from tuigpt.tui.screens.new_run.fields import (
    GROUPS,
    MODEL_FIELDS,
    SHORT_MINUTES,
    TRAIN_FIELDS,
    Answers,
    Field,
    defaults,
)
from tuigpt.tui.screens.new_run.path_field import PathField, nearest, sources_of
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.tui.screens.new_run.remembered import (
    answers_of,
    keep_answers,
    read_answers,
    texts_of_before,
)
from tuigpt.tui.screens.new_run.sizes import Size, heading, size_rows
from tuigpt.tui.screens.new_run.speeds import Expected, Speeds
from tuigpt.tui.screens.new_run.text_preview import TextPreview
from tuigpt.tui.starting import until_begun
from tuigpt.wording import duration, one_line, overfitting

BUILT_IN_TEXT = "shakespeare"

MOST_TEXTS, TALL = 3, 30
"""Texts of earlier runs that are offered from so many rows on; below them, one."""

_LENGTH_FIELDS = {"steps": ("max_steps",), "short": (), "long": ("minutes",),
                  "patience": ("max_steps", "patience")}  # fmt: skip
"""Which of the folded fields count for each length of a run."""

_IN_SUMMARY = ("recipe", "learning_rate", "batch_size", "dropout", "seed")


class _Questions(VerticalScroll, can_focus=False):
    """The up and down keys go from field to field, also out of a field that is typed in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "field above", show=False, id="new-run.up",
                tooltip="Go to the field above"),
        Binding("down", "app.focus_next", "field below", show=False, id="new-run.down",
                tooltip="Go to the field below"),
    ]  # fmt: skip


class _OwnText(Static):
    """Stands before the path as its answer's mark; a click goes to the path."""

    def on_click(self) -> None:
        self.screen.query_one(PathField).focus()


class NewRun(Dialog[str]):
    """Asks what to train, starts it, and dismisses with the run's name once it is under way.

    What cannot work is said above the buttons before anything starts, and stays until its setting
    changes; what only the trainer can find out is said there as well, and the form stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "start training", id="new-run.start",
                tooltip="Start a trainer with these settings"),
        Binding("escape", "back", "back", tooltip="Start nothing; the form is kept as it is",
                id="new-run.back"),
        Binding("f2,m", "more", "more settings", id="new-run.more",
                tooltip="Unfold all other settings, or fold them away"),
        Binding("ctrl+y", "agree", "agree", id="new-run.agree", priority=True,
                tooltip="Take what is offered above the buttons"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    NewRun {
        align: center middle;
        #form {
            width: 90%; max-width: 116; height: 100%; max-height: 34; padding: 0 2;
            border: round $primary; border-title-color: $text-primary; background: $surface;
            border-subtitle-color: $foreground-muted; overflow: hidden;
        }
        #questions { height: 1fr; scrollbar-size-vertical: 1; padding: 0 1 0 0; }
        #foot { height: auto; border-top: solid $foreground 50%; }
        .question { text-style: bold; color: $text-primary; }
        .spaced { margin-top: 1; }
        #source, #own, #preview, #preset, #duration, #head { margin-left: 3; width: 1fr; }
        #head { color: $foreground-muted; height: 1; text-wrap: nowrap; }
        #own { height: 1; }
        #own-mark { width: auto; }
        #text { width: 1fr; background: $boost; }
        #preview { color: $foreground-muted; }
        #more { width: 1fr; text-align: left; content-align: left middle; }
        #more { margin-top: 1; background: transparent; }
        #more:focus { background: $boost; }
        #fields { height: auto; display: none; }
        #fields.-open { display: block; }
        #whole { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
        .group { text-style: bold; margin-top: 1; }
        .field { height: auto; }
        .field Label { width: 20; color: $foreground-muted; }
        .field Input { width: 10; background: $boost; margin-right: 2; }
        #for-name, #for-encoding { width: 18; }
        .words { width: 1fr; height: auto; color: $foreground-muted; }
        .field Input.wrong, #text.wrong { background: $error-muted; color: $text-error; }
        .below { margin-left: 20; }
        #verdict-box { height: auto; max-height: 8; scrollbar-size-vertical: 1; }
        #verdict { height: auto; min-height: 1; max-height: 100; }
        #verdict.wrong { color: $text-error; text-style: bold; }
        #verdict.doubtful { color: $text-warning; }
        #buttons { height: 1; }
        #buttons Button { margin-right: 2; }
    }
    NewRun.-narrow #form { width: 100%; }
    NewRun.-short { .spaced, #more { margin-top: 0; } }
    """

    def __init__(self, home: Path, like: RunRecord | None = None) -> None:
        """
        Args:
            like: fills the form as for a run like this one; else it opens as it was left.
        """
        super().__init__()
        self._home = home
        self._answers = answers_of(like) if like else read_answers(home)
        self._launch: Launch | None = None
        self._speeds = Speeds(home)
        newest = self._speeds.newest
        self._device_type = newest.device_type if newest else "cpu"
        recipe = self._answers.fields.get("recipe", DEFAULT_RECIPE)
        self._untouched = defaults(recipe, self._device_type)
        self._known_text: tuple[tuple[str, ...], TextFacts] | None = None
        self._text_problem = ""
        self._refusal: tuple[list[str], str] = ([], "")
        self._nearest: tuple[str, str] | None = None

        answers = self._answers
        text = "" if answers.text == BUILT_IN_TEXT else answers.text
        self._source = Radio(_source_rows([]), chosen=text, id="source")
        self._text = PathField(
            id="text", placeholder="type a path; tab completes it",
            tooltip="A text file or a folder of them; several with ; between",
        )  # fmt: skip
        self._text.value = text
        self._mark = _OwnText(id="own-mark", markup=False)
        self._preview = TextPreview(id="preview")
        self._whole = Static(id="whole", markup=False)
        self._head = Static(id="head", markup=False)
        self._preset = Radio(
            [(name, Content(name)) for name in PRESETS], chosen=answers.preset, id="preset"
        )
        self._length = Radio([("steps", Content(""))], chosen=answers.length, across=True,
                             id="duration")  # fmt: skip
        self._more = Button("", id="more", compact=True)
        values = self._untouched | answers.fields
        self._fields = {
            field.name: _widget_for(field, values[field.name])
            for _, fields in GROUPS
            for field in fields
        }
        self._cost = Cost(id="cost")
        self._verdict = Static(id="verdict", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            with _Questions(id="questions"):
                yield Static("1  What shall it read?", classes="question")
                yield self._source
                with Horizontal(id="own"):
                    yield self._mark
                    yield self._text
                yield self._preview
                yield Static("2  How big?", classes="question spaced")
                yield self._head
                yield self._preset
                yield Static("3  How long?", classes="question spaced")
                yield self._length
                yield self._more
                with Vertical(id="fields"):
                    for title, fields in GROUPS:
                        yield Static(title, classes="group")
                        for field in fields:
                            with Horizontal(classes="field"):
                                yield Label(field.name.replace("_", " "))
                                yield self._fields[field.name]
                                if not field.answers:
                                    yield Static(field.words, classes="words")
                            if field.answers:
                                yield Static(field.words, classes="words below")
                    yield Static("What the text holds", classes="group")
                    yield self._whole
            with Vertical(id="foot"):
                yield self._cost
                with VerticalScroll(id="verdict-box", can_focus=False):
                    yield self._verdict
                with Horizontal(id="buttons"):
                    yield Button("Start training", id="start", variant="primary", compact=True)
                    yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        self.query_one("#form").border_subtitle = "↑ ↓ choose · tab next question"
        start = with_keys(self, "Start training  {new-run.start}")
        self.query_one("#start", Button).label = start
        self.set_focus(self._text)  # now: the next key may be on its way
        self._judge()
        self._offer_texts()

    def on_resize(self) -> None:
        self.call_after_refresh(self._judge)

    @work(group="texts", exit_on_error=False)
    async def _offer_texts(self) -> None:
        most = MOST_TEXTS if self.app.size.height >= TALL else 1
        known = await asyncio.to_thread(texts_of_before, self._home, [BUILT_IN_TEXT], most)
        self._source.show(_source_rows(known))
        self._mark_source()

    # --- what is asked ---

    def _value(self, name: str) -> str:
        field = self._fields[name]
        return field.chosen if isinstance(field, Radio) else field.value.strip()

    def _set(self, name: str, value: str) -> None:
        field = self._fields[name]
        if isinstance(field, Radio):
            field.chosen = value
        else:
            field.value = value

    def _sources(self) -> list[str]:
        return sources_of(self._text.value) or [BUILT_IN_TEXT]

    def _settings(self) -> tuple[GPTConfig, TrainConfig, dict[str, str]]:
        """What is configured (the vocabulary is the text's to decide), and the flags that say so.

        Raises:
            ConfigError: a field's value cannot work.
        """
        length = self._length.chosen
        counts = _LENGTH_FIELDS[length]
        names = [
            name for name in TRAIN_FIELDS
            if name in counts or name not in ("max_steps", "minutes", "patience")
        ]  # fmt: skip
        typed = {name: self._value(name) for name in (*names, *MODEL_FIELDS)}
        train: dict[str, Any] = {n: parse_field(TrainConfig, n, typed[n]) for n in names}
        model: dict[str, Any] = {n: parse_field(GPTConfig, n, typed[n]) for n in MODEL_FIELDS}
        # What was left alone is for the trainer to choose, which knows its device.
        flags = {n: text for n, text in typed.items() if text != self._untouched[n]}
        flags |= {n: typed[n] for n in ("recipe", "minutes", "patience") if n in typed}
        if length == "short":
            train["minutes"], flags["minutes"] = float(SHORT_MINUTES), str(SHORT_MINUTES)
        config = TrainConfig(**{**train_defaults(typed["recipe"], self._device_type), **train})
        for name in set(counts) - {"max_steps"}:
            if getattr(config, name) <= 0:
                raise ConfigError(name, typed[name], "above 0")
        preset = self._preset.chosen
        return GPTConfig(**{**PRESETS[preset], **model}), config, flags | {"preset": preset}

    def _arguments(self, flags: dict[str, str]) -> list[str]:
        """What `tuigpt inspect` and `tuigpt train` are called with, but for the run's name."""
        given = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        return ["--home", str(self._home), *given, "--", *self._sources()]

    def _what_is_read(self) -> tuple[str, ...]:
        fields = ("tokenizer", "encoding", "val_fraction")
        return (*self._sources(), *(self._value(name) for name in fields))

    # --- changes ---

    @on(Radio.Chosen, "#source")
    def _source_chosen(self, event: Radio.Chosen) -> None:
        event.stop()
        self._text.value = event.radio.chosen

    @on(Input.Changed)
    @on(Radio.Chosen)
    def _changed(self, event: Input.Changed | Radio.Chosen) -> None:
        if isinstance(event, Radio.Chosen) and event.radio is self._fields["recipe"]:
            self._follow()
        self._judge()

    @on(Cost.Timed)
    def _timed(self, event: Cost.Timed) -> None:
        report = event.report
        self._device_type = report.device_type
        self._cost.problem = report.problem
        self._follow()
        try:
            model, train, _ = self._settings()
        except ConfigError:
            return
        facts = self._facts()
        if facts is not None:
            self._speeds.keep(replace(model, vocab_size=facts.vocab_size), train, report)
        self._judge()

    @on(Cost.Failed)
    def _not_timed(self, event: Cost.Failed) -> None:
        self._cost.problem = event.problem
        self._judge()

    def _follow(self) -> None:
        """Give the fields that the user left alone the recipe's values on this device."""
        before, self._untouched = self._untouched, defaults(self._value("recipe"),
                                                            self._device_type)  # fmt: skip
        for name in (*TRAIN_FIELDS, *MODEL_FIELDS):
            if name != "recipe" and self._value(name) == before[name]:
                self._set(name, self._untouched[name])

    def _judge(self) -> None:
        """Say what these settings make, or what is wrong with them and where."""
        if not self.is_mounted or self._launch is not None:
            return
        for field in self._fields.values():
            field.remove_class("wrong")
        self._mark_source()
        self._summarise()
        try:
            model, train, flags = self._settings()
        except ConfigError as error:
            self._preview.forget()
            self._cost.stop()
            if error.field in self._fields:
                self._fields[error.field].add_class("wrong")
            self._say(str(error), "wrong")
            return
        arguments = self._arguments(flags)
        self._cost.drop_other(arguments)
        if self._preview.look(arguments):
            self._text_problem, self._nearest = "", None
        found = self._show_costs(model, train)
        self._say_verdict(arguments, found)

    def _say_verdict(self, arguments: list[str], found: Reading | None) -> None:
        """The first that is wrong, else what to expect."""
        offer = self._preview.offer
        refused, refusal = self._refusal
        if refused == [self._value("name"), *arguments]:
            self._say(refusal, "wrong")
        elif self._text_problem:
            words, agree = self._text_problem, with_keys(self, "{new-run.agree}")
            if self._nearest is not None:
                words += f"\n{agree}  take {one_line(self._nearest[1])}"
            elif offer is not None:
                words += f"\n{agree}  {offer.words}"
            self._say(words, "wrong")
        elif self._cost.problem:
            self._say(self._cost.problem, "wrong")
        elif found is not None and found.overfits:
            self._say(overfitting(found.parameters_per_character, found.epochs), "doubtful")
        else:
            self._say("")

    def _say(self, text: str, kind: str = "") -> None:
        self._verdict.set_classes(kind)
        self._verdict.update(Content(f"✗ {text}" if kind == "wrong" else text))

    # --- the text ---

    @on(TextPreview.Read)
    async def _text_read(self, event: TextPreview.Read) -> None:
        if self._launch is not None:
            return
        self._text_problem = event.problem
        self._known_text = None if event.facts is None else (self._what_is_read(), event.facts)
        if event.problem and event.facts is None and event.preview.offer is None:
            typed = self._text.value
            for source in sources_of(typed):
                like = await asyncio.to_thread(nearest, source)
                if like is not None and like != source and self._text.value == typed:
                    self._nearest = (typed, typed.replace(source, like))
        self.refresh_bindings()
        self._judge()
        if not event.problem:
            try:
                self._cost.time(self._arguments(self._settings()[2]))
            except ConfigError:
                return
            self._judge()

    def _facts(self) -> TextFacts | None:
        """What is known of the text that is asked for."""
        if self._known_text is not None and self._known_text[0] == self._what_is_read():
            return self._known_text[1]
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is something to agree with only while something is offered."""
        return action != "agree" or self._preview.offer is not None or self._nearest is not None

    def action_agree(self) -> None:
        """Take what is offered: the nearest name, an encoding, or that the text is fetched."""
        offer = self._preview.offer
        if self._nearest is not None:
            self._text.value = self._nearest[1]
        elif offer is not None and offer.encoding:
            self._set("encoding", offer.encoding)
        elif offer is not None and offer.fetch:
            self._preview.look(["--fetch", *self._arguments(self._settings()[2])])

    # --- what is shown ---

    def _mark_source(self) -> None:
        value = self._text.value.strip()
        own = value not in (*self._source.answers, BUILT_IN_TEXT)
        self._source.chosen = "\0" if own else ("" if value == BUILT_IN_TEXT else value)
        words = "your file or folder  "
        mark = ("● ", "bold $text-primary") if own else "○ "
        self._mark.update(Content.assemble(mark, (words, "bold" if own else "")))

    def _summarise(self) -> None:
        is_open = self.query_one("#fields").has_class("-open")
        changed = [n for n in self._fields if self._value(n) != self._untouched[n]]
        shown = [*_IN_SUMMARY, *(n for n in changed if n not in _IN_SUMMARY)]
        parts = [f"{n.replace('_', ' ')} {self._value(n)}" for n in shown]
        words = "" if is_open else "   " + " · ".join(parts)
        label = Content.assemble(
            ("▾" if is_open else "▸", "bold $text-primary"), "  more settings",
            (one_line(words), "$foreground-muted"),
        )  # fmt: skip
        self._more.label = label.truncate(max(20, self._more.size.width - 2), ellipsis=True)

    def _show_costs(self, model: GPTConfig, train: TrainConfig) -> Reading | None:
        """Show every size's cost, and that of the chosen one in full; how it reads the text."""
        facts = self._facts()
        vocabulary = facts.vocab_size if facts else bpe_size(train.tokenizer)
        if vocabulary:
            model = replace(model, vocab_size=vocabulary)
        sizes, found = {}, None
        for name, preset in PRESETS.items():
            size = replace(model, **preset)
            steps, expected, read = self._plan(size, train, facts)
            sizes[name] = Size(
                size.n_params,
                expected.calibration.seconds(steps) if expected else None,
                expected is not None and expected.measured,
                steps.max_steps,
                read is not None and read.overfits,
            )
            if name == self._preset.chosen:
                found = read
                run = self._value("name") or default_name(self._home, self._sources(), name)
                self.query_one("#form").border_title = Content(f"New run: {one_line(run)}")
                self._cost.show(size, steps, expected, read)
        width = self._preset.size.width - 2
        plays = len(self._sources()) == 1 and is_shakespeare(self._sources()[0])
        self._preset.show(size_rows(sizes, plays, width))
        self._head.update(heading(width))
        self._length.show(self._length_rows(sizes[self._preset.chosen], train))
        self._whole.update(self._preview.whole)
        return found

    def _plan(
        self, model: GPTConfig, train: TrainConfig, facts: TextFacts | None
    ) -> tuple[TrainConfig, Expected | None, Reading | None]:
        """The training with the steps that fit into its minutes, how long it takes, what it reads.

        What cannot be known yet is None.
        """
        expected = self._speeds.expected(model, train, facts.train if facts else None)
        if train.minutes and expected is not None:
            steps = expected.calibration.steps_within(60 * train.minutes, train)
            train = replace(train, max_steps=steps)
        counted = facts is not None and (train.tokenizer == "char" or facts.unit == "tokens")
        if facts is None or not counted or (train.minutes and expected is None):
            return train, expected, None
        return train, expected, reading(model, train, facts.train, facts.train_characters)

    def _length_rows(self, size: Size, train: TrainConfig) -> list[tuple[str, Content]]:
        steps = self._value("max_steps")
        steps = f"{int(steps):,}" if steps.isascii() and steps.isdigit() else steps
        took = ""
        if self._length.chosen == "steps" and size.seconds is not None:
            took = f", {duration(size.seconds)}"
        return [
            ("steps", Content(f"{steps} steps{took}")),
            ("short", Content(f"{SHORT_MINUTES} min")),
            ("long", Content(f"{self._value('minutes')} min")),
            ("patience", Content("until val stops falling")),
        ]

    @on(Button.Pressed, "#more")
    def action_more(self) -> None:
        """Unfold the other settings and go to the first of them, or fold them away."""
        fields = self.query_one("#fields")
        fields.toggle_class("-open")
        opened = fields.has_class("-open")
        self._judge()
        self.set_focus(self._fields["name"] if opened else self._more, scroll_visible=False)
        # Not before the layout knows the fields.
        self.call_after_refresh(self.query_one("#more").scroll_visible, animate=False, top=True)

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    # --- starting, and leaving ---

    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        """Check everything that can be checked here, then start the trainer and wait for it."""
        if self._launch is not None:
            return
        try:
            _, _, flags = self._settings()
            name = self._value("name") or default_name(self._home, self._sources(), flags["preset"])
            folder = new_run_folder(self._home, name)
        except UserError as error:
            self._judge()
            self._say(str(error), "wrong")
            return
        arguments = self._arguments(flags)
        try:
            self._launch = start(self._home, [f"--name={name}", *arguments])
        except OSError as error:
            self._say(f"cannot start the trainer: {error}", "wrong")
            return
        self._cost.stop()  # the machine is the trainer's now
        self._say("reading the text and building the model …")
        self._wait_for(self._launch, folder, [self._value("name"), *arguments])

    @work(exclusive=True, group="launch")
    async def _wait_for(self, launch: Launch, folder: Path, arguments: list[str]) -> None:
        refusal = await until_begun(launch, folder, self._say)
        if refusal is not None:
            self._launch = None
            self._refusal = (arguments, refusal)
            self._judge()
            return
        self._set("name", "")  # it is taken now
        self._keep()
        self.answer(folder.name)

    @on(Button.Pressed, "#back")
    def action_back(self) -> None:
        """Leave; a trainer that was just started and has no run folder yet is ended."""
        if self._launch is not None:
            self._launch.cancel()
        self._keep()
        super().action_back()

    def _keep(self) -> None:
        changed = {
            name: self._value(name)
            for name in self._fields
            if self._value(name) != self._untouched[name] or name == "recipe"
        }
        text, preset, length = self._text.value.strip(), self._preset.chosen, self._length.chosen
        keep_answers(self._home, Answers(text, preset, length, changed))


def _source_rows(texts: list[str]) -> list[tuple[str, Content]]:
    """The built-in text, and those of earlier runs; each is named as the field would hold it."""
    return [
        ("", Content("Shakespeare's 38 plays, 4.8 M characters")),
        *((text, Content(f"{one_line(text)}, read before")) for text in texts),
    ]


def _widget_for(field: Field, value: str) -> Input | Radio:
    if not field.answers:
        return Input(value, id=f"for-{field.name}", compact=True, tooltip=field.words)
    known = dict(field.answers)
    answers = [(name, Content(words)) for name, words in ({value: value} | known).items()]
    if value in known:
        answers = [(name, Content(words)) for name, words in known.items()]
    return Radio(answers, chosen=value, across=True, id=f"for-{field.name}", tooltip=field.words)
