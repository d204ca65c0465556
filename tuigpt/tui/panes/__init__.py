"""The panes of the workbench, a folder each."""
