"""Two checkpoints side by side: settings, curves, texts with one seed, and surprise at one text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Static

from tuigpt.charts.plot import Marker, Other, Picture
from tuigpt.charts.series import Series
from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.files import UnreadableFile
from tuigpt.generation.protocol import TextScore
from tuigpt.loss import bits, can_be_best
from tuigpt.runs.differences import differences
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.growth import LENGTH
from tuigpt.runs.history import Point
from tuigpt.tui.panes.checkpoints.details import read_past
from tuigpt.tui.panes.checkpoints.reader import Reader
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.heat_text import HeatText
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.loss_chart import LossChart
from tuigpt.wording import one_line, visible

PROMPT = "To be or not"

Side = tuple[Run, Checkpoint]

NO_TEXT = "type a text that neither has learned from"


class Compare(Dialog[None]):
    """A page of two columns; what takes a model comes in as it is written."""

    HELP_TITLE = "two checkpoints"
    HELP = """\
What differs between them, the validation losses of their runs on one chart with both steps \
marked, what both write after one prompt with one seed, and how surprised both are by one text.

In that text each token is coloured by surprise: green was expected, yellow and red were not. The \
model with the fewer nats a character predicts it better. Without a text of yours it is the \
beginning of the validation part of a training text: no model has learned from that of its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "prompt", "prompt", id="compare.prompt",
                tooltip="Let both write after another beginning, or with another seed"),
        Binding("t", "text", "text", id="compare.text",
                tooltip="Measure how surprised both are by a text of yours"),
        Binding("escape", "back", "close", id="compare.back", tooltip="Close this page"),
        *(
            Binding(key, f"scroll('{way}')", "scroll", show=False, id=f"compare.{key}",
                    tooltip="Scroll this page")
            for key, way in (("up", "up"), ("down", "down"), ("pageup", "page_up"),
                             ("pagedown", "page_down"), ("home", "home"), ("end", "end"))
        ),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Compare {
        align: center middle;
        & > #page {
            width: 96%; height: 1fr; max-width: 150; padding: 0 1; background: $surface;
            border: round $primary; border-title-color: $text-primary;
            scrollbar-size-vertical: 1;
        }
        .two, .asked { height: auto; }
        .two > * { width: 1fr; }
        .two > .first { margin-right: 2; }
        .asked { height: 1; margin-top: 1; }
        .asked Label { color: $foreground-muted; padding-right: 1; }
        .asked Input { width: 1fr; background: $boost; }
        #beginning { margin-right: 2; }
        #seed { width: 12; }
        Static { height: auto; }
        LossChart { height: 13; margin-top: 1; }
        HeatText { height: auto; max-height: 80; }
    }
    Compare.-narrow #page { width: 100%; }
    """

    def __init__(self, sides: tuple[Side, Side], reader: Reader) -> None:
        super().__init__()
        self._sides, self._reader = sides, reader
        record = sides[0][0].record
        prompt = record.train.sample_prompt if record else PROMPT
        seed = SampleConfig().seed
        self._settings = Static(id="settings", markup=False)
        self._chart = LossChart(id="both")
        self._beginning = Input(prompt, id="beginning", compact=True,
                                tooltip="What both texts begin with")  # fmt: skip
        self._seed = Input(str(seed), id="seed", compact=True, restrict=r"\d{0,18}",
                           tooltip="The same for both")  # fmt: skip
        self._own = Input(id="own", compact=True, placeholder=NO_TEXT,
                          tooltip="A text that both are asked about")  # fmt: skip
        self._texts = [Static("…", classes=c, markup=False) for c in ("first", "second")]
        self._told = [Static("…", classes=c, markup=False) for c in ("first", "second")]
        self._heats = [HeatText(), HeatText()]
        self._heats[0].add_class("first")
        self._unseen: str | None = None
        self._why = ""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as page:
            left, right = (one_line(checkpoint.label) for _, checkpoint in self._sides)
            page.border_title = Content(f"{left} and {right}")
            yield self._settings
            yield self._chart
            with Horizontal(classes="asked"):
                yield Label("both write after")
                yield self._beginning
                yield Label("seed")
                yield self._seed
            with Horizontal(classes="two"):
                yield from self._texts
            with Horizontal(classes="asked"):
                yield Label("surprise at")
                yield self._own
            with Horizontal(classes="two"):
                yield from self._told
            with Horizontal(classes="two"):
                yield from self._heats
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#page").focus()
        self._tell_settings()
        self._draw_curves()
        self._write_both()

    async def on_unmount(self) -> None:
        await self._reader.close()

    def on_resize(self) -> None:
        self.call_after_refresh(self._tell_settings)

    # --- settings and curves ---

    def _tell_settings(self) -> None:
        (_, left), (_, right) = self._sides
        try:
            found, same = differences(left, right)
        except UnreadableFile as error:
            self._settings.update(Content.styled(error.reason, "$text-error"))
            return
        width = max(20, self._settings.size.width)
        name_width = max(len(name) for name, _, _ in found) + 2 if found else 0
        column = (width - name_width) // 2
        rows = [_row(("", one_line(left.label), one_line(right.label)), name_width, column, "bold")]
        rows += [_row(difference, name_width, column) for difference in found]
        words = Content.styled(f"the same: {', '.join(same)}", "$foreground-muted")
        self._settings.update(Content("\n").join([*rows, words.truncate(width, ellipsis=True)]))

    @work(group="curves")
    async def _draw_curves(self) -> None:
        """The val losses of both runs on one chart, with both steps marked."""
        runs = list(dict.fromkeys(run.folder for run, _ in self._sides))
        pasts = [await asyncio.to_thread(read_past, run) for run, _ in self._sides]
        curves = [
            past.val or [(c.step, c.val_loss) for c in run.checkpoints if c.val_loss is not None]
            for past, (run, _) in zip(pasts, self._sides, strict=True)
        ]
        (_, left), (run, right) = self._sides
        others = [Other("b", run.name, _series(curves[1]))] if len(runs) == 2 else []
        best = min(
            ((y, x) for x, y in curves[0] if y == y and can_be_best(x, x in pasts[0].early)),
            default=None,
        )
        self._chart.picture = Picture(
            val=_series(curves[0]),
            best=None if best is None else (float(best[1]), best[0]),
            others=others,
            markers=[
                Marker(float(checkpoint.step), one_line(checkpoint.label))
                for checkpoint in sorted((left, right), key=lambda c: c.step)
            ],
            placeholder=["No val loss was measured."],
        )

    # --- texts ---

    @work(exclusive=True, group="write")
    async def _write_both(self) -> None:
        """Let both write with one prompt and one seed, then measure their surprise."""
        seed = int(self._seed.value) if self._seed.value else SampleConfig().seed
        config = SampleConfig(max_new_tokens=LENGTH, seed=seed)
        for n, (_, checkpoint) in enumerate(self._sides):
            shown = self._texts[n]
            rule = _rule(checkpoint.label)
            shown.update(Content("\n").join([rule, Content("it is being written …")]))
            try:
                async for read, text in self._reader.write(
                    checkpoint, self._beginning.value, config
                ):
                    whole = Content.assemble((visible(read), "bold $text-primary"), visible(text))
                    shown.update(Content("\n").join([rule, whole]))
            except UserError as error:
                wrong = Content.styled(one_line(str(error)), "$text-error")
                shown.update(Content("\n").join([rule, wrong]))
        await self._measure()

    @work(exclusive=True, group="write")
    async def _measure_again(self) -> None:
        await self._measure()

    async def _measure(self) -> None:
        """Show how surprised both are by one text: the user's, or one that was not learned from."""
        text = self._own.value.replace("⏎", "\n") or await self._read_unseen()
        if not text:
            for told, heat in zip(self._told, self._heats, strict=True):
                told.update("")
                heat.show("", [], [])
            self._told[0].update(Content.styled(one_line(self._why), "$foreground-muted"))
            return
        for n, (_, checkpoint) in enumerate(self._sides):
            rule = _rule(checkpoint.label)
            try:
                score = await self._reader.surprise(checkpoint, text)
            except UserError as error:
                wrong = Content.styled(one_line(str(error)), "$text-error")
                self._told[n].update(Content("\n").join([rule, wrong]))
                continue
            self._told[n].update(Content("\n").join([rule, _in_words(score)]))
            tokens = _tokens(score)
            self._heats[n].show(tokens[0] if tokens else "", tokens[1:], score.surprises)
            self._heats[n].cursor = -2

    async def _read_unseen(self) -> str:
        """The beginning of a validation part, which the field then names; "" if there is none."""
        if self._unseen is not None:
            return self._unseen
        for _, checkpoint in self._sides:
            try:
                found = await self._reader.unseen(checkpoint)
            except UserError as error:
                self._why = f"{NO_TEXT}: {error}"
                continue
            self._unseen = found.text
            corpus = one_line(found.corpus) or "the text"
            self._own.placeholder = f"the beginning of {corpus}'s validation part"
            return found.text
        return ""

    @on(Input.Submitted, "#own")
    def _text_given(self) -> None:
        self.query_one("#page").focus()
        self._measure_again()

    @on(Input.Submitted)
    def _prompt_given(self, event: Input.Submitted) -> None:
        if event.input is not self._own:
            self.query_one("#page").focus()
            self._write_both()

    # --- moving ---

    def action_scroll(self, way: str) -> None:
        page = self.query_one("#page", VerticalScroll)
        getattr(page, f"scroll_{way}")(animate=False)

    def action_prompt(self) -> None:
        self._beginning.focus()

    def action_text(self) -> None:
        self._own.focus()

    def action_back(self) -> None:
        """From a field back to the page; from there away."""
        if isinstance(self.focused, Input):
            self.query_one("#page").focus()
        else:
            self.answer(None)


def _series(points: Sequence[Point]) -> Series:
    series = Series()
    series.extend([float(step) for step, _ in points], [loss for _, loss in points])
    return series


def _row(cells: tuple[str, str, str], first: int, column: int, style: str = "") -> Content:
    name, left, right = (one_line(cell) for cell in cells)
    cut = Content(left).truncate(column - 2, ellipsis=True)
    return Content.assemble(
        (f"{name:{first}}", "$foreground-muted"), (cut.plain, style),
        " " * (column - cut.cell_length),
        (Content(right).truncate(column - 1, ellipsis=True).plain, style),
    )  # fmt: skip


def _rule(title: str) -> Content:
    return Content.assemble(("── ", "$line"), (one_line(title), "bold"), (" ──", "$line"))


def _in_words(score: TextScore) -> Content:
    nats = score.nats_per_character
    if nats is None:
        return Content("it knows too little of this text")
    words = f"{nats:.3f} nats = {bits(nats):.2f} bits a character"
    if score.left_out:
        words += f", {score.left_out:,} characters unknown"
    return Content(words)


def _tokens(score: TextScore) -> list[str]:
    """The text cut into its tokens."""
    ends = list(accumulate(score.token_characters))
    return [score.text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
