"""One line about the active run that never leaves the screen."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tuigpt.runs.status import RunStatus
from tuigpt.wording import duration, loss_text, short_count

_MARKS = {
    "preparing": "◌", "training": "●", "evaluating": "◍", "sampling": "◍", "paused": "‖",
    "finished": "✓", "stopped": "■", "failed": "✗", "lost": "✗",
}  # fmt: skip

_BAR = 10


class RunStatusLine(Widget):
    """Name, state, step, losses, speed and time left; what does not fit is left out at the end."""

    DEFAULT_CSS = """
    RunStatusLine { height: 1; padding: 0 1; background: $surface; color: $foreground; }
    """

    run_name: reactive[str] = reactive("")
    status: reactive[RunStatus | None] = reactive(None)

    def render(self) -> Content:
        status = self.status
        if status is None:
            return Content.assemble(("tuigpt", "bold"), ("  no run yet", "$foreground-muted"))
        pieces = self._pieces(status)
        line = pieces[0]
        for piece in pieces[1:]:
            longer = Content.assemble(line, "  ", piece)
            if longer.cell_length > self.size.width - 2:
                break
            line = longer
        return line

    def _pieces(self, status: RunStatus) -> list[Content]:
        colour = {"failed": "$text-error", "lost": "$text-error", "paused": "$text-warning"}
        style = colour.get(status.state, "$text-success" if status.alive else "$foreground-muted")
        pieces = [
            Content.assemble((self.run_name, "bold"), " "),
            Content.styled(f"{_MARKS.get(status.state, '?')} {status.state}", style),
        ]
        pieces = [Content.assemble(*pieces)]
        total = f"{status.max_steps:,}"
        step = f"{status.step:,}".rjust(len(total))
        done = status.step / status.max_steps if status.max_steps else 0.0
        filled = round(done * _BAR)
        bar = Content.assemble(
            ("▰" * filled, "$primary"), ("▱" * (_BAR - filled), "$foreground-disabled")
        )
        if status.state in ("evaluating", "sampling") and status.progress:
            pieces.append(Content(f"{step}/{total}  {status.progress:4.0%} of it done"))
        else:
            pieces.append(Content(f"{step}/{total}"))
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
            pieces.append(bar)
        elif status.message:
            pieces.append(Content.styled(status.message, "$foreground-muted"))
        if status.device:
            pieces.append(Content.styled(status.device, "$foreground-muted"))
        return pieces
