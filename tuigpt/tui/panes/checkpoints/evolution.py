"""How a run grew up: the same prompt and the same seed at every checkpoint that it has kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Label, Static

from tuigpt.config import SampleConfig
from tuigpt.errors import UserError
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.growth import LENGTH, new_parts
from tuigpt.tui.panes.checkpoints.reader import Reader
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.widgets.key_line import KeyLine
from tuigpt.tui.widgets.row_list import RowList
from tuigpt.wording import one_line, val_text, visible

FRAME_SECONDS = 0.8
"""How long each step stays while it plays."""

PROMPT = "To be or not"
"""Where the run does not tell what its own samples began with."""


class _Steps(RowList):
    """The steps; the keys that a list scrolls sideways with go from step to step."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "before", id="evolution.before",
                tooltip="What the checkpoint before wrote"),
        Binding("right", "move(1)", "next", id="evolution.next",
                tooltip="What the next checkpoint wrote"),
    ]  # fmt: skip


class Evolution(Dialog[Checkpoint]):
    """Steps at the left, at the right what the model wrote there; dismisses with one to open."""

    HELP_TITLE = "how a run grew up"
    HELP = """\
Every checkpoint that the run has kept writes after the same prompt, with the same seed. The steps \
are on the left, with their loss and with the share of the text that stands word for word in what \
the model has learned from. Words that the step before did not write are [b]bold[/b]."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play", id="evolution.play",
                tooltip="Go from step to step by itself, or hold"),
        Binding("p", "prompt", "prompt", id="evolution.prompt",
                tooltip="Give all of them another beginning or seed"),
        Binding("enter", "open", "open", id="evolution.open",
                tooltip="Open this checkpoint in the generate pane"),
        Binding("escape", "back", "close", id="evolution.back", tooltip="Close this page"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Evolution {
        align: center middle;
        & > #page {
            width: 96%; height: 1fr; max-width: 140; padding: 0 1; background: $surface;
            border: round $primary; border-title-color: $text-primary;
        }
        #asked { height: 1; margin-bottom: 1; }
        #asked Label { color: $foreground-muted; padding-right: 1; }
        #asked Input { background: $boost; margin-right: 2; }
        #beginning { width: 1fr; }
        #seed { width: 12; }
        #left { width: 27; margin-right: 2; }
        #steps-head { height: 1; color: $foreground-muted; }
        #rule { height: 1; }
        #told { height: auto; min-height: 1; margin-top: 1; color: $foreground-muted; }
        #written-box { height: 1fr; scrollbar-size-vertical: 1; }
        #written { height: auto; }
    }
    Evolution.-narrow #page { width: 100%; }
    Evolution.-short #asked, Evolution.-short #told { margin: 0; }
    """

    def __init__(self, run: Run, checkpoints: Sequence[Checkpoint], reader: Reader) -> None:
        """
        Args:
            checkpoints: of the run that can be opened, by step.
        """
        super().__init__()
        self._run, self._reader = run, reader
        self._all = {str(checkpoint.path): checkpoint for checkpoint in checkpoints}
        self._order = list(self._all)
        record = run.record
        prompt = record.train.sample_prompt if record else PROMPT
        self._config = SampleConfig(max_new_tokens=LENGTH)
        self._beginning = Input(prompt, id="beginning", compact=True,
                                tooltip="What each text begins with")  # fmt: skip
        self._seed = Input(str(self._config.seed), id="seed", compact=True, restrict=r"\d{0,18}",
                           tooltip="The same for all of them")  # fmt: skip
        self._prompt = prompt
        self._list = _Steps("steps", self._draw_step)
        self._rule = Static(id="rule", markup=False)
        self._text = Static(id="written", markup=False)
        self._told = Static(id="told", markup=False)
        self._problems: dict[str, str] = {}
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="page") as page:
            page.border_title = Content(f"How {one_line(self._run.name)} grew up")
            with Horizontal(id="asked"):
                yield Label("prompt")
                yield self._beginning
                yield Label("seed")
                yield self._seed
            with Horizontal():
                with Vertical(id="left"):
                    yield Static(f"{'step':>9}{'val':>7}{'copied':>9}", id="steps-head")
                    yield self._list
                with Vertical():
                    yield self._rule
                    with VerticalScroll(id="written-box", can_focus=False):
                        yield self._text
                    yield self._told
        yield KeyLine()

    def on_mount(self) -> None:
        self._list.set_rows(self._order, None)
        self._list.focus()
        self._write_all()
        self._show()

    async def on_unmount(self) -> None:
        await self._reader.close()

    # --- what is shown ---

    @property
    def _at(self) -> int:
        at: int = self._list.cursor
        return at

    def _written(self, at: int) -> tuple[str, str] | None:
        if not 0 <= at < len(self._order):
            return None
        return self._reader.written(self._all[self._order[at]], self._prompt, self._config)

    def _draw_step(self, key: str, width: int) -> Content:
        checkpoint = self._all[key]
        written = self._reader.written(checkpoint, self._prompt, self._config)
        told = "…"
        if key in self._problems:
            told = "✗"
        elif written is not None:
            share = self._reader.share(checkpoint, written[1])
            told = "" if share is None else f"{share:.0%}"
        star = "★" if checkpoint == self._run.best else " "
        val = val_text(checkpoint.val_loss, checkpoint.early_val_loss)
        return Content.assemble(
            f"{checkpoint.step:>9,}{val:>7}", (star, "$text-success"),
            (f"{told:>8}", "$foreground-muted"),
        )  # fmt: skip

    def _show(self) -> None:
        """Show the step under the cursor, as far as it is written."""
        if not self._order:
            return
        at = self._at
        key = self._order[at]
        checkpoint = self._all[key]
        title = f" {checkpoint.label}"
        now, before = self._written(at), self._written(at - 1)
        told = "" if at else "the first of them"
        if key in self._problems:
            self._text.update(Content.styled(self._problems[key], "$text-error"))
        elif now is None:
            self._text.update(Content.styled("it is being written …", "$foreground-muted"))
        else:
            parts = new_parts(now[1] if before is None else before[1], now[1])
            words = [word for part, is_new in parts if is_new for word in part.split()]
            shown: list[str | tuple[str, str]] = [
                (visible(part), "bold $text-success") if is_new else visible(part)
                for part, is_new in parts
            ]
            self._text.update(Content.assemble((visible(now[0]), "bold $text-primary"), *shown))
            if before is not None:
                step = self._all[self._order[at - 1]].step
                told = f"{len(words):,} of {len(now[1].split()):,} words are new against {step:,}"
            share = self._reader.share(checkpoint, now[1])
            if share is not None:
                title += f" · {share:.0%} copied word for word"
        line = Content.assemble(("──", "$line"), (title, "bold"), " ")
        rest = max(0, self._rule.size.width - line.cell_length)
        self._rule.update(Content.assemble(line, ("─" * rest, "$line")))
        done = sum(self._written(n) is not None for n in range(len(self._order)))
        if done + len(self._problems) < len(self._order):
            told = f"{done:,} of {len(self._order):,} written" + (f" · {told}" if told else "")
        self._told.update(told)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    # --- writing ---

    @work(exclusive=True, group="write")
    async def _write_all(self) -> None:
        """Let every step write, the one that is looked at first, then look for what is copied."""
        while (at := self._next_unwritten()) is not None:
            key = self._order[at]
            try:
                async for _ in self._reader.write(self._all[key], self._prompt, self._config):
                    pass
            except UserError as error:
                self._problems[key] = str(error)
            self._changed()
        for at, key in enumerate(self._order):
            if (written := self._written(at)) is not None:
                await self._reader.find_share(self._all[key], written[1])
                self._changed()

    def _next_unwritten(self) -> int | None:
        """The step before the one that is looked at, which it is held against, and so on from it;
        then the earlier ones."""
        first = max(0, self._at - 1)
        places = [*range(first, len(self._order)), *range(first - 1, -1, -1)]
        return next((n for n in places if not self._is_over(n)), None)

    def _is_over(self, at: int) -> bool:
        return self._written(at) is not None or self._order[at] in self._problems

    def _changed(self) -> None:
        if self.is_mounted:
            self._list.refresh()
            self._show()

    @on(Input.Submitted)
    def _asked_anew(self) -> None:
        """Let all of them write again, with another prompt or seed."""
        self._prompt = self._beginning.value
        seed = int(self._seed.value) if self._seed.value else SampleConfig().seed
        self._config = SampleConfig(max_new_tokens=LENGTH, seed=seed)
        self._problems.clear()
        self._list.focus()
        self._write_all()
        self._changed()

    # --- moving ---

    @on(RowList.Moved)
    def _moved(self) -> None:
        self._show()

    @on(RowList.Chosen)
    def action_open(self) -> None:
        if self._order:
            self.answer(self._all[self._order[self._at]])

    def action_prompt(self) -> None:
        self._hold()
        self._beginning.focus()

    def action_play(self) -> None:
        """Begin to play, at the front if it stands at the end; or hold."""
        if self._timer is not None:
            self._hold()
            return
        if self._at == len(self._order) - 1:
            self._list.action_move_to(0)
        self._timer = self.set_interval(FRAME_SECONDS, self._play_on)

    def _play_on(self) -> None:
        if self._at >= len(self._order) - 1:
            self._hold()
        elif self._is_over(self._at + 1):
            self._list.action_move(1)

    def _hold(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def action_back(self) -> None:
        """From the prompt back to the steps; from there away."""
        if self.focused in (self._beginning, self._seed):
            self._list.focus()
        else:
            self.answer(None)
