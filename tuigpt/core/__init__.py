"""The model and everything that needs torch. Nothing here knows a run folder or a terminal."""
