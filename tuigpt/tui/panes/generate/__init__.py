"""The generate pane: prompt in, streaming text out."""
