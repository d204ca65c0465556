"""The form that starts a run, with what it costs and what its text holds."""
