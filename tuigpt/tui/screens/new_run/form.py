"""The form that starts a run: three questions, and all else folded away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from tuigpt.errors import ConfigError, UserError
from tuigpt.estimate import Reading
from tuigpt.plan.choose import Asked
from tuigpt.plan.speeds import Speeds
from tuigpt.reports import TextFacts
from tuigpt.runs.launch import Launch, start
from tuigpt.runs.names import default_name, new_run_folder, text_name
from tuigpt.runs.record import RunRecord
from tuigpt.story import is_shakespeare
from tuigpt.tui.keys import with_keys
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.new_run.cost import Cost
from tuigpt.tui.screens.new_run.fields import HELP, SIZES, Answers
from tuigpt.tui.screens.new_run.length import Length
from tuigpt.tui.screens.new_run.more_settings import MoreSettings
from tuigpt.tui.screens.new_run.path_field import nearest, sources_of
from tuigpt.tui.screens.new_run.prospect import Prospect
from tuigpt.tui.screens.new_run.questions import Questions
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.tui.screens.new_run.remembered import (
    answers_of,
    keep_answers,
    read_answers,
    texts_of_before,
)
from tuigpt.tui.screens.new_run.sizes import heading, length_rows, size_rows
from tuigpt.tui.screens.new_run.source import BUILT_IN_TEXT, Source
from tuigpt.tui.screens.new_run.text_preview import TextPreview
from tuigpt.tui.starting import until_begun
from tuigpt.wording import one_line, overfitting

MOST_TEXTS, TALL = 3, 30
"""Texts of earlier runs that are offered from so many rows on; below them, one."""

_NO_PATH = "type the path of a text file or of a folder, or choose a text above with ↑"


class NewRun(Dialog[str]):
    """Asks what to train, starts it, and dismisses with the run's name once it is under way.

    What cannot work is said above the buttons before anything starts, and stays until its setting
    changes; what only the trainer can find out is said there as well, and the form stays.
    """

    HELP_TITLE = "New run"
    HELP = HELP
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

    CSS_PATH = "form.tcss"

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
        self._known_text: tuple[tuple[str, ...], TextFacts] | None = None
        self._text_problem = ""
        self._refusal: tuple[list[str], str] = ([], "")
        self._nearest: tuple[str, str] | None = None

        answers = self._answers
        self._source = Source(answers.text)
        self._preview = TextPreview(id="preview")
        self._head = Static(id="head", markup=False)
        self._preset = Radio(
            [(name, Content(name)) for name in SIZES], chosen=answers.preset, id="preset"
        )
        self._length = Length([("steps", Content(""))], chosen=answers.length, id="duration")
        self._more = Button("", id="more", compact=True)
        newest = self._speeds.newest
        device_type = newest.device_type if newest else "cpu"
        self._settings = MoreSettings(answers.fields, device_type, id="fields")
        self._cost = Cost(id="cost")
        self._verdict = Static(id="verdict", markup=False)
        self._start = Button("Start training", id="start", variant="primary", compact=True)

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            with Questions(id="questions"):
                yield Static("1  What shall it read?", classes="question", id="asks-source")
                yield self._source
                yield self._preview
                with Horizontal(classes="spaced", id="big"):
                    yield Static("2  How big?", classes="question", id="asks-preset")
                    yield self._head
                yield self._preset
                yield Static("3  How long?", classes="question spaced", id="asks-duration")
                yield self._length
                yield self._more
                yield self._settings
            with Vertical(id="foot"):
                yield self._cost
                with VerticalScroll(id="verdict-box", can_focus=False):
                    yield self._verdict
                with Horizontal(id="buttons"):
                    yield self._start
                    yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        # Now: the next key may be on its way.
        self.set_focus(self._source.path, scroll_visible=False)
        self.watch(self, "focused", self._mark_asked)
        self._judge()
        self._offer_texts()

    def _mark_asked(self, focused: Widget | None) -> None:
        asked = "source" if focused is self._source.path else focused.id if focused else None
        self._source.set_class(asked == "source", "-asked")
        keys = self.query_one(Questions).mark_asked(asked or "")
        self.query_one("#form").border_subtitle = keys

    def on_resize(self) -> None:
        self._more.set_class(self.app.size.height >= TALL, "-roomy")
        self.call_after_refresh(self._judge)

    @work(group="texts", exit_on_error=False)
    async def _offer_texts(self) -> None:
        most = MOST_TEXTS if self.app.size.height >= TALL else 1
        known = await asyncio.to_thread(texts_of_before, self._home, [BUILT_IN_TEXT], most)
        self._source.offer(known)

    # --- what is asked ---

    def _asked(self) -> tuple[Asked, dict[str, str]]:
        """What is asked for, and the same as settings (see `MoreSettings.asked`).

        Raises:
            ConfigError: a field's value cannot work.
        """
        return self._settings.asked(self._preset.chosen, self._length.chosen)

    def _arguments(self, flags: dict[str, str]) -> list[str]:
        """What `tuigpt inspect` and `tuigpt train` are called with, but for the run's name."""
        given = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        return ["--home", str(self._home), *given, "--", *self._source.texts]

    def _run_name(self) -> str:
        typed = self._settings.value("name")
        label = self._asked()[0].label
        return typed or default_name(self._home, self._source.texts, label)

    def _what_is_read(self) -> tuple[str, ...]:
        fields = ("tokenizer", "encoding", "val_fraction")
        return (*self._source.texts, *(self._settings.value(name) for name in fields))

    # --- changes ---

    @on(Input.Changed)
    @on(Radio.Chosen)
    def _changed(self, event: Input.Changed | Radio.Chosen) -> None:
        if isinstance(event, Radio.Chosen) and self._settings.is_recipe(event.radio):
            self._settings.follow()
        if self.focused is event.control:
            event.control.scroll_visible(animate=False)
            self._length.choose_for((event.control.id or "").removeprefix("for-"))
        self._judge()

    @on(Length.Typed)
    def _number_typed(self, event: Length.Typed) -> None:
        self._settings.set_value(event.setting, event.digits)

    @on(Cost.Timed)
    def _timed(self, event: Cost.Timed) -> None:
        self._settings.device_type = event.report.device_type
        self._cost.problem = event.report.problem
        self._speeds = Speeds(self._home)  # the trial has kept what it found
        self._judge()

    @on(Cost.Failed)
    def _not_timed(self, event: Cost.Failed) -> None:
        self._cost.problem = event.problem
        self._judge()

    def _judge(self) -> None:
        """Say what these settings make, or what is wrong with them and where."""
        if not self.is_mounted or self._launch is not None:
            return
        self._settings.mark_wrong()
        self._summarise()
        self._name_text()
        if not self._source.texts:
            self._preview.forget()
            self._cost.stop()
            self._say(_NO_PATH)
            return
        try:
            _, flags = self._asked()
            prospects = self._prospects()
        except ConfigError as error:
            self._preview.forget()
            self._cost.stop()
            self._settings.mark_wrong(error.field)
            self._say(str(error), "wrong")
            return
        arguments = self._arguments(flags)
        self._cost.drop_other(arguments)
        if self._preview.look(arguments):
            self._text_problem, self._nearest = "", None
        self._show_costs(prospects)
        self._say_verdict(arguments, prospects[self._preset.chosen].read)

    def _say_verdict(self, arguments: list[str], found: Reading | None) -> None:
        """The first that is wrong, else what to expect."""
        offer = self._preview.offer
        refused, refusal = self._refusal
        if refused == [self._settings.value("name"), *arguments]:
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
            typed = self._source.text
            for source in sources_of(typed):
                like = await asyncio.to_thread(nearest, source)
                if like is not None and like != source and self._source.text == typed:
                    self._nearest = (typed, typed.replace(source, like))
        self.refresh_bindings()
        self._judge()
        if not event.problem:
            try:
                self._cost.time(self._arguments(self._asked()[1]))
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
            self._source.path.value = self._nearest[1]
        elif offer is not None and offer.encoding:
            self._settings.set_value("encoding", offer.encoding)
        elif offer is not None and offer.fetch:
            self._preview.look(["--fetch", *self._arguments(self._asked()[1])])

    # --- what is shown ---

    def _name_text(self) -> None:
        """Let the button say which text is trained on, as far as there is room."""
        texts = self._source.texts
        room = max(8, self.size.width - 56)
        on = Content(f" on {one_line(text_name(texts))}" if texts else "")
        on = on.truncate(room, ellipsis=True)
        self._start.label = Content.assemble(
            "Start training", on, with_keys(self, "  {new-run.start}")
        )
        self._start.refresh(layout=True)

    def _summarise(self) -> None:
        is_open = self._settings.has_class("-open")
        words = "" if is_open else f"   {self._settings.summary}"
        label = Content.assemble(
            ("▾" if is_open else "▸", "bold $text-primary"), "  more settings",
            (one_line(words), "$foreground-muted"),
        )  # fmt: skip
        self._more.label = label.truncate(max(20, self._more.size.width - 2), ellipsis=True)

    def _prospects(self) -> dict[str, Prospect]:
        """What is known of each size; the fields that were left alone follow the chosen one.

        Raises:
            ConfigError: a field's value cannot work.
        """
        facts, found = self._facts(), {}
        for name in SIZES:
            asked, _ = self._settings.asked(name, self._length.chosen)
            device_type = self._settings.device_type
            found[name] = Prospect.of(asked, self._speeds, facts, device_type)
        self._settings.follow(found[self._preset.chosen].plan)
        return found

    def _show_costs(self, prospects: dict[str, Prospect]) -> None:
        """Show every size's cost, and that of the chosen one in full."""
        chosen = prospects[self._preset.chosen]
        self.query_one("#form").border_title = Content(f"New run: {one_line(self._run_name())}")
        self._cost.show(chosen)
        width = self._preset.size.width - 2
        plays = len(self._source.texts) == 1 and is_shakespeare(self._source.texts[0])
        self._preset.show(size_rows(prospects, plays, width))
        self._head.update(heading(width))
        seconds = chosen.seconds if self._length.chosen == "steps" else None
        value = self._settings.value
        self._length.show(length_rows(value("max_steps"), value("minutes"), seconds))
        self._settings.tell_text(self._preview.whole)

    @on(Button.Pressed, "#more")
    def action_more(self) -> None:
        """Unfold the other settings and go to the first of them, or fold them away."""
        opened = self._settings.toggle_class("-open").has_class("-open")
        self._judge()
        focus = self._settings.first if opened else self._more

        def show_title() -> None:
            if self.focused is focus:  # keys may have led further on meanwhile
                self._more.scroll_visible(animate=False, top=True)

        self.set_focus(focus, scroll_visible=False)
        self.call_after_refresh(show_title)  # not before the layout knows the fields

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    # --- starting, and leaving ---

    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        """Check everything that can be checked here, then start the trainer and wait for it."""
        if self._launch is not None:
            return
        if not self._source.texts:
            self._say(_NO_PATH, "wrong")
            return
        try:
            _, flags = self._asked()
            name = self._run_name()
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
        text = one_line(text_name(self._source.texts))
        self._say(f"reading {text} and building the model …")
        self._wait_for(self._launch, folder, [self._settings.value("name"), *arguments])

    @work(exclusive=True, group="launch")
    async def _wait_for(self, launch: Launch, folder: Path, arguments: list[str]) -> None:
        refusal = await until_begun(launch, folder, self._say)
        if refusal is not None:
            self._launch = None
            self._refusal = (arguments, refusal)
            self._judge()
            return
        self._settings.set_value("name", "")  # it is taken now
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
        text = self._source.text
        preset, length = self._preset.chosen, self._length.chosen
        keep_answers(self._home, Answers(text, preset, length, self._settings.changed))
