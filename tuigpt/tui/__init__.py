"""The app: one workbench with three panes. It reads run folders and never imports torch."""
