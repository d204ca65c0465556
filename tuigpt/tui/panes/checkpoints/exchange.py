"""Taking checkpoints to other programs, and models of other programs in.

Both are done by `tuigpt export` and `tuigpt import`, each in a process of its own, because they
need torch; a dialog stays while it runs, shows how far it is, and ends it when it is left.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from tuigpt.child import child_command
from tuigpt.errors import UserError
from tuigpt.paths import user_path
from tuigpt.runs.folder import Checkpoint
from tuigpt.runs.names import free_name, new_run_folder
from tuigpt.tui.process import asked
from tuigpt.tui.screens.dialog import Dialog
from tuigpt.tui.screens.new_run.path_field import PathField, sources_of
from tuigpt.tui.screens.new_run.radio import Radio
from tuigpt.wording import one_line

PROGRAMS = {
    "workshop": "the workshop: its generate.py",
    "nanogpt": "nanoGPT: its sample.py",
    "huggingface": "Hugging Face: transformers",
}
"""What can be exported to, by the name that `tuigpt export` knows it by."""


class Errand(Dialog[str]):
    """Asks what a command of tuigpt needs, runs it, and dismisses with the last line it printed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Do nothing, or end what was begun",
                id="errand.back"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Errand #dialog { max-width: 76; }
    Errand #changes { grid-columns: 9 1fr; grid-rows: auto; }
    Errand PathField { background: $boost; }
    """

    title_words: str = ""
    verb: str = ""
    hint: str = ""

    def fields(self) -> ComposeResult:
        """Labels and fields, two by two."""
        yield from ()

    def arguments(self) -> list[str]:
        """What the command is called with.

        Raises:
            UserError: something that was typed cannot work.
        """
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content(one_line(self.title_words))
            dialog.border_subtitle = "tab next field · enter start · esc back"
            with Grid(id="changes"):
                yield from self.fields()
            yield Static(self.hint, id="hint", markup=False)
            yield Static(id="verdict", markup=False)
            with Horizontal(id="buttons"):
                yield Button(self.verb, id="start", variant="primary", compact=True)
                yield Button("Back", id="back", compact=True)

    def _say(self, words: str, wrong: bool = False) -> None:
        verdict = self.query_one("#verdict", Static)
        verdict.set_class(wrong, "wrong")
        verdict.update(one_line(words))

    @on(Input.Submitted)
    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        """Run the command, unless it runs already."""
        try:
            arguments = self.arguments()
        except UserError as error:
            self._say(str(error), wrong=True)
            return
        if not any(worker.group == "errand" for worker in self.workers if worker.node is self):
            self._say("waking the model …")
            self._run_command(arguments)

    @work(group="errand")
    async def _run_command(self, arguments: Sequence[str]) -> None:
        said, printed = "", ""
        try:
            async with asked(child_command("tuigpt", *arguments)) as process:
                assert process.stdout is not None and process.stderr is not None
                while line := await process.stderr.readline():
                    said = line.decode("utf-8", "replace").strip().removeprefix("tuigpt: ")
                    self._say(said)
                printed = (await process.stdout.read()).decode("utf-8", "replace").strip()
                failed = await process.wait() != 0
        except (OSError, ValueError) as error:
            failed, said = True, f"it cannot be started: {error}"
        if failed:
            self._say(said or "it ended early", wrong=True)
        else:
            self.answer(self.outcome(printed.splitlines(), said))

    def outcome(self, printed: Sequence[str], said: str) -> str:
        """What to tell of an errand that went well.

        Args:
            printed: the command's output.
            said: the last that it told on its way.
        """
        return said

    @on(Button.Pressed, "#back")
    def _go_back(self) -> None:
        self.action_back()


class _Programs(Radio):
    """The choice of a program; enter starts from here as it does from every field."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.start", "start", show=False, id="export.start",
                tooltip="Export for this program"),
    ]  # fmt: skip


