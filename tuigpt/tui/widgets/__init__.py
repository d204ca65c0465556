"""Reusable widgets, one a file. Import each from its own module."""
