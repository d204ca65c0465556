"""What becomes of runs and checkpoints: deleting with a way back, thinning, names, stars, notes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from tuigpt.errors import UserError
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.manage import (
    Done,
    delete_checkpoints,
    delete_run,
    empty_trash,
    rename_run,
    thinnable,
    undo,
)
from tuigpt.runs.marks import note, star
from tuigpt.tui.panes.checkpoints.browser import Browser
from tuigpt.tui.panes.checkpoints.rows import CheckpointRow, RunRow
from tuigpt.tui.screens.ask_text import AskText
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.wording import file_size


class Keeping(Browser):
    """Acts on what is marked, else on the row under the cursor."""

    def _do(self, what: Callable[[], Done]) -> None:
        """Do something that a user may want to take back, and tell what became of it."""
        try:
            done = what()
        except UserError as error:
            self.tell_error(str(error))
        else:
            self.unmark()
            self.app.notify(done.words, timeout=4)

    @property
    def _own_targets(self) -> list[tuple[Run, list[Checkpoint]]]:
        """Those of the targets that are the user's own, by run."""
        own = [pair for pair in self.targets if not pair[0].built_in]
        return [
            (pairs[0][0], [checkpoint for _, checkpoint in pairs])
            for _, group in groupby(own, key=lambda pair: pair[0].folder)
            if (pairs := list(group))
        ]

    async def action_delete(self) -> None:
        home, row = self.session.home, self.row
        targets = self._own_targets
        if targets:
            for run, checkpoints in targets:
                self._do(lambda run=run, some=checkpoints: delete_checkpoints(home, run, some))  # type: ignore[misc]
        elif isinstance(row, RunRow):
            run = row.run

            def answered(answer: str | None) -> None:
                if answer == "delete":
                    self._do(lambda: delete_run(home, run))

            count = len(run.checkpoints)
            what = f"{run.name} and its {count:,} checkpoint{'s' * (count != 1)}"
            answers = [("keep", "Keep it"), ("delete", "Delete it; u brings it back")]
            await self.app.push_screen(Confirm(f"Delete {what}?", answers), answered)

    def action_undo(self) -> None:
        self._do(lambda: undo(self.session.home))

    async def action_empty_trash(self) -> None:
        home, size = self.session.home, file_size(self.trash.size)

        def answered(answer: str | None) -> None:
            if answer == "empty":
                self._do(lambda: empty_trash(home))

        answers = [("keep", "Keep it"), ("empty", f"Delete it for good: frees {size}")]
        await self.app.push_screen(Confirm("Empty the trash?", answers), answered)

    async def action_rename(self) -> None:
        if self.row is None:
            return
        home, run = self.session.home, self.row.run

        def answered(name: str | None) -> None:
            if name and name != run.name:
                self._do(lambda: rename_run(home, run, name))

        question = f"What is {run.name} to be called?"
        await self.app.push_screen(AskText(question, run.name, "Rename"), answered)

    async def action_thin(self) -> None:
        if self.row is None:
            return
        home, run = self.session.home, self.row.run
        last = run.checkpoints[-1].step if run.checkpoints else 0
        answers = [("keep", "Keep all")]
        plans: dict[str, tuple[Checkpoint, ...]] = {}
        for every in (None, *_round_intervals(last)):
            going = thinnable(run, every)
            if going and len(going) not in {len(other) for other in plans.values()}:
                what = "best, last, starred" + (f", every {every:,}th" if every else "")
                size = file_size(sum(c.size for c in going))
                plans[f"every-{every or 0}"] = going
                answers.append(
                    (f"every-{every or 0}", f"Keep {what}: {len(going):,} go, frees {size}")
                )

        def answered(answer: str | None) -> None:
            if answer in plans:
                self._do(lambda: delete_checkpoints(home, run, plans[answer]))

        if not plans:
            self.app.notify(f"{run.name} has only checkpoints that are worth keeping")
            return
        await self.app.push_screen(Confirm(f"Thin out {run.name}?", answers), answered)

    def action_star(self) -> None:
        for run, checkpoints in self._own_targets:
            steps = [c.step for c in checkpoints]
            starred = not set(steps) <= set(run.marks.stars)
            try:
                star(run.folder, steps, starred)
            except UserError as error:
                self.tell_error(str(error))

    async def action_note(self) -> None:
        row = self.row
        if row is None:
            return
        step = row.checkpoint.step if isinstance(row, CheckpointRow) else None
        marks = row.run.marks
        value = marks.note if step is None else marks.notes.get(step, "")
        label = row.checkpoint.label if isinstance(row, CheckpointRow) else row.run.name

        def answered(words: str | None) -> None:
            if words is not None:
                try:
                    note(row.run.folder, step, words)
                except UserError as error:
                    self.tell_error(str(error))

        await self.app.push_screen(AskText(f"A note on {label}:", value, "Note"), answered)


def _round_intervals(last: int) -> list[int]:
    """Round numbers of steps that leave some of a run's checkpoints: from many to few."""
    candidates = [n * 10**power for power in range(1, 7) for n in (1, 2, 5)]
    return [n for n in candidates if last / 20 <= n <= last / 2]