class Export(Errand):
    """Writes checkpoints as files of another program."""

    HELP_TITLE = "export"
    HELP = """\
Writes the model in the files that another program opens: the workshop's checkpoint with its \
loss_log.json, nanoGPT's ckpt.pt with its meta.pkl, or a folder for Hugging Face's transformers. \
Your checkpoint stays as it is."""

    verb = "Export"

    def __init__(self, home: Path, checkpoints: Sequence[Checkpoint]) -> None:
        super().__init__()
        self._home, self._checkpoints = home, checkpoints
        several = len(checkpoints) > 1
        self._name = f"{len(checkpoints)}-checkpoints" if several else checkpoints[0].label
        self.title_words = f"Export {f'{len(checkpoints)} checkpoints' if several else self._name}"
        self.hint = "A new folder; what is there already is never written over."
        if several:
            self.hint = "A new folder with one for each; what is there is never written over."
        self._made = ""

    def fields(self) -> ComposeResult:
        answers = [(name, Content(words)) for name, words in PROGRAMS.items()]
        yield Label("for")
        yield _Programs(answers, chosen="workshop", id="program", tooltip="What is to open it")
        yield Label("folder")
        yield PathField(id="path", placeholder="a new folder", tooltip="The new folder")

    def on_mount(self) -> None:
        self._offer_folder()

    @on(Radio.Chosen)
    def _offer_folder(self) -> None:
        """A folder named after what goes into it, until the user names another."""
        path = self.query_one("#path", PathField)
        if path.value == self._made:
            name = re.sub(r"[^\w.+-]+", "-", f"{self._name}-{self._program}")
            self._made = path.value = str(Path.cwd() / name)

    @property
    def _program(self) -> str:
        return self.query_one("#program", Radio).chosen

    def arguments(self) -> list[str]:
        typed = self.query_one("#path", PathField).value.strip()
        if not typed:
            raise UserError("name the new folder")
        folder = user_path(typed).absolute()
        if folder.exists():
            raise UserError(f"{str(folder)!r} is there already; choose another folder")
        paths = [str(checkpoint.path) for checkpoint in self._checkpoints]
        return ["export", f"--to={self._program}", f"--output={folder}", "--", *paths]

    def outcome(self, printed: Sequence[str], said: str) -> str:
        return f"exported to {user_path(self.query_one('#path', PathField).value.strip())}"


class Import(Errand):
    """Makes a run of files of other programs; dismisses with the run's name."""

    HELP_TITLE = "import"
    HELP = """\
Makes a run of checkpoints of the workshop, nanoGPT or Hugging Face's GPT-2, with their losses \
where a loss_log.json lies beside them. The weights stay what they are, and nothing in the files \
can run. A file without a vocabulary needs its training text, or nanoGPT's meta.pkl."""

    title_words, verb = "Import", "Import"
    hint = (
        "Checkpoints of one training: the workshop's or nanoGPT's .pt files, several with ;"
        " between, or a folder of them or of Hugging Face's GPT-2. Nothing in them runs."
    )

    def __init__(self, home: Path, paths: Sequence[str] = ()) -> None:
        """
        Args:
            paths: that are in the field already.
        """
        super().__init__()
        self._home, self._paths = home, paths

    def fields(self) -> ComposeResult:
        yield Label("files")
        yield PathField(
            id="paths", placeholder="type or drop a path; tab completes it",
            tooltip="Files or a folder; ; between several",
        )  # fmt: skip
        yield Label("name")
        yield Input(id="name", compact=True, placeholder="after the folder",
                    tooltip="What the new run is called")  # fmt: skip
        yield Label("text")
        yield PathField(
            id="text", placeholder="only if it is asked for",
            tooltip="The text that it was trained on, or nanoGPT's meta.pkl, where the files hold"
            " no vocabulary",
        )  # fmt: skip

    def on_mount(self) -> None:
        self.query_one("#paths", PathField).value = "; ".join(self._paths)

    def arguments(self) -> list[str]:
        typed = self.query_one("#paths", PathField).value
        paths = sources_of(typed)
        if not paths:
            raise UserError("name the files")
        if not all(user_path(path).exists() for path in paths):  # dropped, in a shell's quotes
            paths = dropped_paths(typed) or paths
        name = self.query_one("#name", Input).value.strip()
        first = user_path(paths[0]).absolute()
        base = first.name if first.is_dir() else first.parent.name
        name = new_run_folder(self._home, name or free_name(self._home, base)).name
        self._run = name
        text = self.query_one("#text", PathField).value.strip()
        given = [f"--{'meta' if text.endswith('.pkl') else 'text'}={text}"] if text else []
        files = [str(user_path(path).absolute()) for path in paths]
        return ["import", f"--home={self._home}", f"--name={name}", *given, "--", *files]

    def outcome(self, printed: Sequence[str], said: str) -> str:
        return self._run


def dropped_paths(pasted: str) -> list[str]:
    """The paths that a terminal pastes when files are dropped onto it; none if it is other text.

    Terminals quote them as for a shell, escape blanks, or write file: addresses.
    """
    text = pasted.strip()
    try:
        if not text or len(text) > 100_000 or "\0" in text:
            return []
        if user_path(text).exists():
            return [text]
        words = shlex.split(text)
        paths = [unquote(urlsplit(w).path) if w.startswith("file://") else w for w in words]
        return paths if paths and all(user_path(path).exists() for path in paths) else []
    except (OSError, ValueError):
        return []
