"""The panes of the workbench: this list alone knows which there are, and their keys."""

from tuigpt.tui.panes.checkpoints.pane import CheckpointsPane
from tuigpt.tui.panes.generate.pane import GeneratePane
from tuigpt.tui.panes.pane import PaneEntry
from tuigpt.tui.panes.training.pane import TrainingPane

PANES = (
    PaneEntry(
        "generate", "Generate", "ctrl+g", "Go to the prompt", "#prompt", column=1,
        make=GeneratePane,
    ),
    PaneEntry(
        "training", "Training", "ctrl+t", "Go to the loss chart and the samples", "#chart",
        column=2, make=TrainingPane,
    ),
    PaneEntry(
        "checkpoints", "Checkpoints", "ctrl+o", "Go to the list of runs and checkpoints", "#list",
        column=0, make=CheckpointsPane,
    ),
)  # fmt: skip
"""In the order of the tabs; the first is shown first."""
