"""The dialog that begins a new run with the weights of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from tuigpt.config import TrainConfig, help_of, parse_field
from tuigpt.errors import UserError
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.launch import Launch, start
from tuigpt.runs.names import free_name, new_run_folder
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.new_run.path_field import PathField, sources_of
from tuigpt.tui.starting import until_begun
from tuigpt.wording import one_line


class Fork(Dialog[str]):
    """Asks for the new run's name, length, rate and text; dismisses with its name once it trains.

    What only the trainer can find out is said in the dialog, which then stays.
    """

    HELP_TITLE = "a fork"
    HELP = """\
A fork is a new run that begins with the weights of a checkpoint: to learn from another text, at \
another rate, or for longer. It counts its steps from 0, and its schedule of the learning rate is \
its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Start nothing", id="fork.back"),
    ]

    DEFAULT_CSS = """
    Fork #dialog { max-width: 76; }
    Fork PathField { background: $boost; }
    """

    def __init__(self, home: Path, checkpoint: Checkpoint, steps: int) -> None:
        """
        Args:
            steps: offered as the new run's length.
        """
        super().__init__()
        self._home, self._checkpoint, self._steps = home, checkpoint, steps
        self._launch: Launch | None = None

    def compose(self) -> ComposeResult:
        name = free_name(self._home, self._checkpoint.run or self._checkpoint.path.stem)
        with Vertical(id="dialog"):
            with Grid(id="changes"):
                yield Label("name")
                yield Input(name, id="name", compact=True, tooltip="What the new run is called")
                yield Label("steps")
                yield Input(
                    str(self._steps), id="max_steps", compact=True, restrict=r"\d{0,9}",
                    tooltip=help_of(TrainConfig, "max_steps"),
                )  # fmt: skip
                yield Label("learning rate")
                yield Input(
                    id="learning_rate", compact=True, placeholder="as the recipe has it",
                    tooltip=help_of(TrainConfig, "learning_rate"),
                )  # fmt: skip
                yield Label("text")
                yield PathField(
                    id="text", placeholder="the one it has learned from",
                    tooltip="Another text; the model must know all of its characters",
                )  # fmt: skip
            yield Static(
                "The new run begins with these weights, at step 0, and keeps size and tokenizer."
                " The old one stays as it is.", id="hint", markup=False,
            )  # fmt: skip
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Start training", id="start", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def on_mount(self) -> None:
        dialog = self.query_one("#dialog")
        dialog.border_title = Content(f"Fork {one_line(self._checkpoint.label)}")
        dialog.border_subtitle = "tab next field · enter start · esc back"

    def _arguments(self) -> tuple[Path, list[str]]:
        """The new run's folder, and what its trainer is started with.

        Raises:
            UserError: a value cannot work.
        """
        value = {field.id: field.value.strip() for field in self.query(Input)}
        folder = new_run_folder(self._home, str(value["name"]))
        settings = {
            name: parse_field(TrainConfig, name, value[name])
            for name in ("max_steps", "learning_rate")
            if value[name]
        }
        TrainConfig(**settings)
        flags = [f"--{name.replace('_', '-')}={value[name]}" for name in settings]
        source = f"--from={self._checkpoint.path}"
        text = ["--", *sources_of(str(value["text"]))]
        return folder, [source, f"--name={folder.name}", *flags, *text]

    @on(Input.Changed)
    def _judge(self) -> None:
        try:
            self._arguments()
        except UserError as error:
            self._say(str(error), wrong=True)
        else:
            self._say("")

    def _say(self, words: str, wrong: bool = False) -> None:
        verdict = self.query_one("#verdict", Static)
        verdict.set_class(wrong, "wrong")
        verdict.update(words)

    @on(Input.Submitted)
    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        """Start the trainer and wait for it."""
        if self._launch is not None:
            return
        try:
            folder, arguments = self._arguments()
            self._launch = start(self._home, arguments)
        except UserError as error:
            self._say(str(error), wrong=True)
        except OSError as error:
            self._say(f"cannot start the trainer: {error}", wrong=True)
        else:
            self._say("waking the trainer …")
            self._wait_for(self._launch, folder)

    @work(exclusive=True, group="launch")
    async def _wait_for(self, launch: Launch, folder: Path) -> None:
        refusal = await until_begun(launch, folder, self._say)
        if refusal is None:
            self.answer(folder.name)
        else:
            self._launch = None
            self._say(refusal, wrong=True)

    @on(Button.Pressed, "#back")
    def action_back(self) -> None:
        """Leave; a trainer that has no run folder yet is ended."""
        if self._launch is not None:
            self._launch.cancel()
        super().action_back()
