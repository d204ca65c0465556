"""One module for each sub-command: here, and only here, core, runs and the app meet."""
