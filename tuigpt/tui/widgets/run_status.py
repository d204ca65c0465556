"""One line about the active run that never leaves the screen."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from tuigpt.runs.status import RunStatus
from tuigpt.wording import duration, loss_text, one_line, short_count

_MARKS = {
    "preparing": "◌", "training": "●", "evaluating": "◍", "sampling": "◍", "paused": "‖",
    "finished": "✓", "stopped": "■", "failed": "✗", "lost": "✗",
}  # fmt: skip

_BAR = 10

SAID_FOR = 4.0
"""Seconds."""

_STATE_WIDTH = len("◍ evaluating 100%")
"""So that what stands behind the state stays where it is."""


class RunStatusLine(Widget):
    """Name, state, step, losses, speed and time left; what does not fit is left out at the end."""

    DEFAULT_CSS = """
    RunStatusLine { height: 1; padding: 0 1; background: $surface; color: $foreground; }
    """

    run_name: reactive[str] = reactive("")
    status: reactive[RunStatus | None] = reactive(None)
    said: reactive[str] = reactive("")
    """What was done as asked, at the right end for a few seconds."""

    _forget: Timer | None = None

    def acknowledge(self, text: str) -> None:
        """Say for some seconds that something was done."""
        self.said = one_line(text)
        if self._forget is not None:
            self._forget.stop()
        self._forget = self.set_timer(SAID_FOR, self._say_no_more)

    def _say_no_more(self) -> None:
        self.said = ""

    def render(self) -> Content:
        if not self.said:
            return self._line(self.size.width - 2)
        room = self.size.width - 2
        said = Content.styled(self.said, "$text-success").truncate(room, ellipsis=True)
        line = self._line(room - said.cell_length - 2)
        return Content.assemble(line, " " * (room - line.cell_length - said.cell_length), said)

    def _line(self, width: int) -> Content:
        status = self.status
        if status is None:
            return Content.assemble(("tuigpt", "bold"), ("  no run yet", "$foreground-muted"))
        pieces = self._pieces(status)
        line = pieces[0].truncate(max(0, width), ellipsis=True)
        for piece in pieces[1:]:
            longer = Content.assemble(line, "  ", piece)
            if longer.cell_length > width:
                break
            line = longer
        return line

    def _pieces(self, status: RunStatus) -> list[Content]:
        colour = {"failed": "$text-error", "lost": "$text-error", "paused": "$text-warning"}
        style = colour.get(status.state, "$text-success" if status.alive else "$foreground-muted")
        doing = f"{_MARKS.get(status.state, '?')} {one_line(status.state)}"
        if status.progress:
            doing += f" {status.progress:.0%}"
        pieces = [
            Content.assemble(
                (one_line(self.run_name), "bold"),
                " ",
                (doing.ljust(_STATE_WIDTH if status.alive else 0), style),
            )
        ]
        total = f"{status.max_steps:,}"
        pieces.append(Content(f"{status.step:,}".rjust(len(total)) + f"/{total}"))
        star = (
            " ★"
            if status.best_step is not None
            and status.val_loss is not None
            and (status.val_loss == status.best_val_loss)
            else "  "
        )
        if status.val_loss is not None:
            pieces.append(Content(f"val {loss_text(status.val_loss)}{star}"))
        if status.train_loss is not None:
            pieces.append(Content(f"train {loss_text(status.train_loss)}"))
        if status.alive:
            if status.seconds_left is not None:
                pieces.append(Content(f"{duration(status.seconds_left)} left"))
            if status.tokens_per_second is not None:
                pieces.append(Content(f"{short_count(status.tokens_per_second)} tok/s"))
            done = round(_BAR * status.step / max(1, status.max_steps))
            bar = ("▰" * done, "$primary"), ("▱" * (_BAR - done), "$foreground-disabled")
            pieces.append(Content.assemble(*bar))
        elif status.message:
            pieces.append(Content.styled(one_line(status.message), "$foreground-muted"))
        if status.device:
            pieces.append(Content.styled(one_line(status.device), "$foreground-muted"))
        return pieces
