"""The checkpoints pane: every run and every checkpoint, and all that can be done with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.events import Paste

from tuigpt.errors import UserError
from tuigpt.generation.client import GeneratorClient
from tuigpt.runs.folder import RESUME_FILE, Checkpoint, Run
from tuigpt.runs.poet import hide_poet, poet_is_hidden
from tuigpt.tui.keys import with_keys
from tuigpt.tui.messages import Acknowledged, OpenCheckpoint, WatchRun
from tuigpt.tui.panes.checkpoints.compare import Compare, Side
from tuigpt.tui.panes.checkpoints.evolution import Evolution
from tuigpt.tui.panes.checkpoints.exchange import Export, Import, dropped_paths
from tuigpt.tui.panes.checkpoints.keeping import Keeping
from tuigpt.tui.panes.checkpoints.reader import Generator, Reader
from tuigpt.tui.panes.checkpoints.rows import CheckpointRow
from tuigpt.tui.panes.pane import PaneEntry
from tuigpt.tui.screens.extend import Extend
from tuigpt.tui.screens.fork import Fork
from tuigpt.tui.session import Session
from tuigpt.tui.starting import train_further
from tuigpt.wording import one_line

FORK_STEPS = 1000
"""Steps that a fork of a checkpoint is offered whose run does not tell how long it was."""


class CheckpointsPane(Keeping):
    """The browser with its keys."""

    DEFAULT_CSS = """
    CheckpointsPane {
        #filter { height: 1; background: $boost; }
        #headings { height: 1; color: $foreground-muted; }
        #list { height: 1fr; }
        #card { height: auto; text-wrap: nowrap; margin-top: 1; }
        #total { height: auto; color: $foreground-muted; }
    }
    """
    BINDING_GROUP_TITLE = "Checkpoints"
    HELP = """\
A checkpoint is the model as it was at one step. [b]enter[/b] opens it in the generate pane; on a \
run's own row it shows that run's training. ★ is the lowest validation loss of its run: usually \
the best writer. ▸ is the one that is open, ● those that are marked.

[b]val[/b] is the loss on text that the model never trains on, [b]train[/b] that on the text it \
reads. When the [b]gap[/b] between them opens, the model memorises that text.

[b]{checkpoints.evolution}[/b] lets every checkpoint of a run write after the same prompt, so that \
one can read how it grew up. [b]{checkpoints.compare}[/b] holds two checkpoints against each \
other: mark one with {checkpoints.mark} and go to the other.

[b]{checkpoints.train-further}[/b] trains a run further where it ended; [b]{checkpoints.fork}[/b] \
begins a new run with these weights. [b]{checkpoints.export}[/b] and [b]{checkpoints.import}[/b] \
take models to other programs and in: drop a file onto the list.

What is deleted lies in the trash for a week, and [b]{checkpoints.undo}[/b] brings it back.

