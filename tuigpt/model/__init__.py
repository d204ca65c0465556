"""The network and its files: torch."""
