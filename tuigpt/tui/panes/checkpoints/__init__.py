"""The checkpoints pane: every run and every checkpoint."""
