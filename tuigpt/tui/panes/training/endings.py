"""How a run has ended, what is there to go on from, and by which keys (see `tui.keys`)."""

from __future__ import annotations

from textual.content import Content

from tuigpt.runs.folder import Run
from tuigpt.wording import one_line


def ended(run: Run) -> str:
    """What can be done with a run that was finished, stopped or paused; "" while it trains."""
    if run.status.state == "paused":
        return "paused: {train.unpause} trains on"
    if run.status.state not in ("finished", "stopped"):
        return ""
    parts = [_writes(run)]
    if run.last is not None and not run.built_in:
        finished = run.status.state == "finished"
        more = "{train.extend} trains further" if finished else "{train.resume} resumes"
        parts += [more, "{train.again} again"]
    return f"{run.status.state}: {' · '.join(filter(None, parts))}"


def broken(run: Run) -> tuple[Content, str]:
    """What to say of a run that failed, or whose trainer died without a word."""
    how = "failed" if run.status.state == "failed" else "is lost"
    words = Content.styled(f"✗ this run {how}: {one_line(run.status.message)}", "bold $text-error")
    if run.last is None:
        nothing = "it saved nothing before it ended: {train.new-run} starts anew"
        return words, f"{nothing} · {{train.log}} its log"
    resumes = f"saved: {{train.resume}} resumes from step {run.last.step:,}"
    return words, " · ".join([resumes, _writes(run), "{train.log} its log"])


def _writes(run: Run) -> str:
    best, last = run.best or run.last, run.last
    if best is None or last is None:
        return ""
    star = " ★" if run.best else ""
    newest = "" if last == best else f", {{train.write-newest}} with {last.step:,}"
    return f"{{train.write}} writes with {best.step:,}{star}{newest}"
