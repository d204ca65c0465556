"""The training pane: the curve, what it means, and what the model writes as it learns."""
