"""What can be asked of the watched run, and what can be done with one that has ended."""

from __future__ import annotations

from textual import work
from textual.reactive import reactive

from tuigpt.runs.control import ACTIONS
from tuigpt.runs.folder import Checkpoint, Run
from tuigpt.runs.status import ALIVE
from tuigpt.tui.asking import ask
from tuigpt.tui.keys import with_keys
from tuigpt.tui.messages import Acknowledged, OpenCheckpoint, WatchRun
from tuigpt.tui.panes.pane import Pane
from tuigpt.tui.screens.change import LIVE, Change
from tuigpt.tui.screens.confirm import Confirm
from tuigpt.tui.screens.extend import Extend
from tuigpt.tui.screens.fork import Fork
from tuigpt.tui.screens.new_run.form import NewRun
from tuigpt.tui.starting import train_further


class Steering(Pane):
    """Acts on the watched run; the keys are the pane's."""

    state: reactive[str] = reactive("", bindings=True, repaint=False)
    """Of the run that is shown (see `RunStatus`), or nothing."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the run can do now is in the footer."""
        alive, run = self.state in ALIVE, self.session.watched
        match action:
            case "stop" | "sample" | "checkpoint" | "evaluate" | "change" | "discard":
                return alive
            case "pause":
                return alive and self.state != "paused"
            case "unpause":
                return self.state == "paused"
        if action not in ("again", "extend", "resume_run", "write", "write_newest", "fork"):
            return True
        if run is None or run.built_in:
            return False
        match action:
            case "again":
                return run.record is not None and not alive
            case "extend":
                return self.state == "finished" and run.last is not None
            case "resume_run":
                return self.state in ("stopped", "lost", "failed") and run.last is not None
            case "write":
                return alive or run.last is not None
            case "write_newest":
                return run.last is not None
        return run.last is not None

    def step_read(self) -> int | None:
        """The step that the chart's cursor stands at, or None."""
        return None

    # --- while it trains ---

    def ask(self, action: str, run: Run | None = None) -> None:
        """Ask the trainer of the watched run, or of another, for something."""
        run = run or self.session.watched
        if run is not None and ask(self.app, run, action):
            self.post_message(Acknowledged(f"{ACTIONS[action].at_once} …"))

    def action_pause(self) -> None:
        self.ask("pause")

    def action_unpause(self) -> None:
        self.ask("resume")

    def action_stop(self) -> None:
        self.ask("stop")

    def action_sample(self) -> None:
        self.ask("sample")

    def action_evaluate(self) -> None:
        self.ask("evaluate")

    def action_checkpoint(self) -> None:
        self.ask("checkpoint")

    async def action_change(self) -> None:
        """Ask for other settings, and pass them on."""
        run = self.session.watched
        if run is None:
            return

        def changed(wanted: dict[str, float] | None) -> None:
            for setting, value in (wanted or {}).items():
                if not ask(self.app, run, setting, value):
                    return

        present = {name: getattr(run.status, name) for name in LIVE}
        await self.app.push_screen(Change(run.name, present), changed)

    async def action_discard(self) -> None:
        """Ask whether to end the training and delete its run."""
        run = self.session.watched
        if run is None:
            return

        def answered(answer: str | None) -> None:
            if answer == "discard":
                self.ask("discard", run)

        count = len(run.checkpoints)
        what = f"{run.name} and its log"
        if count:
            what = f"{run.name}, its log and its {count} checkpoint{'s' * (count > 1)}"
        answers = [("keep", "Keep it"), ("discard", "End the training and delete it")]
        await self.app.push_screen(Confirm(f"Delete {what}?", answers), answered)

    # --- once it has ended ---

    def action_write(self) -> None:
        """Open the best checkpoint, to write with it."""
        run = self.session.watched
        checkpoint = (run.best or run.last) if run else None
        if checkpoint is not None:
            self.post_message(OpenCheckpoint(checkpoint))
        else:
            words = "no checkpoint to write with yet: {train.checkpoint} saves one"
            self.post_message(Acknowledged(with_keys(self, words)))

    def action_write_newest(self) -> None:
        """Open the newest checkpoint, to write with it."""
        run = self.session.watched
        if run is not None and run.last is not None:
            self.post_message(OpenCheckpoint(run.last))

    def action_resume_run(self) -> None:
        """Start a trainer that continues the watched run."""
        self._train_further(())

    async def action_extend(self) -> None:
        """Ask for more steps, and train the finished run further."""
        run = self.session.watched
        if run is None:
            return

        def answered(steps: int | None) -> None:
            if steps is not None:
                self._train_further((f"--max-steps={steps}",))

        await self.app.push_screen(Extend(run.name, run.status.step), answered)

    @work(group="resume", exclusive=True)
    async def _train_further(self, flags: tuple[str, ...]) -> None:
        run = self.session.watched
        if run is not None:
            await train_further(self, self.session.home, run.name, flags)

    async def action_again(self) -> None:
        """Open the form of a new run, filled in as for this one."""
        run = self.session.watched
        if run is not None and run.record is not None:
            await self.app.push_screen(NewRun(self.session.home, run.record), self._watch)

    async def action_fork(self) -> None:
        """Ask how a new run is to go on from here."""
        run = self.session.watched
        checkpoint = fork_of(run, self.step_read()) if run else None
        if run is not None and checkpoint is not None:
            steps = run.record.train.max_steps if run.record else max(1, run.status.max_steps)
            await self.app.push_screen(Fork(self.session.home, checkpoint, steps), self._watch)

    def _watch(self, name: str | None) -> None:
        if name is not None:
            self.post_message(WatchRun(name))


def fork_of(run: Run, step: int | None) -> Checkpoint | None:
    """The newest checkpoint up to a step; without a step the best one, else the newest."""
    good = [c for c in run.checkpoints if not c.problem and (step is None or c.step <= step)]
    if step is not None:
        return good[-1] if good else run.last
    return run.best or run.last
