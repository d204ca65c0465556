"""The trainer process: torch. One run, from its text to its last checkpoint."""
