"""The three panes of the workbench, one file each."""
