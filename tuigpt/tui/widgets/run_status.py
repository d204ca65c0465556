"""One line about the watched run that never leaves the screen."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from tuigpt.wording import duration, loss_text, one_line, short_count, val_text

if TYPE_CHECKING:
    from tuigpt.runs.status import RunStatus

MARKS = {
    "preparing": "◌", "training": "●", "evaluating": "●", "sampling": "●", "paused": "‖",
    "finished": "✓", "stopped": "■", "failed": "✗", "lost": "✗",
}  # fmt: skip

_WORDS = {"evaluating": "training", "sampling": "training"}
"""A training that measures itself for a second is still a training: the word does not flicker."""

_BAR = 10

_SAID_FOR = 5.0
"""Seconds that an acknowledgement stays."""

_AT_ONCE = 0.5
"""Seconds within which a second one does not take the place of the first."""

_LEAST_SAID = 20
"""Columns that an acknowledgement has in any case."""

_NAME_CUT = 12
"""Columns that a name is cut to before it is left out."""


class _Part(NamedTuple):
    """A part of the line.

    Attributes:
        rank: when it is left out: the lowest first, 0 never.
        right: whether it stands at the right end.
        gap: blanks behind it.
        firm: whether it stays beside an acknowledgement.
    """

    content: Content
    rank: int = 0
    right: bool = False
    gap: int = 2
    firm: bool = False


class RunStatusLine(Widget):
    """State, progress and time left; losses and speed at the right; an acknowledgement in between.

    What does not fit is left out: device, speed and bar first, then the name; the time left last.
    """

    DEFAULT_CSS = """
    RunStatusLine {
        height: 1; padding: 0 1; background: $surface; color: $foreground;
        text-wrap: nowrap; text-overflow: clip;
    }
    """

    known: reactive[bool] = reactive(False)
    """Whether anybody has looked yet; until then nothing is said of runs."""

    run_name: reactive[str] = reactive("")
    status: reactive[RunStatus | None] = reactive(None)
    said: reactive[str] = reactive("")
    """What was just done, for a moment."""

    _said_at = 0.0
    _said_in = ""
    _forgetting: Timer | None = None

    def acknowledge(self, text: str) -> None:
        """Say what was just done, at the right end, for some seconds; several at once together,
        the newest first, as the end is what is cut."""
        now = monotonic()
        together = self.said and now - self._said_at < _AT_ONCE
        self.said = f"{one_line(text)} · {self.said}" if together else one_line(text)
        self._said_at, self._said_in = now, self._word
        if self._forgetting is not None:
            self._forgetting.stop()
        self._forgetting = self.set_timer(_SAID_FOR, self._forget)

    @property
    def _word(self) -> str:
        """The state in a word."""
        state = self.status.state if self.status is not None else ""
        return _WORDS.get(state, one_line(state))

    def watch_status(self) -> None:
        """What was only begun when it was said is over once the state is another."""
        if self.said.endswith("…") and self._word != self._said_in:
            self._forget()

    def _forget(self) -> None:
        self.said = ""

    def render(self) -> Content:
        width = self.size.width - 2
        parts = self._parts()
        if self.said:
            # It takes the place of what can wait, and never that of name, state, steps and val.
            parts = [part for part in parts if part.firm]
            taken = sum(part.content.cell_length + part.gap for part in parts)
            said = Content.styled(self.said, "bold $text-success")
            said = said.truncate(max(_LEAST_SAID, width - taken), ellipsis=True)
            parts.append(_Part(said, right=True))
        while True:
            left = _joined([part for part in parts if not part.right])
            right = _joined([part for part in parts if part.right])
            gap = 2 if left and right else 0
            if left.cell_length + gap + right.cell_length <= width:
                break
            droppable = [part for part in parts if part.rank]
            if not droppable:
                break
            weakest = min(droppable, key=lambda part: part.rank)
            parts.remove(weakest)
        space = " " * max(gap, width - left.cell_length - right.cell_length)
        line = Content.assemble(left, space, right).truncate(max(1, width), ellipsis=True)
        paused = self.status is not None and self.status.state == "paused"
        return line.stylize("bold $text-warning") if paused else line

    def _parts(self) -> list[_Part]:
        status = self.status
        if status is None:
            name = _Part(Content.styled("tuigpt", "bold"), firm=True)
            if not self.known:
                return [name]
            return [
                name,
                _Part(Content("write with the poet, or train a model of your own"), rank=1),
                _Part(Content.styled("no run yet", "$foreground-muted"), right=True),
            ]
        parts = self._name_part(one_line(self.run_name))
        parts += self._state(status)
        if status.alive:
            if status.max_steps:
                done = min(_BAR, round(_BAR * status.step / status.max_steps))
                bar = Content.assemble(
                    ("▰" * done, "$text-primary"), ("▱" * (_BAR - done), "$foreground-muted")
                )
                parts.append(_Part(bar, rank=3))
            parts.append(_Part(_steps(status), rank=9, firm=True))
            if status.seconds_left is not None and status.state != "paused":
                parts.append(_Part(Content(f"{duration(status.seconds_left)} left")))
            if status.val_loss is not None:
                is_best = status.best_step is not None and status.val_loss == status.best_val_loss
                star = (" ★", "$text-success") if is_best else "  "
                # Before the first regular evaluation of the trained model it is an estimate.
                loss = loss_text(status.val_loss)
                if status.best_step is None and status.step:
                    loss = val_text(None, status.val_loss)
                val = Content.assemble("val ", (loss, "$val"), star)
                parts.append(_Part(val, rank=8, right=True, firm=True))
            if status.train_loss is not None:
                train = Content.assemble("train ", (loss_text(status.train_loss), "$train"))
                parts.append(_Part(train, rank=7, right=True))
            if status.tokens_per_second is not None and status.state != "paused":
                speed = f"{short_count(status.tokens_per_second)} tok/s"
                parts.append(_Part(Content(speed), rank=2, right=True))
        else:
            parts.append(_Part(_steps(status), rank=7, firm=True))
            if status.news:
                what = Content.styled(one_line(status.news), "$foreground-muted")
                parts.append(_Part(what, rank=3))
            if status.best_val_loss is not None and status.best_step is not None:
                best = Content.assemble(
                    "best val ", (f"{loss_text(status.best_val_loss)} ★", "$text-success"),
                    f" @{status.best_step:,}",
                )  # fmt: skip
                parts.append(_Part(best, rank=8, right=True, firm=True))
        if status.device:
            device = Content.styled(one_line(status.device), "$foreground-muted")
            parts.append(_Part(device, rank=1, right=True))
        return parts

    def _name_part(self, name: str) -> list[_Part]:
        """The name whole, or cut where it does not fit."""
        whole = Content.styled(name, "bold")
        if whole.cell_length > _NAME_CUT and self.size.width < 100:
            whole = whole.truncate(_NAME_CUT, ellipsis=True)
        return [_Part(whole, rank=4, gap=1, firm=True)]

    def _state(self, status: RunStatus) -> list[_Part]:
        colours = {
            "failed": "bold $text-error", "lost": "bold $text-error",
            "paused": "bold $text-warning", "preparing": "$text-primary",
            "finished": "$text-success",
        }  # fmt: skip
        style = colours.get(status.state, "$text-success" if status.alive else "$foreground-muted")
        word = self._word
        if status.state == "preparing" and status.progress:
            word += f" {status.progress:.0%}"
        mark = MARKS.get(status.state, "?")
        return [_Part(Content.styled(f"{mark} {word}", style), firm=True)]


def _joined(parts: list[_Part]) -> Content:
    pieces: list[Content | str] = []
    for part in parts:
        pieces += [part.content, " " * part.gap]
    return Content.assemble(*pieces[:-1])


def _steps(status: RunStatus) -> Content:
    total = f"{status.max_steps:,}"
    return Content(f"{status.step:,}".rjust(len(total)) + f"/{total}")