The [b]poet[/b] comes with tuigpt: it has learned from Shakespeare's plays and is there before you \
train."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark", id="checkpoints.mark",
                tooltip="Mark this checkpoint, to act on several together"),
        Binding("c", "compare", "compare", id="checkpoints.compare",
                tooltip="Two checkpoints side by side: the two that are marked, or the marked one,"
                        " else the open one, and this one"),
        Binding("v", "evolution", "evolution", id="checkpoints.evolution",
                tooltip="The same prompt and seed at every checkpoint of this run"),
        Binding("slash", "filter", "filter", id="checkpoints.filter", key_display="/",
                tooltip="Show only what has the words that you type"),
        Binding("s", "sort", "sort", id="checkpoints.sort", show=False,
                tooltip="Sort by the next column: step, val, train, gap, kept, size, age"),
        Binding("S", "reverse", "reverse", id="checkpoints.reverse", show=False,
                tooltip="Sort the other way round"),
        Binding("left", "fold(True)", "fold", id="checkpoints.fold", show=False,
                tooltip="Hide the checkpoints of this run"),
        Binding("right", "fold(False)", "unfold", id="checkpoints.unfold", show=False,
                tooltip="Show the checkpoints of this run"),
        Binding("x,delete", "delete", "delete", id="checkpoints.delete", key_display="x",
                tooltip="Put the marked checkpoints, or this one, or this run into the trash"),
        Binding("u", "undo", "undo", id="checkpoints.undo",
                tooltip="Take back what was deleted, thinned out or renamed last"),
        Binding("m", "train_further", "train further", id="checkpoints.train-further",
                tooltip="Resume this run; one that is finished gets more steps"),
        Binding("f", "fork", "fork", id="checkpoints.fork",
                tooltip="Begin a new run with the weights of this checkpoint"),
        Binding("e", "export", "export", id="checkpoints.export",
                tooltip="Write these checkpoints for the workshop, nanoGPT or Hugging Face"),
        Binding("i", "import", "import", id="checkpoints.import", show=False,
                tooltip="Make a run of other programs' files; a path that is dropped here does, too"
                ),
        Binding("r", "rename", "rename", id="checkpoints.rename", tooltip="Rename this run"),
        Binding("t", "thin", "thin out", id="checkpoints.thin", show=False,
                tooltip="Delete all checkpoints of this run but those worth keeping"),
        Binding("asterisk", "star", "star", id="checkpoints.star", key_display="*", show=False,
                tooltip="Star these checkpoints, or take their stars away"),
        Binding("n", "note", "note", id="checkpoints.note", show=False,
                tooltip="Note something on this checkpoint or run"),
        Binding("y", "copy_path", "copy path", id="checkpoints.copy-path", show=False,
                tooltip="Copy the path of this file or folder"),
        Binding("escape", "back", "unmark", id="checkpoints.back", show=False,
                tooltip="Show everything again, with nothing marked"),
        Binding("E", "empty_trash", "empty the trash", id="checkpoints.empty-trash", show=False,
                tooltip="Delete for good what lies in the trash"),
        Binding("h", "hide_poet", "hide the poet", id="checkpoints.hide-poet",
                tooltip="Leave the built-in model out of the lists"),
        Binding("H", "show_poet", "show the poet", id="checkpoints.show-poet", show=False,
                tooltip="Have the built-in model in the lists again"),
    ]  # fmt: skip

    def __init__(
        self,
        entry: PaneEntry,
        session: Session,
        generator: Callable[[Path], Generator] = GeneratorClient,
    ) -> None:
        """
        Args:
            generator: starts what writes for the pages that read checkpoints.
        """
        super().__init__(entry, session)
        self._generator = generator

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be done with the row under the cursor."""
        row = self.row
        own = row is not None and not row.run.built_in
        match action:
            case "hide_poet":
                return row is not None and row.run.built_in
            case "show_poet":
                return self.session.poet is None and poet_is_hidden(self.session.home)
            case "undo":
                return self.trash.entries > 0
            case "empty_trash":
                return self.trash.size > 0
            case "delete" | "rename" | "thin" | "star" | "note":
                return own
            case "train_further":
                return own and row is not None and _can_train(row.run)
            case "fork" | "export":
                return bool(self._chosen)
            case "evolution":
                return row is not None and row.run.last is not None
            case "compare":
                return bool(self._chosen)
            case "mark":
                return isinstance(row, CheckpointRow)
            case "sort" | "reverse" | "filter" | "copy_path" | "fold":
                return row is not None or bool(self._view.words)
        return True

    # --- training and reading on ---

    @property
    def _here(self) -> list[tuple[Run, Checkpoint]]:
        """The checkpoint under the cursor, if it can be opened; on a run's own row its best."""
        row = self.row
        if row is None:
            return []
        if isinstance(row, CheckpointRow):
            return [] if row.checkpoint.problem else [(row.run, row.checkpoint)]
        best = row.run.best or row.run.last
        return [(row.run, best)] if best else []

    @property
    def _chosen(self) -> list[tuple[Run, Checkpoint]]:
        """What is marked and can be opened; else what is under the cursor."""
        return [pair for pair in self.targets if not pair[1].problem] or self._here

    @property
    def _pair(self) -> tuple[Side, Side] | None:
        """The two that are compared."""
        chosen, here = self._chosen, self._here
        if len(chosen) == 1:
            others = chosen if chosen != here else self.find(self.session.checkpoint)
            chosen = [*others, *here] if others != here else []
        return (chosen[0], chosen[1]) if len(chosen) == 2 else None

    def action_train_further(self) -> None:
        """Resume a run; of one that is finished, ask first for more steps."""
        if self.row is None:
            return
        run = self.row.run

        def answered(steps: int | None) -> None:
            if steps is not None:
                self._train(run.name, f"--max-steps={steps}")

        if run.status.state == "finished":
            self.app.push_screen(Extend(run.name, run.status.step), answered)
        else:
            self._train(run.name)

    @work(group="resume", exclusive=True)
    async def _train(self, run: str, *flags: str) -> None:
        await train_further(self, self.session.home, run, flags)

    def action_fork(self) -> None:
        """Ask how a new run with these weights is to go on, and watch it."""

        def started(name: str | None) -> None:
            if name is not None:
                self.post_message(WatchRun(name))

        if self._chosen:
            run, checkpoint = self._chosen[-1]
            steps = run.record.train.max_steps if run.record else FORK_STEPS
            self.app.push_screen(Fork(self.session.home, checkpoint, steps), started)

    def action_evolution(self) -> None:
        """Read how a run grew up."""

        def closed(checkpoint: Checkpoint | None) -> None:
            if checkpoint is not None:
                self.post_message(OpenCheckpoint(checkpoint))

        if self.row is not None:
            run = self.row.run
            good = [checkpoint for checkpoint in run.checkpoints if not checkpoint.problem]
            self.app.push_screen(Evolution(run, good, self._new_reader()), closed)

    def action_compare(self) -> None:
        """Show two checkpoints side by side."""
        if self._pair is not None:
            self.app.push_screen(Compare(self._pair, self._new_reader()))
            return
        words = "It takes two: mark both with {checkpoints.mark}, or go to one that is not open."
        self.app.notify(with_keys(self, words), severity="warning")

    def _new_reader(self) -> Reader:
        return Reader(self._generator(self.session.home))

    # --- other programs ---

    def action_export(self) -> None:
        """Write checkpoints for another program."""

        def done(words: str | None) -> None:
            if words is not None:
                self.unmark()
                self.app.notify(one_line(words))

        if self._chosen:
            checkpoints = [checkpoint for _, checkpoint in self._chosen]
            self.app.push_screen(Export(self.session.home, checkpoints), done)

    def action_import(self, paths: tuple[str, ...] = ()) -> None:
        """Ask for files of another program, and make a run of them."""

        def done(name: str | None) -> None:
            if name is not None:
                self.show_run(name)
                self.post_message(Acknowledged(f"imported {name}"))

        self.app.push_screen(Import(self.session.home, paths), done)

    def on_paste(self, event: Paste) -> None:
        """A path that is dropped onto the list, or pasted into it, is to be imported."""
        if self.list_has_focus:
            event.stop()
            paths = dropped_paths(event.text)
            if paths:
                self.action_import(tuple(paths))
            else:
                self.tell_error("only the path of a model can be pasted here")

    def action_copy_path(self) -> None:
        row = self.row
        if row is not None:
            path = row.checkpoint.path if isinstance(row, CheckpointRow) else row.run.folder
            self.app.copy_to_clipboard(str(path))
            self.app.notify(f"sent to the clipboard: {one_line(str(path))}", timeout=4)

    def action_hide_poet(self) -> None:
        if self._hide_poet(True):
            words = "the poet is hidden; {view.commands}, checkpoints: show the poet"
            self.app.notify(with_keys(self, words), timeout=5)

    def action_show_poet(self) -> None:
        self._hide_poet(False)

    def _hide_poet(self, hidden: bool) -> bool:
        try:
            hide_poet(hidden)
        except UserError as error:
            self.tell_error(str(error))
            return False
        return True


def _can_train(run: Run) -> bool:
    """Whether a run can go on: it has saved itself, and nobody trains it."""
    return not (run.status.alive or run.problem) and (run.folder / RESUME_FILE).exists()
