"""The panes of the workbench: this list alone knows which there are, and their keys.

A pane is imported when it is made: the first frame waits for the one that it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuigpt.tui.panes.pane import PaneEntry

if TYPE_CHECKING:
    from tuigpt.tui.panes.pane import Pane
    from tuigpt.tui.session import Session


def _generate(entry: PaneEntry, session: Session) -> Pane:
    from tuigpt.tui.panes.generate.pane import GeneratePane

    return GeneratePane(entry, session)


def _training(entry: PaneEntry, session: Session) -> Pane:
    from tuigpt.tui.panes.training.pane import TrainingPane

    return TrainingPane(entry, session)


def _checkpoints(entry: PaneEntry, session: Session) -> Pane:
    from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane

    return CheckpointsPane(entry, session)


PANES = (
    PaneEntry(
        "generate", "Generate", "ctrl+g", "Go to the prompt", "#prompt", column=1,
        make=_generate,
    ),
    PaneEntry(
        "training", "Training", "ctrl+t", "Go to the loss chart and the samples", "#chart",
        column=2, make=_training,
    ),
    PaneEntry(
        "checkpoints", "Checkpoints", "ctrl+o", "Go to the list of runs and checkpoints", "#list",
        column=0, make=_checkpoints,
    ),
)  # fmt: skip
"""In the order of the tabs; the first is shown first."""
